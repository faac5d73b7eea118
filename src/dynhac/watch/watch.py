"""A live flat clustering: clusters at one similarity, with stable ids and events.

The engine brings a watch up to date in every update, at a cost that depends on what the update
changed, and records *steps*: which points moved from which cluster to which. A Watch turns the last
step into events on request, and keeps a `History` of all steps for timelines.

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
from dynhac.input.columns import INT64_MAX, real_number, whole_number
from dynhac.input.errors import counted, show
from dynhac.watch.events import Event, events_of
from dynhac.watch.history import History, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynhac._core import Engine, WatchStep
    from dynhac.clusters.cluster import Cluster
    from dynhac.clusters.clusters import Clusters
    from dynhac.models.engine import IdEngine


Answer = TypeVar("Answer")
BUSY = "the watch is being brought up to date; code called meanwhile cannot read it"


class Watch:
    """The clusters at one similarity, followed through all updates; made by `GraphHAC.watch`.

    A watch lives until it is closed. Clusters are numbered from 0, at first by size.

    Attributes
    ----------
    theta : float
        The similarity of the cut.
    min_size : int
        Points in smaller clusters belong to no cluster: their label is -1.

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
        "min_size",
        "theta",
    )

    def __init__(self, engine: IdEngine, theta: float, min_size: int = 1) -> None:
        similarity = real_number(theta, "theta")
        threshold = engine.parameters.threshold
        if similarity < threshold:
            raise ValueError(
                f"theta is {show(theta)}; it must be a similarity >= {threshold:g}, the "
                "threshold of the model"
            )
        size = whole_number(min_size, "min_size", 1, INT64_MAX)
        self._start(engine, similarity, size, History(), engine.engine.add_watch)

    @classmethod
    def _load(cls, engine: IdEngine, columns: Mapping[str, NDArray[Any]]) -> Watch:
        """Return the watch that `_columns` was taken from, on an engine in the state of then.

        ValueError or KeyError: they are not the columns of a watch of this engine.
        """
        theta = columns["theta"]
        whole = {name: _whole(name, column) for name, column in columns.items() if name != "theta"}
        if theta.dtype != np.float64 or theta.shape != (1,) or whole["counters"].shape != (2,):
            raise ValueError("the parameters of a watch are not right")
        size, next_id = whole["counters"].tolist()
        watch = cls.__new__(cls)
        watch._start(
            engine,
            real_number(theta[0], "theta"),
            whole_number(size, "min_size", 1),
            History.from_columns(whole),
            lambda cut, least: engine.engine.restore_watch(
                cut, least, whole["ids"], whole["roots"], next_id
            ),
        )
        return watch

    def _start(
        self,
        engine: IdEngine,
        theta: float,
        min_size: int,
        history: History,
        follow: Callable[[float, int], int],
    ) -> None:
        """Begin to follow the clusters; ``follow`` makes the engine's watch."""
        self.theta, self.min_size = theta, min_size
        self._engine = engine
        self._lock, self._guard = RLock(), ReentryGuard(BUSY)
        self._last: WatchStep | None = None
        self._ids: NDArray[Any] | None = None  # of the points in the last step, if they are str
        self._events: list[Event] | None = None
        self._history = history
        self._handle: int | None = None  # of the engine's watch; None if it is closed
        with engine.lock:
            try:
                self._handle = follow(float(snap(theta, engine.resolution)), min_size)
                engine.watches.append(self)
                self._take_steps()
            except BaseException:
                engine.forget(self)
                raise

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
                points = self._last.keys if self._ids is None else self._ids
                self._events = events_of(self._last, points)
            return list(self._events)

    def labels(self) -> NDArray[np.int64]:
        """Return the cluster of every point, -1 for none, aligned with the model's ``ids``."""
        return self._ask(lambda engine, handle: engine.watch_labels(handle))[1]

    def clusters(self) -> dict[int, int]:
        """Return the size of every cluster, by id."""
        clusters = self._ask(lambda engine, handle: engine.watch_clusters(handle))
        return dict(zip(clusters.ids.tolist(), clusters.sizes.tolist(), strict=True))

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
            return self._history.timeline(last)

    def plot_timeline(self, ax: Axes | None = None, max_clusters: int = 20) -> Axes:
        """Draw cluster sizes over updates; see `dynhac.plot.timeline.plot_timeline`."""
        from dynhac.plot.timeline import plot_timeline

        return plot_timeline(self.timeline(), ax, max_clusters)

    def close(self) -> None:
        """End the watch; updates no longer pay for it."""
        with self._engine.lock:
            if self._handle is not None:
                self._engine.forget(self)
                self._handle = None

    def _is_like(self, other: Watch) -> bool:
        """Whether another watch follows the same clusters."""
        return (self.theta, self.min_size) == (other.theta, other.min_size)

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
        """Be closed, without a word to an engine that is in use no more."""
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
        if self._handle is None:
            return f"<Watch at {self.theta:g}: closed>"
        try:
            clusters = self._ask(lambda engine, handle: engine.watch_clusters(handle))
        except ValueError:  # closed meanwhile, by another thread
            return f"<Watch at {self.theta:g}: closed>"
        least = f" of at least {self.min_size:,}" if self.min_size > 1 else ""
        points = int(clusters.sizes.sum())
        largest = int(clusters.sizes.max(initial=0))
        sizes = f", {counted(points, 'point', 'points')}, largest {largest:,}" if points else ""
        found = counted(len(clusters.ids), "cluster", "clusters")
        return f"<Watch at {self.theta:g}: {found}{least}{sizes}>"

    def _columns(self) -> dict[str, NDArray[Any]]:
        """Return all that `_load` needs, as plain arrays."""
        clusters = self._ask(lambda engine, handle: engine.watch_clusters(handle))
        with self._lock, self._guard:
            self._take()
            history = self._history.columns()
        return {
            "theta": np.array([self.theta]),
            "counters": np.array([self.min_size, clusters.next], np.int64),
            "ids": clusters.ids,
            "roots": clusters.roots,
            **history,
        }

    def _ask(self, question: Callable[[Engine, int], Answer]) -> Answer:
        """Return what the engine says of this watch, or raise if it has been closed."""
        handle = self._handle
        try:
            if handle is not None:
                return question(self._engine.engine, handle)
        except IndexError:  # closed in between, by another thread
            pass
        raise ValueError(f"the watch at {self.theta:g} is closed")

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
            if step.version <= self._history.version:
                continue  # taken before, and then something came in between
            # Str ids are looked up now: those of points that have gone are soon forgotten.
            ids = self._engine.ids_of(step.keys) if self._engine.ids.used else None
            self._last, self._ids, self._events = step, ids, None
            self._history.append(step)
        engine.drop_steps(handle, len(steps))


def _no_cluster(cluster: int) -> KeyError:
    return KeyError(f"cluster {show(cluster)} does not exist (any more)")


def _whole(name: str, column: NDArray[Any]) -> NDArray[np.int64]:
    if column.dtype != np.int64 or column.ndim != 1:
        raise ValueError(f"{name} of a watch is not a column of whole numbers")
    return np.array(column)  # the file's buffer must not stay for it
