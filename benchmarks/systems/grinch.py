"""GRINCH: a tree over points that every insertion rearranges locally.

After N. Monath, A. Kobren, A. Krishnamurthy, M. R. Glass, A. McCallum, "Scalable Hierarchical
Clustering with Tree Grafting", KDD 2019, with deletion added. The tree is a `CentroidTree`; its
scores are similarities of sibling centroids. A new point x is put in by

1. *search*: v is the nearest stored point, of all of them;
2. *rotate*: from v, climb while x is less similar to v than the children of the next node up are
   to each other; x becomes the sibling of the node reached, under a new parent p;
3. *graft*, once: q is the nearest point to p's centroid outside p (and other than p's sibling, if
   that is a leaf). Of all pairs of a node a on the way up from p and a node b on the way up from q,
   both below the first common node, that are more similar to each other than a is to its sibling
   and b to its own, the most similar is taken, and b is moved to be a's sibling.

Similarity is ``1 / (1 + distance)``. A point is deleted by removing its leaf. With normalised
settings points and centroids have unit length.

Scores are computed when a node changes instead of when they are needed; the tree is the same. Of
equal similarities the lowest a and b, counted from the leaves, are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.systems.base import Abilities, Arrivals, Cut, Ids, Settings, Updated, unit_length
from benchmarks.systems.centroid_tree import NONE, CentroidTree
from benchmarks.systems.nearest import Scan

# The cuts of the settings are coarse near 1, where all scores of points of unit length are.
FINE_CUTS = np.linspace(0.5, 1, 60)


class Grinch(Updated):
    """The system; the first batch determines the dimension."""

    name = "grinch"
    abilities = Abilities(insert=True, delete=True, hierarchy=True, guarantee=False)
    one_by_one = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._slot_of: dict[int, int] = {}

    def build(self, batch: Arrivals) -> None:
        """Insert the first points."""
        dimension = batch.points.shape[1]
        self.tree = CentroidTree(dimension, self.settings.normalised)
        self.points = Scan(dimension)
        self.insert(batch)

    def insert(self, batch: Arrivals) -> None:
        """Insert points, one by one."""
        points = unit_length(batch.points) if self.settings.normalised else batch.points
        for identity, point in zip(batch.ids.tolist(), points.astype(np.float64), strict=True):
            if identity in self._slot_of:
                raise ValueError(f"point {identity} is held already")
            self._slot_of[identity] = self._insert(point)

    def _insert(self, point: np.ndarray) -> int:
        tree = self.tree
        nearest = self.points.nearest(point)
        slot = self.points.add(point)
        leaf = tree.new_leaf(slot, point)
        if nearest != -1:
            self._graft(tree.attach(leaf, beside=self._rotate(point, 2 * nearest)))
        return slot

    def _rotate(self, point: np.ndarray, nearest: int) -> int:
        """Return the node that the point becomes a sibling of."""
        tree = self.tree
        path = tree.path(nearest)
        above = np.array(path[1:], np.int64)
        similarity = tree.similarity(point, tree.sums[nearest])
        stops = tree.scores[above] <= similarity
        return path[int(stops.argmax())] if stops.any() else path[-1]

    def _graft(self, node: int) -> None:
        """Move the node that gains most to be a sibling of the new one or of its ancestor."""
        tree = self.tree
        sibling = tree.sibling(node)
        if sibling == NONE:
            return
        excluded = tree.slots(node)
        if sibling % 2 == 0:
            excluded = np.append(excluded, sibling // 2)
        nearest = self.points.nearest(tree.centroids[node], excluded)
        if nearest == -1:
            return
        ours, theirs = tree.path(node), tree.path(2 * nearest)
        while ours and theirs and ours[-1] == theirs[-1]:
            meeting = ours.pop()
            theirs.pop()
        a, b = np.array(ours), np.array(theirs)
        score_a = tree.scores[np.array([*ours[1:], meeting])]
        score_b = tree.scores[np.array([*theirs[1:], meeting])]
        bound = np.maximum(score_a[:, None], score_b)
        may = tree.most_similarity(a, b) > bound
        may[-1, -1] = False  # they are siblings already
        i, j = np.nonzero(may)
        similarity = tree.similarity(tree.centroids[a[i]], tree.centroids[b[j]])
        similarity[similarity <= bound[i, j]] = -1
        if len(similarity) and similarity.max() > 0:
            best = int(similarity.argmax())
            tree.detach(theirs[j[best]])
            tree.attach(theirs[j[best]], beside=ours[i[best]])

    def delete(self, ids: Ids) -> None:
        """Delete points."""
        for identity in ids.tolist():
            if identity not in self._slot_of:
                raise KeyError(f"point {identity} is not held")
            slot = self._slot_of.pop(identity)
            self.tree.detach(2 * slot)
            self.points.remove(slot)

    def cuts(self) -> Iterator[Cut]:
        """Yield the cuts of the tree: those of the settings, and finer ones near 1."""
        thetas = np.unique(np.r_[self.settings.cuts, FINE_CUTS])
        slots = np.fromiter(self._slot_of.values(), np.int64, len(self._slot_of))
        nodes = self.tree.cut(thetas, int(slots.max(initial=-1)) + 1)
        for theta, row in zip(thetas.tolist(), nodes, strict=True):
            yield theta, np.unique(row[slots], return_inverse=True)[1].astype(np.int64)

    def ids(self) -> Ids:
        """Return the ids in order of arrival."""
        return np.fromiter(self._slot_of, np.int64, len(self._slot_of))
