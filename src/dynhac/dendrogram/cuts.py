"""Flat clusterings of a dendrogram.

A cluster of the cut at θ is a maximal subtree all of whose merges have linkage >= θ. With ε > 0
linkages need not decrease towards the root, but the smallest linkage in the subtree never
increases. The cut into k clusters applies merges in descending order of that smallest linkage, the
earlier of two equal ones first, until k clusters are left. In that order children come before their
parent.

The conductance of a merge of a and b is the share of the weight at the smaller side that crosses:
X / (2 min(W_a, W_b) + X), where X is the weight between a and b and W the weight inside. A cut at a
conductance is made like one at a similarity, on the smallest conductance in each subtree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac import _core
from dynhac.input.columns import FLOAT64, is_int, is_number, scalar, whole_number
from dynhac.input.errors import InvalidTypeError, counted, show

if TYPE_CHECKING:
    from dynhac.dendrogram.dendrogram import Dendrogram

SNAPPED_FROM = 2.0**20
"""Similarities of fewer units of the resolution are not rounded: it would change them too much."""


def snap(similarity: ArrayLike, resolution: float) -> NDArray[np.float64]:
    """Round similarities down to the resolution of the weights, for comparisons with linkages.

    Weights are rounded, so an edge of weight 0.2 may be stored below 0.2; a cut at 0.2 must still
    include it. Similarities are changed by less than one part in a million, else not at all, and
    never raised: a cut at the similarity of a merge includes that merge.

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


def check_one_given(**arguments: object) -> None:
    """Raise if more than one of these arguments is given; those that are None are not."""
    given = [name for name, value in arguments.items() if value is not None]
    if len(given) > 1:
        values = " and ".join(f"{name} is {show(arguments[name])}" for name in given)
        raise InvalidTypeError(f"{values}; give one of them")


def one_theta(theta: object) -> float:
    """Return the argument ``theta`` of a single cut as a number, or raise."""
    value = scalar(theta)
    if not is_number(value):
        raise InvalidTypeError(f"theta is {show(theta)}; give one number, or use cut for many")
    check_no_count(value, f"did you mean n_clusters={show(value)}?")
    return float(value)


def check_no_count(theta: object, question: str = "") -> None:
    """Raise if a similarity is an int above 1: most likely it is meant as a number of clusters."""
    value = scalar(theta)
    if is_int(value) and value > 1:
        remedy = f"for a similarity of {show(value)} give a float"
        advice = f"{question} ({remedy})" if question else remedy
        raise ValueError(
            f"theta is {show(value)}, an int above 1, but it is a similarity; {advice}"
        )


def cut_at(dendrogram: Dendrogram, thetas: ArrayLike, min_size: int) -> NDArray[np.int64]:
    """Return labels of shape ``(len(thetas), n)``, one row per θ; see `Dendrogram.cut`."""
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
    wrong = np.flatnonzero(~(values >= dendrogram.threshold))
    if wrong.size:
        raise ValueError(
            f"theta is {show(values[wrong[0]])}; it must be a similarity >= "
            f"{dendrogram.threshold:g}, the threshold of the model"
        )
    lowered = snap(values, dendrogram.resolution)
    return _cut(dendrogram, dendrogram.min_similarity, lowered, min_size)


def cut_at_theta(dendrogram: Dendrogram, theta: object, min_size: int) -> NDArray[np.int64]:
    """Return the labels of a single cut."""
    labels: NDArray[np.int64] = cut_at(dendrogram, np.array([one_theta(theta)]), min_size)[0]
    return labels


def cut_into(dendrogram: Dendrogram, n_clusters: int, min_size: int) -> NDArray[np.int64]:
    """Return labels of ``n_clusters`` clusters, counted before small ones are dropped."""
    n, merges = dendrogram.n_leaves, len(dendrogram)
    wanted = whole_number(n_clusters, "n_clusters", 0)
    if not n - merges <= wanted <= n:
        raise ValueError(
            f"n_clusters is {wanted}; with {counted(n, 'leaf', 'leaves')} in "
            f"{counted(n - merges, 'tree', 'trees')} it must be between {n - merges} and {n}"
        )
    order = np.argsort(-dendrogram.min_similarity, kind="stable")
    rank = np.empty(merges, FLOAT64)
    rank[order] = np.arange(merges, 0, -1)
    lowest_applied = np.array([merges - (n - wanted) + 0.5])
    labels: NDArray[np.int64] = _cut(dendrogram, rank, lowest_applied, min_size)[0]
    return labels


def cut_at_conductance(
    dendrogram: Dendrogram, conductance: float, min_size: int
) -> NDArray[np.int64]:
    """Return the labels of the maximal subtrees all of whose merges have this conductance."""
    value = scalar(conductance)
    if not is_number(value):
        raise InvalidTypeError(f"conductance is {show(conductance)}; it must be one number")
    least = float(value)
    if not 0 < least <= 1:
        raise ValueError(f"conductance is {show(conductance)}; it must be > 0 and <= 1")
    found = _core.least_conductances(
        dendrogram.n_leaves, dendrogram.children, dendrogram.similarity
    )
    labels: NDArray[np.int64] = _cut(dendrogram, found, np.array([least]), min_size)[0]
    return labels


def _cut(
    dendrogram: Dendrogram,
    similarity: NDArray[np.float64],
    thetas: NDArray[np.float64],
    min_size: int,
) -> NDArray[np.int64]:
    """Cut the tree with these similarities of merges; small clusters get the label -1."""
    least = whole_number(min_size, "min_size", 1)
    labels = _core.cut(dendrogram.n_leaves, dendrogram.children, similarity, thetas)
    if least > 1:
        for row in labels:
            large = np.bincount(row) >= least
            row[:] = np.where(large, np.cumsum(large) - 1, -1)[row]
    return labels
