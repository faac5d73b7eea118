"""FISHDBC, from the package of that name: an incremental approximation of HDBSCAN.

Points are added one at a time to an approximate minimum spanning tree; `settle` extracts clusters
from it. There is no deletion. The clustering that it selects is the only one offered; noise is
offered both as one cluster and as single points.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.systems.base import Arrivals, Cut, Ids, Settings, Updated, flat, needing


class Fishdbc(Updated):
    """The clusterer with its default parameters, except that levels are not drawn at random."""

    name = "fishdbc"

    def __init__(self, settings: Settings) -> None:
        with needing("fishdbc"):
            from fishdbc import FISHDBC

            self._model = FISHDBC.from_metric("euclidean", level_strategy="balanced")
        super().__init__(settings)
        self._ids: list[int] = []
        self._labels: Any = None

    def insert(self, batch: Arrivals) -> None:
        """Insert points."""
        for point in batch.points.astype(np.float64):
            self._model.add(point)
        self._ids += batch.ids.tolist()
        self._labels = None

    def settle(self) -> None:
        """Extract the clusters."""
        if self._labels is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._labels = np.asarray(self._model.cluster().labels)

    def cuts(self) -> Iterator[Cut]:
        """Yield the selected clustering."""
        self.settle()
        yield from flat(0.0, self._labels)

    def ids(self) -> Ids:
        """Return the ids in order of arrival."""
        return np.array(self._ids, np.int64)
