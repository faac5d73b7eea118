"""DynHAC: the hierarchy of points that come and go.

A model is a graph with the points as vertices, each joined to its nearest neighbours, and the
graph's hierarchy. This class is what users see; `PointGraph` does the work. Updates are made one at
a time, under a lock; reading goes to the graph, which needs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac._core import BatchError
from dynhac.files.point_state import MOST_NEIGHBORS, PersistentPoints
from dynhac.input.columns import Ids, id_column, whole_number
from dynhac.input.errors import InvalidTypeError, counted, show
from dynhac.input.timestamps import read_times
from dynhac.models.attempt import ShortWay
from dynhac.models.batch import PointBatch, empty_batch, id_array, read_batch
from dynhac.models.keyed import BUSY
from dynhac.models.modelgraph import ModelGraph
from dynhac.models.point_change import PointChange
from dynhac.models.pointgraph import PointGraph
from dynhac.models.reader import GraphReader
from dynhac.models.windows import Window
from dynhac.neighbors import NeighborIndex, make_index, resolve_metric
from dynhac.neighbors.similarity import resolve_similarity

if TYPE_CHECKING:
    from collections.abc import Callable

    from dynhac.neighbors.similarity import SimilaritySpec


def require(value: object, name: str) -> None:
    """Raise if an argument is None, which would stand for nothing to do."""
    if value is None:
        raise InvalidTypeError(f"{name} is None; an empty list stands for nothing")


class DynHAC(PersistentPoints, GraphReader):
    """Average-linkage hierarchical clustering of points, kept up to date as they come and go.

    Points are vectors. Each is joined to its nearest neighbours by edges whose weights are
    similarities, and the model keeps the (1+ε)-approximate average-linkage hierarchy of that graph;
    see `GraphHAC`.

    Parameters
    ----------
    epsilon : float, default 0.1
        How far from the best a merge may be, >= 0. With 0 the hierarchy is that of exact average
        linkage on the graph.
    threshold : float, default 1e-2
        Similarity below which nothing need be merged, >= 0.
    n_neighbors : int, default 50
        How many nearest neighbours a new point is joined to.
    metric : {"euclidean", "cosine", "inner_product"}, default "euclidean"
        How distance is measured.
    similarity : str, tuple or callable, optional
        How a distance becomes the weight of an edge:

        - "inverse": 1 / (1 + distance), the default but for inner products;
        - "gaussian" or ("gaussian", sigma): exp(-distance² / (2 sigma²)), sigma 1 if not given;
        - "cosine": the cosine, or 0 where it is negative; for metric "cosine";
        - "dot": the inner product, or 0 where it is negative; for metric "inner_product", whose
          default it is;
        - a function from an array of distances to an array of similarities, finite and >= 0.

        Points at similarity 0, or at one that rounds to 0 at the resolution, get no edge.
    neighbors : {"auto", "exact", "kd", "usearch"} or object, default "auto"
        What finds the nearest neighbours: a scan ("exact"), a KD-tree ("kd", for up to 8
        dimensions), an approximate index ("usearch", of the extra ``dynhac[ann]``), or what suits
        the points there are; or an empty index of your own with the methods of
        `dynhac.neighbors.NeighborIndex`.
    repair : bool, default True
        Whether points that deletions leave with few edges are joined to their nearest neighbours
        anew.
    max_points : int, optional
        How many points the model holds at most; beyond that the oldest expire.
    max_age : number or timedelta64, optional
        Points expire when their timestamp is smaller than the latest one less ``max_age``.
    resolution : float, default 2**-32
        Similarities are rounded to multiples of this, so that sums are exact; > 0.
    threads : int, default 1
        Threads that a large update of the hierarchy may use. The result does not depend on it.

    Notes
    -----
    The graph follows from the batches by these rules.

    - A new point gets edges to its ``n_neighbors`` nearest among all other points that the model
      holds after the batch. Points at the same distance come in order of their slots; a new point
      has the lowest slot that was free before its batch.
    - An edge lasts until one of its points leaves.
    - With ``repair``, a point that loses a neighbour in a batch, and has fewer than ``n_neighbors /
      2`` edges after it and fewer than there are other points, gets edges to its ``n_neighbors``
      nearest as well.
    - With ``max_points`` or ``max_age``, the oldest points by timestamp, and by arrival among equal
      ones, leave in the same batch. A new point is no exception: if it is older than ``max_age``
      or there is no room for it, it is dropped at once. Its id is returned like the others, and
      `PointChange.expired` lists it.

    Ids are all int (64 bits) or all str; the first points decide, and they decide on the dimension
    and on whether points have timestamps. Vectors are stored as float32. Threads may share a
    model: updates wait for each other, readers see the state before or after an update.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac import DynHAC
    >>> model = DynHAC(n_neighbors=3)
    >>> model.insert([[0.0, 0.0], [0.1, 0.0], [4.0, 4.0], [4.0, 4.2]])
    array([0, 1, 2, 3])
    >>> model.insert([0.0, 0.1])
    4
    >>> model.labels(0.5).tolist()
    [0, 0, 1, 1, 0]
    >>> change = model.delete([0, 1])
    >>> model.ids.tolist(), model.labels(0.5).tolist()
    ([2, 3, 4], [0, 0, 1])
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        epsilon: float = 0.1,
        threshold: float = 1e-2,
        n_neighbors: int = 50,
        metric: str = "euclidean",
        *,
        similarity: SimilaritySpec = None,
        neighbors: str | NeighborIndex = "auto",
        repair: bool = True,
        max_points: int | None = None,
        max_age: float | np.timedelta64 | None = None,
        resolution: float = 2.0**-32,
        threads: int = 1,
    ) -> None:
        self.graph = ModelGraph(epsilon, threshold, resolution=resolution, threads=threads)
        if not isinstance(repair, (bool, np.bool_)):
            raise InvalidTypeError(f"repair is {show(repair)}; it must be True or False")
        measure = resolve_metric(metric)
        index = make_index(neighbors, measure, 1, 0)  # says what is wrong with the parameter
        if not isinstance(neighbors, str) and len(index):
            raise ValueError(
                f"neighbors is an index that holds {counted(len(index), 'vector', 'vectors')}; it "
                "must be empty"
            )
        self._points = PointGraph(
            self.graph,
            measure,
            resolve_similarity(similarity, measure),
            neighbors,
            whole_number(n_neighbors, "n_neighbors", 1, MOST_NEIGHBORS),
            bool(repair),
            Window(max_points, max_age),
        )
        self._lock = self.graph._keyed.lock
        self._last_change = None

    def insert(
        self, X: ArrayLike, ids: Ids | None = None, timestamps: ArrayLike | None = None
    ) -> Any:
        """Insert points; return their ids.

        Parameters
        ----------
        X : array-like of shape (n, d) or (d,)
            The vectors, one row each, or a single one.
        ids : ids, optional
            An int or str for every point (default: ints that count up and are never used again).
        timestamps : optional
            A number or datetime64 for every point, or one for all; needed with ``max_age``.

        Returns
        -------
        ndarray, int or str
            The ids, in the order of the rows; of a single vector its id.

        Raises
        ------
        ValueError
            Anything that is wrong with the batch; the message names it, and nothing has changed.
            Values of a wrong type are a TypeError as well.

        Examples
        --------
        >>> from dynhac import DynHAC
        >>> model = DynHAC()
        >>> model.insert([[0.0, 0.0], [1.0, 0.0]], ids=[7, 8])
        array([7, 8])
        >>> model.insert([0.5, 0.0])
        9
        >>> model.insert([0.5, float("nan")])
        Traceback (most recent call last):
            ...
        ValueError: row 0, column 1 of X is nan; vectors must be finite
        """
        with self._lock:
            id = self._by_short_way(X, ids, timestamps, False)
            if id is not None:
                self._last_change = self._points.short
                return id
            require(X, "X")
            batch = self._apply(X, ids, None, timestamps)
        if not batch.one:
            return id_array(batch.ids.copy(), batch.store.text)
        return batch.ids[0] if batch.store.text else batch.ids.item()  # type: ignore[union-attr]

    def delete(self, ids: Ids) -> PointChange:
        """Delete points.

        Parameters
        ----------
        ids : ids
            An id, or a list, range, array or column of ids.

        Raises
        ------
        KeyError
            An id that is not in the model; nothing has changed then.

        Examples
        --------
        >>> from dynhac import DynHAC
        >>> model = DynHAC()
        >>> _ = model.insert([[0.0], [1.0], [2.0]])
        >>> model.delete([0, 2]).deleted.tolist()
        [0, 2]
        >>> model.delete(5)
        Traceback (most recent call last):
            ...
        KeyError: 'id 5 in delete is not in the model'
        """
        with self._lock:
            change = self._by_short_way(None, ids, None, True)
            if change is not None:
                self._last_change = change
                return change  # type: ignore[no-any-return]
        require(ids, "ids")
        return self.update(delete=ids)

    def update(
        self,
        insert: ArrayLike | None = None,
        ids: Ids | None = None,
        delete: Ids | None = None,
        timestamps: ArrayLike | None = None,
    ) -> PointChange:
        """Apply one batch of changes, all of it or, if an error is raised, nothing.

        Deletions come first, so that an id both in ``delete`` and in ``ids`` is replaced.

        Parameters
        ----------
        insert, ids, timestamps : optional
            New points, as in `insert`.
        delete : ids, optional
            Points to delete, as in `delete`.

        Returns
        -------
        PointChange
            What the update did.

        Examples
        --------
        >>> from dynhac import DynHAC
        >>> model = DynHAC()
        >>> _ = model.update(insert=[[0.0], [1.0]], ids=["a", "b"])
        >>> change = model.update(insert=[[5.0], [6.0]], ids=["a", "c"], delete=["a"])
        >>> model.ids.tolist(), model.vectors().ravel().tolist()
        (['b', 'a', 'c'], [1.0, 5.0, 6.0])
        """
        with self._lock:
            self._apply(insert, ids, delete, timestamps)
            assert isinstance(self._last_change, PointChange)
            return self._last_change

    def expire(self, now: ArrayLike) -> PointChange:
        """Move the clock on to ``now`` and let the points go that are too old then.

        Parameters
        ----------
        now : number or datetime64
            The time; one before the latest timestamp changes nothing.

        Examples
        --------
        >>> from dynhac import DynHAC
        >>> model = DynHAC(max_age=60)
        >>> _ = model.insert([[0.0], [1.0]], timestamps=[100, 130])
        >>> model.expire(now=170).expired.tolist()
        [0]
        """
        with self._lock:
            self._settle()
            window = self._points.window
            if not window.has_age:
                raise ValueError("the model has no max_age, so that points never become too old")
            clock = window.fit(read_times(now, 1, "now")).values.item()
            self._run(empty_batch(self._points, clock))
            assert isinstance(self._last_change, PointChange)
            return self._last_change

    def vectors(self, ids: Ids | None = None) -> NDArray[np.float32]:
        """Return vectors as they are stored, one row per id; those of all points by default.

        Examples
        --------
        >>> from dynhac import DynHAC
        >>> model = DynHAC()
        >>> _ = model.insert([[0.0, 1.0], [2.0, 3.0]], ids=["a", "b"])
        >>> model.vectors("b").tolist()
        [[2.0, 3.0]]
        """
        with self._lock:
            self._settle()
            store = self._points.store
            column = None if ids is None else id_column(ids, "ids")
            if store is None:
                if column is not None and len(column):
                    raise KeyError(f"id {show(column[0])} in ids is not in the model")
                return np.empty((0, 0), np.float32)
            slots = store.table.in_order()
            if column is not None:
                slots = store.find(column, "ids", repeated=True)
            return store.table.vectors_of(slots)

    def _by_short_way(self, X: object, id: object, time: object, removes: bool) -> Any:
        """Insert a vector, or delete the point of an id, if that is simple; None if it is not.

        Returns the id of a vector, and what a deletion has changed.
        """
        points = self._points
        short = points.short
        if short is None or points.lost or points.unfinished is not None:
            return None
        at, before = None, None
        if time is not None:
            moment = points.window.moment(time, short.store)
            if moment is None:
                return None
            at, before = moment
        updater = short.updater
        done: Any = None
        try:
            done = updater.remove(id) if removes else updater.insert(X, id, at, before)
        except BaseException as error:
            short.finish(points, error)
            if isinstance(error, BatchError):
                raise short.explained(error, id) from None
            raise
        if done is None:
            return None
        self.graph.forget_view()
        return PointChange(done) if removes else done

    def _apply(
        self,
        insert: ArrayLike | None,
        ids: Ids | None,
        delete: Ids | None,
        timestamps: ArrayLike | None,
    ) -> PointBatch:
        if self._guard.held:  # before what there is now is taken for the state of the model
            raise RuntimeError(BUSY)
        self._settle()
        batch = read_batch(self._points, insert, ids, delete, timestamps)
        self._run(batch)
        return batch

    def _run(self, batch: PointBatch) -> None:
        with self._guard:
            self._last_change = self._points.apply(batch)

    @property
    def last_change(self) -> PointChange | None:
        """What the last update did; None before the first."""
        last = self._last_change
        return last.last_inserted() if isinstance(last, ShortWay) else last

    @property
    def dimension(self) -> int | None:
        """The dimension of the vectors; None before the first."""
        store = self._points.store
        return None if store is None else store.dimension

    @property
    def n_neighbors(self) -> int:
        """How many nearest neighbours a new point is joined to."""
        return self._points.n_neighbors

    @property
    def metric(self) -> str:
        """How distance is measured."""
        return self._points.metric.name

    @property
    def similarity(self) -> str | tuple[str, float] | Callable[..., Any]:
        """How a distance becomes the weight of an edge: a name, with its parameter, or a function.

        Examples
        --------
        >>> from dynhac import DynHAC
        >>> DynHAC().similarity, DynHAC(similarity=("gaussian", 2.0)).similarity
        ('inverse', ('gaussian', 2.0))
        """
        similarity = self._points.similarity
        if similarity.function is not None:
            return similarity.function
        return similarity.name if similarity.sigma is None else (similarity.name, similarity.sigma)

    @property
    def neighbors(self) -> str | NeighborIndex:
        """What was asked to find the neighbours: a name, or an index of your own."""
        return self._points.neighbors

    @property
    def repair(self) -> bool:
        """Whether points that deletions leave with few edges are joined anew."""
        return self._points.repair

    @property
    def max_points(self) -> int | None:
        """How many points the model holds at most; None if there is no such bound."""
        return self._points.window.max_points

    @property
    def max_age(self) -> int | float | np.timedelta64 | None:
        """The age at which points expire; None if at none."""
        return self._points.window.max_age

    @property
    def backend(self) -> str | None:
        """What finds the neighbours now: "exact", "kd" or "usearch"; None if nothing of these."""
        return self._points.backend

    @property
    def memory(self) -> int:
        """Bytes held by the engine and by the vectors; the neighbour index has its own."""
        with self._lock:
            store = self._points.store
            return self.graph.memory + (0 if store is None else store.nbytes)

    def __repr__(self) -> str:
        sizes = self.graph.level_sizes
        edges = sizes[0][1] if sizes else 0
        dimension = "" if self.dimension is None else f" of dimension {self.dimension}"
        window = (("max_points", self.max_points), ("max_age", self.max_age))
        return (
            f"<DynHAC: {counted(len(self), 'point', 'points')}{dimension}, "
            f"{counted(edges, 'edge', 'edges')}, {counted(len(sizes), 'level', 'levels')}; "
            f"epsilon={self.epsilon:g}, threshold={self.threshold:g}, "
            f"n_neighbors={self.n_neighbors}, metric={self.metric!r}"
            f"{''.join(f', {name}={value}' for name, value in window if value is not None)}>"
        )
