"""DBSTREAM, from the package river: micro-clusters of a stream, joined where they share density.

Points are not kept; a label is the nearest centre among the clusters that the micro-clusters make
up, as in the package's predict_one. The radius is that of the settings, or the median distance of
the first points to their ``neighbors``-th neighbour. Fading is so slow that all points count within
a run, as with the other systems.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.systems.base import Abilities, Arrivals, Cut, Settings, UpdatedPoints, needing

FADING = 1e-8
CLEANUP_INTERVAL = 1_000


class Dbstream(UpdatedPoints):
    """The clusterer, and the points to be labelled."""

    name = "dbstream"
    abilities = Abilities(insert=True, delete=False, hierarchy=False, guarantee=False)

    def __init__(self, settings: Settings) -> None:
        with needing("river"):
            from river.cluster import DBSTREAM

            self._make = DBSTREAM
        super().__init__(settings)

    def build(self, batch: Arrivals) -> None:
        """Choose the radius and insert the first points."""
        self.radius = self.choose_radius(batch.points, self.settings.neighbors, 0.5)
        self._model = self._make(
            clustering_threshold=self.radius,
            fading_factor=FADING,
            cleanup_interval=CLEANUP_INTERVAL,
        )
        self.insert(batch)

    def insert(self, batch: Arrivals) -> None:
        """Insert points."""
        for point in batch.points.tolist():
            self._model.learn_one(dict(enumerate(point)))
        self._points |= zip(batch.ids.tolist(), batch.points, strict=True)

    def settle(self) -> None:
        """Join the micro-clusters."""
        self._centres = self._model.centers

    def cuts(self) -> Iterator[Cut]:
        """Yield the clustering."""
        self.settle()
        points = np.array(list(self._points.values()), np.float64)
        nearest = np.full(len(points), np.inf)
        labels = np.zeros(len(points), np.int64)
        for label, centre in self._centres.items():
            distance = ((points - [centre[i] for i in range(points.shape[1])]) ** 2).sum(axis=1)
            closer = distance < nearest
            labels[closer], nearest[closer] = label, distance[closer]
        yield self.radius, labels
