"""Which flat clustering the arguments of `Dendrogram.labels` ask for.

The *automatic* clusters need no threshold. The core chooses them from the condensed tree, the tree
of all merges that join two clusters of at least ``min_size`` leaves; see `CondensedTree`. The
choice is not one cut: each cluster is taken where it lasts longest. It also depends on the
threshold of the model, which says when a tree as a whole begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynhac import _core
from dynhac.clusters.summarize import numbered
from dynhac.dendrogram.cuts import check_one_given, cut_at_conductance, cut_at_theta, cut_into
from dynhac.input.columns import INT64_MAX, scalar, whole_number
from dynhac.input.errors import InvalidTypeError, show

if TYPE_CHECKING:
    from dynhac.dendrogram.dendrogram import Dendrogram

DEFAULT_MIN_SIZE = 25
"""The smallest cluster of the automatic choice, unless another size is given."""


def chosen_labels(
    dendrogram: Dendrogram,
    theta: float | None,
    n_clusters: int | None,
    conductance: float | None,
    min_size: int | None,
    noise: str | None,
) -> NDArray[np.int64]:
    """Return the labels that the arguments of `Dendrogram.labels` ask for, or raise."""
    check_one_given(theta=theta, n_clusters=n_clusters, conductance=conductance)
    to_nearest = read_noise(noise)
    least = 1 if min_size is None else min_size
    if theta is not None:
        labels = cut_at_theta(dendrogram, theta, least)
    elif n_clusters is not None:
        labels = cut_into(dendrogram, n_clusters, least)
    elif conductance is not None:
        labels = cut_at_conductance(dendrogram, conductance, least)
    else:
        labels = _core.select_clusters(
            dendrogram.n_leaves,
            dendrogram.children,
            dendrogram.similarity,
            dendrogram.min_similarity,
            min(automatic_min_size(min_size), INT64_MAX),
            dendrogram.threshold,
        )
    return nearest_clusters(dendrogram, labels) if to_nearest else labels


def read_noise(noise: object) -> bool:
    """Return whether noise goes to the nearest cluster, or raise if this is no way to treat it."""
    if noise is None:
        return False
    value = scalar(noise)
    if not isinstance(value, str):
        raise InvalidTypeError(f"noise is {show(noise)}; it must be 'nearest' or None")
    if value != "nearest":
        raise ValueError(f"noise is {show(noise)}; it must be 'nearest' or None")
    return True


def automatic_min_size(min_size: object) -> int:
    """Return the smallest cluster of the automatic choice, or raise."""
    least = DEFAULT_MIN_SIZE if min_size is None else whole_number(min_size, "min_size", 1)
    if least < 2:
        raise ValueError(
            f"min_size is {least}; the automatic choice of clusters needs at least 2, since a "
            "single leaf has no inside to be judged by (cuts at theta, n_clusters or conductance "
            "take 1)"
        )
    return least


def nearest_clusters(dendrogram: Dendrogram, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return labels in which leaves of label -1 have that of the nearest cluster in the tree.

    That is the largest cluster under the nearest ancestor under which there is one. In trees
    without a cluster the label stays -1.
    """
    ids, positions = numbered(labels)
    given = _core.give_nearest(dendrogram.n_leaves, dendrogram.children, positions)
    return given if positions is labels else np.append(ids, -1)[given]
