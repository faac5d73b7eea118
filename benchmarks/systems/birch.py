"""scikit-learn's Birch: a tree of summaries that points are added to.

A point belongs to the nearest of the tree's subclusters. Flat clusterings come from average linkage
over the subclusters' centres, which `settle` computes, cut at the distances ``1 / theta - 1``. The
radius of a subcluster is that of the settings, or the median distance of the first points to their
``neighbors``-th neighbour. There is no deletion.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.systems.base import Arrivals, Cut, Settings, UpdatedPoints, needing


class Birch(UpdatedPoints):
    """The estimator, and the points to be labelled."""

    name = "birch"

    def __init__(self, settings: Settings) -> None:
        with needing("scikit-learn"):
            import sklearn.cluster

            self._make = sklearn.cluster.Birch
        super().__init__(settings)
        self._settled = False

    def build(self, batch: Arrivals) -> None:
        """Choose the radius and insert the first points."""
        radius = self.choose_radius(batch.points, self.settings.neighbors, 0.5)
        self._model = self._make(threshold=radius, n_clusters=None, compute_labels=False)
        self.insert(batch)

    def insert(self, batch: Arrivals) -> None:
        """Insert points."""
        self._model.partial_fit(batch.points)
        self._points |= zip(batch.ids.tolist(), batch.points, strict=True)
        self._settled = False

    def settle(self) -> None:
        """Label all points, and cluster the subclusters."""
        if self._settled:
            return
        from scipy.cluster.hierarchy import linkage

        self._nearest = self._model.predict(np.array(list(self._points.values())))
        centres = self._model.subcluster_centers_
        self._merges = linkage(centres, "average") if len(centres) > 1 else None
        self._settled = True

    def cuts(self) -> Iterator[Cut]:
        """Yield the clusterings of the subclusters."""
        from scipy.cluster.hierarchy import fcluster

        self.settle()
        for theta in self.settings.cuts:
            if self._merges is None:
                yield theta, np.zeros(len(self._points), np.int64)
            else:
                groups = fcluster(self._merges, 1 / theta - 1, "distance").astype(np.int64) - 1
                yield theta, groups[self._nearest]
