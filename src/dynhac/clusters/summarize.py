"""From labels and a state of the engine to `Clusters`.

Labels belong to one version of the engine. The core summarizes them only if it is still at that
version, so that labels and edges are always those of one state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac.clusters.cluster import Cluster, NearCluster
from dynhac.clusters.clusters import Clusters
from dynhac.input.columns import INT64, whole_number
from dynhac.input.errors import InvalidTypeError, counted, show

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dynhac._core import Engine

NEAREST = 10
"""Other clusters that are listed for each cluster: more would need memory for every edge."""


def summarize(
    engine: Engine, version: int, ids: NDArray[Any], labels: NDArray[np.int64]
) -> Clusters | None:
    """Return what is in all clusters; None if the engine is not at this version any more."""
    cluster_ids, numbers = numbered(labels)
    summary = engine.summarize(version, numbers, len(cluster_ids), None, NEAREST)
    return None if summary is None else Clusters._of(summary, cluster_ids, ids, labels, version)


def summarize_one(
    engine: Engine,
    version: int,
    labels: NDArray[np.int64],
    cluster: int,
    ids_of: Callable[[NDArray[np.int64]], NDArray[Any]],
) -> Cluster | None:
    """Return what is in one cluster that has points; None if the version is another one.

    ``ids_of`` returns the ids of points, given by their order of insertion.
    """
    cluster_ids, numbers = numbered(labels)
    only = int(np.searchsorted(cluster_ids, cluster))
    found = engine.summarize(version, numbers, len(cluster_ids), only, NEAREST)
    if found is None:
        return None
    return Cluster(
        cluster,
        ids_of(found.members),
        found.typicality,
        found.outlier,
        found.inside_share,
        float(found.cohesion[0]),
        float(found.density[0]),
        float(found.similarity[0]),
        int(found.node_ids[0]),
        tuple(
            map(NearCluster, cluster_ids[found.nearest].tolist(), found.nearest_linkage.tolist())
        ),
    )


def numbered(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ids of all clusters, ascending, and the position of each label among them.

    >>> ids, positions = numbered(np.array([7, -1, 2, 7]))
    >>> ids.tolist(), positions.tolist()
    ([2, 7], [1, -1, 0, 1])
    """
    highest = int(labels.max(initial=-1))
    if highest < 2 * len(labels):  # few gaps, if any
        present = np.bincount(labels + 1, minlength=highest + 2)[1:] > 0
        ids = np.flatnonzero(present)
        if len(ids) == highest + 1:
            return ids, labels
        table = np.concatenate([np.cumsum(present) - 1, [-1]])
        return ids, table[labels]
    ids, positions = np.unique(labels, return_inverse=True)
    none = int(ids[0] < 0)
    return ids[none:], positions.astype(INT64) - none


def given_labels(labels: ArrayLike, n: int, min_size: int) -> NDArray[np.int64]:
    """Return a user's labels of n points, those of clusters below ``min_size`` as -1; or raise."""
    least = whole_number(min_size, "min_size", 1)
    try:
        values = np.asarray(labels)
    except ValueError:  # lists of different lengths
        values = np.empty((0, 0))
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise InvalidTypeError(
            f"labels is {show(labels)}; it must be one integer for each of the model's ids"
        )
    if len(values) != n:
        raise ValueError(
            f"labels has {counted(len(values), 'entry', 'entries')}; it must have {n:,}, one for "
            "each of the model's ids"
        )
    wrong = np.flatnonzero((values < -1) | (values > np.iinfo(INT64).max))
    if wrong.size:
        raise ValueError(
            f"label {show(values[wrong[0]])} at position {wrong[0]} is not valid; labels must be "
            ">= 0, or -1 for points in no cluster"
        )
    own = values.astype(INT64)  # a copy: the caller's array must not change with the result
    if least > 1 and n:
        ids, positions = numbered(own)
        small = np.bincount(positions + 1, minlength=len(ids) + 1)[1:] < least
        own[(positions < 0) | np.append(small, True)[positions]] = -1
    return own
