"""One round of SCC, kept exact while its input changes.

A level is a graph of clusters: an edge has the sum and the number of the point edges between two
clusters, kept as one complex number ``sum + number * 1j`` so that one addition does both; the
linkage is their quotient. Every cluster has a *best*, the neighbour of largest linkage; if the
linkage is at least the level's threshold, the best is its *partner*. The connected components of
these pairs are the clusters of the next level. The name of a cluster is the smallest slot of its
points, on every level.

Invariant: ``best`` and ``up`` are what a computation from scratch would give. Sums are exact, as
weights are multiples of `GRAIN`, and equal linkages are decided by the smaller name, so the order
of updates does not matter.

An update has clusters that appear and disappear, and changes of edges. It finds the best of the
ends of these edges again. If the partner of a cluster has changed, the components concerned are
dissolved and computed again; the next level gets the difference in clusters and edges, which is
often much smaller than the components.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

GRAIN = 2.0**-30  # sums of multiples of this are exact up to 2**23 edges of weight 1
NONE = -1

Ints = NDArray[np.int64]
Edge = tuple[int, int]


class Update(NamedTuple):
    """Changes of the graph of a level; edges are ``(smaller, larger)`` names."""

    added: set[int]
    removed: set[int]
    edges: dict[Edge, complex]


class Graph(NamedTuple):
    """The graph of a level as arrays: names in ascending order, every edge once."""

    names: Ints
    u: Ints
    v: Ints
    total: NDArray[np.float64]
    number: NDArray[np.float64]


class Neighbors(dict[int, dict[int, complex]]):
    """The edges of every cluster, in the arrays of the graph until they are looked up.

    Looking a cluster up makes its dictionary: only clusters near changes need one.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        source = np.r_[graph.u, graph.v]
        order = np.argsort(source, kind="stable")
        self.target = np.r_[graph.v, graph.u][order]
        self.edge = np.tile(graph.total + 1j * graph.number, 2)[order]
        ends = np.append(graph.names, np.iinfo(np.int64).max)
        self.bounds = np.searchsorted(source[order], ends)
        self._row = dict(zip(graph.names.tolist(), range(len(graph.names)), strict=True))

    def __missing__(self, name: int) -> dict[int, complex]:
        row = self._row[name]
        part = slice(self.bounds[row], self.bounds[row + 1])
        made = dict(zip(self.target[part].tolist(), self.edge[part].tolist(), strict=True))
        self[name] = made
        return made

    def forget(self, name: int) -> None:
        """Drop a cluster."""
        self._row.pop(name, None)
        self.pop(name, None)


