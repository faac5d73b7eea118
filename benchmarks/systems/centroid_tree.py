"""A binary tree over points, with the centroid of every node, that can be rearranged.

Nodes are numbers: the leaf of slot s is 2 s, inner nodes are odd. Every node has the sum and the
count of the points below it, and from these its centroid: the mean, or, with ``normalised``, the
mean scaled to unit length. An inner node's *score* is the similarity ``1 / (1 + distance)`` of its
children's centroids; a leaf's is infinite.

There are two changes. ``attach`` makes a subtree the sibling of a node, under a new inner node;
``detach`` removes a subtree, and its sibling replaces their parent. Only the ancestors of the place
have other points below them afterwards, so only their sums, centroids and scores are computed
again, for the whole path to the root at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Nodes = NDArray[np.int64]

NONE = -1
_FEW = 256  # leaves of smaller subtrees are collected node by node


class CentroidTree:
    """The tree; ``root`` is NONE while it is empty."""

    def __init__(self, dimension: int, normalised: bool) -> None:
        self.root = NONE
        self.parent: list[int] = []
        self.normalised = normalised
        self.children = np.empty((0, 2), np.int64)
        self.sums = np.empty((0, dimension))
        self.counts = np.empty(0, np.int64)
        self.centroids = np.empty((0, dimension))
        self.scores = np.empty(0)
        self._free_inner: list[int] = []

    def new_leaf(self, slot: int, point: NDArray[np.float64]) -> int:
        """Make the leaf of a slot; only the first leaf is in the tree yet."""
        leaf = 2 * slot
        while leaf >= len(self.parent):
            self._grow()
        self.parent[leaf] = NONE
        self.children[leaf] = NONE
        self.sums[leaf] = point
        self.counts[leaf] = 1
        self.scores[leaf] = np.inf
        self.centroids[leaf] = self._centroids_of(point[None], np.ones(1))[0]
        if self.root == NONE:
            self.root = leaf
        return leaf

    def attach(self, node: int, beside: int) -> int:
        """Make ``node`` the sibling of ``beside``; return their new parent."""
        inner = self._free_inner.pop()
        above = self.parent[beside]
        self._replace(beside, inner, above)
        self.children[inner] = beside, node
        self.parent[beside] = self.parent[node] = inner
        self.sums[inner] = self.sums[beside]
        self.counts[inner] = self.counts[beside]
        self._shift(inner, self.sums[node], self.counts[node])
        return inner

    def detach(self, node: int) -> None:
        """Remove a subtree and its parent."""
        inner = self.parent[node]
        if inner == NONE:
            self.root = NONE
            return
        sibling, above = self.sibling(node), self.parent[inner]
        self._replace(inner, sibling, above)
        self.parent[sibling] = above
        self.parent[node] = self.parent[inner] = NONE
        self._free_inner.append(inner)
        if above != NONE:
            self._shift(above, -self.sums[node], -self.counts[node])

    def sibling(self, node: int) -> int:
        """Return the other child of a node's parent, or NONE for the root."""
        above = self.parent[node]
        if above == NONE:
            return NONE
        left, right = self.children[above].tolist()
        return int(right if left == node else left)

    def path(self, node: int) -> list[int]:
        """Return a node and its ancestors, up to the root."""
        path, parent = [], self.parent
        while node != NONE:
            path.append(node)
            node = parent[node]
        return path

    def slots(self, node: int) -> Nodes:
        """Return the slots of the leaves below a node."""
        if self.counts[node] <= _FEW:
            found, stack = [], [node]
            while stack:
                node = stack.pop()
                if node % 2:
                    stack += self.children[node].tolist()
                else:
                    found.append(node // 2)
            return np.array(found)
        layer, leaves = np.array([node]), []
        while len(layer):
            layer = self.children[layer].ravel()
            leaves.append(layer[layer % 2 == 0] // 2)
            layer = layer[layer % 2 == 1]
        return np.concatenate(leaves)

    def similarity(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``1 / (1 + distance)`` along the last axis."""
        delta = a - b
        similarity: NDArray[np.float64] = 1 / (1 + np.sqrt((delta * delta).sum(axis=-1)))
        return similarity

    def most_similarity(self, a: Nodes, b: Nodes) -> NDArray[np.float64]:
        """Return tight upper bounds on the similarities of all pairs of centroids.

        One matrix product: the differences of all pairs would not fit into the cache.
        """
        x, y = self.centroids[a], self.centroids[b]
        square_x, square_y = (x * x).sum(axis=1), (y * y).sum(axis=1)
        rounding = 8 * (x.shape[1] + 8) * np.finfo(float).eps * (square_x[:, None] + square_y)
        squared = np.maximum(square_x[:, None] + square_y - 2 * (x @ y.T) - rounding, 0)
        most: NDArray[np.float64] = 1 / (1 + np.sqrt(squared)) * (1 + 1e-12)
        return most

    def cut(self, thetas: NDArray[np.float64], n_slots: int) -> Nodes:
        """Return the node that each slot's point is in when the tree is cut, a row per theta.

        From the root down, a node whose score is below theta is split; the first that is not is a
        cluster, whatever the scores below it.
        """
        cluster = np.full((len(thetas), n_slots), NONE)
        if self.root == NONE:
            return cluster
        layer = np.array([self.root])
        inside = np.full((len(thetas), 1), NONE)  # the cluster reached so far
        while len(layer):
            starts = (inside == NONE) & (self.scores[layer] >= thetas[:, None])
            inside = np.where(starts, layer, inside)
            leaf = layer % 2 == 0
            cluster[:, layer[leaf] // 2] = inside[:, leaf]
            layer = self.children[layer[~leaf]].ravel()
            inside = np.repeat(inside[:, ~leaf], 2, axis=1)
        return cluster

    def _replace(self, node: int, by: int, above: int) -> None:
        self.parent[by] = above
        if above == NONE:
            self.root = by
        else:
            self.children[above, int(self.children[above, 1] == node)] = by

    def _shift(self, node: int, points: NDArray[np.float64], count: np.int64) -> None:
        """Add to the sums of a node and its ancestors; compute their centroids and scores again."""
        path = np.array(self.path(node))
        self.sums[path] += points
        self.counts[path] += count
        self.centroids[path] = self._centroids_of(self.sums[path], self.counts[path])
        left, right = self.children[path].T
        self.scores[path] = self.similarity(self.centroids[left], self.centroids[right])

    def _centroids_of(self, sums: NDArray[np.float64], counts: NDArray[Any]) -> NDArray[np.float64]:
        divisor = counts
        if self.normalised:
            divisor = np.sqrt((sums * sums).sum(axis=1))
            divisor[divisor == 0] = 1
        centroids: NDArray[np.float64] = sums / divisor[:, None]
        return centroids

    def _grow(self) -> None:
        old = len(self.parent)
        more = max(old, 2048)
        self.parent += [NONE] * more
        self.children = np.concatenate([self.children, np.full((more, 2), NONE)])
        self.sums = np.concatenate([self.sums, np.zeros((more, self.sums.shape[1]))])
        self.counts = np.concatenate([self.counts, np.zeros(more, np.int64)])
        self.centroids = np.concatenate([self.centroids, np.zeros((more, self.sums.shape[1]))])
        self.scores = np.concatenate([self.scores, np.zeros(more)])
        self._free_inner += range(old + more - 1, old, -2)
