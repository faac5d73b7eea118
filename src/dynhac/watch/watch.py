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
from dynhac.dendrogram.cuts import snap
from dynhac.input.columns import INT64_MAX, real_number, whole_number
from dynhac.input.errors import counted, show
from dynhac.watch.events import Event, events_of
from dynhac.watch.history import History, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynhac._core import Engine, WatchStep
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
            raise KeyError(f"cluster {show(cluster)} does not exist (any more)")
        return ids

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
            return self._history.timeline(last, self._engine.clock())

    def plot_timeline(self, ax: Axes | None = None, max_clusters: int = 20, **options: Any) -> Axes:
        """Draw cluster sizes over time; see `dynhac.plot.timeline.plot_timeline`."""
        from dynhac.plot.timeline import plot_timeline

        return plot_timeline(self.timeline(), ax, max_clusters, **options)

    def close(self) -> None:
        """End the watch; updates no longer pay for it."""
        with self._engine.lock:
            if self._handle is not None:
                self._engine.forget(self)
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

    def __repr__(self) -> str:
        if self._handle is None:
            return f"<Watch at {self.theta:g}: closed>"
        least = f" of at least {self.min_size}" if self.min_size > 1 else ""
        return f"<Watch at {self.theta:g}: {counted(len(self), 'cluster', 'clusters')}{least}>"

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
            self._history.append(step, self._engine.clock())
        engine.drop_steps(handle, len(steps))


def _whole(name: str, column: NDArray[Any]) -> NDArray[np.int64]:
    if column.dtype != np.int64 or column.ndim != 1:
        raise ValueError(f"{name} of a watch is not a column of whole numbers")
    return np.array(column)  # the file's buffer must not stay for it
