"""The vectors that an index holds: distinct ones under keys, and the slots that share them.

Scanning them answers exactly; an index that knows a quicker way to candidates gives those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dynhac.neighbors.equal_vectors import Piles
from dynhac.neighbors.scan import Scan, fill_nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac.neighbors.metrics import Metric

    Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
    Candidates: TypeAlias = Callable[[NDArray[np.float32], int], Pairs]

PAIRS_AT_ONCE = 2**20
"""Pairs of a query and a vector that a search of many queries looks at together."""


class HeldVectors:
    """Slots with their vectors, prepared by the metric."""

    __slots__ = ("_piles", "distinct", "metric")

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._piles = Piles()
        self.distinct = Scan(metric)  # by key

    def __len__(self) -> int:
        return self._piles.count

    def add(
        self, slots: NDArray[np.int64], vectors: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Add vectors; return the keys of those that were not there, and them, prepared.

        KeyError: a slot is held already or listed twice; nothing has changed.
        """
        return self.add_prepared(slots, self.metric.prepare(vectors))

    def add_prepared(
        self, slots: NDArray[np.int64], vectors: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Like `add`, for vectors that are in the form that the metric gives them."""
        vectors = vectors + np.float32(0.0)  # -0.0 becomes 0.0
        keys, rows = self._piles.add(slots, vectors)
        new = vectors[rows]
        self.distinct.add(keys, new)
        return keys, new

    def remove(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Forget slots; return the keys that no slot has any more.

        KeyError: a slot is not held or listed twice; nothing has changed.
        """
        keys = self._piles.remove(slots)
        self.distinct.remove(keys)
        return keys

    def query(
        self,
        vectors: NDArray[np.float32],
        k: int,
        candidates: Candidates | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return slots and distances of the ``k`` nearest, as `NeighborIndex.query` does.

        ``candidates`` gives pairs (query, key), ``k`` or more for every query; by default a scan
        gives those that the nearest are certainly among.
        """
        queries = self.metric.prepare(vectors)
        slots = np.full((len(queries), k), -1, np.int64)
        distances = np.full((len(queries), k), np.inf)
        if len(self) and k:
            looked_at = len(self.distinct) if candidates is None else k
            candidates = self.distinct.candidates if candidates is None else candidates
            step = max(1, PAIRS_AT_ONCE // looked_at)
            for i in range(0, len(queries), step):
                part = slice(i, i + step)
                rows, keys = candidates(queries[part], k)
                exact = self.distinct.distances_at(queries[part], rows, keys)
                members = self._piles.members_of(rows, keys, exact, k)
                fill_nearest(slots[part], distances[part], *members)
        return slots, distances

    def vectors(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return all slots, ascending, and their vectors, prepared."""
        slots, keys = self._piles.held()
        if not len(slots):
            return slots, np.empty((0, 0), np.float32)
        return slots, self.distinct.vectors_of(keys)

    def save_keys(self) -> dict[str, NDArray[np.int64]]:
        """Return the slots and their keys, from which, and the vectors, `load_keys` goes on."""
        slots, keys = self._piles.held()
        return {"slots": slots, "keys": keys, "free": self._piles.free_keys()}

    def load_keys(
        self,
        arrays: Mapping[str, NDArray[np.int64]],
        vectors_of: Callable[[NDArray[np.int64]], NDArray[np.float32]],
    ) -> None:
        """Take up what `save_keys` returned; ``vectors_of`` tells the vectors of keys."""
        keys = np.unique(arrays["keys"])
        vectors = vectors_of(keys) if len(keys) else np.empty((0, 0), np.float32)
        self._piles.load(arrays["slots"], arrays["keys"], arrays["free"])
        self._piles.load_vectors(keys, vectors)
        self.distinct.add(keys, vectors)
