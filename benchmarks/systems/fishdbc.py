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

from benchmarks.systems.base import Arrivals, Choice, Cut, Ids, Settings, Updated, flat, needing

MIN_SIZE = 5  # the package's default, of ``min_samples`` and of clusters


class Fishdbc(Updated):
    """The clusterer with its default parameters, except that levels are not drawn at random.

    A ``min_size`` of the settings stands for ``min_samples`` too, as it does in HDBSCAN.
    """

    name = "fishdbc"

    def __init__(self, settings: Settings) -> None:
        with needing("fishdbc"):
            from fishdbc import FISHDBC

            self.min_size = settings.min_size or MIN_SIZE
            self._model = FISHDBC.from_metric(
                "euclidean", level_strategy="balanced", min_samples=self.min_size
            )
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
            self._labels = self.choose().labels

    def choose(self) -> Choice:
        """Choose the clusters."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self._model.cluster(self.min_size)
        return Choice(np.asarray(found.labels, np.int64), np.asarray(found.single_linkage_tree))

    def cuts(self) -> Iterator[Cut]:
        """Yield the selected clustering."""
        self.settle()
        yield from flat(0.0, self._labels)

    def ids(self) -> Ids:
        """Return the ids in order of arrival."""
        return np.array(self._ids, np.int64)
