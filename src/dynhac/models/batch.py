"""What users pass to an update of points, checked against the points there are.

Everything that can be wrong with a batch is found here, before anything has changed; what comes
out can be applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.input.columns import INT64_MAX, NO_IDS, IdColumn, Ids, id_column
from dynhac.input.errors import counted, show
from dynhac.input.timestamps import Times, read_times
from dynhac.input.vectors import NO_VECTORS, vector_rows
from dynhac.models.store import PointStore, Slots
from dynhac.models.windows import check_beside

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from dynhac.models.pointgraph import PointGraph


class PointBatch(NamedTuple):
    """One update: deletions, then insertions.

    Attributes
    ----------
    store : PointStore
        The points of the model; new and empty if it had none yet.
    vectors, ids, times
        The new points. Arrays of ids belong to the batch.
    next_id : int
        The least id that the model may give out after this batch.
    deleted, leaving
        The ids and slots of the points to delete.
    one : bool
        Whether it was one vector instead of a table.
    clock : int, float or None
        A time to move on to.
    version : int
        That of the points when the batch was read; it is about no others.
    """

    store: PointStore
    vectors: NDArray[np.float32] = NO_VECTORS
    ids: IdColumn = NO_IDS
    times: Times | None = None
    next_id: int = 0
    deleted: IdColumn = NO_IDS
    leaving: Slots = NO_IDS
    one: bool = False
    clock: int | float | None = None
    version: int = 0


def id_array(ids: IdColumn, text: bool) -> NDArray[Any]:
    """Return ids as users get them: the array of int64, or one of object holding str."""
    if not text:
        return ids  # type: ignore[return-value]
    array = np.empty(len(ids), object)
    array[:] = ids
    return array


def empty_batch(points: PointGraph, clock: int | float | None = None) -> PointBatch:
    """Return a batch without points, perhaps with a time to move on to."""
    store = points.store
    if store is None:
        store = PointStore(points.graph, 0, False, None)
    return PointBatch(store, clock=clock, version=points.version)


def read_batch(
    points: PointGraph,
    insert: ArrayLike | None,
    ids: Ids | None,
    delete: Ids | None,
    timestamps: ArrayLike | None,
) -> PointBatch:
    """Return a batch that can be applied, or raise."""
    store, version = points.store, points.version
    deleted: IdColumn = NO_IDS
    leaving: Slots = NO_IDS
    if delete is not None:
        deleted = id_column(delete, "delete").copy()
        if store is not None:
            leaving = store.find(deleted, "delete")
        elif len(deleted):
            raise KeyError(f"id {show(deleted[0])} in delete is not in the model, which is empty")
    if insert is None:
        for name, value in (("ids", ids), ("timestamps", timestamps)):
            if value is not None:
                raise ValueError(f"{name} are given, but no points to insert")
        return empty_batch(points)._replace(deleted=deleted, leaving=leaving, version=version)

    rows, one = vector_rows(insert, None if store is None else store.dimension)
    count = len(rows)
    given = None if ids is None else id_column(ids, "ids")
    if given is not None and len(given) != count:
        raise ValueError(
            f"ids has {counted(len(given), 'entry', 'entries')} for "
            f"{counted(count, 'point', 'points')}; every point needs one"
        )
    times = None if timestamps is None else read_times(timestamps, count)
    times = points.window.admit(times) if count else None
    if store is None:
        text = isinstance(given, list)
        dtype = None if times is None else times.dtype
        store = PointStore(points.graph, rows.shape[1], text, dtype)
    elif times is not None:
        check_beside(store, times)
    new, next_id = _new_ids(store, given, count, leaving)
    return PointBatch(store, rows, new, times, next_id, deleted, leaving, one, version=version)


def _new_ids(
    store: PointStore, given: IdColumn | None, count: int, leaving: Slots
) -> tuple[IdColumn, int]:
    """Return the ids of new points, and what the model counts on from."""
    if not count:
        return NO_IDS, store.table.next_id
    if given is None:
        return store.next_ids(count), store.table.next_id + count
    store.check_kind(given, "ids")
    store.check_new(given, leaving)
    if isinstance(given, list):
        return given, store.table.next_id
    return given.copy(), min(max(store.table.next_id, int(given.max()) + 1), INT64_MAX)
