"""What an update of points did: which came and went, and where the time was spent.

The counters and dendrogram nodes are those of the graph's `Change`; this adds the points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.change import Change
from dynhac.errors import counted
from dynhac.inputs import INT64, NO_IDS
from dynhac.points.batch import id_array

if TYPE_CHECKING:
    from dynhac import _core
    from dynhac.points.modelgraph import ModelGraph


class PointChange(Change):
    """What one update of a `DynHAC` did.

    A point that came and left within the update, because a window had no room for it, is both
    among ``inserted`` and among ``expired``; one that was replaced is among ``deleted`` and among
    ``inserted``. So the number of points has grown by ``len(inserted) - len(deleted) -
    len(expired)``.

    Attributes
    ----------
    inserted, deleted : ndarray
        The ids of the points that were given, and of those deleted on demand, in the order given.
    expired : ndarray
        The ids of the points that a window dropped, oldest first.
    repaired : ndarray
        The ids of the points that deletions had left with few edges, and that were joined to their
        nearest neighbours anew.
    seconds_search : float
        Time spent in the neighbour index.
    seconds_graph : float
        Time spent on the rest: making edges, keeping the books.
    seconds_engine : float
        Time spent in the engine that keeps the hierarchy; the same as ``seconds``.
    levels, groups_rerun, vertices_rerun, edges_rerun, edges_changed : int
        As in `Change`, like all the rest.

    Examples
    --------
    >>> from dynhac import DynHAC
    >>> model = DynHAC(n_neighbors=2)
    >>> change = model.update(insert=[[0.0], [0.1], [5.0]], ids=["a", "b", "c"])
    >>> change.inserted.tolist(), change.nodes_created
    (['a', 'b', 'c'], 2)
    >>> model.delete("b").deleted.tolist()
    ['b']
    """

    __slots__ = ("deleted", "expired", "inserted", "repaired", "seconds_graph", "seconds_search")

    def __init__(
        self,
        data: _core.ChangeData,
        inserted: NDArray[Any],
        deleted: NDArray[Any],
        expired: NDArray[Any],
        repaired: NDArray[Any],
        seconds_search: float,
        seconds: float,
    ) -> None:
        self._data, self._created, self._removed = data, None, None
        self.inserted = inserted
        self.deleted = deleted
        self.expired = expired
        self.repaired = repaired
        self.seconds_search = seconds_search
        self.seconds_graph = max(seconds - seconds_search - data.seconds, 0.0)

    @classmethod
    def of_one(cls, one: _core.OnePoint, graph: ModelGraph) -> PointChange:
        """Return what an update of a single point did."""
        id = one.id
        text = isinstance(id, str)
        ids = id_array([id] if text else np.array([id], INT64), text)
        none = id_array(NO_IDS, text)
        repaired = id_array(graph.ids_of(one.repaired), text)
        inserted, deleted = (ids, none) if one.inserted else (none, ids)
        expired = none if text else one.expired
        seconds = one.seconds_search, one.seconds
        return cls(one.change, inserted, deleted, expired, repaired, *seconds)

    @property
    def seconds_engine(self) -> float:
        """Time spent in the engine."""
        return self.seconds

    def __repr__(self) -> str:
        points = [
            f"{counted(len(self.inserted), 'point', 'points')} inserted",
            f"{len(self.deleted):,} deleted",
        ]
        if len(self.expired):
            points.append(f"{len(self.expired):,} expired")
        if len(self.repaired):
            points.append(f"{len(self.repaired):,} repaired")
        return (
            f"<PointChange: {', '.join(points)}; "
            f"{counted(self.nodes_created, 'node', 'nodes')} created, "
            f"{self.nodes_removed:,} removed, "
            f"{counted(self.edges_changed, 'edge', 'edges')} changed; "
            f"{self.seconds_search * 1e3:.3g} ms searching, {self.seconds_graph * 1e3:.3g} ms on "
            f"the graph, {self.seconds * 1e3:.3g} ms in the engine>"
        )
