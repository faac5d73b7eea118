"""DynHACClustering: average-linkage clustering of a stream, as a clusterer of river.

River's samples are dicts, whose features may come and go. Each feature has a column of the vectors
of a `DynHAC`, given when it is first learned. A feature that a sample does not have is 0. If no
column is left, the model is replaced by a copy with more of them; columns of 0 change no distance,
so that hierarchy and cluster ids stay as they are.

The clusters are those of the first watch of the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from river.base import Clusterer

from dynhac.files.point_state import widened
from dynhac.input.errors import InvalidTypeError, show
from dynhac.input.vectors import LARGEST
from dynhac.models.points import DynHAC

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dynhac.neighbors.similarity import SimilaritySpec

OF_THE_MODEL = ("epsilon", "threshold", "n_neighbors", "metric", "similarity", "neighbors",
                "repair", "max_points", "max_age", "resolution", "threads")  # fmt: skip


class DynHACClustering(Clusterer):
    """Average-linkage hierarchical clustering of a stream.

    `learn_one` inserts a sample into a hierarchy and `predict_one` returns the cluster that a
    sample would be in. Clusters have stable ids: a cluster keeps its id while it grows, shrinks and
    moves. With ``max_points`` or ``max_age``, old samples are forgotten.

    Parameters
    ----------
    theta : float, optional
        The similarity of the cut, >= ``threshold``: clusters are the maximal subtrees all of whose
        merges have a similarity of at least ``theta``. By default the clusters are chosen
        automatically, as by `dynhac.Dendrogram.labels`.
    min_size : int, optional
        Smaller clusters count as none. By default 25 for automatic clusters, which need at least 2,
        and 1 with a ``theta``.
    max_points : int or None, default 10,000
        The number of samples held at most: beyond it, the oldest are forgotten. None: no bound.
    max_age : number or timedelta64, optional
        Samples are forgotten when their time is smaller than the latest less ``max_age``. If it is
        given, `learn_one` needs times.
    epsilon, threshold, n_neighbors, metric, similarity, repair, resolution, threads
        See `dynhac.DynHAC`.
    neighbors : {"auto", "exact", "kd", "cells", "usearch", "gpu"}, default "auto"
        The nearest-neighbour index; see `dynhac.DynHAC`.

    Attributes
    ----------
    model : DynHAC
        The model, for other cuts, the dendrogram, and more. The ids of its points count the samples
        from 0. When a sample has new features, another object may take its place.
    features : dict
        The column of each feature in the vectors of the model.

    Notes
    -----
    A feature that a sample does not have is 0. Features that were never learned are ignored by
    `predict_one`. Values must be finite numbers or bool. Scale features that differ in size, with
    `river.preprocessing.StandardScaler` or similar.

    Examples
    --------
    >>> from dynhac.river import DynHACClustering
    >>> clusterer = DynHACClustering(min_size=2)
    >>> for x in (0.0, 0.25, 5.0, 5.5, 5.25):
    ...     clusterer.learn_one({"x": x})
    >>> [clusterer.predict_one({"x": x}) for x in (0.1, 5.1, 20.0)]
    [0, 1, -1]
    """

    def __init__(
        self,
        theta: float | None = None,
        min_size: int | None = None,
        max_points: int | None = 10_000,
        max_age: float | np.timedelta64 | None = None,
        epsilon: float = 0.1,
        threshold: float = 0.0,
        n_neighbors: int = 50,
        metric: str = "euclidean",
        similarity: SimilaritySpec = None,
        neighbors: str = "auto",
        repair: bool = True,
        resolution: float = 2.0**-32,
        threads: int = 1,
    ) -> None:
        self.theta = theta
        self.min_size = min_size
        self.max_points = max_points
        self.max_age = max_age
        self.epsilon = epsilon
        self.threshold = threshold
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.similarity = similarity
        self.neighbors = neighbors
        self.repair = repair
        self.resolution = resolution
        self.threads = threads
        if not isinstance(neighbors, str):
            raise InvalidTypeError(
                f"neighbors is {show(neighbors)}; it must be 'auto', 'exact', 'kd', 'cells', "
                "'usearch' or 'gpu'"
            )
        self.features: dict[Hashable, int] = {}
        self.model = DynHAC(**{name: getattr(self, name) for name in OF_THE_MODEL})
        self.model.watch(theta, min_size)

    def learn_one(self, x: Mapping[Hashable, Any], t: Any = None) -> None:
        """Insert a sample.

        Parameters
        ----------
        x : dict
            The features of the sample.
        t : number or datetime64, optional
            Its time; with ``max_age`` every sample needs one.

        Raises
        ------
        ValueError
            A value is not a finite number, or the time is wrong; nothing has changed then.

        Examples
        --------
        >>> from dynhac.river import DynHACClustering
        >>> clusterer = DynHACClustering(max_age=60)
        >>> clusterer.learn_one({"x": 1.0}, t=0)
        >>> clusterer.learn_one({"x": 1.0, "y": 2.0}, t=100)
        >>> clusterer.model.ids.tolist(), clusterer.features
        ([1], {'x': 0, 'y': 1})
        """
        new = sorted(x.keys() - self.features.keys(), key=_order)
        features = {**self.features, **{f: i for i, f in enumerate(new, len(self.features))}}
        old, needed = self.model.dimension, max(len(features), 1)
        width = needed if old is None else old if needed <= old else max(needed, 2 * old)
        vector = _vector(x, features, width)
        model = self.model if old in (None, width) else widened(self.model, width)
        model.insert(vector, timestamps=t)
        self.features, self.model = features, model

    def predict_one(self, x: Mapping[Hashable, Any]) -> int:
        """Return the cluster that a sample would be in, -1 for none; nothing changes.

        Parameters
        ----------
        x : dict
            The features of the sample.

        Examples
        --------
        >>> from dynhac.river import DynHACClustering
        >>> clusterer = DynHACClustering(theta=0.3)
        >>> clusterer.predict_one({"x": 1.0})
        -1
        >>> clusterer.learn_one({"x": 1.0})
        >>> clusterer.predict_one({"x": 2.0})
        0
        """
        width = self.model.dimension
        if width is None:
            return -1
        vector = _vector(x, self.features, width)
        cluster: int = self.model.predict(vector, watch=self.model.watches[0]).labels
        return cluster

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_neighbors": 5}
        yield {"theta": 0.3, "max_points": 50}


def _order(feature: Hashable) -> tuple[str, str]:
    """Return what new features are sorted by, so that their order in a dict does not matter."""
    return type(feature).__name__, str(feature)


def _vector(
    x: Mapping[Hashable, Any], features: Mapping[Hashable, int], width: int
) -> NDArray[np.float64]:
    """Return the values of a sample in the columns of their features."""
    vector = np.zeros(width)
    for feature, value in x.items():
        try:
            number = math.nan if isinstance(value, (str, bytes)) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not abs(number) <= LARGEST:
            raise InvalidTypeError(
                f"feature {show(feature)} is {show(value)}; it must be a finite number that fits "
                "in float32"
            )
        if feature in features:
            vector[features[feature]] = number
    return vector
