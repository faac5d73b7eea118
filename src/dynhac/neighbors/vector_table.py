"""The vectors of an index, each distinct one once, under a key that its slots share.

A query scans the vectors, which is exact, or examines candidates that a faster index has found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dynhac.neighbors.equal_vectors import EqualVectors
from dynhac.neighbors.scan import Scan, fill_nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac.neighbors.metrics import Metric

    Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
    Candidates: TypeAlias = Callable[[NDArray[np.float32], int], Pairs]

PAIRS_AT_ONCE = 2**20
"""Pairs of a query and a vector that are examined at a time."""


class VectorTable:
    """Slots and their vectors, in the form that `Metric.prepare` gives them."""

    __slots__ = ("_keys", "distinct", "metric")

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._keys = EqualVectors()
        self.distinct = Scan(metric)  # by key

    def __len__(self) -> int:
        return self._keys.count

    def add(
        self, slots: NDArray[np.int64], vectors: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Add vectors; return the keys of the new distinct ones, and these vectors, prepared.

        Raises KeyError, without any change, if a slot is held already or listed twice.
        """
        return self.add_prepared(slots, self.metric.prepare(vectors))

    def add_prepared(
        self, slots: NDArray[np.int64], vectors: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Like `add`, for vectors that the metric has prepared already."""
        vectors = vectors + np.float32(0.0)  # -0.0 becomes 0.0
        keys, rows = self._keys.add(slots, vectors)
        new = vectors[rows]
        self.distinct.add(keys, new)
        return keys, new

    def remove(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Remove slots; return the keys that no slot has any more.

        Raises KeyError, without any change, if a slot is not held or listed twice.
        """
        keys = self._keys.remove(slots)
        self.distinct.remove(keys)
        return keys

    def query(
        self,
        vectors: NDArray[np.float32],
        k: int,
        candidates: Candidates | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return slots and distances of the ``k`` nearest, as `NeighborIndex.query` does.

        ``candidates`` returns pairs (query, key), at least ``k`` for every query. By default a scan
        finds candidates that are sure to include the ``k`` nearest.
        """
        queries = self.metric.prepare(vectors)
        slots = np.full((len(queries), k), -1, np.int64)
        distances = np.full((len(queries), k), np.inf)
        if len(self) and k:
            examined = len(self.distinct) if candidates is None else k
            candidates = self.distinct.candidates if candidates is None else candidates
            step = max(1, PAIRS_AT_ONCE // examined)
            for i in range(0, len(queries), step):
                part = slice(i, i + step)
                rows, keys = candidates(queries[part], k)
                exact = self.distinct.distances_at(queries[part], rows, keys)
                members = self._keys.members_of(rows, keys, exact, k)
                fill_nearest(slots[part], distances[part], *members)
        return slots, distances

    def vectors(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return all slots, ascending, and their vectors, prepared."""
        slots, keys = self._keys.held()
        if not len(slots):
            return slots, np.empty((0, 0), np.float32)
        return slots, self.distinct.vectors_of(keys)

    def save_keys(self) -> dict[str, NDArray[np.int64]]:
        """Return the slots, their keys and the free keys, for `load_keys`."""
        slots, keys = self._keys.held()
        return {"slots": slots, "keys": keys, "free": self._keys.free_keys()}

    def load_keys(
        self,
        arrays: Mapping[str, NDArray[np.int64]],
        vectors_of: Callable[[NDArray[np.int64]], NDArray[np.float32]],
    ) -> None:
        """Restore what `save_keys` returned; ``vectors_of`` returns the vectors of keys."""
        keys = np.unique(arrays["keys"])
        vectors = vectors_of(keys) if len(keys) else np.empty((0, 0), np.float32)
        by_key = dict(zip(keys.tolist(), vectors, strict=True))
        self._keys.load(arrays["slots"], arrays["keys"], arrays["free"], by_key)
        self.distinct.add(keys, vectors)
