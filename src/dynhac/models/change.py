"""The result of an update: counters, and the dendrogram nodes that it removed and created.

A node of the dendrogram is a cluster. A cluster that changes is removed and its successor created;
the successor takes over the node id, which is then among both and is called *passed on*. The arrays
are fetched from the engine on first access; later updates do not change them.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dynhac.input.errors import counted

if TYPE_CHECKING:
    from dynhac import _core


class Node(NamedTuple):
    """A dendrogram node that was created or removed; the attributes are entries of `Nodes`.

    Attributes
    ----------
    node_id : int
        The stable id of the node.
    similarity : float
        The linkage of the merge that made it.
    size : int
        The number of leaves under it.
    passed_on : bool
        Whether the id is among both the removed and the created nodes.
    """

    node_id: int
    similarity: float
    size: int
    passed_on: bool


class Nodes:
    """Dendrogram nodes that an update created or removed, as read-only arrays of the same length.

    Iterating and indexing give `Node` tuples.

    Attributes
    ----------
    node_ids : ndarray of int64
        The stable ids of the nodes, as in `Dendrogram.node_ids`.
    similarity : ndarray of float64
        The linkage of the merge that made each node.
    size : ndarray of int64
        The number of leaves under each node.
    passed_on : ndarray of bool
        Whether the id is among both the removed and the created nodes: a successor took it over.
    """

    __slots__ = ("_columns", "node_ids", "passed_on", "similarity", "size")

    def __init__(self, versions: _core.NodeVersions) -> None:
        self._columns = versions
        self.node_ids, self.similarity, self.size, self.passed_on = versions
        for array in versions:
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.node_ids)

    def __getitem__(self, index: SupportsIndex) -> Node:
        index = operator.index(index)
        return Node._make(column[index].item() for column in self._columns)

    def __iter__(self) -> Iterator[Node]:
        return map(Node._make, zip(*(column.tolist() for column in self._columns), strict=True))

    def __repr__(self) -> str:
        rows = [
            f"  {node.node_id}: {counted(node.size, 'leaf', 'leaves')} at {node.similarity:.4g}"
            + (", id passed on" if node.passed_on else "")
            for node in (self[i] for i in range(min(len(self), 10)))
        ]
        if len(self) > 10:
            rows.append(f"  ... and {len(self) - 10:,} more")
        return "\n".join([f"<{counted(len(self), 'node', 'nodes')}>", *rows])


class Change:
    """The result of one update; made by `GraphHAC.update`.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC()
    >>> change = g.update(add=[1, 2, 3], edges=([1, 2], [2, 3], [0.5, 0.25]))
    >>> change.nodes_created, change.nodes_removed
    (2, 0)
    >>> sorted(node.size for node in change.created)
    [2, 3]
    """

    def __init__(self, data: _core.ChangeData) -> None:
        self._data = data

    @property
    def levels(self) -> int:
        """Levels visited."""
        return self._data.levels

    @property
    def groups_rerun(self) -> int:
        """Groups whose merges were recomputed."""
        return self._data.groups_rerun

    @property
    def vertices_rerun(self) -> int:
        """Vertices in the groups that were rerun."""
        return self._data.vertices_rerun

    @property
    def edges_rerun(self) -> int:
        """Adjacency entries read in the groups that were rerun."""
        return self._data.edges_rerun

    @property
    def edges_changed(self) -> int:
        """Edges inserted, removed or reweighted, on all levels together."""
        return self._data.edges_changed

    @property
    def nodes_created(self) -> int:
        """Dendrogram nodes created, including successors of clusters that were removed."""
        return self._data.nodes_created

    @property
    def nodes_removed(self) -> int:
        """Dendrogram nodes removed, including clusters with a successor."""
        return self._data.nodes_removed

    @property
    def seconds(self) -> float:
        """Time spent in the engine."""
        return self._data.seconds

    @cached_property
    def created(self) -> Nodes:
        """The dendrogram nodes that the update created."""
        return Nodes(self._data.created())

    @cached_property
    def removed(self) -> Nodes:
        """The dendrogram nodes that the update removed."""
        return Nodes(self._data.removed())

    @property
    def passed_on(self) -> NDArray[np.int64]:
        """The node ids that were passed on from a removed cluster to its successor."""
        return self.created.node_ids[self.created.passed_on]

    def _repr_html_(self) -> str:
        from dynhac.notebook.views import change_html

        return change_html(self)

    def __repr__(self) -> str:
        return (
            f"<Change: {counted(self.nodes_created, 'node', 'nodes')} created, "
            f"{self.nodes_removed:,} removed; {counted(self.groups_rerun, 'group', 'groups')} "
            f"rerun on {counted(self.levels, 'level', 'levels')} "
            f"({counted(self.vertices_rerun, 'vertex', 'vertices')}, "
            f"{counted(self.edges_rerun, 'edge', 'edges')}), "
            f"{counted(self.edges_changed, 'edge', 'edges')} changed; {self.seconds * 1e3:.3g} ms>"
        )
