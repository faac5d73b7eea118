"""What happened to the clusters of a watch, in words: born, died, merged, split, grew, shrank.

The engine says which points went from which cluster to which, and how large clusters were and are.
From that follows the story of every cluster whose points moved:

- An id that ends *died*; if most of its points that are still in a cluster went to one that lives
  on, that one *merged* with it.
- An id that begins was *born*; if most of its points were in a cluster that lives on, that one
  *split*.
- All other points that joined a cluster made it *grow*, all others that left it made it *shrink*.

So every point that joined a cluster is in exactly one of its born, merged and grew, and every point
that left it in exactly one of its died, split and shrank. `replay` shows how little it takes to
follow a watch from its events.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.input.errors import counted

if TYPE_CHECKING:
    from dynhac._core import WatchStep
    from dynhac.watch.history import PastStep

NO_CLUSTER = -1
LEAVING = ("died", "split", "shrank")
JOINING = ("born", "merged", "grew")


class Event(NamedTuple):
    """Something that happened to one cluster.

    Attributes
    ----------
    kind : str
        born, died, merged, split, grew or shrank.
    cluster : int
        The cluster's id.
    points : ndarray
        The ids of the points that joined it (born, merged, grew) or left it (died, split, shrank).
    others : tuple of int
        merged: the clusters taken in. split: the clusters born from it. born: the cluster it came
        from, if any. died: the cluster that took it in, if any.
    size : int
        How many points the cluster has after the update.
    update : int
        The version of the model that the update made.
    """

    kind: str
    cluster: int
    points: NDArray[Any]
    others: tuple[int, ...]
    size: int
    update: int

    def __str__(self) -> str:
        moved = counted(len(self.points), "point", "points")
        with_others = ", ".join(map(str, self.others))
        told = {
            "born": f"born with {moved}" + (f", out of {with_others}" if self.others else ""),
            "died": f"died with {moved}" + (f", taken in by {with_others}" if self.others else ""),
            "merged": f"merged with {with_others}: {moved}",
            "split": f"split off {with_others}: {moved}",
            "grew": f"grew by {moved}",
            "shrank": f"shrank by {moved}",
        }[self.kind]
        return f"cluster {self.cluster} {told}; size {self.size:,}"


class Story(NamedTuple):
    """Which clusters came and went in one update, and where from and where to."""

    born: dict[int, int]  # from which cluster, or NO_CLUSTER
    died: dict[int, int]  # into which cluster, or NO_CLUSTER


def story_of(step: WatchStep | PastStep) -> Story:
    """Return the origins of the clusters that began and the heirs of those that ended."""
    cluster = step.cluster
    born = dict.fromkeys(cluster[step.before == 0].tolist(), NO_CLUSTER)
    died = dict.fromkeys(cluster[step.now == 0].tolist(), NO_CLUSTER)
    if born or died:
        count = np.diff(step.end, prepend=0)
        moves = zip(step.source.tolist(), step.target.tolist(), count.tolist(), strict=True)
        # The most points come last; where the numbers are equal, the older cluster does.
        for a, b, _ in sorted(moves, key=lambda move: (move[2], -move[0], -move[1])):
            if a != NO_CLUSTER and b != NO_CLUSTER:
                if b in born and a not in died:
                    born[b] = a
                if a in died and b not in born:
                    died[a] = b
    return Story(born, died)


def events_of(step: WatchStep, points: NDArray[Any]) -> list[Event]:
    """Return the events of a step; ``points`` are the ids of its keys."""
    sizes = dict(zip(step.cluster.tolist(), step.now.tolist(), strict=True))
    born, died = story_of(step)
    points.setflags(write=False)  # all events share them
    parts: dict[tuple[str, int], tuple[list[NDArray[Any]], set[int]]] = {}

    def tell(kind: str, cluster: int, moved: NDArray[Any], other: int) -> None:
        pieces, others = parts.setdefault((kind, cluster), ([], set()))
        pieces.append(moved)
        if other != NO_CLUSTER:
            others.add(other)

    start = 0
    for a, b, end in zip(
        step.source.tolist(), step.target.tolist(), step.end.tolist(), strict=True
    ):
        moved, start = points[start:end], end
        if a != NO_CLUSTER:
            if a in died:
                tell("died", a, moved, died[a])
            elif born.get(b) == a:
                tell("split", a, moved, b)
            else:
                tell("shrank", a, moved, NO_CLUSTER)
        if b != NO_CLUSTER:
            if b in born:
                tell("born", b, moved, born[b])
            elif died.get(a) == b:
                tell("merged", b, moved, a)
            else:
                tell("grew", b, moved, NO_CLUSTER)
    order = {kind: rank for rank, kind in enumerate((*LEAVING, *JOINING))}
    return [
        Event(
            kind,
            cluster,
            pieces[0] if len(pieces) == 1 else np.concatenate(pieces),
            tuple(sorted(others)),
            sizes[cluster],
            step.version,
        )
        for (kind, cluster), (pieces, others) in sorted(
            parts.items(), key=lambda item: (order[item[0][0]], item[0][1])
        )
    ]


def replay(events: Iterable[Event], labels: MutableMapping[Any, int]) -> None:
    """Follow a watch: bring labels, from point to cluster, up to date with events.

    Starting from nothing and replaying all events since a watch was made gives the clusters that
    it has now; points in no cluster are not in ``labels``.

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
