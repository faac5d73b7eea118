"""Questions about vectors that are not in a model: their neighbours, and the clusters they are in.

A new point would get edges to its nearest neighbours and then be merged like any other. The core
finds both, without an update (`core/points/point_search.cc`, `core/hierarchy/placement.cc`): the
neighbours, and the cluster of the dendrogram that the point would join, with the similarity at
which it would. What is left to do here is to look up the flat cluster that contains that one.

Search and look-up are made under the lock of the model, so that they see one state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac._core import BatchError
from dynhac.dendrogram.cuts import check_one_given, snap
from dynhac.input.columns import INT64_MAX, scalar, whole_number
from dynhac.input.errors import InvalidTypeError, show
from dynhac.input.vectors import vector_rows
from dynhac.watch.watch import Watch

if TYPE_CHECKING:
    from dynhac._core import Nearest, PointModel
    from dynhac.models.engine import IdEngine
    from dynhac.models.parameters import PointParameters


class Neighbors(NamedTuple):
    """The nearest points of one or several vectors; made by `DynHAC.neighbors`.

    The arrays have a row of k for every vector, nearest first; for a single vector they have one
    dimension. Where fewer than k points were found, the end of a row has the distance inf, the
    similarity 0, and the id -1, or None if ids are str.

    Attributes
    ----------
    ids : ndarray of int64, or of object holding str
        The ids of the points.
    distances : ndarray of float64
        Their distances, in the metric of the model.
    similarities : ndarray of float64
        Their similarities: the weights that edges to them would have, before they are rounded.
    """

    ids: NDArray[Any]
    distances: NDArray[np.float64]
    similarities: NDArray[np.float64]


class Prediction(NamedTuple):
    """The clusters that vectors would be in as new points; made by `DynHAC.predict`.

    Attributes
    ----------
    labels : ndarray of int64, or int for a single vector
        The clusters: labels as in `DynHAC.labels`, or ids of the clusters of a watch; -1 for none.
    scores : ndarray of float64, or float for a single vector
        The similarity at which the point would join the hierarchy, to be compared with ``theta``:
        it would be in a cluster at every cut up to its score. 0 if it would have no edges.
    neighbors : Neighbors
        The ``n_neighbors`` nearest points, on which all of this depends.
    """

    labels: Any
    scores: Any
    neighbors: Neighbors


class Cut(NamedTuple):
    """The labels of one cut of one state, by key."""

    engine: IdEngine
    version: int  # of the engine
    request: list[tuple[type, Any]]  # theta, n_clusters and min_size, with their types
    theta: float  # a point that joins at a smaller similarity is in no cluster
    keys: NDArray[np.int64]  # ascending
    labels: NDArray[np.int64]  # of the keys

    def labels_of(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the labels of points."""
        return self.labels[np.searchsorted(self.keys, keys)]


class LastCut:
    """The cut that was last asked for, to be used again until an update."""

    __slots__ = ("_cut",)

    def __init__(self) -> None:
        self._cut: Cut | None = None

    def get(
        self, engine: IdEngine, theta: float | None, n_clusters: int | None, min_size: int
    ) -> Cut:
        """Return the labels of a cut; for callers that hold the lock of the model."""
        last = self._cut
        request = [(type(v), v) for v in map(scalar, (theta, n_clusters, min_size))]
        if (
            last is not None
            and last.engine is engine
            and last.version == engine.engine.version
            and last.request == request
        ):
            return last
        dendrogram = engine.dendrogram()
        labels = dendrogram.labels(theta, n_clusters=n_clusters, min_size=min_size)
        if n_clusters is not None:
            merges = np.sort(dendrogram.min_similarity)[::-1]
            undone = merges[dendrogram.n_leaves - int(n_clusters) :]
            theta = max(float(undone[0]) if len(undone) else 0.0, dendrogram.threshold)
        assert theta is not None
        keys = engine.engine.keys()
        order = np.argsort(keys, kind="stable")
        lowest = float(snap(theta, dendrogram.resolution))
        cut = Cut(engine, dendrogram.version, request, lowest, keys[order], labels[order])
        self._cut = cut
        return cut


