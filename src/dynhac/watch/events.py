"""Events of the clusters of a watch: born, died, merged, split, grew, shrank.

The engine reports which points moved from which cluster to which, and the sizes of these clusters
before and after the update. The events follow from that:

- A cluster whose id ends *died*. If most of its points that are still in a cluster went to one that
  existed before, that cluster *merged* with it.
- A cluster whose id is new was *born*. If most of its points were in a cluster that continues, that
  cluster *split*.
- All other points that joined a cluster are in an event *grew*, all others that left it in an event
  *shrank*.

So every point that joined a cluster is in exactly one of its events born, merged and grew, and
every point that left it in exactly one of died, split and shrank. `replay` reconstructs the
clusters from the events.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynhac.input.errors import counted

if TYPE_CHECKING:
    from dynhac._core import WatchStep
    from dynhac.watch.history import PastStep

NO_CLUSTER = -1
Kind: TypeAlias = Literal["born", "died", "merged", "split", "grew", "shrank"]
TimelineKind: TypeAlias = Literal["born", "died", "merged", "split"]
LEAVING: tuple[Kind, ...] = ("died", "split", "shrank")
JOINING: tuple[Kind, ...] = ("born", "merged", "grew")


class Event(NamedTuple):
    """A change of one cluster in one update.

    Attributes
    ----------
    kind : str
        born, died, merged, split, grew or shrank.
    cluster : int
        The cluster's id.
    points : ndarray
        The ids of the points that joined it (born, merged, grew) or left it (died, split, shrank).
    others : tuple of int
        merged: the clusters absorbed. split: the clusters born from it. born: the cluster it split
        from, if any. died: the cluster that absorbed it, if any.
    size : int
        The number of points of the cluster after the update.
    update : int
        The version of the model after the update.
    """

    kind: Kind
    cluster: int
    points: NDArray[Any]
    others: tuple[int, ...]
    size: int
    update: int

    def __str__(self) -> str:
        moved = counted(len(self.points), "point", "points")
        others = ", ".join(map(str, self.others))
        text = {
            "born": f"born with {moved}" + (f", from {others}" if self.others else ""),
            "died": f"died with {moved}" + (f", absorbed by {others}" if self.others else ""),
            "merged": f"merged with {others}: {moved}",
            "split": f"split off {others}: {moved}",
            "grew": f"grew by {moved}",
            "shrank": f"shrank by {moved}",
        }[self.kind]
        return f"cluster {self.cluster} {text}; size {self.size:,}"


def born_and_died(step: WatchStep | PastStep) -> tuple[dict[int, int], dict[int, int]]:
    """Return the clusters that began and those that ended.

    Each is mapped to the cluster that it split from or merged into, or to NO_CLUSTER.
    """
    cluster = step.cluster
    born = dict.fromkeys(cluster[step.before == 0].tolist(), NO_CLUSTER)
    died = dict.fromkeys(cluster[step.now == 0].tolist(), NO_CLUSTER)
    if born or died:
        count = np.diff(step.end, prepend=0)
        moves = zip(step.source.tolist(), step.target.tolist(), count.tolist(), strict=True)
        # Later moves override earlier ones: the largest is last, of equal ones that of the older
        # cluster.
        for a, b, _ in sorted(moves, key=lambda move: (move[2], -move[0], -move[1])):
            if a != NO_CLUSTER and b != NO_CLUSTER:
                if b in born and a not in died:
                    born[b] = a
                if a in died and b not in born:
                    died[a] = b
    return born, died


def events_of(step: WatchStep | PastStep, points: NDArray[Any]) -> list[Event]:
    """Return the events of a step; ``points`` are the ids of the points that moved, in order."""
    sizes = dict(zip(step.cluster.tolist(), step.now.tolist(), strict=True))
    born, died = born_and_died(step)
    points.setflags(write=False)  # all events share them
    parts: dict[tuple[Kind, int], tuple[list[NDArray[Any]], set[int]]] = {}

    def add(kind: Kind, cluster: int, moved: NDArray[Any], other: int) -> None:
        pieces, others = parts.setdefault((kind, cluster), ([], set()))
        pieces.append(moved)
        if other != NO_CLUSTER:
            others.add(other)

    start = 0
    moves = (step.source.tolist(), step.target.tolist(), step.end.tolist())
    for a, b, end in zip(*moves, strict=True):
        moved, start = points[start:end], end
        if a != NO_CLUSTER:
            if a in died:
                add("died", a, moved, died[a])
            elif born.get(b) == a:
                add("split", a, moved, b)
            else:
                add("shrank", a, moved, NO_CLUSTER)
        if b != NO_CLUSTER:
            if b in born:
                add("born", b, moved, born[b])
            elif died.get(a) == b:
                add("merged", b, moved, a)
            else:
                add("grew", b, moved, NO_CLUSTER)
    order = (*LEAVING, *JOINING)
    events = []
    for kind, cluster in sorted(parts, key=lambda part: (order.index(part[0]), part[1])):
        pieces, others = parts[kind, cluster]
        moved = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        related = tuple(sorted(others))
        events.append(Event(kind, cluster, moved, related, sizes[cluster], step.version))
    return events


def replay(events: Iterable[Event], labels: MutableMapping[Any, int]) -> None:
    """Apply events to ``labels``, a mapping from point to cluster.

    Replaying all events since a watch was made, starting with an empty mapping, gives its present
    clusters. Points in no cluster are not in ``labels``.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> from dynhac.watch.events import replay
    >>> g = GraphHAC()
    >>> watch = g.watch(0.5, min_size=2)
    >>> labels = {}
    >>> _ = g.add(["a", "b", "c"], edges=("a", "b", 0.9))
    >>> replay(watch.events, labels)
    >>> labels
    {'a': 0, 'b': 0}
    """
    for event in events:
        points = event.points.tolist()
        if event.kind in JOINING:
            labels.update(dict.fromkeys(points, event.cluster))
        else:
            for point in points:
                if labels.get(point) == event.cluster:
                    del labels[point]
