"""Selection of what a timeline plot shows: lanes, the links between them, and their order.

The clusters with the largest peaks get lanes of their own; all others share one. A link shows that
points moved between two clusters in a merge or a split. If one of the two has no lane, there is a
link only if the lane of the other begins or ends with it: a large cluster may absorb thousands of
small ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.input.errors import InvalidTypeError, show
from dynhac.watch.events import NO_CLUSTER

if TYPE_CHECKING:
    from dynhac.watch.history import Timeline

KINDS = ("born", "died", "merged", "split")


class Lane(NamedTuple):
    """The sizes of a cluster; ``size[i]`` holds from ``update[i]`` on."""

    cluster: int
    update: NDArray[np.int64]
    size: NDArray[np.int64]

    @property
    def peak(self) -> int:
        """The largest size."""
        return int(self.size.max())

    @property
    def last(self) -> int:
        """The last size."""
        return int(self.size[-1])


class Link(NamedTuple):
    """Points moved from cluster ``start`` to ``end``; NO_CLUSTER is one without a lane."""

    update: int
    start: int
    end: int
    kind: str


class Chosen(NamedTuple):
    """The lanes of the largest clusters, one for the sum of all others, and their number."""

    lanes: list[Lane]
    others: Lane | None
    n_others: int


def choose_lanes(timeline: Timeline, most: int) -> Chosen:
    """Return lanes for the clusters with the largest peaks, and one for all others."""
    update, cluster, size = _columns(timeline)
    order = np.argsort(cluster, kind="stable")
    clusters, first = np.unique(cluster[order], return_index=True)
    rows = np.split(order, first[1:])
    peaks = np.maximum.reduceat(size[order], first)
    largest = np.lexsort((clusters, -peaks))
    lanes = [
        Lane(int(clusters[i]), update[rows[i]], size[rows[i]])
        for i in largest[:most]
        if peaks[i] > 0
    ]
    n_others = int(np.count_nonzero(peaks)) - len(lanes)
    if not n_others:
        return Chosen(lanes, None, 0)
    change = np.empty_like(size)
    change[order] = np.diff(size[order], prepend=0)
    change[order[first]] = size[order[first]]
    others = np.concatenate([rows[i] for i in largest[most:]])
    when, group = np.unique(update[others], return_inverse=True)
    total = np.zeros(len(when), dtype=np.int64)
    np.add.at(total, group, change[others])
    return Chosen(lanes, Lane(NO_CLUSTER, when, np.cumsum(total)), n_others)


def links_of(timeline: Timeline, chosen: Chosen) -> list[Link]:
    """Return the links to draw, in order of time."""
    begin = {lane.cluster: int(lane.update[0]) for lane in chosen.lanes}
    end = {lane.cluster: int(lane.update[-1]) for lane in chosen.lanes if not lane.last}
    links = []
    for update, kind, cluster, others in timeline.events:
        if kind not in KINDS:
            raise ValueError(
                f"event {show(kind)} of update {update} is unknown; "
                f"events must be one of {', '.join(KINDS)}"
            )
        if kind not in ("merged", "split"):
            continue
        for other in others:
            start, goal = (other, cluster) if kind == "merged" else (cluster, other)
            if start in begin and goal in begin:
                links.append(Link(update, start, goal, kind))
            elif end.get(start) == update:
                links.append(Link(update, start, NO_CLUSTER, kind))
            elif begin.get(goal) == update:
                links.append(Link(update, NO_CLUSTER, goal, kind))
    return links


def ordered(lanes: list[Lane], links: Iterable[Link]) -> list[Lane]:
    """Return the lanes from the top down, with linked lanes near each other.

    A lane that merges into another, or else splits from another, is placed beside it: the first
    such lane above, the next below, and so on. Otherwise lanes are ordered by size.
    """
    beside: dict[int, int] = {}
    guests: dict[int, list[int]] = {}
    for merged in (True, False):
        for _, start, end, kind in links:
            if NO_CLUSTER in (start, end) or (kind == "merged") != merged:
                continue
            lane, host = (start, end) if merged else (end, start)
            top = host
            while top in beside:
                top = beside[top]
            if lane not in beside and top != lane:  # no cycles
                beside[lane] = host
                guests.setdefault(host, []).append(lane)

    rows: list[int] = []
    for tree in lanes:
        if tree.cluster not in beside:
            block, placed = [tree.cluster], [tree.cluster]
            for host in placed:  # the list grows in the loop
                for i, guest in enumerate(guests.get(host, ())):
                    block.insert(block.index(host) + i % 2, guest)
                    placed.append(guest)
            rows += block
    lane_of = {lane.cluster: lane for lane in lanes}
    return [lane_of[cluster] for cluster in rows]


def _columns(timeline: Timeline) -> list[NDArray[np.int64]]:
    """Return the checked columns update, cluster and size of a timeline."""
    columns = [np.asarray(column) for column in timeline[:3]]
    for name, column in zip(timeline._fields, columns, strict=False):
        if column.ndim != 1 or (column.size and column.dtype.kind not in "iu"):
            raise InvalidTypeError(
                f"{name} of the timeline has dtype {column.dtype} and shape {column.shape}; "
                "it must be one column of integers"
            )
    update, cluster, size = columns = [column.astype(np.int64) for column in columns]
    if not len(update) == len(cluster) == len(size):
        raise ValueError(
            f"update, cluster and size of the timeline have lengths {len(update)}, "
            f"{len(cluster)} and {len(size)}; they must be of one length"
        )
    if np.any(update[1:] < update[:-1]):
        position = int(np.argmax(update[1:] < update[:-1])) + 1
        raise ValueError(
            f"update {update[position]} at position {position} of the timeline comes after "
            f"{update[position - 1]}; rows must be ordered by update"
        )
    if len(update) and timeline.last_update < update[-1]:
        raise ValueError(
            f"last_update is {timeline.last_update}; it must be at least {update[-1]}, "
            "the update of the last row"
        )
    for name, column in (("cluster", cluster), ("size", size)):
        if np.any(column < 0):
            position = int(np.argmax(column < 0))
            raise ValueError(
                f"{name} {column[position]} at position {position} of the timeline is below 0; "
                "ids of clusters and sizes must be >= 0"
            )
    return columns


def checked_times(timeline: Timeline) -> NDArray[Any]:
    """Return the column ``time`` of a timeline, or raise."""
    time = np.asarray(timeline.time)
    if time.ndim != 1 or time.dtype.kind not in "iufM":
        raise InvalidTypeError(
            f"time of the timeline has dtype {time.dtype} and shape {time.shape}; it must be one "
            "column of numbers or dates"
        )
    if len(time) != len(timeline.update):
        raise ValueError(
            f"update and time of the timeline have lengths {len(timeline.update)} and {len(time)}; "
            "they must be of one length"
        )
    if not np.all(time[1:] >= time[:-1]):
        position = int(np.argmin(time[1:] >= time[:-1])) + 1
        raise ValueError(
            f"time {time[position]} at position {position} of the timeline comes after "
            f"{time[position - 1]}; rows must be ordered by time"
        )
    return time
