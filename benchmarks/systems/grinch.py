"""GRINCH: a tree that every new point rearranges a little.

After N. Monath, A. Kobren, A. Krishnamurthy, M. R. Glass, A. McCallum, "Scalable Hierarchical
Clustering with Tree Grafting", KDD 2019, with deletion added. The tree is a `CentroidTree`; its
scores are similarities of sibling centroids. A new point x is put in by

1. *search*: v is the nearest stored point, of all of them;
2. *rotate*: from v, climb while x is less similar to v than the children of the next node up are
   to each other; x becomes the sibling of the node reached, under a new parent p;
3. *graft*, once: q is the nearest point to p's centroid outside p (and other than p's sibling, if
   that is a leaf). Of all pairs of a node a on the way up from p and a node b on the way up from q,
   both below the two ways' meeting, that are more similar to each other than a is to its sibling
   and b to its own, the most similar is taken, and b is moved to be a's sibling.

Similarity is ``1 / (1 + distance)``. A point is deleted by removing its leaf. ``most_rotated`` and
``most_grafted`` bound the nodes, in points, that may be climbed to and that may be grafted; by
default nothing is bounded. With normalised settings points and centroids have unit length.

Scores are computed as soon as a node changes instead of when they are asked for; the tree is the
same. Equal similarities are decided in favour of the lowest a and b, as counted from the leaves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from systems.base import Abilities, Arrivals, Cut, Ids, Settings, unit_length
from systems.centroid_tree import NONE, CentroidTree
from systems.nearest import Scan

# The cuts of the settings are coarse near similarity 1, where all scores on a sphere are.
FINE_CUTS = np.linspace(0.5, 1, 60)


class Grinch:
    """The system; the first batch decides the dimension."""

    name = "grinch"
    abilities = Abilities(insert=True, delete=True, hierarchy=True, guarantee=False)
    needs = "points"
    one_by_one = True

    def __init__(
        self,
        settings: Settings,
        most_rotated: int | None = None,
        most_grafted: int | None = None,
    ) -> None:
        self.settings = settings
        self.most_rotated = np.inf if most_rotated is None else most_rotated
        self.most_grafted = np.inf if most_grafted is None else most_grafted
        self._slot_of: dict[int, int] = {}

    def build(self, batch: Arrivals) -> None:
        """Take the first points, one by one as all others."""
        dimension = batch.points.shape[1]
        self.tree = CentroidTree(dimension, self.settings.normalised)
        self.points = Scan(dimension)
        self.insert(batch)

    def insert(self, batch: Arrivals) -> None:
        """Take more points, one by one."""
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
        stops = (tree.scores[above] <= similarity) | (tree.counts[above] > self.most_rotated)
        return path[int(stops.argmax())] if stops.any() else path[-1]

    def _graft(self, node: int) -> None:
        """Move the best node that would rather be beside the new one or an ancestor of it."""
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
        may &= (tree.counts[a] <= self.most_grafted)[:, None]
        may &= tree.counts[b] <= self.most_grafted
        may[-1, -1] = False  # siblings as they are
        i, j = np.nonzero(may)
        similarity = tree.similarity(tree.centroids[a[i]], tree.centroids[b[j]])
        similarity[similarity <= bound[i, j]] = -1
        if len(similarity) and similarity.max() > 0:
            best = int(similarity.argmax())
            tree.detach(theirs[j[best]])
            tree.attach(theirs[j[best]], beside=ours[i[best]])

    def delete(self, ids: Ids) -> None:
        """Let points go."""
        for identity in ids.tolist():
            if identity not in self._slot_of:
                raise KeyError(f"point {identity} is not held")
            slot = self._slot_of.pop(identity)
            self.tree.detach(2 * slot)
            self.points.remove(slot)

    def settle(self) -> None:
        """Nothing is put off."""

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
