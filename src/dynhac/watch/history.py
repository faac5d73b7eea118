"""What a watch remembers of its steps: how large clusters were, and which came and went.

A history holds the steps of the last updates without their points. A model may be updated for
months, so it does not grow for ever: when there are twice as many steps as are `KEPT`, the older
half becomes one, which says how large every cluster was after it. A timeline begins there then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.watch.events import NO_CLUSTER, story_of

if TYPE_CHECKING:
    from dynhac._core import WatchStep
    from dynhac.plot.timeline import Timeline

KEPT = 10_000
"""Steps that are always there one by one."""

UNKNOWN = -1
"""The size of a cluster before the step that stands for many."""

SIZES = ("cluster", "before", "now")
MOVES = ("source", "target", "end")
NOTHING: NDArray[np.int64] = np.empty(0, np.int64)
NOTHING.setflags(write=False)


class PastStep(NamedTuple):
    """What a timeline needs of a step; the names are those of `WatchStep`."""

    version: int
    cluster: NDArray[np.int64]
    before: NDArray[np.int64]
    now: NDArray[np.int64]
    source: NDArray[np.int64] = NOTHING
    target: NDArray[np.int64] = NOTHING
    end: NDArray[np.int64] = NOTHING


class History:
    """The steps of a watch, the oldest first."""

    __slots__ = ("_steps",)

    def __init__(self, steps: Iterable[WatchStep | PastStep] = ()) -> None:
        self._steps = list(steps)

    @property
    def version(self) -> int:
        """The version of the model that the last step led to; -1 if there is none."""
        return self._steps[-1].version if self._steps else -1

    def append(self, step: WatchStep) -> None:
        """Add a step; the one before it loses its points."""
        if len(self._steps) >= 2 * KEPT:
            self._steps = [_summed_up(self._steps[:KEPT]), *self._steps[KEPT:]]
        self._steps.append(step)
        if len(self._steps) > 1:
            past = self._steps[-2]
            if not isinstance(past, PastStep):
                past.drop_keys()

    def timeline(self, last_update: int) -> Timeline:
        """Return sizes over updates, and what became of clusters as such."""
        from dynhac.plot.timeline import Timeline

        events: list[tuple[int, str, int, tuple[int, ...]]] = []
        rows: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
        for step in self._steps:
            cluster, before, now = step.cluster, step.before, step.now
            changed = before != now
            rows.append((np.full(changed.sum(), step.version), cluster[changed], now[changed]))
            events += _turns(step)
        columns = [np.concatenate([NOTHING, *(row[i] for row in rows)]) for i in range(3)]
        return Timeline(columns[0], columns[1], columns[2], last_update, events)

    def columns(self) -> dict[str, NDArray[np.int64]]:
        """Return all of it as plain arrays, from which `from_columns` makes the same."""
        arrays = {"version": np.array([step.version for step in self._steps], np.int64)}
        for names, lengths in ((SIZES, "clusters"), (MOVES, "moves")):
            for name in names:
                parts = [getattr(step, name) for step in self._steps]
                arrays[name] = np.concatenate([NOTHING, *parts])
            arrays[lengths] = np.array([len(part) for part in parts], np.int64)
        return arrays

    @classmethod
    def from_columns(cls, columns: Mapping[str, NDArray[np.int64]]) -> History:
        """Return the history whose `columns` these are; ValueError: they are not one's."""

        def cut(name: str, lengths: NDArray[np.int64]) -> list[NDArray[np.int64]]:
            if (lengths < 0).any() or len(columns[name]) != sum(lengths.tolist()):
                raise ValueError(f"{name} in the history of a watch has a wrong length")
            return np.split(columns[name], np.cumsum(lengths)[:-1]) if len(lengths) else []

        parts = [cut(name, columns["clusters"]) for name in SIZES]
        parts += [cut(name, columns["moves"]) for name in MOVES]
        versions = columns["version"].tolist()
        return cls(PastStep(*row) for row in zip(versions, *parts, strict=True))


def _summed_up(steps: Iterable[WatchStep | PastStep]) -> PastStep:
    """Return one step in the place of some: the clusters there were after them."""
    sizes: dict[int, int] = {}
    version = 0
    for step in steps:
        version = step.version
        sizes.update(zip(step.cluster.tolist(), step.now.tolist(), strict=True))
    cluster = np.array(sorted(c for c, size in sizes.items() if size), np.int64)
    now = np.array([sizes[c] for c in cluster.tolist()], np.int64)
    return PastStep(version, cluster, np.full(len(cluster), UNKNOWN), now)


def _turns(step: WatchStep | PastStep) -> list[tuple[int, str, int, tuple[int, ...]]]:
    """Return what a step did to clusters as such: born, died, merged, split."""
    born, died = story_of(step)
    events: list[tuple[Any, ...]] = [
        (step.version, kind, cluster, () if other == NO_CLUSTER else (other,))
        for kind, ends in (("died", died), ("born", born))
        for cluster, other in ends.items()
    ]
    for kind, ends in (("split", born), ("merged", died)):
        survivors: dict[int, list[int]] = {}
        for cluster, other in ends.items():
            if other != NO_CLUSTER:
                survivors.setdefault(other, []).append(cluster)
        events += [(step.version, kind, one, tuple(many)) for one, many in survivors.items()]
    return events
