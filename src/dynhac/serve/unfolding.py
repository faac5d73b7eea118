"""The hierarchy of one state, to be unfolded from the root downwards.

Leaves are put in order: the leaves of every node are then an interval, the larger child first.
With that, whether all leaves of a node have one label, and which points are under it, are questions
about an interval.

All is computed by whole arrays. Sums over the ancestors of every node (its first position is one)
are found by doubling: in each round every node adds what its pointer has summed up, and the pointer
jumps as far again. So the number of rounds is the logarithm of the depth.

Small branches are *folded*: with ``min_size``, a node of which only one child is large enough is
passed over, and the points of the other one are counted as hidden. Otherwise a tree that loses one
point after the other would have as many levels as points.
"""

from __future__ import annotations

import heapq
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.input.errors import show

if TYPE_CHECKING:
    from dynhac.dendrogram.dendrogram import Dendrogram

Ints = NDArray[np.int64]
MIXED = -2
"""The label of a node whose leaves have different labels."""
ROOT = -1
"""The node above all trees."""


class Unfolding:
    """A dendrogram with a label for each leaf.

    Nodes are numbered as in `Dendrogram`: leaves from 0, then merges. Outside they are known by the
    stable ids of merges, or by the points of leaves.
    """

    def __init__(self, dendrogram: Dendrogram, labels: Ints) -> None:
        self.dendrogram = dendrogram
        self.labels = labels
        n, m = dendrogram.n_leaves, len(dendrogram)
        self.n_leaves = n
        self.size: Ints = np.concatenate([np.ones(n, np.int64), dendrogram.size])
        first, second = dendrogram.children[:, 0], dendrogram.children[:, 1]
        swap = self.size[second] > self.size[first]
        self.large: Ints = np.where(swap, second, first)
        self.small: Ints = np.where(swap, first, second)
        self.parent: Ints = np.full(n + m, ROOT, np.int64)
        merges = np.arange(n, n + m)
        self.parent[self.large] = merges
        self.parent[self.small] = merges
        roots = dendrogram.roots
        self.roots: Ints = roots[np.argsort(-self.size[roots], kind="stable")]
        self._ids = np.argsort(dendrogram.node_ids, kind="stable")
        self._folded: dict[int, Ints] = {}

    @cached_property
    def start(self) -> Ints:
        """The first position of the leaves of each node."""
        start: Ints = np.zeros(len(self.parent), np.int64)
        start[self.small] = self.size[self.large]
        sizes = self.size[self.roots]
        start[self.roots] = np.cumsum(sizes) - sizes
        pointer = self.parent.copy()
        while True:
            moving = np.flatnonzero(pointer != ROOT)
            if not len(moving):
                return start
            target = pointer[moving]
            start[moving] += start[target]
            pointer[moving] = pointer[target]

    @cached_property
    def leaves(self) -> Ints:
        """The leaf at each position."""
        order = np.empty(self.n_leaves, np.int64)
        order[self.start[: self.n_leaves]] = np.arange(self.n_leaves)
        return order

    @cached_property
    def _changes(self) -> Ints:
        """How many times the label changes before each position."""
        labels = self.labels[self.leaves]
        changed = np.zeros(self.n_leaves, np.int64)
        changed[1:] = np.cumsum(labels[1:] != labels[:-1])
        return changed

    def label(self, node: int) -> int:
        """Return the label of all leaves of a node, or MIXED."""
        first = int(self.start[node])
        last = first + int(self.size[node]) - 1
        if self._changes[first] != self._changes[last]:
            return MIXED
        return int(self.labels[self.leaves[first]])

    def points(self, node: int, most: int) -> list[Any]:
        """Return the ids of some points under a node."""
        first = int(self.start[node])
        some = self.leaves[first : first + min(most, int(self.size[node]))]
        points: list[Any] = self.dendrogram.ids[some].tolist()
        return points

    def node_of(self, node_id: int) -> int:
        """Return the node with a stable id; KeyError: there is none."""
        ids = self.dendrogram.node_ids
        place = int(np.searchsorted(ids, node_id, sorter=self._ids))
        if place < len(ids) and ids[self._ids[place]] == node_id:
            return self.n_leaves + int(self._ids[place])
        raise KeyError(f"node {show(node_id)} does not exist (any more)")

    def _below(self, min_size: int) -> Ints:
        """Return for each node the first one below, or itself, that is not passed over."""
        found = self._folded.get(min_size)
        if found is None:
            n = self.n_leaves
            found = np.arange(len(self.parent))
            passed = (self.size[self.large] >= min_size) & (self.size[self.small] < min_size)
            found[n:][passed] = self.large[passed]
            while True:
                further = found[found]
                if np.array_equal(further, found):
                    break
                found = further
            if len(self._folded) >= 8:
                self._folded.clear()
            self._folded[min_size] = found
        return found

    def children(self, node: int, min_size: int) -> tuple[list[int], int]:
        """Return the children of a node that are large enough, and the number of hidden points."""
        if node == ROOT:
            large = self.roots[: np.count_nonzero(self.size[self.roots] >= min_size)]
            return large.tolist(), self.n_leaves - int(self.size[large].sum())
        lowest = int(self._below(min_size)[node])
        hidden = int(self.size[node] - self.size[lowest])
        if lowest < self.n_leaves:
            return [], hidden
        merge = lowest - self.n_leaves
        pair = [int(self.large[merge]), int(self.small[merge])]
        shown = [child for child in pair if self.size[child] >= min_size]
        return shown, hidden + sum(int(self.size[child]) for child in pair if child not in shown)

    def unfold(
        self, node: int, levels: int, most: int, min_size: int, trees: int | None = None
    ) -> dict[str, Any]:
        """Return a node and the levels below it, the largest branches first.

        At most ``most`` nodes are returned, and below the top at most ``trees``. A node whose
        children are not returned says how many there are in ``more``.
        """
        top = self.describe(node, min_size)
        heap: list[tuple[int, int, int, int, dict[str, Any]]] = []
        count, entries = 1, 0

        def push(node: int, level: int, entry: dict[str, Any]) -> None:
            nonlocal entries
            size = self.n_leaves if node == ROOT else int(self.size[node])
            heapq.heappush(heap, (-size, entries, node, level, entry))
            entries += 1

        push(node, 0, top)
        while heap:
            _, _, node, level, entry = heapq.heappop(heap)
            children, entry["hidden"] = self.children(node, min_size)
            room = most - count if level < levels else 0
            if node == ROOT:
                # Many trees leave room for what is in them.
                room = min(room, max(most // 2, 1) if trees is None else trees)
            elif len(children) > room:
                room = 0  # both children of a merge, or none
            for child in children[:room]:
                below = self.describe(child, min_size)
                entry["children"].append(below)
                push(child, level + 1, below)
            count += len(entry["children"])
            entry["more"] = len(children) - len(entry["children"])
        return top

    def describe(self, node: int, min_size: int) -> dict[str, Any]:
        """Return what is told of a node, without its children.

        The similarity is that of the merge that is shown: where small branches are folded, that of
        the first merge of two large ones.
        """
        entry: dict[str, Any] = {"node": None, "point": None, "similarity": None}
        entry |= {"together_up_to": None, "cluster": None, "size": self.n_leaves}
        if node != ROOT:
            entry["size"] = int(self.size[node])
            label = self.label(node)
            entry["cluster"] = label if label >= 0 else None
            if node < self.n_leaves:
                entry["point"] = self.dendrogram.ids[node : node + 1].tolist()[0]
            else:
                merge = node - self.n_leaves
                lowest = int(self._below(min_size)[node]) - self.n_leaves
                entry["node"] = int(self.dendrogram.node_ids[merge])
                shown = lowest if lowest >= 0 else merge
                entry["similarity"] = float(self.dendrogram.similarity[shown])
                entry["together_up_to"] = float(self.dendrogram.min_similarity[merge])
        return entry | {"hidden": 0, "more": 0, "children": []}

    def path(self, end: int, min_size: int, most: int) -> list[dict[str, Any]]:
        """Return the nodes from the top to a leaf or a node, as far as `unfold` shows them.

        Where there are more than ``most``, those next to the top and next to the end.
        """
        nodes = [end]
        below = self._below(min_size)
        node = end
        while self.parent[node] != ROOT:
            above = int(self.parent[node])
            top = above
            # Nodes that are passed over belong to the highest one that leads to the same merge.
            while self.parent[top] != ROOT and below[self.parent[top]] == below[above]:
                top = int(self.parent[top])
            if self.size[top] >= min_size:
                nodes.append(top)
            node = top
        nodes.reverse()
        if len(nodes) > most:
            nodes = [*nodes[: most // 2], *nodes[len(nodes) - (most - most // 2) :]]
        return [self.describe(node, min_size) for node in nodes]
