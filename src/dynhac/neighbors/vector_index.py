"""The base of indexes of a library: they hold each distinct vector once, under a key.

A search finds candidates; they are then ordered by float64 distance, then by slot. So its answer
depends only on the candidates: not on their order, nor on how many queries are made at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynhac.neighbors.arrays import parts
from dynhac.neighbors.equal_vectors import EqualVectors
from dynhac.neighbors.metrics import resolve_metric
from dynhac.neighbors.vector_table import VectorTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynhac.neighbors.index import Distances, Ints, Vectors
    from dynhac.neighbors.metrics import Metric

PAIRS_AT_ONCE = 2**20
"""Pairs of a query and a vector that are examined at a time."""


class VectorIndex:
    """An index that examines all its vectors, unless a subclass has other candidates."""

    __slots__ = ("_distinct", "_keys", "_metric")

    def __init__(self, metric: str | Metric) -> None:
        self._metric = resolve_metric(metric)
        self._keys = EqualVectors()
        self._distinct = VectorTable(self._metric)

    @property
    def metric(self) -> str:
        """How distance is measured."""
        return self._metric.name

    def __len__(self) -> int:
        return self._keys.count

    def add(self, slots: Ints, vectors: Vectors) -> None:
        """See `NeighborIndex.add`."""
        self._add(slots, self._metric.prepare(vectors))

    def remove(self, slots: Ints) -> None:
        """See `NeighborIndex.remove`."""
        self._remove(slots)

    def query(self, vectors: Vectors, k: int) -> tuple[Ints, Distances]:
        """See `NeighborIndex.query`."""
        return self._nearest(vectors, k, self._all_candidates, len(self._distinct))

    def _all_candidates(self, queries: Vectors, k: int) -> tuple[Ints, Ints]:
        return self._distinct.all_pairs(queries)

    def _add(self, slots: Ints, vectors: Vectors) -> tuple[Ints, Vectors]:
        """Add prepared vectors; return the keys of the new distinct ones, and these vectors."""
        vectors = vectors + np.float32(0.0)  # -0.0 becomes 0.0
        keys, rows = self._keys.add(slots, vectors)
        new = vectors[rows]
        self._distinct.add(keys, new)
        return keys, new

    def _remove(self, slots: Ints) -> Ints:
        """Remove slots; return the keys that no slot has any more."""
        keys = self._keys.remove(slots)
        self._distinct.remove(keys)
        return keys

    def _nearest(
        self,
        vectors: Vectors,
        k: int,
        candidates: Callable[[Vectors, int], tuple[Ints, Ints]],
        examined: int,
    ) -> tuple[Ints, Distances]:
        """Return slots and distances of the ``k`` nearest candidates, as `query` does.

        ``candidates`` returns pairs (query, key) that include as many vectors as there are, up to
        ``k``, for every query, and examines this many vectors per query to find them.
        """
        queries = self._metric.prepare(vectors)
        slots = np.full((len(queries), k), -1, np.int64)
        distances = np.full((len(queries), k), np.inf)
        if len(self) and k:
            for part in parts(len(queries), PAIRS_AT_ONCE // examined):
                rows, keys = candidates(queries[part], k)
                exact = self._distinct.distances_at(queries[part], rows, keys)
                members = self._keys.members_of(rows, keys, exact, k)
                _fill_nearest(slots[part], distances[part], *members)
        return slots, distances


def _fill_nearest(
    slots: Ints, distances: Distances, rows: Ints, found: Ints, exact: Distances
) -> None:
    """Write the nearest candidates of every row to ``slots`` and ``distances``.

    They ascend by (distance, slot). Candidate i belongs to row ``rows[i]`` and has slot
    ``found[i]`` and distance ``exact[i]``.
    """
    m, k = slots.shape
    counts = np.bincount(rows, minlength=m)
    width = int(counts.max())
    if m * width > 2 * len(rows):  # a matrix would be mostly empty
        order = np.lexsort((found, exact, rows))
        rows = rows[order]
        rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
        order, rows, rank = (array[rank < k] for array in (order, rows, rank))
        slots[rows, rank] = found[order]
        distances[rows, rank] = exact[order]
        return
    order = np.argsort(rows, kind="stable")
    used = np.arange(width) < counts[:, None]
    by_row = np.full((m, width), -1, np.int64)
    by_row[used] = found[order]
    far = np.full((m, width), np.inf)
    far[used] = exact[order]
    nearest = np.arange(m)[:, None], np.lexsort((by_row, far), axis=1)[:, :k]
    slots[:, :width] = by_row[nearest]
    distances[:, :width] = far[nearest]
