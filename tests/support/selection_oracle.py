"""The automatic choice of clusters from its definition, with sets of leaves and plain recursion.

Weights inside and between clusters come from the edges of the graph, not from the linkages.
`level_of`, `is_kept` and `is_root_kept` are the only places that know the formula of a level and
the rules.
"""

import math
from dataclasses import dataclass

TOLERANCE = 1e-9
"""Excesses that differ by less may be ordered either way, by rounding."""


def level_of(least_linkage, conductance):
    return (math.log(least_linkage) + math.log(conductance)) / 2


def is_kept(excess, below):
    """Whether a branch is better than the best choice below it; None if rounding may decide."""
    return _at_least(excess, 1.25 * below)


def is_root_kept(below, size, leaves):
    return _at_least(0.5 if size > 0.75 * leaves else 1.4, below / size)


def _at_least(a, b):
    return None if abs(a - b) < TOLERANCE else a > b


@dataclass
class Branch:
    """A branch: its nodes from the top down, and the two branches below it, if there are any."""

    nodes: list
    birth: float
    excess: float
    below: list
    is_root: bool

    @property
    def top(self):
        return self.nodes[0]


class Selection:
    """Everything about one dendrogram of a graph and one ``min_size``.

    ``edges`` are (leaf, leaf, weight) with leaves by position.
    """

    def __init__(self, dendrogram, edges, min_size):
        n = dendrogram.n_leaves
        self.n, self.min_size = n, min_size
        self.children = {n + j: pair for j, pair in enumerate(dendrogram.children.tolist())}
        self.leaves = {i: frozenset([i]) for i in range(n)}
        for node, (a, b) in self.children.items():
            self.leaves[node] = self.leaves[a] | self.leaves[b]
        self.linkage = {n + j: s for j, s in enumerate(dendrogram.similarity.tolist())}
        self.edges = edges
        joined = {child for pair in self.children.values() for child in pair}
        self.roots = [node for node in self.leaves if node not in joined]
        self.level = {
            node: level_of(self.least(node, self.linkage), self.conductance(node))
            for node in self.children
        }
        self.trees = [
            self.branch(root, None) for root in self.roots if len(self.leaves[root]) >= min_size
        ]

    def subtree(self, node):
        """All merges at or under a node."""
        return [u for u in self.children if self.leaves[u] <= self.leaves[node]]

    def least(self, node, numbers):
        return min(numbers[u] for u in self.subtree(node))

    def weight(self, left, right):
        return sum(w for u, v, w in self.edges if (u in left and v in right)) + sum(
            w for u, v, w in self.edges if (v in left and u in right)
        )

    def conductance(self, node):
        a, b = (self.leaves[child] for child in self.children[node])
        across = self.weight(a, b)
        inside = min(self.weight(a, a) / 2, self.weight(b, b) / 2)
        return across / (2 * inside + across)

    def branch(self, top, birth):
        """The branch below a top, and all branches below it."""
        nodes, below, rest = [top], [], [top]
        while rest:
            large = [c for c in self.children[top] if len(self.leaves[c]) >= self.min_size]
            if len(large) == 2:
                below = [self.branch(child, self.level[top]) for child in large]
            rest = large if len(large) == 1 else []
            nodes += rest
            top = nodes[-1]
        is_root = birth is None
        birth = self.level[nodes[0]] if is_root else birth
        left_at = {leaf: self.level[node] for node in nodes for leaf in self.leaves[node]}
        excess = max(0.0, math.fsum(level - birth for level in left_at.values()))
        return Branch(nodes, birth, excess, below, is_root)

    def branches(self):
        found, open_branches = [], list(self.trees)
        while open_branches:
            branch = open_branches.pop()
            found.append(branch)
            open_branches += branch.below
        return found

    def best(self, branch):
        """The sum of excesses of what is chosen, its tops, and whether rounding may decide."""
        whole = (branch.excess, {branch.top}, False)
        if not branch.below:
            return whole
        steps = [self.best(b) for b in branch.below]
        value = math.fsum(v for v, _, _ in steps)
        if branch.is_root:
            keep = is_root_kept(value, len(self.leaves[branch.top]), self.n)
        else:
            keep = is_kept(branch.excess, value)
        unsure = keep is None or any(u for _, _, u in steps)
        if keep:
            return *whole[:2], unsure
        return value, set().union(*(tops for _, tops, _ in steps)), unsure

    def labels(self, tops):
        """Labels 0, 1, ... in the order of first leaves; -1 for leaves under no top."""
        found = [-1] * self.n
        for label, top in enumerate(sorted(tops, key=lambda top: min(self.leaves[top]))):
            for leaf in self.leaves[top]:
                found[leaf] = label
        return found

    def conductance_cut(self, least, min_size):
        """The labels of the maximal subtrees all of whose merges have this conductance."""
        conductance = {node: self.conductance(node) for node in self.children}
        whole = [
            node
            for node in self.leaves
            if all(conductance[u] >= least for u in self.subtree(node) if node >= self.n)
        ]
        tops = [u for u in whole if not any(self.leaves[u] < self.leaves[v] for v in whole)]
        return self.labels([u for u in tops if len(self.leaves[u]) >= min_size])

    def nearest(self, labels):
        """Labels in which those of -1 are replaced by the nearest cluster of the tree."""
        found = list(labels)
        for leaf in range(self.n):
            above = sorted(u for u in self.children if leaf in self.leaves[u])
            for node in above if labels[leaf] < 0 else []:
                under = {labels[x] for x in self.leaves[node]} - {-1}
                if under:
                    found[leaf] = min(under, key=lambda label: (-labels.count(label), label))
                    break
        return found