class Level:
    """The graph of a level, the best of every cluster, and the components (``up``, ``members``)."""

    def __init__(self, graph: Graph, threshold: float) -> None:
        self.threshold = threshold
        self.neighbors = Neighbors(graph)
        self.n_edges = len(graph.u)
        target, linkage = self._all_best(graph)
        names = graph.names.tolist()
        bests = zip(target.tolist(), linkage.tolist(), strict=True)
        self.best = dict(zip(names, bests, strict=True))
        components = _components(graph.names, target, linkage >= threshold)
        self.up = dict(zip(names, components.tolist(), strict=True))
        self.members: dict[int, list[int]] = {}
        for name, component in self.up.items():
            self.members.setdefault(component, []).append(name)

    def _all_best(self, graph: Graph) -> tuple[Ints, NDArray[np.float64]]:
        bounds, edge = self.neighbors.bounds, self.neighbors.edge
        target = np.full(len(graph.names), NONE)
        linkage = np.full(len(graph.names), -1.0)
        has = np.diff(bounds) > 0
        if has.any():
            each = edge.real / edge.imag
            starts = bounds[:-1][has]
            linkage[has] = np.maximum.reduceat(each, starts)
            largest = each == np.repeat(linkage, np.diff(bounds))
            candidate = np.where(largest, self.neighbors.target, np.iinfo(np.int64).max)
            target[has] = np.minimum.reduceat(candidate, starts)
        return target, linkage

    def next_graph(self, graph: Graph) -> Graph:
        """Return the graph of the next level, given the graph of this one."""
        component = np.fromiter(self.up.values(), np.int64, len(self.up))
        a, b = (component[np.searchsorted(graph.names, end)] for end in (graph.u, graph.v))
        between = a != b
        low, high = np.minimum(a, b)[between], np.maximum(a, b)[between]
        base = int(graph.names.max(initial=0)) + 1
        pair, where = np.unique(low * base + high, return_inverse=True)
        total: NDArray[Any] = np.bincount(where, graph.total[between], len(pair))
        number: NDArray[Any] = np.bincount(where, graph.number[between], len(pair))
        return Graph(np.unique(component), pair // base, pair % base, total, number)

    def apply(self, update: Update) -> Update:
        """Change the graph, and return the changes of the next level's graph."""
        looked_at = update.added | update.removed | {name for edge in update.edges for name in edge}
        before = [(name, self._partner(name)) for name in looked_at]
        for name in update.added:
            self.neighbors[name] = {}
            self.best[name] = (NONE, -1.0)
        self._change_edges(update.edges)
        for name in update.removed:
            self.neighbors.forget(name)
            del self.best[name]
        changed = {name for name, partner in before if self._partner(name) != partner}
        touched, pool = self._take_apart(update, changed)
        former = {name: self.up.pop(name) for name in update.removed}
        made = set()
        for group in _groups(pool, {name: self._partner(name) for name in pool}):
            component = min(group)
            made.add(component)
            self.members[component] = group
            for name in group:
                was = self.up.get(name, NONE)
                if was != component:
                    former[name] = was
                    self.up[name] = component
        return Update(made - touched, touched - made, self._edge_changes(update.edges, former))

    def all_above(self) -> Update:
        """Return the whole next level as an update of an empty one."""
        edges: dict[Edge, complex] = {}
        for a in self.up:
            for b, edge in self.neighbors[a].items():
                if a < b:
                    _add(edges, self.up[a], self.up[b], edge)
        return Update(set(self.members), set(), edges)

    def _change_edges(self, edges: dict[Edge, complex]) -> None:
        neighbors, best = self.neighbors, self.best
        search: set[int] = set()  # clusters whose best has become worse and must be found again
        for (a, b), more in edges.items():
            ours, theirs = neighbors[a], neighbors[b]
            now = ours.get(b, 0) + more
            self.n_edges += (now.imag > 0) - (b in ours)
            if now.imag == 0:
                del ours[b], theirs[a]
                linkage = -1.0
            else:
                ours[b] = theirs[a] = now
                linkage = now.real / now.imag
            for name, other in ((a, b), (b, a)):
                target, largest = best[name]
                if target == other and linkage < largest:
                    search.add(name)
                elif (linkage, -other) > (largest, -target):
                    best[name] = (other, linkage)
        for name in search:
            best[name] = _best_of(neighbors[name])

    def _partner(self, name: int) -> int:
        """Return the partner of a cluster, or NONE."""
        target, linkage = self.best.get(name, (NONE, -1.0))
        return target if linkage >= self.threshold else NONE

    def _take_apart(self, update: Update, changed: set[int]) -> tuple[set[int], set[int]]:
        """Remove the components that may change; return their names and their members.

        A component stays if no cluster in it has changed its partner and none of the changed ones
        has its partner in it: then no pair joins it to anything outside, before or after.
        """
        up = self.up
        concerned = changed | update.added | update.removed
        touched = {up.get(name, NONE) for name in concerned}
        touched |= {up.get(self._partner(name), NONE) for name in concerned}
        touched.discard(NONE)
        pool = update.added.union(*(self.members.pop(component) for component in touched))
        return touched, pool - update.removed

    def _edge_changes(
        self, changes: dict[Edge, complex], former: dict[int, int]
    ) -> dict[Edge, complex]:
        """Return the changes of the edges of the next level.

        Every edge that has changed, or has an end that was in another component (``former``), is
        subtracted where it was and added where it is.
        """
        up, neighbors = self.up, self.neighbors
        result: dict[Edge, complex] = {}
        for (a, b), more in changes.items():
            now = neighbors[a].get(b, 0) if a in up else 0
            if now != more:  # it was now - more before
                was_a, was_b = (former[end] if end in former else up[end] for end in (a, b))
                _add(result, was_a, was_b, more - now)
            if now != 0:
                _add(result, up[a], up[b], now)
        for a, was in former.items():
            if a not in up:
                continue
            for b, edge in neighbors[a].items():
                if (b in former and b < a) or ((a, b) if a < b else (b, a)) in changes:
                    continue
                _add(result, was, former[b] if b in former else up[b], -edge)
                _add(result, up[a], up[b], edge)
        return {pair: edge for pair, edge in result.items() if edge != 0}


def _add(edges: dict[Edge, complex], a: int, b: int, more: complex) -> None:
    """Add to the edge between two components, unless they are one."""
    if a != b:
        pair = (a, b) if a < b else (b, a)
        edges[pair] = edges.get(pair, 0) + more


def _groups(pool: set[int], partner: dict[int, int]) -> Iterator[list[int]]:
    """Yield the connected components of a set of clusters, each in ascending order."""
    joined: dict[int, list[int]] = {name: [] for name in pool}
    for name, other in partner.items():
        if other != NONE:
            joined[name].append(other)
            joined[other].append(name)
    left = set(pool)
    while left:
        stack = [left.pop()]
        group = []
        while stack:
            name = stack.pop()
            group.append(name)
            for other in joined[name]:
                if other in left:
                    left.remove(other)
                    stack.append(other)
        yield sorted(group)


def _components(names: Ints, target: Ints, kept: NDArray[np.bool_]) -> Ints:
    """Return the smallest name in the component of each of the names."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows = np.flatnonzero(kept)
    ends = (rows, np.searchsorted(names, target[rows]))
    matrix = coo_array((np.ones(len(rows), np.int8), ends), shape=(len(names), len(names)))
    labels = connected_components(matrix, directed=False)[1]
    first = np.unique(labels, return_index=True)[1]
    smallest: Ints = names[first][labels]
    return smallest


def _best_of(edges: dict[int, complex]) -> tuple[int, float]:
    target, largest = NONE, -1.0
    for other, edge in edges.items():
        linkage = edge.real / edge.imag
        if linkage > largest or (linkage == largest and other < target):
            target, largest = other, linkage
    return target, largest
