"""What an update of points did: which came and went, and where the time was spent.

The counters and dendrogram nodes are those of the graph's `Change`; this adds the points. Of a
single point they are looked up when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.input.columns import INT64, NO_IDS
from dynhac.input.errors import counted
from dynhac.models.batch import id_array
from dynhac.models.change import Change

if TYPE_CHECKING:
    from dynhac._core import ChangeData, OnePoint


class Columns(NamedTuple):
    """The ids of the points that an update had to do with."""

    inserted: NDArray[Any]
    deleted: NDArray[Any]
    expired: NDArray[Any]
    repaired: NDArray[Any]


def columns_of_one(one: OnePoint) -> Columns:
    """Return the ids in an update of a single point."""
    text = isinstance(one.id, str)
    own: list[Any] = [one.id]
    ids, none = id_array(own if text else np.array(own, INT64), text), id_array(NO_IDS, text)
    return Columns(
        ids if one.inserted else none,
        none if one.inserted else ids,
        id_array(one.expired, text),
        id_array(one.repaired, text),
    )


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

    __slots__ = ("_columns", "_seconds")

    def __init__(
        self,
        data: ChangeData,
        columns: Columns | None = None,
        seconds: tuple[float, float] | None = None,
    ) -> None:
        """Of a single point, columns and seconds (of the search, of everything) may be missing."""
        self._data, self._created, self._removed = data, None, None
        self._columns = columns
        self._seconds = seconds

    @property
    def inserted(self) -> NDArray[Any]:
        """The ids of the points that were given, in their order."""
        return self._listed().inserted

    @property
    def deleted(self) -> NDArray[Any]:
        """The ids of the points that were deleted on demand, in the order given."""
        return self._listed().deleted

    @property
    def expired(self) -> NDArray[Any]:
        """The ids of the points that a window dropped, oldest first."""
        return self._listed().expired

    @property
    def repaired(self) -> NDArray[Any]:
        """The ids of the points that were joined to their nearest neighbours anew."""
        return self._listed().repaired

    @property
    def seconds_search(self) -> float:
        """Time spent in the neighbour index."""
        return self._times()[0]

    @property
    def seconds_graph(self) -> float:
        """Time spent on the rest: making edges, keeping the books."""
        search, whole = self._times()
        return max(whole - search - self.seconds, 0.0)

    @property
    def seconds_engine(self) -> float:
        """Time spent in the engine."""
        return self.seconds

    def _listed(self) -> Columns:
        columns = self._columns
        if columns is None:
            columns = self._columns = columns_of_one(self._data)  # type: ignore[arg-type]
        return columns

    def _times(self) -> tuple[float, float]:
        if self._seconds is None:
            one: OnePoint = self._data  # type: ignore[assignment]
            return one.seconds_search, one.seconds_whole
        return self._seconds

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
