"""Approximate nearest neighbours among many vectors: a navigable graph (HNSW), by usearch.

The graph holds every distinct vector once, under a key of ours; equal vectors share a key. (A graph
in which hundreds of equal vectors are each other's nearest has no edges left to go elsewhere.) The
vectors are kept here too: to report exact distances, and to scan them while they are few, or in the
rare case that the graph, cut in two by removals or near duplicates, does not lead to k vectors.

The graph depends on the order of additions and removals alone: one thread builds it. What usearch
does not write down is the state of the generator that draws the levels of new nodes; so `save`
goes on from what it wrote, just as an index does that loads it.
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.neighbors.exact import ExactIndex, fill_nearest
from dynhac.neighbors.metrics import Metric, resolve_metric
from dynhac.neighbors.rows import LEAST_CAPACITY, require_absent, require_present, with_room

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

CANDIDATES_AT_ONCE = 2**18
MOST_NUMBERS_SCANNED = 2**18
"""Numbers (distinct vectors times dimension) up to which a scan is no slower than the graph."""

# Prepared for cosine, vectors have length 1 or 0, for which the inner product is the cosine.
USEARCH_METRICS = {"euclidean": "l2sq", "cosine": "ip", "inner_product": "ip"}


class UsearchIndex:
    """An approximate index for many vectors; needs usearch.

    Distances are exact; of the k nearest a few may be missing, with others in their place.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "inner_product"}
        How distance is measured.
    dimension : int
        The length of the vectors.
    connectivity : int, default 32
        Edges of a vector in the graph.
    expansion_add, expansion_search : int, optional
        Candidates to look at when a vector is added, and in a query; more are slower and find
        more. By default 128 and 192, and 512 each for inner products, which are not a metric and
        harder to find a way by.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.neighbors import UsearchIndex
    >>> index = UsearchIndex("euclidean", dimension=1)
    >>> index.add(np.array([0, 1, 2]), np.array([[0.0], [5.0], [6.0]], np.float32))
    >>> slots, distances = index.query(np.array([[5.25]], np.float32), 2)
    >>> slots.tolist(), distances.tolist()
    ([[1, 2]], [[0.25, 0.75]])
    """

    __slots__ = (
        "_count",
        "_distinct",
        "_first",
        "_free",
        "_graph",
        "_key_of",
        "_keys",
        "_members",
        "_metric",
        "_settings",
    )

    def __init__(
        self,
        metric: str | Metric,
        dimension: int,
        *,
        connectivity: int = 32,
        expansion_add: int | None = None,
        expansion_search: int | None = None,
    ) -> None:
        self._metric = resolve_metric(metric)
        usual = (512, 512) if self._metric.name == "inner_product" else (128, 192)
        self._settings = (
            dimension,
            connectivity,
            usual[0] if expansion_add is None else expansion_add,
            usual[1] if expansion_search is None else expansion_search,
        )
        self._graph = _new_graph(self._metric, *self._settings)
        self._count = 0
        self._distinct = ExactIndex(self._metric)  # the distinct vectors by key
        self._keys: dict[bytes, int] = {}  # by digest of the vector
        self._free: list[int] = []  # keys below the number of those ever used, the next one last
        self._key_of: NDArray[np.int64] = np.full(LEAST_CAPACITY, -1, np.int64)  # by slot
        # By key: the only slot, or -1 if there are several; those are in _members, ascending.
        self._first: NDArray[np.int64] = np.full(LEAST_CAPACITY, -1, np.int64)
        self._members: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return self._count

    def add(self, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """See `NeighborIndex.add`."""
        require_absent(self._key_of, slots)
        if len(slots) == 0:
            return
        prepared = self._metric.prepare(vectors) + np.float32(0.0)  # -0.0 becomes 0.0
        self._key_of = with_room(self._key_of, slots)
        new_keys, new_rows = [], []
        for row, (slot, vector) in enumerate(zip(slots.tolist(), prepared, strict=True)):
            digest = _digest(vector)
            key = self._keys.get(digest)
            if key is None:
                key = self._free.pop() if self._free else len(self._keys)
                self._keys[digest] = key
                new_keys.append(key)
                new_rows.append(row)
            self._join(slot, key)
        self._count += len(slots)
        if new_keys:
            keys = np.array(new_keys, np.int64)
            self._distinct.add_prepared(keys, prepared[new_rows])
            self._graph.add(keys.astype(np.uint64), prepared[new_rows], threads=1)

    def remove(self, slots: NDArray[np.int64]) -> None:
        """See `NeighborIndex.remove`."""
        require_present(self._key_of, slots)
        members = zip(slots.tolist(), self._key_of[slots].tolist(), strict=True)
        unused = [key for slot, key in members if self._leave(slot, key)]
        self._count -= len(slots)
        if unused:
            keys = np.array(unused, np.int64)
            for vector in self._distinct.vectors_of(keys):
                del self._keys[_digest(vector)]
            self._free.extend(unused)
            self._distinct.remove(keys)
            self._graph.remove(keys.astype(np.uint64), threads=1)

    def query(
        self, vectors: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """See `NeighborIndex.query`."""
        prepared = self._metric.prepare(vectors)
        slots = np.full((len(prepared), k), -1, np.int64)
        distances = np.full((len(prepared), k), np.inf)
        if self._count and k:
            few = len(self._distinct) * prepared.shape[1] <= MOST_NUMBERS_SCANNED
            candidates = self._distinct.candidates if few else self._candidates
            step = max(1, CANDIDATES_AT_ONCE // (len(self._distinct) if few else k))
            for i in range(0, len(prepared), step):
                part = slice(i, i + step)
                rows, keys = candidates(prepared[part], k)
                exact = self._distinct.distances_at(prepared[part], rows, keys)
                fill_nearest(slots[part], distances[part], *self._members_of(rows, keys, exact, k))
        return slots, distances

    def save(self) -> dict[str, NDArray[Any]]:
        """See `NeighborIndex.save`."""
        written = self._graph.save()
        graph = _new_graph(self._metric, *self._settings)
        graph.load(written)
        self._graph = graph
        slots = np.flatnonzero(self._key_of >= 0)
        return {
            "graph": np.frombuffer(written, np.uint8),
            "settings": np.array(self._settings, np.int64),
            "slots": slots,
            "keys": self._key_of[slots],
            "free": np.array(self._free, np.int64),
        }

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `NeighborIndex.load`; the settings are those of the saved index."""
        dimension, connectivity, expansion_add, expansion_search = arrays["settings"].tolist()
        self._settings = (dimension, connectivity, expansion_add, expansion_search)
        self._graph = _new_graph(self._metric, *self._settings)
        self._graph.load(arrays["graph"].tobytes())
        slots = arrays["slots"]
        self._key_of = with_room(self._key_of, slots)
        for slot, key in zip(slots.tolist(), arrays["keys"].tolist(), strict=True):
            self._join(slot, key)
        self._count = len(slots)
        self._free = arrays["free"].tolist()
        keys = np.unique(arrays["keys"])
        if len(keys):
            vectors = np.stack(self._graph.get(keys.astype(np.uint64)))
            self._distinct.add_prepared(keys, vectors)
            self._keys = {_digest(v): k for k, v in zip(keys.tolist(), vectors, strict=True)}

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_from, (self._metric.name, self._settings[0], self.save())

    def _join(self, slot: int, key: int) -> None:
        """Make a slot a member of its key."""
        self._key_of[slot] = key
        if key >= len(self._first):
            self._first = with_room(self._first, np.array([key]))
        if key in self._members:
            insort(self._members[key], slot)
        elif (other := int(self._first[key])) >= 0:
            self._members[key] = sorted((slot, other))
            self._first[key] = -1
        else:
            self._first[key] = slot

    def _leave(self, slot: int, key: int) -> bool:
        """Take a slot from its key; return whether the key has no members left."""
        self._key_of[slot] = -1
        if key not in self._members:
            self._first[key] = -1
            return True
        self._members[key].remove(slot)
        if len(self._members[key]) == 1:
            self._first[key] = self._members.pop(key)[0]
        return False

    def _candidates(
        self, queries: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return pairs (query, key) by the graph; for every query ``k`` keys, or all there are."""
        k = min(k, len(self._distinct))
        found = self._graph.search(queries, k, threads=1)
        counts = np.array([len(found)]) if len(queries) == 1 else found.counts
        keys = np.zeros((len(queries), k), np.int64)
        keys[:, : found.keys.shape[-1]] = found.keys
        short = np.flatnonzero(counts < k)
        if len(short):
            keys[short], _ = self._distinct.query_prepared(queries[short], k)
        return np.repeat(np.arange(len(queries)), k), keys.ravel()

    def _members_of(
        self, rows: NDArray[np.int64], keys: NDArray[np.int64], exact: NDArray[np.float64], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return rows, slots and distances with every key replaced by its first members."""
        slots = self._first[keys]
        shared = np.flatnonzero(slots < 0)
        if len(shared) == 0:
            return rows, slots, exact
        members = [np.array(self._members[key][:k], np.int64) for key in keys[shared].tolist()]
        counts = [len(group) for group in members]
        single = slots >= 0
        return (
            np.concatenate([rows[single], np.repeat(rows[shared], counts)]),
            np.concatenate([slots[single], *members]),
            np.concatenate([exact[single], np.repeat(exact[shared], counts)]),
        )


def _new_graph(
    metric: Metric, dimension: int, connectivity: int, expansion_add: int, expansion_search: int
) -> Any:
    try:
        from usearch.index import Index
    except ImportError as error:
        raise ImportError("neighbors='usearch' needs usearch: pip install dynhac[ann]") from error
    return Index(
        ndim=dimension,
        metric=USEARCH_METRICS[metric.name],
        dtype="f32",
        connectivity=connectivity,
        expansion_add=expansion_add,
        expansion_search=expansion_search,
    )


def _digest(vector: NDArray[np.float32]) -> bytes:
    """Return what stands for a vector: equal ones have equal digests, others do not."""
    from hashlib import blake2b

    return blake2b(vector.data, digest_size=16).digest()


def _made_from(metric: str, dimension: int, arrays: Mapping[str, NDArray[Any]]) -> UsearchIndex:
    index = UsearchIndex(metric, dimension)
    index.load(arrays)
    return index
