"""Our own systems: the dynamic engine, its bulk build, and the paper's algorithm.

- dynhac: `GraphHAC`, updated with the edges of every batch;
- static: a bulk build over all edges whenever clusters are asked for;
- paper: the algorithm as published, from ``dynhac.reference``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.systems.base import Abilities, Arrivals, Cut, Ids, Refitted, Rows, Settings, Updated
from dynhac import GraphHAC


class Dynhac(Updated):
    """The hierarchy of the neighbour graph, updated."""

    name = "dynhac"
    abilities = Abilities(insert=True, delete=True, hierarchy=True, guarantee=True)
    needs = "graph"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.model = GraphHAC(settings.epsilon, settings.threshold)

    def insert(self, batch: Arrivals) -> None:
        """Insert points."""
        self.model.update(add=batch.ids, edges=(batch.u, batch.v, batch.w))

    def delete(self, ids: Ids) -> None:
        """Delete points."""
        self.model.update(remove=ids)

    def cuts(self) -> Iterator[Cut]:
        """Yield the cuts of the dendrogram."""
        yield from cuts_of(self.model, self.settings)

    def ids(self) -> Ids:
        """Return the ids in order of arrival."""
        return self.model.ids


class Static(Refitted):
    """The hierarchy of the neighbour graph, built from scratch after every change."""

    name = "static"
    abilities = Abilities(insert=False, delete=False, hierarchy=True, guarantee=True)
    needs = "graph"

    def fit(self, rows: Rows) -> GraphHAC:
        """Build the hierarchy of all edges."""
        model = GraphHAC(self.settings.epsilon, self.settings.threshold)
        model.update(add=rows.ids, edges=(rows.u, rows.v, rows.w))
        return model

    def read(self, fitted: GraphHAC) -> Iterator[Cut]:
        """Yield the cuts of the dendrogram."""
        yield from cuts_of(fitted, self.settings)


class Paper(Updated):
    """The algorithm as published; thousands of points at most."""

    name = "paper"
    abilities = Abilities(insert=True, delete=True, hierarchy=True, guarantee=True)
    needs = "graph"

    def __init__(self, settings: Settings) -> None:
        from dynhac.reference import PaperDynHAC

        super().__init__(settings)
        self.model = PaperDynHAC(settings.epsilon, settings.threshold)

    def insert(self, batch: Arrivals) -> None:
        """Insert points."""
        edges = (batch.u.tolist(), batch.v.tolist(), batch.w.tolist())
        self.model.update(add=batch.ids.tolist(), edges=edges)

    def delete(self, ids: Ids) -> None:
        """Delete points."""
        self.model.update(remove=ids.tolist())

    def cuts(self) -> Iterator[Cut]:
        """Yield the cuts of the dendrogram."""
        for theta in self.settings.thetas():
            yield float(theta), self.model.labels(float(theta))

    def ids(self) -> Ids:
        """Return the ids in order of arrival."""
        return np.array(self.model.ids, np.int64)


def cuts_of(model: GraphHAC, settings: Settings) -> Iterator[Cut]:
    """Yield the cuts of a model."""
    thetas = settings.thetas()
    yield from zip(thetas.tolist(), model.cut(thetas), strict=True)
