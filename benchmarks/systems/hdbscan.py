"""HDBSCAN, from the package of that name: density-based clusters, fitted from scratch.

Its clusterings are the one that it selects, with theta 0, and the cuts of its single-linkage
tree at the distances ``1 / theta - 1``. Noise is offered both as one cluster and as single points.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from benchmarks.systems.base import Cut, Refitted, Rows, Settings, flat, needing

MIN_CLUSTER_SIZE = 5  # the package's default


class Hdbscan(Refitted):
    """The estimator with its default parameters."""

    name = "hdbscan"

    def __init__(self, settings: Settings) -> None:
        with needing("hdbscan"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import hdbscan

            self._make = hdbscan.HDBSCAN
        super().__init__(settings)

    def fit(self, rows: Rows) -> Any:
        """Return the fitted estimator."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._make(min_cluster_size=MIN_CLUSTER_SIZE).fit(rows.points.astype(float))

    def read(self, fitted: Any) -> Iterator[Cut]:
        """Yield the selected clustering and the cuts of the tree."""
        yield from flat(0.0, fitted.labels_)
        for theta in self.settings.cuts:
            labels = fitted.single_linkage_tree_.get_clusters(1 / theta - 1, MIN_CLUSTER_SIZE)
            yield from flat(theta, labels)
