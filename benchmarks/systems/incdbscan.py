"""Incremental DBSCAN, from the package incdbscan: exact DBSCAN under insertion and deletion.

The clustering is flat, and its radius is fixed when it starts: that of the settings, or, by the
usual rule of thumb, one within which 9 of 10 of the first points have enough neighbours to be core
points. Noise is tried both as one cluster and as a cluster each.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from systems.base import Abilities, Arrivals, Cut, Ids, Settings, flat, needing
from systems.radius import typical_radius

MIN_POINTS = 5  # the package's default


class Incdbscan:
    """The clusterer; it knows points by their coordinates only."""

    name = "incdbscan"
    abilities = Abilities(insert=True, delete=True, hierarchy=False, guarantee=True)
    needs = "points"

    def __init__(self, settings: Settings) -> None:
        with needing("incdbscan"):
            from incdbscan import IncrementalDBSCAN

            self._make = IncrementalDBSCAN
        self.settings = settings
        self._points: dict[int, NDArray[np.float64]] = {}

    def build(self, batch: Arrivals) -> None:
        """Take the first points, and choose the radius."""
        self.radius = self.settings.radius or typical_radius(
            batch.points, MIN_POINTS, 0.9, self.settings.seed
        )
        self._model = self._make(eps=self.radius, min_pts=MIN_POINTS)
        self.insert(batch)

    def insert(self, batch: Arrivals) -> None:
        """Take more points."""
        points = batch.points.astype(np.float64)
        self._model.insert(points)
        self._points |= zip(batch.ids.tolist(), points, strict=True)

    def delete(self, ids: Ids) -> None:
        """Let points go."""
        self._model.delete(np.array([self._points.pop(identity) for identity in ids.tolist()]))

    def settle(self) -> None:
        """Nothing is put off."""

    def cuts(self) -> Iterator[Cut]:
        """Yield the clustering."""
        yield from flat(self.radius, self._model.get_cluster_labels(list(self._points.values())))

    def ids(self) -> Ids:
        """Return the ids in order of arrival."""
        return np.fromiter(self._points, np.int64, len(self._points))
