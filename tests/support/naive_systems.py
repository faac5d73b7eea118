"""Naive implementations of GRINCH and SCC, which store nothing that they can compute.

The systems of benchmarks/systems are compared with them. Clusters are sets of points.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


class Tree:
    """A node of a binary tree over points."""

    def __init__(self, points: dict[int, Any], leaf: int | None = None) -> None:
        self.all, self.leaf = points, leaf
        self.parent: Tree | None = None
        self.children: list[Tree] = []

    def leaves(self) -> list[int]:
        if self.leaf is not None:
            return [self.leaf]
        return [leaf for child in self.children for leaf in child.leaves()]

    def ancestors(self) -> list[Tree]:
        return [] if self.parent is None else [self.parent, *self.parent.ancestors()]

    def sibling(self) -> Tree | None:
        if self.parent is None:
            return None
        return next(child for child in self.parent.children if child is not self)


class NaiveGrinch:
    def __init__(self, normalised: bool) -> None:
        self.normalised = normalised
        self.points: dict[int, Any] = {}
        self.leaf_of: dict[int, Tree] = {}
        self.root: Tree | None = None

    def centroid(self, node: Tree) -> Any:
        mean = np.mean([self.points[i] for i in node.leaves()], axis=0)
        return mean / np.linalg.norm(mean) if self.normalised else mean

    def similarity(self, a: Tree, b: Tree) -> float:
        return float(1 / (1 + np.linalg.norm(self.centroid(a) - self.centroid(b))))

    def score(self, node: Tree) -> float:
        return self.similarity(*node.children) if node.children else np.inf

    def nearest(self, point: Any, candidates: Iterable[int]) -> int:
        return min(candidates, key=lambda i: float(np.linalg.norm(self.points[i] - point)))

    def insert(self, name: int, point: Any) -> None:
        point = np.asarray(point, np.float64)
        others = list(self.points)
        self.points[name] = point
        leaf = self.leaf_of[name] = Tree(self.points, name)
        if not others:
            self.root = leaf
            return
        node = start = self.leaf_of[self.nearest(point, others)]
        while node.parent and self.similarity(leaf, start) < self.score(node.parent):
            node = node.parent
        self.graft(self.put_beside(leaf, node))

    def graft(self, new: Tree) -> None:
        outside = set(self.points) - set(new.leaves())
        sibling = new.sibling()
        if sibling is not None and sibling.leaf is not None:
            outside.discard(sibling.leaf)
        if not outside:
            return
        other = self.leaf_of[self.nearest(self.centroid(new), sorted(outside))]
        ours, theirs = [new, *new.ancestors()], [other, *other.ancestors()]
        best, pair = -1.0, None
        for a in (a for a in ours if a not in theirs):
            for b in (b for b in theirs if b not in ours):
                similarity = self.similarity(a, b)
                assert a.parent is not None
                assert b.parent is not None
                if a.sibling() is b:
                    continue
                if similarity > max(self.score(a.parent), self.score(b.parent), best):
                    best, pair = similarity, (a, b)
        if pair:
            self.take_out(pair[1])
            self.put_beside(pair[1], pair[0])

    def put_beside(self, node: Tree, place: Tree) -> Tree:
        inner = Tree(self.points)
        inner.parent = place.parent
        if place.parent is None:
            self.root = inner
        else:
            place.parent.children[place.parent.children.index(place)] = inner
        inner.children = [place, node]
        place.parent = node.parent = inner
        return inner

    def take_out(self, node: Tree) -> None:
        inner, sibling = node.parent, node.sibling()
        if inner is None or sibling is None:
            self.root = None
            return
        sibling.parent = inner.parent
        if inner.parent is None:
            self.root = sibling
        else:
            inner.parent.children[inner.parent.children.index(inner)] = sibling
        node.parent = None

    def delete(self, name: int) -> None:
        self.take_out(self.leaf_of.pop(name))
        del self.points[name]

    def clades(self) -> set[frozenset[int]]:
        """The points below every node."""
        return set() if self.root is None else set(self._clades(self.root))

    def _clades(self, node: Tree) -> Iterable[frozenset[int]]:
        yield frozenset(node.leaves())
        for child in node.children:
            yield from self._clades(child)

    def cut(self, theta: float) -> set[frozenset[int]]:
        """The clusters when every node is split whose score is below theta, from the root on."""
        clusters, stack = set(), [] if self.root is None else [self.root]
        while stack:
            node = stack.pop()
            if self.score(node) >= theta:
                clusters.add(frozenset(node.leaves()))
            else:
                stack += node.children
        return clusters


def naive_scc(
    n: int, edges: dict[tuple[int, int], float], thresholds: Iterable[float]
) -> list[set[frozenset[int]]]:
    """The clusters of n points after every round; weights are such that sums are exact."""
    clusters = {frozenset([i]) for i in range(n)}
    rounds = []
    for threshold in thresholds:
        of = {point: cluster for cluster in clusters for point in cluster}
        between: dict[frozenset[int], dict[frozenset[int], list[float]]] = {}
        for (a, b), w in edges.items():
            if of[a] != of[b]:
                for x, y in ((of[a], of[b]), (of[b], of[a])):
                    between.setdefault(x, {}).setdefault(y, []).append(w)
        joined = {cluster: {cluster} for cluster in clusters}
        for cluster, others in between.items():
            # Equal linkages go to the cluster of the smallest point.
            mean = {other: sum(w) / len(w) for other, w in others.items()}
            best = max(mean, key=lambda other: (mean[other], -min(other)))
            if mean[best] >= threshold and joined[best] is not joined[cluster]:
                union = joined[best] | joined[cluster]
                for member in union:
                    joined[member] = union
        clusters = {frozenset().union(*group) for group in joined.values()}
        rounds.append(clusters)
    return rounds
