"""What is reported of a clustering with noise.

Noise is counted in three ways, the same for every system: *ancestors* gives a noise point to the
largest cluster under the nearest node above it that has one, in the tree of the system itself;
*alone* counts every noise point as a cluster, and *together* all of them as one. With ancestors, a
point whose tree has no cluster stays alone. Points without a known class are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import Ints
from benchmarks.evaluation.scores import agreement, compact

MIN_SIZE = 25  # of automatic clusters by default, and of clusters and classes called large
WAYS = ("ancestors", "alone", "together")


def to_ancestors(labels: Ints, tree: NDArray[np.float64]) -> Ints:
    """Return labels with the noise points in clusters of their ancestors.

    ``tree`` is a linkage matrix as of scipy; clusters are whole subtrees. Of clusters of equal size
    the one with the lower label counts as larger.
    """
    n = len(labels)
    sizes = np.bincount(labels[labels >= 0], minlength=1).tolist()
    largest = labels.tolist() + [-1] * len(tree)  # the largest cluster under a node
    parent = np.full(n + len(tree), -1)
    for row, pair in enumerate(tree[:, :2].astype(np.int64).tolist()):
        parent[pair] = n + row
        under = [largest[child] for child in pair if largest[child] >= 0]
        largest[n + row] = max(under, key=lambda c: (sizes[c], -c), default=-1)
    for node in range(n + len(tree) - 1, -1, -1):
        if largest[node] < 0 <= parent[node]:
            largest[node] = largest[parent[node]]
    return np.array(largest[:n], np.int64)


def describe(classes: Ints, labels: Ints, ancestors: Ints) -> dict[str, Any]:
    """Return agreement with the classes, number of clusters and share of noise.

    ``labels`` have -1 for noise; ``ancestors`` are the same clusters with the noise in them.
    """
    sizes = np.bincount(labels[labels >= 0], minlength=1)
    found: dict[str, Any] = {
        "clusters": int(np.count_nonzero(sizes)),
        "clusters_large": int(np.count_nonzero(sizes >= MIN_SIZE)),
        "noise": float(np.mean(labels < 0)),
    }
    known = classes >= 0
    truth = compact(classes[known])
    counted = {"ancestors": ancestors, "alone": labels, "together": together(labels)}
    for way in WAYS:
        nmi, ari = agreement(truth, compact(counted[way][known]))
        found[way] = {"nmi": nmi, "ari": ari}
    return found


def together(labels: Ints) -> Ints:
    """Return labels with all noise in one cluster."""
    return np.where(labels < 0, labels.max(initial=-1) + 1, labels)


def classes_present(classes: Ints) -> dict[str, int]:
    """Return how many classes there are, and how many have as many points as a cluster needs."""
    sizes = np.bincount(classes[classes >= 0], minlength=1)
    return {
        "classes": int(np.count_nonzero(sizes)),
        "classes_large": int(np.count_nonzero(sizes >= MIN_SIZE)),
    }