class PointQueries:
    """What a `DynHAC` answers about vectors that are not in it."""

    __slots__ = ()

    _engine: IdEngine
    _parameters: PointParameters
    _points: PointModel
    _last_cut: LastCut

    def neighbors(self, X: ArrayLike, k: int | None = None) -> Neighbors:
        """Return the nearest points of vectors; nothing changes.

        Parameters
        ----------
        X : array-like of shape (n, d) or (d,)
            The vectors, one row each, or a single one.
        k : int, optional
            How many points to return for each; ``n_neighbors`` by default.

        Returns
        -------
        Neighbors
            Ids, distances and similarities, nearest first, as arrays of shape (n, k), or (k,) for a
            single vector. A point of the model is its own neighbour, at distance 0.

        Notes
        -----
        An approximate index may miss some of the nearest. An update that runs at the same time is
        waited for.

        Examples
        --------
        >>> from dynhac import DynHAC
        >>> model = DynHAC()
        >>> _ = model.insert([[0.0], [1.0], [5.0]], ids=["a", "b", "c"])
        >>> found = model.neighbors([0.75], k=2)
        >>> found.ids.tolist(), found.distances.tolist(), found.similarities.tolist()
        (['b', 'a'], [0.25, 0.75], [0.8, 0.5714285714285714])
        >>> model.neighbors([[0.5], [4.0]], k=1).ids.tolist()
        [['a'], ['c']]
        """
        count = self._parameters.n_neighbors if k is None else whole_number(k, "k", 1, INT64_MAX)
        with self._engine.lock:
            engine, points = self._engine, self._points
            rows, single = vector_rows(X, points.dimension)
            with engine.guard:
                nearest = points.nearest(rows, count)
            return _neighbors(engine, nearest, count, single)

    def predict(
        self,
        X: ArrayLike,
        theta: float | None = None,
        *,
        n_clusters: int | None = None,
        watch: Watch | None = None,
        min_size: int = 1,
    ) -> Prediction:
        """Return the clusters that vectors would be in as new points; nothing changes.

        Parameters
        ----------
        X : array-like of shape (n, d) or (d,)
            The vectors, one row each, or a single one. Each is seen alone: they are no neighbours
            of each other.
        theta, n_clusters, min_size : optional
            A cut, as in `labels`: the answer has the labels of that cut.
        watch : Watch, optional
            A watch of this model, instead of a cut: the answer has the ids of its clusters.

        Returns
        -------
        Prediction
            Labels, scores, and the nearest points. The label is -1 if a point would be alone, or in
            a cluster that is smaller than ``min_size`` without it.

        Notes
        -----
        A new point p would have edges to its ``n_neighbors`` nearest points. Its linkage to a
        cluster A of the dendrogram is the sum of the weights of its edges into A, divided by the
        size of A. p joins A if this linkage is at least that of the merge in which A ends (or if A
        is a whole tree), and the score is that linkage, or the smallest linkage within A if that is
        less. If p could join several clusters, it joins the one with the largest score. Then it is
        in whatever flat cluster contains A, if its score is at least ``theta``. For ``n_clusters``,
        ``theta`` is the similarity of the first merge that the cut does not make.

        With ``epsilon=0`` and no equal linkages this is the first merge that p would take part in
        if it were inserted. Its later merges, and with ``epsilon > 0`` the first one, may be
        others: an insertion can change the clusters around the new point.

        The first call with a cut after an update takes time linear in the number of points. Calls
        with a watch do not.

        Examples
        --------
        >>> from dynhac import DynHAC
        >>> model = DynHAC(n_neighbors=2)
        >>> _ = model.insert([[0.0], [0.25], [5.0], [5.25]])
        >>> model.labels(0.5).tolist()
        [0, 0, 1, 1]
        >>> labels, scores, neighbors = model.predict([[5.125], [2.5]], 0.5)
        >>> labels.tolist(), scores.round(3).tolist()
        ([1, -1], [0.889, 0.297])
        >>> watch = model.watch(0.5)
        >>> model.predict([0.0], watch=watch).labels == watch.cluster_of(0)
        True
        """
        check_one_given(theta=theta, n_clusters=n_clusters, watch=watch)
        with self._engine.lock:
            engine, points = self._engine, self._points
            if watch is None:
                if theta is None and n_clusters is None:
                    raise InvalidTypeError(
                        "which clusters is missing: give theta, n_clusters or a watch"
                    )
                cut = self._last_cut.get(engine, theta, n_clusters, min_size)
            else:
                _check_watch(watch, engine, min_size)
            rows, single = vector_rows(X, points.dimension)
            count = self._parameters.n_neighbors
            with engine.guard:
                try:
                    nearest, joined, scores = points.predict(rows, count)
                except BatchError as error:
                    nearest = points.nearest(rows, count)
                    raise _too_large(error, engine, nearest) from None
            found = _neighbors(engine, nearest, count, False)
            if watch is None:
                labels = np.full(len(rows), -1, np.int64)
                inside = np.flatnonzero((joined >= 0) & (scores >= cut.theta))
                labels[inside] = cut.labels_of(nearest.keys[inside, joined[inside]])
            else:
                labels = _watched(watch, engine.resolution, found.ids, joined, scores)
        if not single:
            return Prediction(labels, scores, found)
        return Prediction(labels.item(), scores.item(), Neighbors(*(column[0] for column in found)))


