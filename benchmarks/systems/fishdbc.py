"""FISHDBC, from the package of that name: HDBSCAN's hierarchy over neighbours found on the way.

Points are added one at a time to an approximate minimum spanning tree; clusters are extracted from
it when they are asked for, which `settle` does. There is no deletion. The clustering that it
selects is the only one offered; noise is tried both as one cluster and as a cluster each.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from systems.base import Abilities, Arrivals, Cut, Ids, Settings, flat, needing


class Fishdbc:
    """The clusterer with its default parameters, but levels that are not drawn at random."""

    name = "fishdbc"
    abilities = Abilities(insert=True, delete=False, hierarchy=True, guarantee=False)
    needs = "points"

    def __init__(self, settings: Settings) -> None:
        with needing("fishdbc"):
            from fishdbc import FISHDBC

            self._model = FISHDBC.from_metric("euclidean", level_strategy="balanced")
        self._ids: list[int] = []
        self._labels: Any = None

    def build(self, batch: Arrivals) -> None:
        """Take the first points."""
        self.insert(batch)

    def insert(self, batch: Arrivals) -> None:
        """Take more points."""
        for point in batch.points.astype(np.float64):
            self._model.add(point)
        self._ids += batch.ids.tolist()
        self._labels = None

    def delete(self, ids: Ids) -> None:
        """Not part of the algorithm."""
        raise NotImplementedError("FISHDBC has no deletion")

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
