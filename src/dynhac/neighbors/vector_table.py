"""Distinct vectors by key, for an index whose own copy of them cannot be read.

Vectors are the rows of one matrix. Rows 0 to n - 1 are in use, in no particular order: a removal
moves rows from the end into the gaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynhac.neighbors.arrays import with_room

if TYPE_CHECKING:
    from dynhac.neighbors.index import Distances, Ints, Vectors
    from dynhac.neighbors.metrics import Metric


class VectorTable:
    """Vectors by key, a small int, in the form that `Metric.prepare` gives them."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._count = 0
        self._row_of: Ints = np.empty(0, np.int64)  # by key
        self._keys: Ints = np.empty(0, np.int64)  # by row
        self._vectors: Vectors = np.empty((0, 0), np.float32)

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
        self._row_of[keys] = np.arange(first, count)
        self._keys[first:count] = keys
        self._vectors[first:count] = vectors
        self._count = count

    def remove(self, keys: Ints) -> None:
        """Remove keys that are held."""
        rows = self._row_of[keys]
        count = self._count - len(keys)
        stays = np.ones(len(keys), bool)  # for the rows from count on
        stays[rows[rows >= count] - count] = False
        movers = count + np.flatnonzero(stays)
        gaps = rows[rows < count]
        for array in (self._keys, self._vectors):
            array[gaps] = array[movers]
        self._row_of[self._keys[gaps]] = gaps
        self._count = count

    def all_pairs(self, queries: Vectors) -> tuple[Ints, Ints]:
        """Return the pairs (query, key) of all queries and keys."""
        held = self._keys[: self._count]
        return np.repeat(np.arange(len(queries)), len(held)), np.tile(held, len(queries))
