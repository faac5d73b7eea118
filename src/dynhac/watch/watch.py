"""A live flat clustering with stable ids and events: the clusters at one similarity, or automatic.

The engine brings a watch up to date in every update, at a cost that depends on what the update
changed, and records *steps*: which points moved from which cluster to which. A Watch turns the last
step into events on request, and keeps a `History` of all steps for timelines.

With patience the engine reports changes of ids only when they have lasted; all that a Watch shows
is what is reported (`core/watch/patience.h`).

Rules for ids: when clusters merge, the id of the larger part survives; when a cluster splits, the
largest part keeps the id; among equal parts, the older id wins. An id is never used again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynhac._core import ReentryGuard
from dynhac.clusters.summarize import summarize_one
from dynhac.dendrogram.cuts import snap
from dynhac.input.columns import INT64_MAX, whole_number
from dynhac.input.errors import counted, show
from dynhac.watch.events import Event, events_of
from dynhac.watch.history import History, PastStep, Timeline
from dynhac.watch.parameters import UPDATES, WatchParameters
from dynhac.watch.state import history_columns, load_history, load_state, state_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynhac._core import Engine, WatchStep
    from dynhac.clusters.cluster import Cluster
    from dynhac.clusters.clusters import Clusters
    from dynhac.models.engine import IdEngine


Answer = TypeVar("Answer")
BUSY = "the watch is being brought up to date; code called meanwhile cannot read it"


class Watch:
    """Flat clusters that are followed through all updates; made by `GraphHAC.watch`.

    A watch lives until it is closed. Clusters are numbered from 0, at first by size.

    Attributes
    ----------
    theta : float or None
        The similarity of the cut; None: the clusters are those that ``labels()`` chooses.
    min_size : int
        Points in smaller clusters belong to no cluster: their label is -1.
    patience : int, float, timedelta64 or None
        How long a change of clusters must last before it is reported: a number of updates, or a
        time in the unit of the model's timestamps. None: changes are reported at once.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC()
    >>> watch = g.watch(0.5, min_size=2)
    >>> _ = g.add(["a", "b", "c"], edges=("a", "b", 0.9))
    >>> [str(event) for event in watch.events]
    ['cluster 0 born with 2 points; size 2']
    >>> _ = g.update(edges=(["c", "c"], ["a", "b"], [0.8, 0.8]))
    >>> [str(event) for event in watch.events]
    ['cluster 0 grew by 1 point; size 3']
    >>> watch.labels().tolist(), watch.clusters()
    ([0, 0, 0], {0: 3})
    """

    __slots__ = (
        "_engine",
        "_events",
        "_guard",
        "_handle",
        "_history",
        "_ids",
        "_last",
        "_lock",
        "_parameters",
        "_private",
    )

    def __init__(
        self,
        engine: IdEngine,
        parameters: WatchParameters,
        columns: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Begin to follow the clusters, or continue with the columns of a saved watch.

        ValueError or KeyError: the columns are not those of a watch of this engine.
        """
        self._parameters = parameters
        self._private = False  # made by a reader of a store, not by its writer
        self._engine = engine
        self._lock, self._guard = RLock(), ReentryGuard(BUSY)
        self._last: WatchStep | PastStep | None = None
        self._ids: NDArray[Any] | None = None  # of the points in the last step, if not its keys
        self._events: list[Event] | None = None
        self._history = History()
        self._handle: int | None = None  # of the engine's watch; None if it is closed
        with engine.lock:
            try:
                self._handle = self._follow(columns)
                engine.watches.append(self)
                self._take_steps()
            except BaseException:
                engine.forget(self)
                raise

    def _follow(self, columns: Mapping[str, NDArray[Any]] | None) -> int:
        """Return the handle of a new watch of the engine."""
        engine, parameters = self._engine, self._parameters
        cut = parameters.theta
        if cut is not None:
            cut = float(snap(cut, engine.resolution))
        given = (cut, parameters.min_size, parameters.patience, parameters.unit != UPDATES)
        if columns is None:
            return engine.engine.add_watch(*given)
        self._history, self._last, self._ids = load_history(columns)
        return engine.engine.restore_watch(*given, *load_state(columns, parameters))

    @property
    def theta(self) -> float | None:
        """The similarity of the cut; None: the clusters are automatic."""
        return self._parameters.theta

    @property
    def min_size(self) -> int:
        """The size below which clusters do not count."""
        return self._parameters.min_size

    @property
    def patience(self) -> int | float | np.timedelta64 | None:
        """How long a change must last before it is reported; None: it is reported at once."""
        return self._parameters.public_patience

    @property
    def events(self) -> list[Event]:
        """What the last update did to the clusters; empty if it did nothing.

        An update that changes nothing at all in the model does not count as one: `Event.update`
        tells updates apart. Right after the watch was made, every cluster is born.
        """
        version = self._ask(lambda engine, _: engine.version)
        with self._lock, self._guard:
            self._take()
            if self._last is None or self._last.version < version:
                return []
            if self._events is None:
                step = self._last
                points = step.keys if self._ids is None else self._ids  # type: ignore[union-attr]
                self._events = events_of(step, points)
            return list(self._events)

    def labels(self) -> NDArray[np.int64]:
        """Return the cluster of every point, -1 for none, aligned with the model's ``ids``."""
        return self._ask(lambda engine, handle: engine.watch_labels(handle))[1]

    def clusters(self) -> dict[int, int]:
        """Return the size of every cluster, by id."""
        ids, sizes = self._ask(lambda engine, handle: engine.watch_clusters(handle))
        return dict(zip(ids.tolist(), sizes.tolist(), strict=True))

    def members(self, cluster: int) -> NDArray[Any]:
        """Return the ids of the points in a cluster, in order of insertion."""
        wanted = whole_number(cluster, "cluster", 0, INT64_MAX)
        keys, (ids,) = self._engine.read(
            lambda: self._ask(lambda engine, handle: engine.members(handle, wanted)),
            lambda found: (found,),
        )
        if not len(keys):
            raise _no_cluster(cluster)
        return ids

    def summary(self) -> Clusters:
        """Return what is in the clusters: typical points, outliers, near clusters and more.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph(([1, 2, 4], [2, 3, 5], [0.9, 0.8, 0.7]))
        >>> watch = g.watch(0.3, min_size=2)
        >>> _ = g.remove(4)
        >>> watch.summary()
        <Clusters: 4 points in 1 cluster; in none: 1>
        cluster  size  cohesion  together up to  nearest  typical
              0     3     0.567             0.4        -  2, 1, 3
        """
        return self._engine.clusters(lambda _: self.labels())

    def cluster(self, cluster: int) -> Cluster:
        """Return what is in one cluster, much quicker than `summary`.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph(([1, 2, 4], [2, 3, 5], [0.9, 0.8, 0.7]))
        >>> g.watch(0.3).cluster(0)
        <Cluster 0: 3 points, cohesion 0.567, together up to 0.4; typical: 2, 1, 3>
        """
        wanted = whole_number(cluster, "cluster", 0, INT64_MAX)
        engine = self._engine

        def read() -> Cluster | None:
            version = engine.engine.version
            keys, labels = self._ask(lambda engine, handle: engine.watch_labels(handle))
            if wanted not in labels:
                raise _no_cluster(cluster)
            try:
                return summarize_one(
                    engine.engine, version, labels, wanted, lambda some: engine.ids_of(keys[some])
                )
            except KeyError:  # a point was removed meanwhile
                return None

        return engine.read_one_state(read)

    def cluster_of(self, id: object) -> int:
        """Return the cluster that a point is in, -1 for none."""
        key = self._engine.key_of(id)
        return self._ask(lambda engine, handle: engine.cluster_of(handle, key))

    def timeline(self) -> Timeline:
        """Return the sizes of all clusters over the updates since the watch was made.

        Of a long life it has the last 10,000 updates at least, and the sizes before them.
        """
        last = self._ask(lambda engine, _: engine.version)
        with self._lock, self._guard:
            self._take()
            now = self._engine.public_time(self._engine.clock())
            # Another thread may have made an update since the version was read.
            return self._history.timeline(max(last, self._history.version), now)

    def plot_timeline(self, ax: Axes | None = None, max_clusters: int = 20, **options: Any) -> Axes:
        """Draw cluster sizes over time; see `dynhac.plot.timeline.plot_timeline`."""
        from dynhac.plot.timeline import plot_timeline

        return plot_timeline(self.timeline(), ax, max_clusters, **options)

    def close(self) -> None:
        """Close the watch: updates no longer maintain it. In a store this is an update."""
        if self._handle is not None:
            self._engine.close_watch(self)

    def _end(self) -> None:
        """Stop following the clusters; for callers that hold the lock of the engine."""
        self._engine.forget(self)
        self._handle = None

    def _is_like(self, other: Watch) -> bool:
        """Whether another watch follows the same clusters."""
        return self._parameters == other._parameters

    def _take_over(self, other: Watch) -> None:
        """Become another watch, in its place in its engine, under the lock of the engine."""
        with self._lock:
            for name in self.__slots__:
                if name not in ("_lock", "_guard"):
                    setattr(self, name, getattr(other, name))
        watches = self._engine.watches
        watches[watches.index(other)] = self
        other._handle = None

    def _detach(self) -> None:
        """Close without a call of the engine, which is no longer in use."""
        self._handle = None

    def _take_steps(self) -> None:
        """Take the steps of the last update, unless a signal handler interrupted a reader."""
        with self._lock:
            if not self._guard.held:
                with self._guard:
                    self._take()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a watch cannot be copied or pickled by itself; its model can, with it")

    def __len__(self) -> int:
        return len(self.clusters())

    def _repr_html_(self) -> str:
        from dynhac.notebook.views import watch_html

        return watch_html(self)

    def __repr__(self) -> str:
        where = self._parameters.where
        if self._handle is None:
            return f"<Watch {where}: closed>"
        try:
            ids, sizes = self._ask(lambda engine, handle: engine.watch_clusters(handle))
        except ValueError:  # closed meanwhile, by another thread
            return f"<Watch {where}: closed>"
        least = f" of at least {self.min_size:,}" if self.min_size > 1 else ""
        points, largest = int(sizes.sum()), int(sizes.max(initial=0))
        within = f", {counted(points, 'point', 'points')}, largest {largest:,}" if points else ""
        found = counted(len(ids), "cluster", "clusters")
        patience = "" if self.patience is None else f", patience {self._parameters.patience_text}"
        return f"<Watch {where}: {found}{least}{within}{patience}>"

    def _columns(self) -> dict[str, NDArray[Any]]:
        """Return the whole state of the watch as plain arrays, to restore it from."""
        state = self._ask(lambda engine, handle: engine.watch_state(handle))
        version = self._engine.engine.version
        with self._lock, self._guard:
            self._take()
            points = None
            if self._last is not None and self._last.version == version:
                points = self._last.keys if self._ids is None else self._ids  # type: ignore[union-attr]
            history = history_columns(self._history, points)
        return {**self._parameters.columns(), **state_columns(state), **history}

    def _ask(self, question: Callable[[Engine, int], Answer]) -> Answer:
        """Return what a call of the engine returns for this watch; raise if it is closed."""
        handle = self._handle
        try:
            if handle is not None:
                return question(self._engine.engine, handle)
        except IndexError:  # closed in between, by another thread
            pass
        raise ValueError(f"the watch {self._parameters.where} is closed")

    def _take(self) -> None:
        """Take over the engine's steps; whatever interrupts this, none is lost or taken twice."""
        handle, engine = self._handle, self._engine.engine
        try:
            steps = [] if handle is None else engine.steps(handle)
        except IndexError:  # it has been closed
            return
        if handle is None or not steps:
            return
        for step in steps:
            known = self._history.version
            if step.version <= known:
                continue  # taken before; an interrupt came before drop_steps
            # Str ids are looked up now: those of points that have gone are soon forgotten.
            ids = self._engine.ids_of(step.keys) if self._engine.ids.used else None
            self._last, self._ids, self._events = step, ids, None
            clock = step.clock
            if clock is None and known < 0:  # the first step of a watch has none
                clock = self._engine.clock()
            self._history.append(step, None if clock is None else self._engine.public_time(clock))
        if not self._engine.exporting:  # then dropping them could wait for the caller itself
            engine.drop_steps(handle, len(steps))


def _no_cluster(cluster: int) -> KeyError:
    return KeyError(f"cluster {show(cluster)} does not exist (any more)")
