"""Incremental DBSCAN, from the package incdbscan: exact DBSCAN under insertion and deletion.

The clustering is flat and has a fixed radius: that of the settings, or, by the usual rule of thumb,
one within which 9 of 10 of the first points have enough neighbours to be core points. Noise is
offered both as one cluster and as single points.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.systems.base import (
    Abilities,
    Arrivals,
    Cut,
    Ids,
    Settings,
    UpdatedPoints,
    flat,
    needing,
)

MIN_POINTS = 5  # the package's default


class Incdbscan(UpdatedPoints):
    """The clusterer, and the points: it identifies them by their coordinates."""

    name = "incdbscan"
    abilities = Abilities(insert=True, delete=True, hierarchy=False, guarantee=True)

    def __init__(self, settings: Settings) -> None:
        with needing("incdbscan"):
            from incdbscan import IncrementalDBSCAN

            self._make = IncrementalDBSCAN
        super().__init__(settings)

    def build(self, batch: Arrivals) -> None:
        """Choose the radius and insert the first points."""
        self.radius = self.choose_radius(batch.points, MIN_POINTS, 0.9)
        self._model = self._make(eps=self.radius, min_pts=MIN_POINTS)
        self.insert(batch)

    def insert(self, batch: Arrivals) -> None:
        """Insert points."""
        points = batch.points.astype(np.float64)
        self._model.insert(points)
        self._points |= zip(batch.ids.tolist(), points, strict=True)

    def delete(self, ids: Ids) -> None:
        """Delete points."""
        self._model.delete(np.array([self._points.pop(identity) for identity in ids.tolist()]))

    def cuts(self) -> Iterator[Cut]:
        """Yield the clustering."""
        yield from flat(self.radius, self._model.get_cluster_labels(list(self._points.values())))
