"""Flat clusterings of a dendrogram.

The cut at θ groups the leaves of every maximal subtree all of whose merges have linkage >= θ: with
ε > 0 linkages need not fall monotonically towards the root, the smallest linkage in the subtree
does. The cut into k clusters applies merges in order of that smallest linkage, the largest first
and the earlier of two equal ones first, until k clusters are left; children always come before
their parent in that order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac import _core
from dynhac.input.columns import FLOAT64, whole_number
from dynhac.input.errors import InvalidTypeError, counted, show

SNAPPED_FROM = 2.0**20
"""Similarities of fewer units than this are not rounded: it would change them noticeably."""


def snap(similarity: ArrayLike, resolution: float) -> NDArray[np.float64]:
    """Lower similarities to compare with as far as weights are lowered by rounding.

    An edge of 0.2 is then not below 0.2. It is done only where it changes them by less than one
    part in a million, and they are never raised: a cut at the similarity of a merge makes it.

    >>> bool(snap(0.2, 2**-32) < 0.2), float(snap(0.3, 2**-32)), float(snap(0.7, 1.0))
    (True, 0.3, 0.7)
    """
    values = np.asarray(similarity, dtype=FLOAT64)
    if resolution == 0:
        return values
    with np.errstate(over="ignore"):
        units = values / resolution
    fine = (units >= SNAPPED_FROM) & np.isfinite(units)
    return np.where(
        fine, np.minimum(np.rint(np.where(fine, units, 0)) * resolution, values), values
    )


def cut_at(
    n: int,
    children: NDArray[np.int64],
    min_similarity: NDArray[np.float64],
    thetas: ArrayLike,
    threshold: float,
    resolution: float,
    min_size: int,
) -> NDArray[np.int64]:
    """Return ``(len(thetas), n)`` labels, one row for each θ, which must be >= ``threshold``."""
    least = whole_number(min_size, "min_size", 1)
    try:
        values = np.asarray(thetas)
    except ValueError:  # lists of different lengths
        values = np.empty((0, 0))
    if values.ndim != 1:
        raise InvalidTypeError(
            f"thetas is {show(thetas)}; give a list of similarities, or use labels for a single one"
        )
    if values.size and values.dtype.kind not in "iuf":
        raise InvalidTypeError(f"thetas have dtype {values.dtype}; they must be int or float")
    values = np.ascontiguousarray(values, dtype=FLOAT64)
    wrong = np.flatnonzero(~(values >= threshold))
    if wrong.size:
        value = show(values[wrong[0]])
        raise ValueError(
            f"theta is {value}; it must be a similarity >= {threshold:g}, the threshold of the "
            "model"
        )
    labels = _core.cut(n, children, min_similarity, snap(values, resolution))
    if least > 1:
        for row in labels:
            _drop_small(row, least)
    return labels


def cut_into(
    n: int,
    children: NDArray[np.int64],
    min_similarity: NDArray[np.float64],
    n_clusters: int,
    min_size: int,
) -> NDArray[np.int64]:
    """Return labels of ``n_clusters`` clusters (before small ones are dropped)."""
    least = whole_number(min_size, "min_size", 1)
    merges = len(children)
    wanted = whole_number(n_clusters, "n_clusters", 0)
    if not n - merges <= wanted <= n:
        raise ValueError(
            f"n_clusters is {wanted}; with {counted(n, 'leaf', 'leaves')} in "
            f"{counted(n - merges, 'tree', 'trees')} it must be between {n - merges} and {n}"
        )
    order = np.argsort(-min_similarity, kind="stable")
    rank = np.empty(merges, FLOAT64)
    rank[order] = np.arange(merges, 0, -1)
    labels: NDArray[np.int64] = _core.cut(
        n, children, rank, np.array([merges - (n - wanted) + 0.5])
    )[0]
    if least > 1:
        _drop_small(labels, least)
    return labels


def _drop_small(labels: NDArray[np.int64], least: int) -> None:
    """Set clusters of fewer than ``least`` leaves to -1 and number the others 0, 1, ... anew."""
    large = np.bincount(labels) >= least
    labels[:] = np.where(large, np.cumsum(large) - 1, -1)[labels]
