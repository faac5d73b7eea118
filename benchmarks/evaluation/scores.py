"""Agreement of clusterings with known classes, and how many labels an update changed.

A system offers candidate clusterings (cuts of a hierarchy, or the one clustering it has), and the
best of them is reported, as in the paper: NMI with the arithmetic mean, and likewise ARI. A point
with label -1 is in no cluster; it counts as a cluster of its own. Points without a known class are
left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Score:
    """The best of the candidate clusterings.

    ``nmi`` and ``ari`` are the largest of each; ``cut`` is the threshold that has the largest NMI,
    and ``clusters`` the number of clusters there.
    """

    nmi: float
    ari: float
    cut: float
    clusters: int


def best_score(cuts: Iterable[tuple[float, Labels]], truth: Labels) -> Score:
    """Return the best agreement of the candidates with the classes (labels aligned with truth)."""
    known = truth >= 0
    classes = compact(truth[known])
    best = Score(-1.0, -1.0, float("nan"), 0)
    seen: dict[bytes, tuple[float, float]] = {}
    for cut, labels in cuts:
        chosen = compact(labels[known])
        key = chosen.tobytes()  # neighbouring cuts are often the same clustering
        if key not in seen:
            seen[key] = agreement(classes, chosen)
        nmi, ari = seen[key]
        ari = max(ari, best.ari)
        if nmi > best.nmi:
            best = Score(nmi, ari, float(cut), int(chosen.max()) + 1)
        else:
            best = Score(best.nmi, ari, best.cut, best.clusters)
    if best.clusters == 0:
        raise ValueError("no candidate clustering; a system must offer at least one cut")
    return best


def agreement(first: Labels, second: Labels) -> tuple[float, float]:
    """Return NMI (arithmetic mean) and ARI of two clusterings numbered 0, 1, ...

    The same as in scikit-learn, whose import would take longer than most jobs.
    """
    n = len(first)
    sizes = np.bincount(first), np.bincount(second)
    pairs, shared = np.unique(first * len(sizes[1]) + second, return_counts=True)
    row, column = np.divmod(pairs, len(sizes[1]))
    expected = sizes[0][row] / n * sizes[1][column]
    mutual = float((shared / n * np.log(shared / expected)).sum())
    entropy = [float(-(s / n * np.log(s / n)).sum()) for s in sizes]
    # Two clusterings of one cluster each are equal.
    nmi = 1.0 if sum(entropy) == 0 else max(mutual, 0.0) / (sum(entropy) / 2)
    together = float((shared.astype(float) * (shared - 1)).sum())
    each = [float((s.astype(float) * (s - 1)).sum()) for s in sizes]
    chance = each[0] * each[1] / max(n * (n - 1), 1)
    most = sum(each) / 2
    ari = 1.0 if most == chance else (together - chance) / (most - chance)
    return min(nmi, 1.0), ari


def compact(labels: Labels) -> Labels:
    """Number clusters 0, 1, ... by first appearance, each unclustered point its own cluster."""
    labels = np.asarray(labels, dtype=np.int64).copy()
    alone = np.flatnonzero(labels == -1)
    labels[alone] = labels.max(initial=0) + 1 + np.arange(len(alone))
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def labels_changed(before: Labels, after: Labels) -> int:
    """Return how many points are not in the cluster that matches their former one.

    Both label the same points. Clusters are matched one to one so that as many points as possible
    keep theirs. Clusters that are the same set of points in both are matched first, which is
    optimal, since they overlap with no other.
    """
    from scipy.optimize import linear_sum_assignment

    before, after = compact(before), compact(after)
    pair, inverse, shared = np.unique(
        np.stack([before, after]), axis=1, return_inverse=True, return_counts=True
    )
    same = (np.bincount(before)[pair[0]] == shared) & (np.bincount(after)[pair[1]] == shared)
    open_points = ~same[inverse.ravel()]
    if not open_points.any():
        return 0
    old, new = compact(before[open_points]), compact(after[open_points])
    overlap = np.zeros((old.max() + 1, new.max() + 1), dtype=np.int64)
    np.add.at(overlap, (old, new), 1)
    rows, columns = linear_sum_assignment(overlap, maximize=True)
    return int(len(old) - overlap[rows, columns].sum())
