"""The flat clustering of an estimator.

A cut is made at a similarity or into a number of clusters; with neither, at the threshold. The
parameters are checked before the samples; with parameters that passed, the cut never fails.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.input.columns import real_number, whole_number
from dynhac.input.errors import counted, show

if TYPE_CHECKING:
    from dynhac.dendrogram.dendrogram import Dendrogram


class Cut(NamedTuple):
    """The parameters of a cut, as users pass them."""

    theta: float | None
    n_clusters: int | None
    min_size: int

    def check(self, threshold: float) -> None:
        """Raise if the parameters are wrong for any samples."""
        if self.theta is not None and self.n_clusters is not None:
            raise ValueError(
                f"theta is {show(self.theta)} and n_clusters is {show(self.n_clusters)}; give one "
                "of them and leave the other None"
            )
        whole_number(self.min_size, "min_size", 1)
        if self.n_clusters is not None:
            whole_number(self.n_clusters, "n_clusters", 1)
        if self.theta is not None:
            least = real_number(threshold, "threshold")
            if real_number(self.theta, "theta") < least:
                raise ValueError(
                    f"theta is {show(self.theta)}; it must be a similarity >= {least:g}, the "
                    "threshold"
                )

    def check_count(self, n_samples: int) -> None:
        """Raise if there are fewer samples than clusters."""
        if self.n_clusters is not None and self.n_clusters > n_samples:
            raise ValueError(
                f"n_clusters is {self.n_clusters}, but n_samples={n_samples}; there cannot be more "
                "clusters than samples"
            )

    def labels(self, dendrogram: Dendrogram) -> NDArray[np.int64]:
        """Return the label of every sample; warn if there are more trees than ``n_clusters``."""
        theta, n_clusters = self.theta, self.n_clusters
        trees = len(dendrogram.roots)
        if n_clusters is not None and n_clusters < trees:
            warnings.warn(
                f"n_clusters is {n_clusters}, but the samples fall into "
                f"{counted(trees, 'tree', 'trees')}, which become the clusters; for fewer, lower "
                "threshold or raise n_neighbors",
                UserWarning,
                stacklevel=4,  # the caller of fit
            )
            n_clusters = None
        if n_clusters is None and theta is None:
            theta = dendrogram.threshold
        return dendrogram.labels(theta, n_clusters=n_clusters, min_size=self.min_size)
