"""OnlineSCC: in every round, clusters join their nearest neighbours.

After N. Monath et al., "Scalable Hierarchical Agglomerative Clustering" (SCC), KDD 2021, and
"Online Level-wise Hierarchical Clustering", KDD 2023. There is a round for each of a falling series
of thresholds, here 50 from 1 to 1e-8. In a round every cluster finds its nearest neighbour by the
mean weight of the point edges between two clusters (pairs of points without an edge do not count),
and clusters are joined along those pairs whose linkage reaches the threshold, many at a time. The
clusters after any of the rounds are a flat clustering.

New points and edges pass through the rounds as differences (`Level`), so that the result is always
that of all rounds from scratch on the same graph. Rounds end early when no edges are left: further
ones would change nothing. There is no deletion.

The edges are those of the arrivals. With normalised settings the system finds its own: it scales
the points to unit length and joins them to their nearest neighbours among all points up to the end
of the batch, with similarity ``1 / (1 + distance)``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.systems.base import Arrivals, Cut, Ids, Settings, Updated, unit_length
from benchmarks.systems.scc_level import GRAIN, Graph, Level, Update
from dynhac.neighbors import NeighborIndex, make_index

THRESHOLDS = np.geomspace(1, 1e-8, 50)


class OnlineSCC(Updated):
    """The system; names of clusters are positions in the order of arrival."""

    name = "onlinescc"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.needs = "points" if settings.normalised else "graph"
        self.levels: list[Level] = []
        self._index: NeighborIndex | None = None
        self._slot_of: dict[int, int] = {}

    def build(self, batch: Arrivals) -> None:
        """Insert the first points: all rounds from scratch."""
        u, v, w = self._edges(batch)
        graph = Graph(np.arange(len(batch.ids)), u, v, w, np.ones(len(w)))
        for threshold in THRESHOLDS:
            self.levels.append(Level(graph, float(threshold)))
            if len(graph.u) == 0:
                break
            graph = self.levels[-1].next_graph(graph)

    def insert(self, batch: Arrivals) -> None:
        """Insert points: the rounds process the differences."""
        u, v, w = self._edges(batch)
        ends = zip(np.minimum(u, v).tolist(), np.maximum(u, v).tolist(), strict=True)
        edges = dict(zip(ends, (w + 1j).tolist(), strict=True))
        n = len(self._slot_of)
        update = Update(set(range(n - len(batch.ids), n)), set(), edges)
        for i, threshold in enumerate(THRESHOLDS):
            if i == len(self.levels):
                update = self.levels[-1].all_above()
                self.levels.append(Level(NO_GRAPH, float(threshold)))
            update = self.levels[i].apply(update)
            if self.levels[i].n_edges == 0:
                del self.levels[i + 1 :]
                break

    def _edges(self, batch: Arrivals) -> tuple[Ids, Ids, NDArray[np.float64]]:
        """Give the points slots, and return the edges between slots, weights rounded."""
        first = len(self._slot_of)
        self._slot_of |= zip(batch.ids.tolist(), range(first, first + len(batch.ids)), strict=True)
        if len(self._slot_of) != first + len(batch.ids):
            raise ValueError("an id of the batch is held already, or is in it twice")
        if self.settings.normalised:
            u, v, w = self._search(batch.points, first)
        else:
            u, v = (
                np.fromiter((self._slot_of[end] for end in ends.tolist()), np.int64, len(ends))
                for ends in (batch.u, batch.v)
            )
            w = batch.w
        return u, v, np.maximum(np.rint(w / GRAIN), 1) * GRAIN

    def _search(
        self, points: NDArray[np.float32], first: int
    ) -> tuple[Ids, Ids, NDArray[np.float64]]:
        points = unit_length(points)
        slots = np.arange(first, first + len(points))
        if self._index is None:
            self._index = make_index("auto", "euclidean", points.shape[1], len(points))
        self._index.add(slots, points)
        found, distance = self._index.query(points, self.settings.neighbors + 1)
        query = np.repeat(slots, found.shape[1])
        other, distance = found.ravel(), distance.ravel()
        # The point itself is usually found; with many duplicates it may not be.
        rank = np.cumsum((found != slots[:, None]) & (found >= 0), axis=1).ravel()
        kept = (other != query) & (other >= 0) & (rank <= self.settings.neighbors)
        low, high = np.minimum(query, other)[kept], np.maximum(query, other)[kept]
        _, once = np.unique(high * (first + len(points)) + low, return_index=True)
        return low[once], high[once], 1 / (1 + distance[kept][once])

    def cuts(self) -> Iterator[Cut]:
        """Yield the clusters after every round."""
        cluster = np.arange(len(self._slot_of))
        for level in self.levels:
            above = np.zeros(len(cluster), np.int64)
            above[np.fromiter(level.up, np.int64)] = np.fromiter(level.up.values(), np.int64)
            cluster = above[cluster]
            yield level.threshold, np.unique(cluster, return_inverse=True)[1].astype(np.int64)

    def ids(self) -> Ids:
        """Return the ids in order of arrival."""
        return np.fromiter(self._slot_of, np.int64, len(self._slot_of))


_NONE = np.empty(0, np.int64)
NO_GRAPH = Graph(_NONE, _NONE, _NONE, np.empty(0), np.empty(0))
