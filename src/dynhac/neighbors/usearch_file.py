"""The saved form of a usearch graph, read and checked before usearch loads it.

usearch trusts what it loads: a neighbour out of range makes it read foreign memory at some later
addition. So every number that it follows is checked here first. Links may lead to any node that
exists on their level: others than the true ones cost recall, and do no other harm.

The layout (usearch 2), all numbers little-endian:

====================  =====================================================================
4 + 4 bytes           number of nodes, bytes of a vector
vectors               float32, by node
64 bytes              ``HEAD``: version, kinds, number of present and of removed nodes, dimension
40 bytes              ``GRAPH``: nodes, links of a node above level 0, links on it (twice as
                      many), top level (-1 of none), the node where searches begin
levels                int16, by node
nodes                 by node: key, 8 bytes; level, 2 bytes; then from level 0 up to its level the
                      number of links, 4 bytes, and room for all links, 4 bytes each: a node
====================  =====================================================================

A removed node remains as a waypoint of searches, under the key ``REMOVED``.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from dynhac.neighbors.arrays import parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac.neighbors.index import Ints, Vectors

SIZES = struct.Struct("<II")
HEAD = struct.Struct("<7sHHHBBBBQQQ?22x")
GRAPH = struct.Struct("<QQQqQ")
MAGIC, MAJOR_VERSION = b"usearch", 2
METRICS = {"l2sq": ord("e"), "ip": ord("i")}
FLOAT32, KEY64, SLOT32 = 11, 14, 15
REMOVED = 2**64 - 1
NODE_HEAD = 10  # bytes: key and level
BYTES_AT_ONCE = 2**24


def read_graph(
    data: NDArray[np.uint8], metric: str, dimension: int, connectivity: int
) -> tuple[Ints, Vectors]:
    """Return the keys of the present nodes and their vectors, ordered by key.

    Raises ValueError unless ``data`` is a graph of this metric (of usearch), dimension and
    connectivity that usearch can load and use.
    """
    if data.dtype != np.uint8 or data.ndim != 1 or len(data) < SIZES.size:
        raise ValueError("the graph of its index is not one")
    nodes, bytes_of_vector = SIZES.unpack_from(data.data)
    _expect(bytes_of_vector == 4 * dimension, "size of vectors")
    at = SIZES.size + nodes * bytes_of_vector
    _expect(len(data) >= at + HEAD.size + GRAPH.size + 2 * nodes, "length")
    vectors = data[SIZES.size : at].view("<f4").reshape(nodes, dimension)
    present, removed = _read_head(data, at, METRICS[metric], dimension)
    counts = GRAPH.unpack_from(data.data, at + HEAD.size)
    _expect(counts[:3] == (nodes, connectivity, 2 * connectivity), "numbers of nodes and links")
    top, entry = counts[3:]
    at += HEAD.size + GRAPH.size
    levels = data[at : at + 2 * nodes].view("<i2").astype(np.int64)
    at += 2 * nodes
    if nodes:
        _expect(levels.min() >= 0 and levels.max() == top, "levels")
        _expect(entry < nodes and levels[entry] == top, "entry node")
    else:
        _expect(top == -1 and entry == 0, "levels")
    room = (4 + 8 * connectivity, 4 + 4 * connectivity)  # bytes on level 0, and above
    sizes = NODE_HEAD + room[0] + levels * room[1]
    starts = at + np.cumsum(sizes) - sizes
    _expect(at + int(sizes.sum()) == len(data), "length")
    _expect(bool((_fields(data, starts + 8, 2).view("<i2")[:, 0] == levels).all()), "levels")
    for level in range(top + 1):
        reached = np.flatnonzero(levels >= level)
        lists = starts[reached] + NODE_HEAD + (level > 0) * (room[0] + (level - 1) * room[1])
        _check_links(data, lists, room[level > 0], levels, level)
    keys = _fields(data, starts, 8).view("<u8").ravel()
    used = np.flatnonzero(keys != REMOVED)
    _expect((len(used), nodes - len(used)) == (present, removed), "number of removed nodes")
    _expect(bool((keys[used] < 2**63).all()), "keys")
    _expect(bool(np.isfinite(vectors).all()), "vectors")
    used = used[np.argsort(keys[used])]
    own = keys[used].astype(np.int64)
    _expect(bool((own[1:] > own[:-1]).all()), "keys")
    return own, vectors[used].astype(np.float32)


def _read_head(data: NDArray[np.uint8], at: int, metric: int, dimension: int) -> tuple[int, int]:
    """Return how many nodes are present and removed."""
    magic, major, _, _, *kinds, present, removed, columns, multi = HEAD.unpack_from(data.data, at)
    _expect(magic == MAGIC and major == MAJOR_VERSION, "version")
    _expect(kinds == [metric, FLOAT32, KEY64, SLOT32] and not multi, "kind")
    _expect(columns == dimension, "dimension")
    return present, removed


def _check_links(data: NDArray[np.uint8], lists: Ints, size: int, levels: Ints, level: int) -> None:
    """Raise unless all links in lists of a size lead to nodes that reach the level."""
    reaches = levels >= level
    for part in parts(len(lists), BYTES_AT_ONCE // size):
        fields = _fields(data, lists[part], size).view("<u4")
        used, links = fields[:, 0], fields[:, 1:]
        _expect(bool((used <= links.shape[1]).all()), "number of links")
        found = links[np.arange(links.shape[1]) < used[:, None]]
        _expect(bool((found < len(levels)).all()) and bool(reaches[found].all()), "links")


def _fields(data: NDArray[np.uint8], starts: Ints, size: int) -> NDArray[np.uint8]:
    """Return the bytes of fields of one size, one row each."""
    if not len(starts):
        return np.empty((0, size), np.uint8)
    return np.lib.stride_tricks.sliding_window_view(data, size)[starts]


def _expect(holds: bool | np.bool_, what: str) -> None:
    if not holds:
        raise ValueError(f"the graph of its index is not right: {what}")
