"""Candidates for the nearest neighbours, for any metric, by a scan of all vectors.

Fast float32 keys with error bounds (see `metrics`) select a few candidates: with t the k-th
smallest upper bound, at least k vectors are within t. So a vector whose lower bound exceeds t is
not among the k nearest, nor tied with the last of them.

Vectors are the rows of one matrix. Rows 0 to n - 1 are in use, in no particular order: a removal
moves rows from the end into the gaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynhac.neighbors.arrays import with_room
from dynhac.neighbors.metrics import lengths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac.neighbors.index import Distances, Ints, Vectors
    from dynhac.neighbors.metrics import Metric


class Scan:
    """Vectors by key, a small int, in the form that `Metric.prepare` gives them."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._count = 0
        self._row_of: Ints = np.empty(0, np.int64)  # by key
        self._keys: Ints = np.empty(0, np.int64)  # by row
        self._vectors: Vectors = np.empty((0, 0), np.float32)
        self._spans: NDArray[np.float32] = np.empty(0, np.float32)  # distances from the centre
        # Computed again when the number of vectors added since exceeds their number then. Answers
        # do not depend on it.
        self._centre: NDArray[np.float32] = np.empty(0, np.float32)
        self._additions_left = 0

    def __len__(self) -> int:
        return self._count

    def vectors_of(self, keys: Ints) -> Vectors:
        """Return the vectors of keys that are held."""
        return self._vectors[self._row_of[keys]]

    def distances_at(self, queries: Vectors, rows: Ints, keys: Ints) -> Distances:
        """Return the distances of ``queries[rows[i]]`` from the vector of ``keys[i]``."""
        return self._metric.distances_at(queries, rows, self._vectors, self._row_of[keys])

    def add(self, keys: Ints, vectors: Vectors) -> None:
        """Add vectors under keys that are not held."""
        if len(keys) == 0:
            return
        first, count = self._count, self._count + len(keys)
        if first == 0:
            self._vectors = self._vectors[:0].reshape(0, vectors.shape[1])
        self._row_of = with_room(self._row_of, int(keys.max()) + 1)
        self._keys = with_room(self._keys, count)
        self._vectors = with_room(self._vectors, count)
        self._spans = with_room(self._spans, count)
        self._row_of[keys] = np.arange(first, count)
        self._keys[first:count] = keys
        self._vectors[first:count] = vectors
        self._count = count
        self._additions_left -= len(keys)
        if first == 0 or self._additions_left < 0:
            self._centre = self._metric.centre(self._vectors[:count])
            self._additions_left = count
            first = 0  # all spans change
        with np.errstate(over="ignore"):
            self._spans[first:count] = lengths(self._vectors[first:count] - self._centre)

    def remove(self, keys: Ints) -> None:
        """Remove keys that are held."""
        rows = self._row_of[keys]
        count = self._count - len(keys)
        stays = np.ones(len(keys), bool)  # for the rows from count on
        stays[rows[rows >= count] - count] = False
        movers = count + np.flatnonzero(stays)
        gaps = rows[rows < count]
        for array in (self._keys, self._vectors, self._spans):
            array[gaps] = array[movers]
        self._row_of[self._keys[gaps]] = gaps
        self._count = count

    def candidates(self, queries: Vectors, k: int) -> tuple[Ints, Ints]:
        """Return pairs (query, key) that include the ``k`` nearest of every query and all ties.

        Takes memory proportional to the number of queries times the number of vectors.
        """
        n = self._count
        held = self._keys[:n]
        if k >= n:
            return np.repeat(np.arange(len(queries)), n), np.tile(held, len(queries))
        with np.errstate(all="ignore"):
            keys, error = self._metric.keys(
                queries, self._vectors[:n], self._spans[:n], self._centre
            )
            upper = keys + error
            upper.partition(k - 1, axis=1)
            keys -= error
            # Not "<=": float32 overflow gives nan, where no vector may be excluded.
            within = ~(keys > upper[:, k - 1, None])
        rows, columns = np.divmod(np.flatnonzero(within), n)
        return rows, held[columns]
