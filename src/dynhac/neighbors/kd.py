"""Exact nearest neighbours in few dimensions: KD-trees that cannot change, in blocks that do.

New vectors gather in a small buffer, which is scanned. When it is full it becomes a block with a
KD-tree, and takes in every block of up to four times the size reached so far (the logarithmic
method of Bentley and Saxe): so a vector is in O(log n) trees in its life, and there are O(log n)
blocks, few of them as every query asks all. A removal leaves a dead member in its block; a block
is built anew when a quarter is dead.

Equal vectors share one place in the tree, their slots ascending, so that thousands of duplicates
cost a query no more than k members. A tree returns any of those at equal distances, and dead ones
too; so a query is right only if all that a tree left out is farther than the k-th neighbour found,
and is asked again for more otherwise. As the answers are exact, nothing of the blocks is saved.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.neighbors.exact import ExactIndex, fill_nearest
from dynhac.neighbors.metrics import METRICS
from dynhac.neighbors.rows import LEAST_CAPACITY, require_absent, require_present, with_room

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

MOST_DIMENSIONS = 8
BUFFER = 1024
"""Vectors that are scanned before they get a tree."""

GROWTH = 4
MOST_DEAD = 0.25
CANDIDATES_AT_ONCE = 2**20
NOTHING: NDArray[np.int64] = np.empty(0, np.int64)
# What a tree computes differs from our distances by a few roundings in float64.
MARGIN = 1.0 + 1e-9
# A tree finds what is nearer than a bound: one of 0 must be a little more to find equal vectors.
# (Distances of float32 vectors are 0 or above 1e-46.)
ABOVE_ZERO = 1e-100


class KDBlocksIndex:
    """An exact index for the Euclidean metric in up to 8 dimensions; needs scipy.

    Parameters
    ----------
    dimension : int
        The length of the vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.neighbors import KDBlocksIndex
    >>> index = KDBlocksIndex(dimension=1)
    >>> index.add(np.array([0, 1, 2]), np.array([[0.0], [5.0], [6.0]], np.float32))
    >>> slots, distances = index.query(np.array([[5.25]], np.float32), 2)
    >>> slots.tolist(), distances.tolist()
    ([[1, 2]], [[0.25, 0.75]])
    """

    __slots__ = ("_block_of", "_blocks", "_buffer", "_count", "_dimension", "_metric", "_row_of")

    def __init__(self, dimension: int) -> None:
        if not 1 <= dimension <= MOST_DIMENSIONS:
            raise ValueError(
                f"neighbors is 'kd', which is for dimensions 1 to {MOST_DIMENSIONS}, and the "
                f"vectors have dimension {dimension}; use 'auto', 'exact' or 'usearch'"
            )
        try:
            import scipy.spatial  # noqa: F401
        except ImportError as error:
            raise ImportError("neighbors='kd' needs scipy: pip install dynhac[kd]") from error
        self._dimension = dimension
        self._metric = METRICS["euclidean"]
        self._count = 0
        self._buffer = ExactIndex(self._metric)
        self._blocks: dict[int, Block] = {}
        # Of every slot: its block (0 the buffer, -1 none), and its row there.
        self._block_of: NDArray[np.int64] = np.full(LEAST_CAPACITY, -1, np.int64)
        self._row_of: NDArray[np.int64] = np.full(LEAST_CAPACITY, -1, np.int64)

    def __len__(self) -> int:
        return self._count

    def add(self, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """See `NeighborIndex.add`."""
        require_absent(self._block_of, slots)
        prepared = self._metric.prepare(vectors) + np.float32(0.0)  # -0.0 becomes 0.0
        self._block_of = with_room(self._block_of, slots)
        self._row_of = with_room(self._row_of, slots)
        self._place(slots, prepared)
        self._count += len(slots)

    def remove(self, slots: NDArray[np.int64]) -> None:
        """See `NeighborIndex.remove`."""
        require_present(self._block_of, slots)
        homes = self._block_of[slots]
        self._block_of[slots] = -1
        self._count -= len(slots)
        self._buffer.remove(slots[homes == 0])
        worn = []
        for number in np.unique(homes[homes > 0]).tolist():
            block = self._blocks[number]
            block.kill(self._row_of[slots[homes == number]])
            if block.dead > MOST_DEAD * len(block.slots):
                worn.append(self._blocks.pop(number))
        for block in worn:
            self._place(*block.living())

    def query(
        self, vectors: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """See `NeighborIndex.query`."""
        prepared = self._metric.prepare(vectors)
        slots = np.full((len(prepared), k), -1, np.int64)
        distances = np.full((len(prepared), k), np.inf)
        if self._count and k:
            step = max(1, CANDIDATES_AT_ONCE // k)
            for i in range(0, len(prepared), step):
                part = slice(i, i + step)
                slots[part], distances[part] = self._nearest(prepared[part], k, 1)
        return slots, distances

    def save(self) -> dict[str, NDArray[Any]]:
        """See `NeighborIndex.save`."""
        parts = [self._buffer.held(), *(block.living() for block in self._blocks.values())]
        slots = np.concatenate([part[0] for part in parts])
        vectors = np.concatenate([part[1].reshape(-1, self._dimension) for part in parts])
        return {"slots": slots, "vectors": vectors}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `NeighborIndex.load`."""
        self.add(arrays["slots"], arrays["vectors"])

    def _place(self, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Put vectors into the buffer, or with the buffer into a block."""
        if len(self._buffer) + len(slots) <= BUFFER:
            self._buffer.add(slots, vectors)
            self._block_of[slots] = 0
            return
        pool = [self._buffer.held(), (slots, vectors)]
        size = len(self._buffer) + len(slots)
        for number, block in sorted(self._blocks.items(), key=lambda item: item[1].size):
            if block.size > GROWTH * size:
                break
            pool.append(block.living())
            size += block.size
            del self._blocks[number]
        number = max(self._blocks, default=0) + 1
        block = Block(
            np.concatenate([part[0] for part in pool]),
            np.concatenate([part[1].reshape(-1, self._dimension) for part in pool]),
        )
        self._buffer.remove(self._buffer.held()[0].copy())
        self._blocks[number] = block
        self._block_of[block.slots] = number
        self._row_of[block.slots] = np.arange(len(block.slots))

    def _nearest(
        self, queries: NDArray[np.float32], k: int, spare: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the answer, asking every tree for at least ``spare`` more than it needs."""
        slots, distances = self._buffer.query(queries, k)
        held = slots >= 0
        found = [(np.nonzero(held)[0], slots[held], distances[held])]
        left_out = np.full(len(queries), np.inf)
        bound = float(distances[:, -1].max()) * MARGIN + ABOVE_ZERO
        for block in sorted(self._blocks.values(), key=lambda block: -block.size):
            rows, members, farthest, reach = block.ask(queries, k, spare, bound)
            bound = min(bound, reach)
            np.minimum(left_out, farthest, out=left_out)
            if len(rows):
                exact = self._metric.distances_at(queries, rows, block.vectors, members)
                found.append((rows, block.slots[members], exact))
        if self._blocks:
            slots, distances = np.full_like(slots, -1), np.full_like(distances, np.inf)
            rows, candidates, exact = (
                np.concatenate(column) for column in zip(*found, strict=True)
            )
            fill_nearest(slots, distances, rows, candidates, exact)
            unsure = (left_out <= distances[:, -1] * MARGIN) & (left_out < np.inf)
            again = np.flatnonzero(unsure)
            if len(again):
                step = max(1, CANDIDATES_AT_ONCE // (k + 4 * spare))
                for i in range(0, len(again), step):
                    part = again[i : i + step]
                    slots[part], distances[part] = self._nearest(queries[part], k, 4 * spare)
        return slots, distances


class Block:
    """A KD-tree over vectors that stay as they are, but may die.

    Members stand in the order of their places, by slot within one; ``_starts`` has the first of
    every place and, at the end, the number of members. Where no two are equal every member is a
    place, and ``_starts`` is None.
    """

    __slots__ = ("_alive", "_live_at", "_starts", "_tree", "dead", "slots", "vectors")

    def __init__(self, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        from scipy.spatial import cKDTree

        self._starts: NDArray[np.int64] | None = None
        self._live_at: NDArray[np.int64] = np.ones(len(slots), np.int64)
        places = vectors
        if _may_have_equals(vectors):
            order = np.lexsort((slots, *vectors.T))
            slots, vectors = slots[order], vectors[order]
            new = np.ones(len(slots) + 1, bool)
            np.any(vectors[1:] != vectors[:-1], axis=1, out=new[1:-1])
            self._starts = np.flatnonzero(new)
            self._live_at = np.diff(self._starts)
            places = vectors[self._starts[:-1]]
        self.slots = slots
        self.vectors = vectors
        self.dead = 0
        self._alive = np.ones(len(slots), bool)
        self._tree = cKDTree(
            places.astype(np.float64), compact_nodes=False, balanced_tree=False, copy_data=False
        )

    @property
    def size(self) -> int:
        """How many members are alive."""
        return len(self.slots) - self.dead

    def living(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return slots and vectors of the members that are alive."""
        if self.dead == 0:
            return self.slots, self.vectors
        return self.slots[self._alive], self.vectors[self._alive]

    def kill(self, rows: NDArray[np.int64]) -> None:
        """Mark members as dead that are alive."""
        self._alive[rows] = False
        self.dead += len(rows)
        places = rows
        if self._starts is not None:
            places = np.searchsorted(self._starts, rows, side="right") - 1
        np.subtract.at(self._live_at, places, 1)

    def ask(
        self, queries: NDArray[np.float32], k: int, spare: int, bound: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], float]:
        """Return candidates for the ``k`` nearest within ``bound``.

        Returns
        -------
        rows, members
            Pairs of a query and a member that is alive.
        farthest
            For every query a distance: the members left out are at least as far, or beyond bound.
        reach
            A distance within which every query has ``k`` candidates.
        """
        dead = k * self.dead / len(self.slots)
        wanted = k + math.ceil(4 / 3 * dead + 2 * math.sqrt(dead)) + spare
        everything = wanted >= self._tree.n
        distances, places = self._tree.query(
            queries.astype(np.float64),
            k=np.arange(1, min(wanted, self._tree.n) + 1),
            distance_upper_bound=bound,
        )
        farthest = np.full(len(queries), np.inf) if everything else distances[:, -1]
        found = distances < np.inf
        if not found.any():
            return NOTHING, NOTHING, farthest, np.inf
        live = self._live_at[np.where(found, places, 0)] * found
        enough = np.cumsum(live, axis=1) >= k
        last = distances[np.arange(len(queries)), np.argmax(enough, axis=1)]
        limit = np.where(enough[:, -1], last, np.inf) * MARGIN + ABOVE_ZERO
        rows, ranks = np.nonzero((live > 0) & (distances <= limit[:, None]))
        members = places[rows, ranks]
        if self._starts is not None:
            rows, members = self._members_at(rows, members, k)
        return rows, members, farthest, float(limit.max())

    def _members_at(
        self, rows: NDArray[np.int64], places: NDArray[np.int64], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Replace each place by its first ``k`` members that are alive, or all of them."""
        assert self._starts is not None
        starts = self._starts[places]
        sizes = self._starts[places + 1] - starts
        counts = np.minimum(sizes, k + sizes - self._live_at[places])
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows, members = np.repeat(rows, counts), np.repeat(starts, counts) + offsets
        alive = self._alive[members]
        return rows[alive], members[alive]


def _may_have_equals(vectors: NDArray[np.float32]) -> bool:
    """Whether two rows may be equal; False is certain, True may come from a clash of hashes."""
    bits = vectors.view(np.uint32).astype(np.uint64)
    hashes = np.zeros(len(vectors), np.uint64)
    for j in range(vectors.shape[1]):
        hashes = (hashes ^ bits[:, j]) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    hashes.sort()
    return bool((hashes[1:] == hashes[:-1]).any())
