"""The dynamic algorithm as published.

S. Yu, L. Dhulipala, J. Łącki, N. Parotsidis, "DynHAC: Fully Dynamic Approximate Hierarchical
Agglomerative Clustering", SIAM 2025, arXiv 2501.07745. The algorithms of the paper are implemented
in

- the update over all rounds: ``PaperDynHAC._dynhac``
- SubgraphHAC: ``subgraph_hac`` (subgraph.py)
- the update of the partitions: ``Level.update_partitions`` (partitions.py)
- UpdateVMap: ``Level.update_vmap`` (partitions.py)
- UpdateDendrogram: ``PaperDynHAC._update_dendrogram``

Level 0 is the input graph. Round i runs SubgraphHAC in every partition of level i and contracts the
merged clusters: level i + 1 has a vertex for every cluster, the image of its members. Rounds
continue until no edge has a linkage of at least threshold / (1 + epsilon). An update repeats this
only where something changed.

The guarantee does not depend on these choices of ours: arithmetic is exact; ties are broken by ids;
the coin of a cluster hashes its smallest id instead of an id of its own, so that the dendrogram is
a function of the current graph; SubgraphHAC merges the edge of smallest goodness first; vertices
without a heavy edge are passed on through all levels; the number of rounds is bounded.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac.reference.batch import InputGraph, read_batch
from dynhac.reference.dynamic_dendrogram import DynamicDendrogram
from dynhac.reference.merges import Id, Merge, cut_labels
from dynhac.reference.partitions import Level
from dynhac.reference.replay import Verification, replay
from dynhac.reference.subgraph import Graph, Step, subgraph_hac

NO_EDGES: tuple[list[Any], list[Any], list[float]] = ([], [], [])


class PaperDynHAC:
    """Fully dynamic (1 + epsilon)-approximate average-linkage clustering, as published.

    It has the update interface of ``GraphHAC`` and the same guarantee, but is written for
    readability, not for speed.

    Parameters
    ----------
    epsilon : float
        Every merge is within a factor 1 + epsilon of the best one; 0 is exact HAC.
    threshold : float
        Cuts can be made at this similarity and above; 0 merges each connected component.
    resolution : float
        Weights are rounded to multiples of this.
    max_rounds : int
        The round of this number treats its level as one partition and is the last. Without a bound,
        a graph whose merges depend on each other in one long chain would need very many rounds.

    Examples
    --------
    >>> from dynhac.reference import PaperDynHAC
    >>> p = PaperDynHAC(epsilon=0.1, threshold=0.01)
    >>> p.update(add=["a", "b", "c"], edges=(["a", "b"], ["b", "c"], [1.0, 0.5]))
    >>> p.labels(0.5)
    array([0, 0, 1])
    >>> p.update(remove=["a"])
    >>> [(m.left, m.right, m.similarity) for m in p.merges()]
    [(0, 1, 0.5)]
    >>> p.verify().ok
    True
    """

    def __init__(
        self,
        epsilon: float = 0.1,
        threshold: float = 1e-4,
        *,
        resolution: float = 2**-32,
        max_rounds: int = 64,
    ) -> None:
        if not epsilon >= 0:
            raise ValueError(f"epsilon is {epsilon}; it must be >= 0")
        if not threshold >= 0:
            raise ValueError(f"threshold is {threshold}; it must be >= 0")
        self.epsilon = epsilon
        self.threshold = threshold
        self.resolution = resolution
        self.max_rounds = max_rounds
        # Linkages are in units of the resolution; the floor is the smallest one that is merged.
        self._floor = Fraction(threshold) / (1 + Fraction(epsilon)) / Fraction(resolution)
        self._input: InputGraph = {}
        self._leaf: dict[Id, int] = {}
        self._levels = [Level(0)]
        self._dendrogram = DynamicDendrogram()

    def __len__(self) -> int:
        return len(self._input)

    def __contains__(self, vertex: object) -> bool:
        return vertex in self._input

    @property
    def ids(self) -> list[Id]:
        """The vertices in order of insertion."""
        return list(self._input)

    @property
    def rounds(self) -> int:
        """The number of rounds of the present dendrogram."""
        return len(self._levels) - 1

    def edges(self) -> list[tuple[Id, Id, float]]:
        """Return every edge once, with its weight."""
        position = {v: i for i, v in enumerate(self._input)}
        return [
            (u, v, w * self.resolution)
            for u, neighbours in self._input.items()
            for v, w in neighbours.items()
            if position[u] < position[v]
        ]

    def update(
        self,
        *,
        add: Iterable[Any] = (),
        edges: tuple[Sequence[Any], Sequence[Any], Sequence[float]] = NO_EDGES,
        remove: Iterable[Any] = (),
        remove_edges: tuple[Sequence[Any], Sequence[Any]] = NO_EDGES[:2],
    ) -> None:
        """Apply one batch, or nothing if it raises: removals first, then additions, then edges.

        Parameters
        ----------
        add, remove : iterable of int or str
            Ids; an id in both is replaced.
        edges : (u, v, w)
            Weights between any two vertices, new or old. An edge may be listed in either
            direction or both.
        remove_edges : (u, v)
            Edges to remove.
        """
        gone, new, self._input = read_batch(
            self._input, add, edges, remove, remove_edges, self.resolution
        )
        deleted = [self._leaf.pop(v) for v in gone]
        self._leaf.update((v, self._dendrogram.add_leaf(v)) for v in new)
        inserted: Graph = {
            self._leaf[v]: {self._leaf[y]: w for y, w in self._input[v].items()} for v in new
        }
        self._dynhac(deleted, inserted)
        for leaf in deleted:
            self._dendrogram.remove_leaf(leaf)

    def merges(self) -> list[Merge]:
        """Return the merges over the leaves ``ids``, in the order in which they were made."""
        nodes = self._dendrogram.nodes
        made = [h for h, node in nodes.items() if node.children is not None]
        made.sort(key=lambda h: (nodes[h].level, nodes[h].order))
        index = {self._leaf[v]: i for i, v in enumerate(self._input)}
        index.update((h, len(self) + j) for j, h in enumerate(made))
        unit = Fraction(self.resolution)
        merges = []
        for h in made:
            node = nodes[h]
            left, right = (index[child] for child in node.children or ())
            linkage = node.linkage * unit
            merges.append(Merge(left, right, float(linkage), node.size, node.level, linkage))
        return merges

    def labels(self, theta: float) -> NDArray[np.int64]:
        """Label ``ids`` by the maximal subtrees all of whose merges have a similarity >= theta."""
        if not theta >= self.threshold:
            raise ValueError(f"theta is {theta}; it must be >= the threshold, {self.threshold}")
        return np.array(cut_labels(len(self), self.merges(), theta), dtype=np.int64)

    def verify(self) -> Verification:
        """Replay all merges on the input graph and test each one; also test the levels."""
        position = {v: i for i, v in enumerate(self._input)}
        weights = [{position[y]: w for y, w in row.items()} for row in self._input.values()]
        return replay(
            weights,
            self.merges(),
            Fraction(self.epsilon),
            Fraction(self.threshold),
            Fraction(self.resolution),
            tuple(self._faults()),
        )

    def _dynhac(self, deleted: list[int], inserted: Graph) -> None:
        """DynHAC: propagate a change of the input through the rounds until nothing changes."""
        clusters = self._dendrogram.nodes
        number = 0
        while deleted or inserted:
            level = self._levels[number]
            touched = level.apply(deleted, inserted)
            if not level.has_heavy_edge(clusters, self._floor):
                self._finish(number)
                return
            if not level.partition:  # it was the last level: no round has run on it yet
                touched = set(level.graph)
            dirty = level.update_partitions(
                deleted, touched, clusters, one_partition=number >= self.max_rounds
            )
            images: dict[int, int] = {}
            for partition in dirty:
                active = sorted(level.members[partition], key=lambda v: clusters[v].name)
                steps = subgraph_hac(
                    level.graph, active, clusters, Fraction(self.epsilon), self._floor
                )
                images.update(self._update_dendrogram(number, active, steps))
            number += 1
            if number == len(self._levels):
                self._levels.append(Level(number))
            next_graph = self._levels[number].graph
            deleted, inserted = level.update_vmap(deleted, images, next_graph)

    def _update_dendrogram(
        self, level: int, active: list[int], steps: list[Step]
    ) -> dict[int, int]:
        """UpdateDendrogram: add the merges of one partition; return the images of its vertices.

        A merge that exists already keeps its cluster. Before a new merge, all ancestors of its two
        parts are removed.
        """
        parts: dict[int, list[int]] = {v: [v] for v in active}
        made: list[int] = []
        for step, (x, y, linkage) in enumerate(steps):
            u, v = (made[~end] if end < 0 else end for end in (x, y))
            z = self._dendrogram.find_merge(u, v)
            if z is None:
                self._dendrogram.remove_ancestors(u)
                self._dendrogram.remove_ancestors(v)
                z = self._dendrogram.join(u, v, linkage)
            node = self._dendrogram.nodes[z]
            node.level, node.order = level, (self._dendrogram.nodes[active[0]].name, step)
            made.append(z)
            parts[z] = parts.pop(u) + parts.pop(v)
        return {v: z for z, members in parts.items() for v in members}

    def _finish(self, number: int) -> None:
        """Make a level the last one: no round has run on it, and its vertices are roots."""
        last = Level(number)
        last.graph = self._levels[number].graph
        self._levels[number:] = [last]
        for v in last.graph:
            self._dendrogram.remove_ancestors(v)

    def _faults(self) -> Iterable[str]:
        """Report levels that do not contract the level below, and unreachable clusters."""
        for lower, upper in zip(self._levels, self._levels[1:], strict=False):
            if lower.contraction(lower.image) != upper.graph:
                yield f"level {upper.number} is not the contraction of level {lower.number}"
        nodes = self._dendrogram.nodes
        reached = list(self._levels[-1].graph)
        for v in reached:
            reached.extend(nodes[v].children or ())
        if set(reached) != set(nodes):
            yield f"{len(nodes)} clusters are kept, {len(reached)} are reachable from roots"
