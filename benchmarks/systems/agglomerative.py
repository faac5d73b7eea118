"""scikit-learn's AgglomerativeClustering: average linkage with a neighbour graph as connectivity.

Points merge only along the edges of the graph, and linkages are means over existing edges: pairs
without an edge do not count, unlike in dynhac. scikit-learn joins the connected components of the
graph and warns about it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.systems.base import Cut, Refitted, Rows, Settings, needing


class Agglomerative(Refitted):
    """The estimator, fitted from scratch after every change."""

    name = "agglomerative"

    def __init__(self, settings: Settings) -> None:
        with needing("scikit-learn"):
            import sklearn.cluster  # noqa: F401
        super().__init__(settings)

    def fit(self, rows: Rows) -> NDArray[np.float64]:
        """Return the merges as a linkage matrix, without the sizes."""
        from sklearn.cluster import AgglomerativeClustering
        from sklearn.neighbors import kneighbors_graph

        graph = kneighbors_graph(rows.points, min(self.settings.neighbors, len(rows.ids) - 1))
        model = AgglomerativeClustering(
            n_clusters=None, distance_threshold=0, linkage="average", connectivity=graph
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # more than one component
            model.fit(rows.points)
        merges: NDArray[np.float64] = np.c_[model.children_, model.distances_]
        return merges

    def read(self, fitted: NDArray[np.float64]) -> Iterator[Cut]:
        """Yield the clusterings after all merges up to a distance.

        Means over existing edges are not monotone: a merge may come at a smaller distance than one
        before it. As in scikit-learn, a cut undoes the last merges, as many as are too far.
        """
        n = len(fitted) + 1
        children, distance = fitted[:, :2].astype(np.int64), fitted[:, 2]
        for theta in self.settings.cuts:
            done = n - 1 - int((distance >= 1 / theta - 1).sum())
            yield theta, clusters_after(children[:done], n)


def clusters_after(children: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return the labels of n points after some merges; merge i makes node n + i."""
    top = np.arange(n + len(children))
    for i in range(len(children) - 1, -1, -1):  # from the top down: parents first
        top[children[i]] = top[n + i]
    return np.unique(top[:n], return_inverse=True)[1].astype(np.int64)
