"""DynHAC: the hierarchy of points that come and go.

An update has three steps: its arguments are read into a batch (`dynhac.input.batches`); with a
store, its writer puts the batch into the log; one call of the core applies it (`core/points`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac._core import BatchError, PointModel
from dynhac.files.point_state import SavedPoints
from dynhac.input.batches import (
    PointBatch,
    fit_times,
    id_array,
    read_point_batch,
)
from dynhac.input.columns import Ids
from dynhac.input.errors import InvalidTypeError, counted, explain_points
from dynhac.input.payloads import NewPayloads
from dynhac.input.timestamps import public_time, read_times
from dynhac.models.engine import IdEngine
from dynhac.models.graph import GraphHAC
from dynhac.models.hierarchy import Hierarchy
from dynhac.models.index_choice import NO_INDEX, IndexChooser, own_choice
from dynhac.models.parameters import PointParameters
from dynhac.models.point_change import PointChange
from dynhac.models.point_readers import PointReaders
from dynhac.models.prediction import LastCut, PointQueries
from dynhac.models.watch_times import check_patience, require_times
from dynhac.progress import ProgressOption, for_update

if TYPE_CHECKING:
    from dynhac.neighbors import NeighborIndex
    from dynhac.neighbors.similarity import SimilaritySpec
    from dynhac.watch.parameters import WatchParameters


class DynHAC(Hierarchy, SavedPoints, PointQueries, PointReaders):
    """Average-linkage hierarchical clustering of points, kept up to date as they come and go.

    Points are vectors. Each is joined to its nearest neighbours by edges whose weights are
    similarities, and the model keeps the (1+ε)-approximate average-linkage hierarchy of that graph;
    see `GraphHAC`.

    Parameters
    ----------
    epsilon : float, default 0.1
        How far from the best a merge may be, >= 0. With 0 the hierarchy is that of exact average
        linkage on the graph.
    threshold : float, default 0
        Similarity below which nothing need be merged, >= 0. With 0 every connected component of the
        graph of neighbours becomes one tree. Automatic clusters are best with 0.
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
    neighbors : {"auto", "exact", "kd", "cells", "usearch", "gpu"} or object, default "auto"
        What finds the nearest neighbours: a scan ("exact"), a KD-tree ("kd", for up to 8
        dimensions), an approximate index ("cells"; "usearch", of the extra ``dynhac[ann]``), a scan
        on a GPU ("gpu", of the extra ``dynhac[gpu]``), or what suits the points there are ("auto",
        never a GPU); or an empty index of your own with the methods of
        `dynhac.neighbors.NeighborIndex`. "cells" finds 99.5% of the neighbours; "cells:0.999" as
        many as the number says, and `recall` tells the share that was measured.
    repair : bool, default True
        Whether points that deletions leave with few edges are joined to their nearest neighbours
        anew.
    max_points : int, optional
        How many points the model holds at most; beyond that the oldest expire.
    max_age : number or timedelta64, optional
        Points expire when their timestamp is smaller than the latest one less ``max_age``.
    resolution : float, default 2**-32
        Similarities are rounded to multiples of this, so that sums are exact; > 0.
    threads : int, optional
        Threads that a large update may use, up to 1024; by default one for every core. The result
        does not depend on it.

    Notes
    -----
    The graph follows from the batches by these rules.

    - A new point gets edges to its ``n_neighbors`` nearest among all other points that the model
      holds after the batch. Points at the same distance come in order of their slots; a new point
      has the lowest slot that was free before its batch.
    - If all of these have the same vector as the point itself, it gets edges to the equal points
      that arrived last before it instead, or if there are too few, to the first after it.
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

    __slots__ = ("__weakref__", "_last_change", "_last_cut", "_parameters", "_points", "graph")

    _holder = "model"

    graph: GraphHAC
    """The graph, to be read: only the model can change it."""

    def __init__(
        self,
        epsilon: float = 0.1,
        threshold: float = 0.0,
        n_neighbors: int = 50,
        metric: str = "euclidean",
        *,
        similarity: SimilaritySpec = None,
        neighbors: str | NeighborIndex = "auto",
        repair: bool = True,
        max_points: int | None = None,
        max_age: float | np.timedelta64 | None = None,
        resolution: float = 2.0**-32,
        threads: int | None = None,
    ) -> None:
        parameters = PointParameters.read(
            epsilon,
            threshold,
            n_neighbors,
            metric,
            similarity=similarity,
            neighbors=neighbors,
            repair=repair,
            max_points=max_points,
            max_age=max_age,
            resolution=resolution,
            threads=threads,
        )
        self._create(parameters)

    def _create(self, parameters: PointParameters) -> None:
        """Become an empty model."""
        parameters.require_empty_index()
        self._start(parameters, IdEngine(parameters.graph))

    def _start(self, parameters: PointParameters, engine: IdEngine) -> None:
        own, similarity = parameters.own_index, parameters.similarity
        self._parameters = parameters
        self._engine = engine
        self._writer = None
        self._last_change: PointChange | None = None
        self._last_cut = LastCut()
        self.graph = GraphHAC._over(engine)
        self._points = PointModel(
            engine.engine,
            engine.ids,
            similarity.rule or similarity,
            IndexChooser(parameters),
            NO_INDEX if own is None else own_choice(own, parameters.metric),
            parameters.n_neighbors,
            0.5 * parameters.graph.resolution,  # smaller weights round to 0
            parameters.repair,
            parameters.max_points,
            parameters.max_age,
        )
        points = self._points  # not self, which refers to the engine
        engine.clock = lambda: points.clock
        engine.public_time = lambda clock: public_time(clock, points, parameters)

    # The shape of X decides whether an id or an array is returned. The type of a list tells its
    # shape, that of an array often does not.
    @overload
    def insert(
        self,
        X: Sequence[float],
        ids: None = None,
        timestamps: ArrayLike | None = None,
        *,
        payload: Any = None,
        progress: ProgressOption = None,
    ) -> int: ...

    @overload
    def insert(
        self,
        X: Sequence[float],
        ids: Ids,
        timestamps: ArrayLike | None = None,
        *,
        payload: Any = None,
        progress: ProgressOption = None,
    ) -> int | str: ...

    @overload
    def insert(
        self,
        X: Sequence[Sequence[float]],
        ids: Ids | None = None,
        timestamps: ArrayLike | None = None,
        *,
        payload: Any = None,
        progress: ProgressOption = None,
    ) -> NDArray[Any]: ...

    @overload
    def insert(
        self,
        X: ArrayLike,
        ids: Ids | None = None,
        timestamps: ArrayLike | None = None,
        *,
        payload: Any = None,
        progress: ProgressOption = None,
    ) -> Any: ...

    def insert(
        self,
        X: ArrayLike,
        ids: Ids | None = None,
        timestamps: ArrayLike | None = None,
        *,
        payload: Any = None,
        progress: ProgressOption = None,
    ) -> Any:
        """Insert points; return their ids.

        Parameters
        ----------
        X : array-like of shape (n, d) or (d,)
            The vectors, one row each, or a single one: an array, lists, a table of numbers (pandas,
            polars, pyarrow), or a pandas Series of vectors. Values are rounded to float32; one
            that is not 0 and would become 0 is an error.
        ids : ids, optional
            An int or str for every point; a `uuid.UUID` stands for its str. By default the index of
            a pandas table; without one, ints that count up and are never used again. An index that
            pandas has made itself (a RangeIndex from 0 without a name) is none.
        timestamps : optional
            A number or datetime64 for every point, or one for all; needed with ``max_age``.
        payload : list of dict, or dict, optional
            A JSON object, or None, for every point; of a single vector a dict. For models of
            `dynhac.open`, which keep it with the point.
        progress : bool or callable, optional
            Whether to show how far the call is, or a function to tell; see `Progress`.

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

        The index of a DataFrame becomes the ids:

        >>> import pandas as pd
        >>> frame = pd.DataFrame({"x": [0.0, 0.1], "y": [0.0, 0.2]}, index=["ant", "bee"])
        >>> DynHAC().insert(frame).tolist()
        ['ant', 'bee']
        """
        lock = self._prepare_update()
        if X is None:
            raise InvalidTypeError("X is None; to insert nothing, give an empty list")
        batch, _ = self._update(lock, X, ids, None, timestamps, payload, for_update(progress))
        if batch.single:
            return batch.ids.item() if isinstance(batch.ids, np.ndarray) else batch.ids[0]
        return id_array(batch.ids, isinstance(batch.ids, list)).copy()

    def delete(self, ids: Ids, *, progress: ProgressOption = None) -> PointChange:
        """Delete points.

        Parameters
        ----------
        ids : ids
            An id, or a list, range, array or column of ids.
        progress : bool or callable, optional
            Whether to show how far the call is, or a function to tell; see `Progress`.

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
        lock = self._prepare_update()
        if ids is None:
            raise InvalidTypeError("ids is None; to delete nothing, give an empty list")
        return self._update(lock, None, None, ids, None, None, for_update(progress))[1]

    def update(
        self,
        insert: ArrayLike | None = None,
        ids: Ids | None = None,
        delete: Ids | None = None,
        timestamps: ArrayLike | None = None,
        *,
        payload: Any = None,
        progress: ProgressOption = None,
    ) -> PointChange:
        """Apply one batch of changes, all of it or, if an error is raised, nothing.

        Deletions come first, so that an id both in ``delete`` and in ``ids`` is replaced.

        Parameters
        ----------
        insert, ids, timestamps, payload : optional
            New points, as in `insert`.
        delete : ids, optional
            Points to delete, as in `delete`.
        progress : bool or callable, optional
            Whether to show how far the call is, or a function to tell; see `Progress`.

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
        lock = self._prepare_update()
        report = for_update(progress)
        return self._update(lock, insert, ids, delete, timestamps, payload, report)[1]

    def expire(self, now: ArrayLike, *, progress: ProgressOption = None) -> PointChange:
        """Move the clock to ``now``; points that are too old then expire.

        Parameters
        ----------
        now : number or datetime64
            The time; one before the latest timestamp changes nothing.
        progress : bool or callable, optional
            Whether to show how far the call is, or a function to tell; see `Progress`.

        Examples
        --------
        >>> from dynhac import DynHAC
        >>> model = DynHAC(max_age=60)
        >>> _ = model.insert([[0.0], [1.0]], timestamps=[100, 130])
        >>> model.expire(now=170).expired.tolist()
        [0]
        """
        lock, report = self._prepare_update(), for_update(progress)
        parameters, points = self._parameters, self._points
        if parameters.max_age is None:
            raise ValueError("the model has no max_age, so that points never become too old")
        with lock:
            version = points.version
            times = fit_times(points, parameters, read_times(now, 1, "now"))
            change: PointChange = self._write(
                PointBatch(clock=times.values.item(), version=version), report
            )
            return change

    def _update(
        self,
        lock: AbstractContextManager[Any],
        insert: ArrayLike | None,
        ids: Ids | None,
        delete: Ids | None,
        timestamps: ArrayLike | None,
        payload: Any,
        progress: Any,
    ) -> tuple[PointBatch, PointChange]:
        self._require_payloads(payload)
        with lock:
            batch = read_point_batch(
                self._points, self._parameters, insert, ids, delete, timestamps
            )
            if self._engine.watches and self._points.dimension is None:
                require_times(self._engine.watches, batch)
            payloads = None
            if payload is not None:
                payloads = NewPayloads.read(payload, batch.ids)
            return batch, self._write(batch, progress, payloads)

    def _check_watch(self, parameters: WatchParameters) -> None:
        check_patience(self._points, self._parameters, parameters)

    def _apply(self, batch: PointBatch, progress: Any = None) -> PointChange:
        """Apply a batch, under the lock."""
        engine, points = self._engine, self._points
        with engine.guard:
            if batch.version != points.version:
                raise RuntimeError(
                    "the model was updated while an update was read; arguments must not update "
                    "the model"
                )
            kind, times = (None, None) if batch.times is None else batch.times
            try:
                data = points.update(
                    batch.vectors, batch.ids, kind, times, batch.deleted, batch.clock, progress
                )
            except BatchError as error:
                raise explain_points(error, batch, engine.resolution) from None
            change = self._last_change = PointChange(data, batch.ids, batch.deleted)
            engine.finish_update()
        return change

    @property
    def _update_count(self) -> int:
        return self._points.version

    def _repr_html_(self) -> str:
        from dynhac.notebook.views import points_html

        return points_html(self)

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
