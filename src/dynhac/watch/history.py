"""The history of a watch: the sizes of its clusters after each update, for timelines.

A history holds one step per update that changed a cluster, without the ids of the points, and the
time of the update: what the clock of the model showed after it. Its length is bounded, since a
model may be updated for months: when it has twice as many steps as `KEPT`, the older half is
replaced by one step with the sizes of all clusters at that time. A timeline then begins there.

What a timeline needs of the steps so far is kept, so that the next one only reads the steps since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynhac.extras import optional
from dynhac.watch.events import NO_CLUSTER, born_and_died

if TYPE_CHECKING:
    import pandas

    from dynhac._core import WatchStep
    from dynhac.watch.events import TimelineKind

KEPT = 10_000
"""The last steps that are never summarised."""

UNKNOWN = -1
"""The size of a cluster before a step that summarises others."""

SIZES = ("cluster", "before", "now")
MOVES = ("source", "target", "end")
NOTHING: NDArray[np.int64] = np.empty(0, np.int64)
NOTHING.setflags(write=False)


Time: TypeAlias = int | float | np.datetime64 | None
"""The time of an update: the clock of the model, or None if its points have no timestamps."""

TIME_KINDS = (type(None), int, float, np.datetime64)
"""Types of times, in the order of their codes in files."""


class Timeline(NamedTuple):
    """The sizes of the clusters of a watch over its updates, and their births, deaths and merges.

    Attributes
    ----------
    update, cluster, size : ndarray of int64, shape (r,)
        One row for each cluster whose size an update changed: the number of the update, the id of
        the cluster, and its size after the update, 0 if the cluster ended. Ordered by update.
    last_update : int
        The number of the last update, even if it changed no cluster.
    events : list of tuple (update, kind, cluster, others)
        The events; ``kind`` is "born", "died", "merged" (``others`` were absorbed by
        ``cluster``) or "split" (``others`` left ``cluster``).
    time : ndarray of int64, float64 or datetime64[ns], shape (r,), or None
        The time of each row: the latest timestamp that the model had seen after the update. None if
        points have no timestamps.
    last_time : int, float, datetime64 or None
        The time of the last update.
    """

    update: NDArray[np.int64]
    cluster: NDArray[np.int64]
    size: NDArray[np.int64]
    last_update: int
    events: list[tuple[int, TimelineKind, int, tuple[int, ...]]]
    time: NDArray[Any] | None = None
    last_time: Time = None

    def to_pandas(self) -> pandas.DataFrame:
        """Return the sizes as a DataFrame with the columns update, cluster, size and, if any, time.

        It has one row for each cluster whose size an update changed, as the arrays have. Needs the
        extra ``dynhac[pandas]``.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> watch = g.watch(0.5, min_size=2)
        >>> _ = g.add(["a", "b"], edges=("a", "b", 0.9))
        >>> _ = g.remove("a")
        >>> watch.timeline().to_pandas()
           update  cluster  size
        0       1        0     2
        1       2        0     0

        The size of every cluster after every update that changed one, as a table:

        >>> sizes = watch.timeline().to_pandas().pivot(index="update", columns="cluster")
        >>> sizes.ffill().fillna(0)["size"][0].tolist()
        [2, 0]
        """
        pd = optional("pandas", "pandas", "to_pandas()")
        columns = {name: getattr(self, name) for name in ("update", "cluster", "size")}
        if self.time is not None:
            columns["time"] = self.time
        frame: pandas.DataFrame = pd.DataFrame(columns)
        return frame


class PastStep(NamedTuple):
    """The part of a `WatchStep` that a timeline needs, under the same names."""

    version: int
    cluster: NDArray[np.int64]
    before: NDArray[np.int64]
    now: NDArray[np.int64]
    source: NDArray[np.int64] = NOTHING
    target: NDArray[np.int64] = NOTHING
    end: NDArray[np.int64] = NOTHING


class _Rows(NamedTuple):
    """What a timeline has of the first steps; ``step`` is the number of the step of each row."""

    steps: int
    step: NDArray[np.int64]
    update: NDArray[np.int64]
    cluster: NDArray[np.int64]
    size: NDArray[np.int64]
    events: list[tuple[int, TimelineKind, int, tuple[int, ...]]]


NO_ROWS = _Rows(0, NOTHING, NOTHING, NOTHING, NOTHING, [])


class History:
    """The steps of a watch, the oldest first."""

    __slots__ = ("_rows", "_steps", "_times")

    def __init__(
        self, steps: Iterable[WatchStep | PastStep] = (), times: Iterable[Time] = ()
    ) -> None:
        self._steps = list(steps)
        self._times = list(times)  # one for each step; after an interrupt maybe one more
        self._rows = NO_ROWS

    @property
    def version(self) -> int:
        """The version of the model that the last step led to; -1 if there is none."""
        return self._steps[-1].version if self._steps else -1

    @property
    def last(self) -> PastStep | None:
        """The last step of a history that was loaded; None if there is none."""
        step = self._steps[-1] if self._steps else None
        return step if isinstance(step, PastStep) else None

    def append(self, step: WatchStep, time: Time) -> None:
        """Add a step and its time; drop the points of the step before it."""
        if len(self._steps) >= 2 * KEPT:
            kept = [_summary(self._steps[:KEPT]), *self._steps[KEPT:]]
            self._rows, self._steps, self._times = NO_ROWS, kept, self._times[KEPT - 1 :]
        self._times[len(self._steps) :] = [time]
        self._steps.append(step)
        if len(self._steps) > 1:
            past = self._steps[-2]
            if not isinstance(past, PastStep):
                past.drop_keys()

    def timeline(self, last_update: int, last_time: Time) -> Timeline:
        """Return the sizes of clusters over updates, and the events that change ids."""
        rows = self._rows = self._extended()
        return Timeline(
            rows.update.copy(),
            rows.cluster.copy(),
            rows.size.copy(),
            last_update,
            list(rows.events),
            _times_array([self._times[i] for i in rows.step.tolist()]),
            last_time,
        )

    def _extended(self) -> _Rows:
        """Return the rows of all steps."""
        known = self._rows
        steps = self._steps[known.steps :]
        if not steps:
            return known
        lengths = [len(step.cluster) for step in steps]
        step = np.repeat(np.arange(known.steps, len(self._steps)), lengths)
        cluster, before, now = (
            np.concatenate([getattr(step, name) for step in steps]) for name in SIZES
        )
        changed = before != now
        number = step[changed]
        version = np.repeat(np.array([step.version for step in steps], np.int64), lengths)
        ends = np.unique(step[(before == 0) | (now == 0)]).tolist()
        return _Rows(
            len(self._steps),
            np.concatenate([known.step, number]),
            np.concatenate([known.update, version[changed]]),
            np.concatenate([known.cluster, cluster[changed]]),
            np.concatenate([known.size, now[changed]]),
            known.events + [event for i in ends for event in _id_events(self._steps[i])],
        )

    def columns(self) -> dict[str, NDArray[np.int64]]:
        """Return the history as plain arrays, for `from_columns`."""
        arrays = {"version": np.array([step.version for step in self._steps], np.int64)}
        times = self._times[: len(self._steps)]
        arrays["time_kind"] = np.array([TIME_KINDS.index(type(t)) for t in times], np.int64)
        arrays["time"] = np.array([_bits(time) for time in times], np.int64)
        for names, lengths in ((SIZES, "clusters"), (MOVES, "moves")):
            for name in names:
                parts = [getattr(step, name) for step in self._steps]
                arrays[name] = np.concatenate([NOTHING, *parts])
            arrays[lengths] = np.array([len(part) for part in parts], np.int64)
        return arrays

    @classmethod
    def from_columns(cls, columns: Mapping[str, NDArray[np.int64]]) -> History:
        """Return the history with these `columns`; raise ValueError if they are inconsistent."""

        def cut(name: str, lengths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
            if (lengths < 0).any() or len(columns[name]) != sum(lengths.tolist()):
                raise ValueError(f"{name} in the history of a watch has a wrong length")
            return np.split(columns[name], np.cumsum(lengths)[:-1]) if len(lengths) else []

        parts = [cut(name, columns["clusters"]) for name in SIZES]
        parts += [cut(name, columns["moves"]) for name in MOVES]
        versions = columns["version"].tolist()
        kinds = zip(columns["time_kind"].tolist(), columns["time"], strict=True)
        times = [_time_from(kind, bits) for kind, bits in kinds]
        if len(times) != len(versions):
            raise ValueError("the times in the history of a watch have a wrong length")
        return cls([PastStep(*row) for row in zip(versions, *parts, strict=True)], times)


def _bits(time: Time) -> int:
    """Return a time as an int64: a float by its bits, a date in nanoseconds since 1970."""
    if isinstance(time, float):
        return int(np.float64(time).view(np.int64))
    return 0 if time is None else int(np.int64(time))


def _time_from(kind: int, bits: np.int64) -> Time:
    """Return the time with these `_bits`."""
    if not 0 <= kind < len(TIME_KINDS):
        raise ValueError(f"the kind {kind} of a time in the history of a watch is unknown")
    if TIME_KINDS[kind] is float:
        time = float(bits.view(np.float64))
        if not np.isfinite(time):
            raise ValueError("a time in the history of a watch is not finite")
        return time
    if TIME_KINDS[kind] is np.datetime64:
        return np.datetime64(int(bits), "ns")
    return int(bits) if TIME_KINDS[kind] is int else None


def _times_array(times: list[Time]) -> NDArray[Any] | None:
    """Return times as one column; None if there are none, or not for all steps."""
    kinds = {type(time) for time in times}
    if not times or type(None) in kinds or (np.datetime64 in kinds and len(kinds) > 1):
        return None
    return np.array(times, dtype="datetime64[ns]" if np.datetime64 in kinds else None)


def _summary(steps: list[WatchStep | PastStep]) -> PastStep:
    """Return one step with the sizes of all clusters after the given steps."""
    sizes: dict[int, int] = {}
    for step in steps:
        sizes.update(zip(step.cluster.tolist(), step.now.tolist(), strict=True))
    cluster = np.array(sorted(c for c, size in sizes.items() if size), np.int64)
    now = np.array([sizes[c] for c in cluster.tolist()], np.int64)
    return PastStep(steps[-1].version, cluster, np.full(len(cluster), UNKNOWN), now)


def _id_events(
    step: WatchStep | PastStep,
) -> list[tuple[int, TimelineKind, int, tuple[int, ...]]]:
    """Return the events of a step that create, end or join cluster ids."""
    born, died = born_and_died(step)
    ended: tuple[tuple[TimelineKind, dict[int, int]], ...] = (("died", died), ("born", born))
    events: list[tuple[int, TimelineKind, int, tuple[int, ...]]] = [
        (step.version, kind, cluster, () if other == NO_CLUSTER else (other,))
        for kind, ends in ended
        for cluster, other in ends.items()
    ]
    joined: tuple[tuple[TimelineKind, dict[int, int]], ...] = (("split", born), ("merged", died))
    for kind, ends in joined:
        survivors: dict[int, list[int]] = {}
        for cluster, other in ends.items():
            if other != NO_CLUSTER:
                survivors.setdefault(other, []).append(cluster)
        events += [(step.version, kind, one, tuple(many)) for one, many in survivors.items()]
    return events
