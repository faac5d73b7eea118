"""Independent checks of a dendrogram, with plain dictionaries, Python integers and fractions.

A graph is ``{(u, v): weight}`` over leaves 0..n-1 with fixed-point integer weights, every edge
once. Merges are tuples that begin ``(left, right, similarity, level)``; merge j has the index n +
j, children come first. The engine computes in double precision, these checks exactly, so they allow
a relative error ``SLACK``.
"""

import math
from collections import defaultdict
from fractions import Fraction
from typing import NamedTuple

SLACK = Fraction(1, 10**12)


class Row(NamedTuple):
    left: int
    right: int
    similarity: float
    level: int


class Judgement(NamedTuple):
    merges: int
    bad_merges: int
    worst_goodness: float
    wrong_similarities: int
    heavy_edges_left: int

    @property
    def ok(self):
        return self.bad_merges == self.wrong_similarities == self.heavy_edges_left == 0


def rows(children, similarity, level):
    """Merges from the arrays of a snapshot."""
    return [
        Row(int(left), int(right), float(s), int(lv))
        for (left, right), s, lv in zip(children, similarity, level, strict=True)
    ]


def adjacency(n, edges):
    graph = {v: {} for v in range(n)}
    for (u, v), w in edges.items():
        assert u != v
        assert v not in graph[u], f"edge {(u, v)} is listed twice"
        graph[u][v] = graph[v][u] = w
    return graph


def full_check(n, edges, merges, epsilon, threshold, resolution=2**-32):
    """Replay each level on its own and test every merge.

    A level is the graph contracted by all merges of lower levels. A merge of clusters A and B (sets
    of vertices of the level) is compared with every vertex in neither, at its size on the level,
    even if another merge of the same level contains it. A merge below threshold / (1 + epsilon) is
    bad too.
    """
    unit, one_plus = Fraction(resolution), 1 + Fraction(epsilon)
    graph = adjacency(n, edges)
    size = dict.fromkeys(graph, 1)
    smallest = dict.fromkeys(graph, math.inf)
    by_level = defaultdict(list)
    level_of = dict.fromkeys(graph, 0)
    for j, merge in enumerate(merges):
        assert merge.level >= max(level_of[merge.left], level_of[merge.right]), merge
        level_of[n + j] = merge.level
        by_level[merge.level].append((n + j, merge))

    bad = wrong = 0
    worst = Fraction(1)
    for level in sorted(by_level):
        parts = {v: {v} for v in graph}  # live clusters of this level, as sets of its vertices
        image = {}
        for z, merge in by_level[level]:
            x, y = merge.left, merge.right
            a, b = parts.pop(x), parts.pop(y)
            between = sum(graph[v].get(u, 0) for v in a for u in b)
            value = unit * between / (size[x] * size[y])
            wrong += abs(Fraction(merge.similarity) - value) > SLACK * value
            largest = value
            for end, inside in ((x, a), (y, b)):
                to = defaultdict(int)
                for v in inside:
                    for u, w in graph[v].items():
                        if u not in a and u not in b:
                            to[u] += w
                for u, w in to.items():
                    largest = max(largest, unit * w / (size[end] * size[u]))
            limit = min(smallest[x], smallest[y], value)
            light = one_plus * value * (1 + SLACK) < Fraction(threshold)
            bad += limit == 0 or light or largest > one_plus * limit * (1 + SLACK)
            worst = max(worst, largest / limit if limit else math.inf)
            parts[z] = a | b
            size[z] = size[x] + size[y]
            smallest[z] = limit
        for z, inside in parts.items():
            image.update(dict.fromkeys(inside, z))
        graph = contract(graph, image)

    heavy = sum(
        one_plus * unit * w >= Fraction(threshold) * (size[u] * size[v])
        for u in graph
        for v, w in graph[u].items()
        if u < v
    )
    return Judgement(len(merges), bad, float(worst), wrong, heavy)


def contract(graph, image):
    contracted = {z: defaultdict(int) for z in image.values()}
    for v in graph:
        for u, w in graph[v].items():
            if image[u] != image[v]:
                contracted[image[v]][image[u]] += w
    return contracted


def approximation(n, edges, merges, resolution=2**-32):
    """The largest ratio of the best possible merge to the merge made: at most 1 + epsilon.

    This is the definition of approximate HAC, with the merges in descending order of the smallest
    similarity in their subtrees. Goodness is not used.
    """
    unit = Fraction(resolution)
    low = [math.inf] * n
    for merge in merges:
        low.append(min(low[merge.left], low[merge.right], merge.similarity))
    graph = adjacency(n, edges)
    size = dict.fromkeys(graph, 1)
    worst = Fraction(1)
    for z in sorted(range(n, n + len(merges)), key=lambda z: (-low[z], z)):
        x, y = merges[z - n].left, merges[z - n].right
        best = max(
            unit * w / (size[u] * size[v]) for u in graph for v, w in graph[u].items() if u < v
        )
        value = unit * graph[x].get(y, 0) / (size[x] * size[y])
        worst = max(worst, best / value if value else math.inf)
        size[z] = size[x] + size[y]
        graph = contract(graph, {v: z if v in (x, y) else v for v in graph})
    return float(worst)


def exact_clusters(n, edges, threshold=0.0, resolution=2**-32):
    """Exact HAC on sets of leaves: ``({cluster: linkage}, whether there was a tie)``."""
    unit = Fraction(resolution)
    graph = {frozenset([v]): {} for v in range(n)}
    for (u, v), w in edges.items():
        a, b = frozenset([u]), frozenset([v])
        graph[a][b] = graph[b][a] = w
    made, tied = {}, False
    while True:
        found = [
            (unit * w / (len(a) * len(b)), a, b)
            for a in graph
            for b, w in graph[a].items()
            if min(a) < min(b)
        ]
        if not found:
            return made, tied
        value, a, b = max(found, key=lambda entry: (entry[0], -min(entry[1]), -min(entry[2])))
        if value < Fraction(threshold):
            return made, tied
        tied = tied or sum(entry[0] == value for entry in found) > 1
        made[a | b] = value
        graph = contract(graph, {c: a | b if c in (a, b) else c for c in graph})


def clusters(n, merges):
    """The sets of leaves that the merges make, with their similarities."""
    leaves = [frozenset([v]) for v in range(n)]
    for merge in merges:
        leaves.append(leaves[merge.left] | leaves[merge.right])
    assert len(set(leaves)) == len(leaves)
    return {leaves[n + j]: merge.similarity for j, merge in enumerate(merges)}


def assert_exact(n, edges, merges, threshold=0.0, resolution=2**-32):
    """Assert that the merges are those of exact HAC; returns False if ties make that ambiguous."""
    expected, tied = exact_clusters(n, edges, threshold, resolution)
    if not tied:
        found = clusters(n, merges)
        assert found.keys() == expected.keys()
        for cluster, value in expected.items():
            assert math.isclose(found[cluster], value, rel_tol=1e-12), sorted(cluster)
    return not tied


def cut(n, merges, theta):
    """Labels by union-find over the merges, numbered by the first leaf of each cluster."""
    parent = list(range(n))

    def find(v):
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        return v

    leaf, low = list(range(n)), [math.inf] * n
    for merge in merges:
        leaf.append(leaf[merge.left])
        low.append(min(low[merge.left], low[merge.right], merge.similarity))
        if low[-1] >= theta:
            parent[find(leaf[merge.left])] = find(leaf[merge.right])
    numbers = {}
    return [numbers.setdefault(find(v), len(numbers)) for v in range(n)]
