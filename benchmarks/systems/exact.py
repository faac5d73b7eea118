"""Exact average linkage of the neighbour graph, by the dense algorithm of fastcluster.

This is what dynhac approximates: the similarity of two clusters is the mean over all pairs of
points, a pair without an edge counting as 0. Average linkage takes only means, so it is the same on
dissimilarities ``1 - similarity``. fastcluster gets these as a dense matrix, quadratic in time and
memory, so the number of points is limited.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.systems.base import Abilities, Cut, Refitted, Rows, Settings, Unavailable, needing

MOST_POINTS = 30_000  # 3.6 GB


class Exact(Refitted):
    """The dense algorithm, from scratch after every change."""

    name = "exact"
    abilities = Abilities(insert=False, delete=False, hierarchy=True, guarantee=True)
    needs = "graph"

    def __init__(self, settings: Settings) -> None:
        with needing("fastcluster"):
            import fastcluster  # noqa: F401
        super().__init__(settings)

    def fit(self, rows: Rows) -> NDArray[np.float64]:
        """Return the linkage matrix."""
        from fastcluster import linkage

        n = len(rows.ids)
        if n > MOST_POINTS:
            raise Unavailable(f"{n:,} points; a dense matrix has at most {MOST_POINTS:,}")
        dissimilarity = np.ones(n * (n - 1) // 2)
        u, v = rows.edge_rows()
        low, high = np.minimum(u, v), np.maximum(u, v)
        # Entry (i, j), i < j, of a condensed matrix: the rows before it are n - 1, n - 2, ... long.
        dissimilarity[low * (2 * n - low - 1) // 2 + high - low - 1] = 1 - rows.w
        merges: NDArray[np.float64] = linkage(dissimilarity, "average", preserve_input=False)
        return merges

    def read(self, fitted: NDArray[np.float64]) -> Iterator[Cut]:
        """Yield the cuts of the linkage matrix."""
        from scipy.cluster.hierarchy import fcluster

        for theta in self.settings.thetas().tolist():
            # Clusters without edges between them merge at 1, which no cut reaches.
            labels = fcluster(fitted, 1 - theta + 1e-12, "distance")
            yield theta, labels.astype(np.int64) - 1
