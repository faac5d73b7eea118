"""The dendrogram under updates: a forest in which merges are added and ancestors removed.

A cluster has a *handle*, an integer that is never reused. A merge of the same two handles is the
same cluster and keeps its handle; a cluster with a new descendant gets a new handle. So equal
handles mean equal subtrees, and an update can stop where nothing changed.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

from dynhac.reference.merges import Id, Name, name_of


@dataclass(slots=True)
class Node:
    """A cluster: one vertex of the input, or the merge of two clusters."""

    name: Name
    """The smallest id among the leaves: distinct for clusters of one level, and independent of the
    history."""
    size: int = 1
    min_merge: Fraction | float = math.inf
    """M in the paper: the smallest linkage of all merges below."""
    parent: int | None = None
    children: tuple[int, int] | None = None
    linkage: Fraction = Fraction(0)
    level: int = 0
    order: tuple[Name, int] = ((0, ""), 0)
    """The partition of its level and the step that made it: with the level, the order of merges."""


class DynamicDendrogram:
    """The forest, by handle."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self._handles = count()

    def add_leaf(self, vertex: Id) -> int:
        """Add a vertex of the input; return its handle."""
        return self._add(Node(name_of(vertex)))

    def remove_leaf(self, leaf: int) -> None:
        """Remove a vertex of the input and all its ancestors."""
        self.remove_ancestors(leaf)
        del self.nodes[leaf]

    def find_merge(self, u: int, v: int) -> int | None:
        """Return the cluster with children u and v, if there is one."""
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
        """Remove all ancestors of v; their other children become roots."""
        parent, self.nodes[v].parent = self.nodes[v].parent, None
        while parent is not None:
            node = self.nodes.pop(parent)
            for child in node.children or ():
                if child in self.nodes:
                    self.nodes[child].parent = None
            parent = node.parent

    def _add(self, node: Node) -> int:
        handle = next(self._handles)
        self.nodes[handle] = node
        return handle
