"""The timeline of a watch as lanes: the sizes of each cluster over the updates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.watch.history import Timeline

TREND = 24
"""Sizes in a trend."""
MOST_EVENTS = 2_000

Ints = NDArray[np.int64]


class Lanes(NamedTuple):
    """A timeline, ordered by cluster and then by update.

    The lane of ``clusters[i]`` begins at ``start[i]`` and ends at ``start[i + 1]``.
    """

    timeline: Timeline
    clusters: Ints
    start: Ints
    update: Ints
    size: Ints
    time: NDArray[Any] | None

    def trend(self, cluster: int) -> list[int]:
        """Return the size of a cluster at even distances over the timeline."""
        place = self._place(cluster)
        if place is None:
            return []
        rows = slice(int(self.start[place]), int(self.start[place + 1]))
        first = int(self.update.min())
        at = np.linspace(first, max(self.timeline.last_update, first), TREND)
        index = np.searchsorted(self.update[rows], at, side="right") - 1
        sizes: list[int] = np.where(index >= 0, self.size[rows][index], 0).tolist()
        return sizes

    def _place(self, cluster: int) -> int | None:
        place = int(np.searchsorted(self.clusters, cluster))
        found = place < len(self.clusters) and self.clusters[place] == cluster
        return place if found else None

    def answer(self, most: int, steps: int, since: int) -> dict[str, Any]:
        """Return the lanes that were largest since a version, thinned out, and their events."""
        places = []
        if len(self.clusters):
            shown = np.where(self.update >= since, self.size, 0)
            largest = np.maximum.reduceat(shown, self.start[:-1])
            last = self.size[self.start[1:] - 1]  # alive now, though nothing happened since
            order = np.argsort(-np.maximum(largest, last), kind="stable")
            places = [int(place) for place in order[:most] if max(largest[place], last[place])]
        ids = {int(self.clusters[place]) for place in places}
        events = [
            {"update": update, "kind": kind, "cluster": cluster, "others": list(others)}
            for update, kind, cluster, others in self.timeline.events
            if update >= since and (cluster in ids or not ids.isdisjoint(others))
        ]
        return {
            "last_update": self.timeline.last_update,
            "last_time": _plain(self.timeline.last_time),
            "lanes": [self._lane(place, steps, since) for place in places],
            "events": events[-MOST_EVENTS:],
            "total": len(self.clusters),
        }

    def _lane(self, place: int, steps: int, since: int) -> dict[str, Any]:
        """Return one lane with at most so many steps; the first and the last one stay."""
        begin, end = int(self.start[place]), int(self.start[place + 1])
        early = int(np.searchsorted(self.update[begin:end], since, side="left"))
        begin += max(early - 1, 0)  # the size that it had then
        count = end - begin
        rows = np.arange(begin, end)
        if count > steps:
            rows = begin + np.unique(np.linspace(0, count - 1, steps).astype(np.int64))
        return {
            "cluster": int(self.clusters[place]),
            "name": None,
            "update": self.update[rows].tolist(),
            "size": self.size[rows].tolist(),
            "time": None if self.time is None else [_plain(time) for time in self.time[rows]],
        }


def _plain(time: Any) -> float | str | None:
    """Return a time for JSON: a number, or a date as text."""
    if time is None:
        return None
    if isinstance(time, np.datetime64):
        return str(time)
    return float(time)


def lanes_of(timeline: Timeline) -> Lanes:
    """Return a timeline as lanes."""
    order = np.argsort(timeline.cluster, kind="stable")
    cluster = timeline.cluster[order]
    clusters, start = np.unique(cluster, return_index=True)
    time = None if timeline.time is None else timeline.time[order]
    return Lanes(
        timeline,
        clusters,
        np.append(start, len(cluster)),
        timeline.update[order],
        timeline.size[order],
        time,
    )
