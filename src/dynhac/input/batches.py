"""Batches: what one update changes, as columns whose types and lengths have been checked.

Ids are a column of int64 or a list of str. Whether they exist, and what else depends on the state
of a model, is checked by the update itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynhac.input.columns import (
    INT64,
    INT64_MAX,
    INT64_MIN,
    NO_IDS,
    NO_WEIGHTS,
    IdColumn,
    Ids,
    check_new_ids,
    id_column,
)
from dynhac.input.errors import INDEX, WITHOUT_INDEX, InvalidTypeError, counted, show
from dynhac.input.timestamps import Times, read_times
from dynhac.input.vectors import vector_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from dynhac._core import PointModel
    from dynhac.models.parameters import PointParameters


class GraphBatch(NamedTuple):
    """One update of a `GraphHAC`: removals, then additions."""

    remove: IdColumn = NO_IDS
    add: IdColumn = NO_IDS
    remove_u: IdColumn = NO_IDS
    remove_v: IdColumn = NO_IDS
    u: IdColumn = NO_IDS
    v: IdColumn = NO_IDS
    w: NDArray[np.float64] = NO_WEIGHTS


ID_COLUMNS = ("remove", "add", "remove_edges u", "remove_edges v", "edges u", "edges v")
"""What messages call the id columns of a `GraphBatch`, in their order."""


PointIds: TypeAlias = "IdColumn | tuple[int, ...]"
"""Ids of points. One int id is a tuple, which costs far less than an array."""


class PointBatch(NamedTuple):
    """One update of a `DynHAC`: deletions, then insertions.

    Attributes
    ----------
    vectors, ids, times
        The new points.
    deleted : ids
        The points to delete.
    clock : int, float or None
        A time to move the clock on to.
    single : bool
        Whether the user gave one vector instead of a table.
    version : int
        The version of the model that the batch was read for.
    ids_name : str
        What messages call ``ids``.
    """

    vectors: NDArray[np.float32] | None = None
    ids: PointIds = ()
    times: Times | None = None
    deleted: PointIds = ()
    clock: int | float | None = None
    single: bool = False
    version: int = 0
    ids_name: str = "ids"


def read_point_batch(
    points: PointModel,
    parameters: PointParameters,
    insert: ArrayLike | None,
    ids: Ids | None,
    delete: Ids | None,
    timestamps: ArrayLike | None,
) -> PointBatch:
    """Return the arguments of `DynHAC.update` as a batch for a model, or raise."""
    version = points.version  # first: what is read below may update the model
    dimension = points.dimension
    deleted: PointIds = ()
    if delete is not None:
        deleted = _own_ids(delete, "delete")
        if dimension is None and len(deleted):
            raise KeyError(f"id {show(deleted[0])} in delete is not in the model, which is empty")
        check_id_kind(points, deleted, "delete")
    if insert is None:
        if ids is not None or timestamps is not None:
            name = "timestamps" if ids is None else "ids"
            raise ValueError(f"{name} are given, but no points to insert")
        return PointBatch(None, (), None, deleted, None, False, version)
    vectors, single = vector_rows(insert, dimension)
    count = len(vectors)
    name = "ids"
    given: PointIds | None = None
    if ids is not None:
        given = _own_ids(ids, name)
    elif not single:
        given = _index_ids(insert)
        name = INDEX
    if given is not None:
        check_new_ids(given, name)
        if len(given) != count:
            raise ValueError(
                f"ids has {counted(len(given), 'entry', 'entries')} for "
                f"{counted(count, 'point', 'points')}; every point needs one"
            )
    times = None if timestamps is None else read_times(timestamps, count)
    if not count:
        return PointBatch(deleted=deleted, version=version)
    kind = None if times is None else times.kind
    if kind != points.time_kind or (kind is None and parameters.max_age is not None):
        times = _times_of_new(points, parameters, times)
    if given is None:
        given = _next_ids(points, count)
    else:
        check_id_kind(points, given, name)
    return PointBatch(vectors, given, times, deleted, None, single, version, name)


def _index_ids(table: Any) -> IdColumn | None:
    """Return the ids in the index of a pandas table; None if it has none, but counts its rows."""
    index = getattr(table, "index", None)
    if index is None or not hasattr(table, "iloc"):
        return None
    if isinstance(getattr(index, "step", None), int):  # a range
        if index.start == 0 and index.step == 1 and index.name is None:
            return None
        return np.arange(index.start, index.stop, index.step, dtype=INT64)
    try:
        if getattr(index, "nlevels", 1) > 1:
            raise InvalidTypeError(f"{INDEX} has {index.nlevels} levels; ids must have one")
        column = id_column(index, INDEX)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}; {WITHOUT_INDEX}") from None
    return column.copy()


def check_id_kind(points: PointModel, ids: PointIds, name: str) -> None:
    """Raise if ids are not of the kind that the model has."""
    if isinstance(ids, list) != points.text and len(ids) and points.dimension is not None:
        raise InvalidTypeError(
            f"id {show(ids[0])} in {name} is {'an int' if points.text else 'a str'}, but the ids "
            f"of this model are {'str' if points.text else 'int'}"
        )


def fit_times(points: PointModel, parameters: PointParameters, times: Times) -> Times:
    """Return timestamps of a kind that can be compared with those of the model, or raise."""
    dates = times.kind == "date"
    if parameters.max_age is not None and dates != parameters.ages_are_dates:
        raise InvalidTypeError(
            f"timestamps are {_plural(dates)}, but max_age is "
            f"{'a timedelta64' if parameters.ages_are_dates else 'a number'}"
        )
    if points.time_kind is not None and dates != (points.time_kind == "date"):
        raise InvalidTypeError(
            f"timestamps are {_plural(dates)}, but those of this model are {_plural(not dates)}"
        )
    return times.as_floats() if points.time_kind == "float" and times.kind == "int" else times


def id_array(ids: PointIds, text: bool) -> NDArray[Any]:
    """Return ids as users get them: an array of int64, or one of object that holds str."""
    if not text:
        return np.asarray(ids, INT64)
    array = np.empty(len(ids), object)
    array[:] = ids
    return array


def _own_ids(ids: object, name: str) -> PointIds:
    """Return a column of ids that the caller cannot change any more."""
    if type(ids) is int and INT64_MIN <= ids <= INT64_MAX:
        return (ids,)
    column = id_column(ids, name)
    return column if isinstance(ids, (int, str, list)) else column.copy()


def _times_of_new(
    points: PointModel, parameters: PointParameters, times: Times | None
) -> Times | None:
    """Return timestamps of new points that fit those of the model, or raise."""
    if times is None and parameters.max_age is not None:
        raise ValueError("points need timestamps, since the model has a max_age")
    if points.dimension is not None and (times is None) != (points.time_kind is None):
        if times is None:
            raise ValueError(
                "points need timestamps, since the first points of this model had some"
            )
        raise ValueError(
            "points cannot have timestamps, since the first points of this model had none"
        )
    return None if times is None else fit_times(points, parameters, times)


def _next_ids(points: PointModel, count: int) -> PointIds:
    """Return ids for new points that got none: larger than any that was ever used."""
    if points.text:
        raise ValueError("the ids of this model are str, so that new points need ids; give ids")
    first = points.next_id or 0
    if first + count > INT64_MAX:
        raise ValueError(f"no int id above {first - 1} is left for {count:,} new points; give ids")
    return (first,) if count == 1 else np.arange(first, first + count, dtype=INT64)


def _plural(dates: bool) -> str:
    return "dates" if dates else "numbers"
