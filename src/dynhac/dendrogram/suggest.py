"""A few sensible cuts of a dendrogram: where clusters stay the same over a wide range of θ.

Only clusters of at least ``min_size`` leaves count, so that single leaves that fall off do not
hide what lasts. When θ is lowered, such a cluster is *born* where it first has that many leaves. It
*ends* where it joins another one, and a new one is born there. In between it gains small clusters.
So a leaf is in the same cluster from the similarity λ at which it joins it down to the similarity β
at which that cluster ends. The *persistence* of a cut is the mean over all leaves of 1 - β / λ;
leaves in no such cluster count as 0. The root of a tree never ends; it counts as if it did at
`BELOW` times the threshold. A root with more than half of all leaves counts as 0, because one
cluster is no answer, unless nothing below it has any persistence.

The suggested cuts are the peaks of persistence over the number of clusters: no cut whose number of
clusters is within a factor `APART` has more. The groups in groups need not be such a peak: while
they join one by one, persistence only grows. So a cut is also suggested if its number of clusters
stays the same while θ changes by a factor of at least `WIDE`. Everything follows from the nodes of
at least ``min_size`` leaves, in one pass up and one pass down the tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from dynhac.dendrogram.cuts import snap
from dynhac.dendrogram.selection import automatic_min_size
from dynhac.input.columns import whole_number
from dynhac.input.errors import counted

if TYPE_CHECKING:
    from dynhac.dendrogram.dendrogram import Dendrogram

APART = 2.0  # least ratio between the numbers of clusters of two suggestions
BELOW = 0.1  # of the threshold: where trees are taken to join
LEAST = 0.5  # of the largest persistence, for a suggestion
NEAR = 0.98  # of the persistence of a peak: θ may be anywhere with so much
WIDE = 4.0  # more than points without clusters have for one number of clusters


class Suggestion(NamedTuple):
    """A cut of the hierarchy, and what it gives; one of `Suggestions`.

    Attributes
    ----------
    theta : float
        Where to cut; for ``labels(theta)``, ``watch(theta)`` and all others.
    n_clusters : int
        The number of clusters of at least ``min_size`` points.
    n_all : int
        The number of all clusters, also of single points.
    noise : float
        The share of points in smaller clusters.
    persistence : float
        How long the clusters stay the same when θ changes, from 0 to 1, as a mean over all points:
        0.5 if they do while θ changes by a factor of 2, 0.75 for 4, 0.9 for 10. Points without any
        clusters do not have 0 but, the fewer dimensions, the more: about 0.45 if they are spread
        evenly in 32 dimensions, about 0.75 in two or three, and more on a line.
    """

    theta: float
    n_clusters: int
    n_all: int
    noise: float
    persistence: float


class AutomaticChoice(NamedTuple):
    """What ``labels()`` without a cut gives; see `Suggestions`.

    Attributes
    ----------
    n_clusters : int
        The number of clusters.
    noise : float
        The share of points in no cluster.
    """

    n_clusters: int
    noise: float


@dataclass(frozen=True, repr=False)
class Suggestions(Sequence[Suggestion]):
    """Cuts of a hierarchy at which its clusters are most persistent, the most persistent first.

    Made by `Dendrogram.suggest` and ``model.suggest``. The numbers of clusters differ by a factor
    of at least 2 from one suggestion to any other.

    Attributes
    ----------
    cuts : tuple of Suggestion
        The items.
    automatic : AutomaticChoice
        The clusters that ``labels()`` chooses without a cut, with the same ``min_size``.
    n_points : int
        The number of points.
    min_size : int
        The least number of points of a cluster that counts.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac import DynHAC
    >>> middles = np.repeat([[0, 0], [5, 0], [30, 30], [35, 30]], 100, axis=0)
    >>> model = DynHAC(n_neighbors=50)
    >>> _ = model.insert(np.random.default_rng(0).normal(middles))
    >>> suggestions = model.suggest()
    >>> [(cut.n_clusters, cut.theta) for cut in suggestions]
    [(2, 0.0007), (4, 0.03)]
    >>> [model.labels(cut.theta)[[0, 100, 200, 300]].tolist() for cut in suggestions]
    [[0, 0, 1, 1], [0, 1, 2, 3]]
    """

    cuts: tuple[Suggestion, ...]
    automatic: AutomaticChoice
    n_points: int
    min_size: int

    def __len__(self) -> int:
        return len(self.cuts)

    def __iter__(self) -> Iterator[Suggestion]:
        return iter(self.cuts)

    @overload
    def __getitem__(self, place: int) -> Suggestion: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Suggestion, ...]: ...
    def __getitem__(self, place: int | slice) -> Suggestion | tuple[Suggestion, ...]:
        return self.cuts[place]

    def _head(self) -> str:
        return (
            f"Suggestions: {counted(len(self), 'cut', 'cuts')} of "
            f"{counted(self.n_points, 'point', 'points')}; "
            f"clusters of at least {self.min_size:,} points"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        """Return the table, with a line of names at the top."""
        rows: list[tuple[str, ...]] = [("theta", "clusters", "all", "noise", "persistence")]
        for cut in self:
            rows.append(
                (
                    f"{cut.theta:g}",
                    f"{cut.n_clusters:,}",
                    f"{cut.n_all:,}",
                    f"{cut.noise:.1%}",
                    f"{cut.persistence:.2f}",
                )
            )
        rows.append(
            ("automatic", f"{self.automatic.n_clusters:,}", "", f"{self.automatic.noise:.1%}", "")
        )
        return rows

    def _remark(self) -> str:
        if len(self):
            return ""
        return f"no cut has a cluster of at least {self.min_size:,} points; try a smaller min_size"

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)).rstrip() for row in rows]
        return "\n".join([f"<{self._head()}>", *(lines if len(self) else [self._remark()])])

    def _repr_html_(self) -> str:
        from dynhac.notebook.views import suggestions_html

        return suggestions_html(self)


def suggest_cuts(dendrogram: Dendrogram, n: int, min_size: int | None) -> Suggestions:
    """Return at most ``n`` suggestions; see `Dendrogram.suggest`."""
    most = whole_number(n, "n", 1)
    least = automatic_min_size(min_size)
    curve = _curve(dendrogram, least)
    peaks = _peaks(curve, BELOW * dendrogram.threshold)
    cuts = [_suggestion(dendrogram, curve, peak) for peak in peaks[:most]]
    labels = dendrogram.labels(min_size=least)
    automatic = AutomaticChoice(
        int(labels.max(initial=-1)) + 1, float((labels < 0).mean()) if len(labels) else 0.0
    )
    cuts.sort(key=lambda cut: (-cut.persistence, cut.n_clusters))
    return Suggestions(tuple(cuts), automatic, dendrogram.n_leaves, least)


class Curve(NamedTuple):
    """What cuts give, by θ: cut i includes all merges of a similarity >= theta[i], descending."""

    theta: NDArray[np.float64]
    n_clusters: NDArray[np.int64]
    covered: NDArray[np.int64]  # leaves in these clusters
    persistence: NDArray[np.float64]


def _curve(dendrogram: Dendrogram, least: int) -> Curve:
    """Return what all cuts give that differ in clusters of at least ``least`` leaves."""
    n = dendrogram.n_leaves
    lowest = float(snap(dendrogram.threshold, dendrogram.resolution))
    size = np.concatenate([np.ones(n, np.int64), dendrogram.size])
    similarity = np.concatenate([np.full(n, np.inf), dendrogram.min_similarity])
    nodes = np.flatnonzero((size >= least) & (similarity >= lowest) & (similarity > 0))
    place = np.full(len(size), -1)
    place[nodes] = np.arange(len(nodes))
    children = np.full((len(nodes), 2), -1)
    merges = nodes >= n
    children[merges] = place[dendrogram.children[nodes[merges] - n]]
    parent = np.full(len(nodes) + 1, -1)
    parent[children] = np.arange(len(nodes))[:, None]  # -1, no child, is the place at the end
    parent = parent[:-1]
    sizes, at = size[nodes], similarity[nodes]
    worth = _worth(children, parent, sizes, at, n, BELOW * dendrogram.threshold)

    ends = np.where(parent >= 0, at[parent], 0.0) if len(nodes) else at
    theta = np.concatenate([at, ends])
    order = np.argsort(-theta, kind="stable")
    theta = theta[order]
    last = np.append(theta[1:] != theta[:-1], True)[: len(theta)] & (theta > 0)

    def summed(values: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = np.cumsum(np.concatenate([values, -values])[order])[last]
        return found

    return Curve(
        theta[last],
        np.rint(summed(np.ones(len(nodes)))).astype(np.int64),
        np.rint(summed(sizes.astype(np.float64))).astype(np.int64),
        np.clip(summed(worth) / max(n, 1), 0.0, 1.0),
    )


def _worth(
    children: NDArray[np.int64],
    parent: NDArray[np.int64],
    sizes: NDArray[np.int64],
    similarity: NDArray[np.float64],
    n: int,
    below: float,
) -> NDArray[np.float64]:
    """Return the sum of 1 - β / λ over the leaves of the cluster at each node."""
    count = len(sizes)
    size, at = sizes.tolist(), similarity.tolist()
    joined = [0.0] * count  # the sum of 1 / λ
    splits = [False] * count  # whether two large clusters join here
    divided = [False] * count  # or below, in the same cluster
    for node, (a, b) in enumerate(children.tolist()):
        if (a < 0) == (b < 0):
            joined[node] = size[node] / at[node]
            splits[node] = divided[node] = a >= 0
        else:
            child = max(a, b)
            joined[node] = joined[child] + (size[node] - size[child]) / at[node]
            divided[node] = divided[child]
    end = [below] * count
    whole = [False] * count  # in the cluster of a root with more than half of all leaves
    above = parent.tolist()
    for node in range(count - 1, -1, -1):
        over = above[node]
        if over < 0:
            whole[node] = divided[node] and 2 * size[node] > n
        elif splits[over]:
            end[node] = at[over]
        else:
            end[node], whole[node] = end[over], whole[over]
    worth = np.maximum(sizes - np.array(end) * np.array(joined), 0.0)
    parts = np.where(np.array(whole, dtype=np.bool_), 0.0, worth)
    return parts if (parts > 0).any() else worth


def _is_wide(curve: Curve, below: float) -> NDArray[np.bool_]:
    """Whether each cut has the same number of clusters as others over a wide range of θ."""
    starts = np.flatnonzero(np.diff(curve.n_clusters, prepend=-1))
    high = curve.theta[starts]
    low = np.append(high[1:], below)
    return np.repeat(high >= WIDE * low, np.diff(starts, append=len(curve.theta)))


def _peaks(curve: Curve, below: float) -> list[int]:
    """Return the cuts to suggest, the most persistent first."""
    if not len(curve.theta):
        return []
    # The best cut for each number of clusters; of equal ones that with the lowest θ.
    order = np.lexsort((curve.theta, -curve.persistence, curve.n_clusters))
    numbers, first = np.unique(curve.n_clusters[order], return_index=True)
    cuts = order[first]
    best = curve.persistence[cuts]
    start = np.searchsorted(numbers, numbers / APART, side="right")
    end = np.searchsorted(numbers, numbers * APART, side="left")
    enough, wide = LEAST * best.max(), _is_wide(curve, below)[cuts]
    peaks: list[int] = []
    for i in np.argsort(-best, kind="stable").tolist():
        if not numbers[i] or best[i] < enough or any(start[i] <= j < end[i] for j in peaks):
            continue
        if wide[i] or best[i] >= best[start[i] : end[i]].max():
            peaks.append(i)
    return [int(cuts[i]) for i in peaks]


def _suggestion(dendrogram: Dendrogram, curve: Curve, peak: int) -> Suggestion:
    """Return the cut at a round number that is as good as the peak."""
    good = (curve.n_clusters == curve.n_clusters[peak]) & (
        curve.persistence >= NEAR * curve.persistence[peak]
    )
    ends = np.flatnonzero(~good)
    start = int(ends[ends < peak].max(initial=-1)) + 1
    end = int(ends[ends > peak].min(initial=len(good)))
    high = curve.theta[start]
    low = curve.theta[end] if end < len(good) else max(dendrogram.threshold, high / 10)
    middle = float(np.sqrt(high) * np.sqrt(low))

    def cut(theta: float) -> int:
        """Return which of the cuts of the curve is that at θ."""
        lowered = snap(theta, dendrogram.resolution)
        return int(np.searchsorted(-curve.theta, -lowered, side="right")) - 1

    theta = float(curve.theta[peak])
    for digits in range(1, 17):
        rounded = float(f"{middle:.{digits}g}")
        if rounded >= dendrogram.threshold and start <= cut(rounded) < end:
            theta = rounded
            break
    i = cut(theta)
    merges = np.count_nonzero(dendrogram.min_similarity >= snap(theta, dendrogram.resolution))
    n = dendrogram.n_leaves
    return Suggestion(
        theta,
        int(curve.n_clusters[i]),
        n - int(merges),
        1 - int(curve.covered[i]) / n,
        float(curve.persistence[i]),
    )
