"""The dendrogram under updates: a forest that gains merges and loses lines of ancestors.

A cluster has a *handle*, an integer that is never used twice. A merge of the same two handles is
the same cluster and keeps its handle; a cluster with anything new below it is made of a new handle
somewhere, so it gets a new one itself. This is what lets an update stop where nothing changed:
equal handles mean equal clusters, all the way down.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from dynhac.reference.merges import Id, Name, name_of


@dataclass(slots=True)
class Node:
    """A cluster: one vertex of the input, or the merge of two clusters."""

    name: Name
    """The smallest id among the leaves: it tells apart the clusters of one level, whatever their
    history."""
    size: int = 1
    min_merge: Fraction | float = math.inf
    """M in the paper: the smallest linkage of all merges below."""
    parent: int | None = None
    children: tuple[int, int] | None = None
    linkage: Fraction = Fraction(0)
    level: int = 0
    order: tuple[Name, int] = ((0, ""), 0)
    """Which partition of its level made it, and at which step: with the level, the order in which
    merges happened."""


class DynamicDendrogram:
    """The forest, by handle."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self._next_handle = 0

    def add_leaf(self, vertex: Id) -> int:
        """Take in a vertex of the input; return its handle."""
        return self._add(Node(name_of(vertex)))

    def remove_leaf(self, leaf: int) -> None:
        """Remove a vertex of the input and all that was made of it."""
        self.remove_ancestors(leaf)
        del self.nodes[leaf]

    def find_merge(self, u: int, v: int) -> int | None:
        """Find the cluster that is made of u and v, if there is one."""
        parent = self.nodes[u].parent
        return parent if parent is not None and parent == self.nodes[v].parent else None

    def join(self, u: int, v: int, linkage: Fraction) -> int:
        """Make the parent of two roots."""
        a, b = sorted((u, v), key=lambda end: self.nodes[end].name)
        left, right = self.nodes[a], self.nodes[b]
        parent = Node(
            name=left.name,
            size=left.size + right.size,
            min_merge=min(left.min_merge, right.min_merge, linkage),
            children=(a, b),
            linkage=linkage,
        )
        left.parent = right.parent = handle = self._add(parent)
        return handle

    def remove_ancestors(self, v: int) -> None:
        """Remove everything above v; what hung there by another child becomes a root."""
        parent, self.nodes[v].parent = self.nodes[v].parent, None
        while parent is not None:
            node = self.nodes.pop(parent)
            for child in node.children or ():
                if child in self.nodes:
                    self.nodes[child].parent = None
            parent = node.parent

    def _add(self, node: Node) -> int:
        handle = self._next_handle
        self._next_handle += 1
        self.nodes[handle] = node
        return handle
