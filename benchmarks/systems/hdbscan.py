"""HDBSCAN, from the package of that name: density-based clusters, fitted from scratch.

Its clusterings are the one that it selects, with theta 0, and the cuts of its single-linkage
tree at the distances ``1 / theta - 1``. Noise is offered both as one cluster and as single points.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.systems.base import Choice, Cut, Refitted, Rows, Settings, flat, needing

MIN_CLUSTER_SIZE = 5  # the package's default


class Hdbscan(Refitted):
    """The estimator with its default parameters, except ``min_cluster_size`` if one is given."""

    name = "hdbscan"

    def __init__(self, settings: Settings) -> None:
        with needing("hdbscan"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import hdbscan

            self._make = hdbscan.HDBSCAN
            self._labels_of = hdbscan.hdbscan_._tree_to_labels
        super().__init__(settings)
        self.min_size = settings.min_size or MIN_CLUSTER_SIZE

    def fit(self, rows: Rows) -> Any:
        """Return the fitted estimator."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._make(min_cluster_size=self.min_size).fit(rows.points.astype(float))

    def read(self, fitted: Any) -> Iterator[Cut]:
        """Yield the selected clustering and the cuts of the tree."""
        yield from flat(0.0, fitted.labels_)
        for theta in self.settings.cuts:
            labels = fitted.single_linkage_tree_.get_clusters(1 / theta - 1, self.min_size)
            yield from flat(theta, labels)

    def choose(self) -> Choice:
        """Choose the clusters, with the tree of the fit."""
        self.settle()
        tree = self._fitted.single_linkage_tree_.to_numpy()
        labels = self._labels_of(self.rows.points, tree, self.min_size)[0]
        return Choice(np.asarray(labels, np.int64), tree)