def _neighbors(engine: IdEngine, nearest: Nearest, k: int, single: bool) -> Neighbors:
    """Return what the core found, with ids, in rows of k."""
    rows, width = nearest.keys.shape
    ids: NDArray[Any] = np.full((rows, k), None) if engine.ids.used else np.full((rows, k), -1)
    distances, similarities = np.full((rows, k), np.inf), np.zeros((rows, k))
    found = np.arange(width) < nearest.counts[:, np.newaxis]
    ids[:, :width][found] = engine.ids_of(nearest.keys[found])
    distances[:, :width][found] = nearest.distances[found]
    similarities[:, :width][found] = nearest.similarities[found]
    if single:
        return Neighbors(ids[0], distances[0], similarities[0])
    return Neighbors(ids, distances, similarities)


def _check_watch(watch: Watch, engine: IdEngine, min_size: int) -> None:
    """Raise unless the clusters of points can be predicted by this watch."""
    if not isinstance(watch, Watch):
        raise InvalidTypeError(f"watch is {show(watch)}; it must be a watch of this model")
    if watch._engine is not engine:
        raise ValueError(f"watch is {watch!r} of another model; make one with model.watch")
    if watch.theta is None:
        raise ValueError(f"watch is {watch!r}; predict needs a watch at a similarity, theta")
    if whole_number(min_size, "min_size", 1) != 1:
        raise ValueError(
            f"min_size is {show(min_size)}, but a watch is given, which has its own, "
            f"{watch.min_size}"
        )


def _watched(
    watch: Watch,
    resolution: float,
    ids: NDArray[Any],
    joined: NDArray[np.int64],
    scores: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Return the clusters of a watch that points join, each given by one of its neighbours."""
    assert watch.theta is not None
    inside = (joined >= 0) & (scores >= snap(watch.theta, resolution))
    clusters: dict[Any, int] = {}
    labels = np.full(len(joined), -1, np.int64)
    for row in np.flatnonzero(inside).tolist():
        id = ids[row, joined[row]]
        if id not in clusters:
            clusters[id] = watch.cluster_of(id)
        labels[row] = clusters[id]
    if not clusters:
        len(watch)  # raises if it is closed
    return labels


def _too_large(error: BatchError, engine: IdEngine, nearest: Nearest) -> ValueError:
    """Return the exception for a point whose edges would have weights that are too large."""
    row, column = divmod(error.args[1], nearest.keys.shape[1])
    (id,) = engine.ids_of(nearest.keys[row, column : column + 1]).tolist()
    similarity = nearest.similarities[row, column]
    return ValueError(
        f"the similarity of row {row} of X to id {show(id)} is {similarity}, which is too large "
        f"at resolution {engine.resolution:g}; scale the similarities down, or take a coarser "
        "resolution"
    )
