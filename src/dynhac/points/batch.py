"""What users pass to an update of points, checked against the points there are.

Everything that can be wrong with a batch is found here, before anything has changed; what comes
out can be applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.errors import counted, show
from dynhac.inputs import INT64, INT64_MAX, NO_IDS, IdColumn, Ids, id_column
from dynhac.points.store import PointStore
from dynhac.points.timestamps import Times, read_times
from dynhac.points.vectors import NO_VECTORS, vector_rows
from dynhac.points.windows import check_beside

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from dynhac.points.windows import Window


class PointBatch(NamedTuple):
    """One update: deletions, then insertions.

    Attributes
    ----------
    store : PointStore
        The points of the model; new and empty if it had none yet.
    vectors, ids, times
        The new points. Ids are Python's own ints or strings.
    next_id : int
        The least id that the model may give out after this batch.
    deleted, leaving
        The ids and slots of the points to delete.
    one : bool
        Whether it was one vector instead of a table.
    clock : int, float or None
        A time to move on to.
    """

    store: PointStore
    vectors: NDArray[np.float32] = NO_VECTORS
    ids: Sequence[Any] = ()
    times: Times | None = None
    next_id: int = 0
    deleted: IdColumn = NO_IDS
    leaving: Sequence[int] = ()
    one: bool = False
    clock: int | float | None = None


def id_array(ids: Sequence[Any] | IdColumn, text: bool) -> NDArray[Any]:
    """Return ids as users get them: an array of int64, or of object holding str."""
    if not text:
        return np.array(ids, INT64) if len(ids) else NO_IDS
    array = np.empty(len(ids), object)
    array[:] = ids
    return array


def read_batch(
    store: PointStore | None,
    window: Window,
    insert: ArrayLike | None,
    ids: Ids | None,
    delete: Ids | None,
    timestamps: ArrayLike | None,
) -> PointBatch:
    """Return a batch that can be applied, or raise."""
    deleted: IdColumn = NO_IDS
    leaving: list[int] = []
    if delete is not None:
        deleted = id_column(delete, "delete")
        if store is not None:
            leaving = store.find(deleted, "delete")
        elif len(deleted):
            raise KeyError(f"id {show(deleted[0])} in delete is not in the model, which is empty")
    if insert is None:
        for name, value in (("ids", ids), ("timestamps", timestamps)):
            if value is not None:
                raise ValueError(f"{name} are given, but no points to insert")
        if store is None:
            store = PointStore(0, False, None)
        return PointBatch(store, deleted=deleted, leaving=leaving, next_id=store.next_id)

    rows, one = vector_rows(insert, None if store is None else store.dimension)
    count = len(rows)
    given = None if ids is None else id_column(ids, "ids")
    if given is not None and len(given) != count:
        raise ValueError(
            f"ids has {counted(len(given), 'entry', 'entries')} for "
            f"{counted(count, 'point', 'points')}; every point needs one"
        )
    times = None if timestamps is None else read_times(timestamps, count)
    times = window.admit(times) if count else None
    if store is None:
        text = isinstance(given, list)
        store = PointStore(rows.shape[1], text, None if times is None else times.dtype)
    elif times is not None:
        check_beside(store, times)
    listed, next_id = _new_ids(store, given, count, deleted)
    return PointBatch(store, rows, listed, times, next_id, deleted, leaving, one)


def _new_ids(
    store: PointStore, given: IdColumn | None, count: int, deleted: IdColumn
) -> tuple[list[Any], int]:
    """Return the ids of new points, and what the model counts on from."""
    if given is None:
        return (store.next_ids(count), store.next_id + count) if count else ([], store.next_id)
    store.check_kind(given, "ids")
    listed: list[Any] = given if isinstance(given, list) else given.tolist()
    store.check_new(listed, deleted if isinstance(deleted, list) else deleted.tolist())
    if store.text or not listed:
        return listed, store.next_id
    return listed, min(max(store.next_id, max(listed) + 1), INT64_MAX)
