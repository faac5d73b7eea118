"""What an update of points did: which came and went, and where the time was spent.

The counters and dendrogram nodes are those of `Change`; this adds the points. Arrays are made when
they are first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from dynhac.input.batches import PointIds, id_array
from dynhac.input.errors import counted
from dynhac.models.change import Change

if TYPE_CHECKING:
    from dynhac._core import PointChangeData


class PointChange(Change):
    """What one update of a `DynHAC` did.

    A point that came and left within the update, because a window had no room for it, is both
    among ``inserted`` and among ``expired``; one that was replaced is among ``deleted`` and among
    ``inserted``. So the number of points has grown by ``len(inserted) - len(deleted) -
    len(expired)``.

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

    _data: PointChangeData

    def __init__(self, data: PointChangeData, inserted: PointIds, deleted: PointIds) -> None:
        self._data = data
        self._inserted = inserted
        self._deleted = deleted

    @property
    def inserted(self) -> NDArray[Any]:
        """The ids of the points that were given, in their order."""
        return self._ids(self._inserted)

    @property
    def deleted(self) -> NDArray[Any]:
        """The ids of the points that were deleted on demand, in the order given."""
        return self._ids(self._deleted)

    @property
    def expired(self) -> NDArray[Any]:
        """The ids of the points that a window dropped, oldest first."""
        return self._ids(self._data.expired())

    @property
    def repaired(self) -> NDArray[Any]:
        """The ids of the points that were joined to their nearest neighbours anew."""
        return self._ids(self._data.repaired())

    @property
    def seconds_search(self) -> float:
        """Time spent in the neighbour index."""
        return self._data.seconds_search

    @property
    def seconds_graph(self) -> float:
        """Time spent on the rest: ids, window, edges, the table of points."""
        return max(self._data.seconds_total - self.seconds_search - self.seconds, 0.0)

    @property
    def seconds_engine(self) -> float:
        """Time spent in the engine."""
        return self.seconds

    def _ids(self, ids: PointIds) -> NDArray[Any]:
        return id_array(ids, self._data.text)

    def _repr_html_(self) -> str:
        from dynhac.notebook.views import point_change_html

        return point_change_html(self)

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
