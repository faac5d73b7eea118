"""Timestamps: from what users pass to columns that can be ordered.

The timestamps of a model are all numbers or all dates. Ints stay ints, so that nanoseconds since
1970 keep their full precision; dates become int64 nanoseconds. The checks here need only the column
itself.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.input.columns import (
    FLOAT64,
    INT64,
    INT64_MAX,
    INT64_MIN,
    NUMBERS,
    is_int,
    is_masked,
    is_number,
    real_number,
    scalar,
)
from dynhac.input.errors import InvalidTypeError, counted, show, wrong_type

if TYPE_CHECKING:
    from dynhac._core import PointModel
    from dynhac.models.parameters import PointParameters

EXACT_INTS = 2**53
"""All ints up to this size are exact as floats."""

WANTED = "timestamps must be numbers or datetime64"


class Times(NamedTuple):
    """Timestamps of kind "int", "float" or "date"; dates are nanoseconds since 1970."""

    kind: str
    values: NDArray[Any]

    def as_floats(self) -> Times:
        """Return ints as floats; raise if that could change one."""
        large = (self.values > EXACT_INTS) | (self.values < -EXACT_INTS)
        if large.any():
            raise ValueError(
                f"timestamp {self.values[int(np.argmax(large))]} is an int that is not exact as a "
                "float, and other timestamps of this model are floats; give all as ints"
            )
        return Times("float", self.values.astype(FLOAT64))


def read_times(values: object, count: int, name: str = "timestamps") -> Times:
    """Return the timestamps of ``count`` points: one for all, or one for each."""
    values = scalar(values)
    if count == 1 and is_int(values) and INT64_MIN <= values <= INT64_MAX:  # the usual cases, fast
        return Times("int", np.array([values], INT64))
    if count == 1 and isinstance(values, float) and math.isfinite(values):
        return Times("float", np.array([values], FLOAT64))
    if values is None or isinstance(values, (str, bytes, bool, np.bool_)):
        raise wrong_type(name, values, WANTED)
    if is_masked(values):
        raise InvalidTypeError(f"{name} is a masked array; give a plain one")
    if isinstance(values, (list, tuple)):  # numpy would convert ints beside floats to floats
        array = np.empty(len(values), object)
        for position, value in enumerate(values):
            array[position] = value
    else:
        array = np.asarray(values)
    if array.ndim > 1:
        raise InvalidTypeError(f"{name} has shape {array.shape}; it must be one-dimensional")
    if array.ndim == 0:
        times = _times_from_array(array.reshape(1), name)
        return times if count == 1 else Times(times.kind, np.repeat(times.values, count))
    times = _times_from_array(array, name)
    if len(array) != count:
        raise ValueError(
            f"{name} has {counted(len(array), 'entry', 'entries')} for "
            f"{counted(count, 'point', 'points')}; give one for each, or one for all"
        )
    return times


def read_age(value: object, name: str = "max_age") -> tuple[bool, int | float]:
    """Return a length of time: whether it is a timedelta, and its length."""
    value = scalar(value)
    if hasattr(value, "to_timedelta64"):  # a pandas Timedelta, which has nanoseconds
        value = value.to_timedelta64()
    elif isinstance(value, timedelta):
        value = np.timedelta64(value)
    if not isinstance(value, np.timedelta64):
        if not isinstance(value, NUMBERS):
            raise InvalidTypeError(
                f"{name} is {show(value)}; it must be a finite number >= 0 or a timedelta64"
            )
        number = real_number(value, name)
        return False, int(value) if is_int(value) else number
    if np.isnat(value):
        raise ValueError(f"{name} is NaT; it must be a timedelta64 >= 0")
    if np.datetime_data(value.dtype)[0] in ("Y", "M", "generic"):
        raise ValueError(f"{name} is {value!r}, which has no fixed length; give days or less")
    (span,), (wrong,) = _as_nanoseconds(np.array([value]))
    if wrong or span < 0:
        raise ValueError(f"{name} is {value}; it must be >= 0 and below 292 years")
    return True, int(span)


def public_time(
    clock: int | float | None, points: PointModel, parameters: PointParameters
) -> int | float | np.datetime64 | None:
    """Return a time of a model as users give it; None for None."""
    dates = points.time_kind == "date" or (points.time_kind is None and parameters.ages_are_dates)
    return np.datetime64(int(clock), "ns") if dates and clock is not None else clock


def _times_from_array(array: NDArray[Any], name: str) -> Times:
    if array.dtype.kind == "O":
        array = _from_objects(array.tolist(), name)
    kind = array.dtype.kind
    if array.size == 0:
        return Times("int", np.empty(0, INT64))
    if kind == "u" and int(array.max()) > INT64_MAX:
        raise ValueError(f"timestamp {int(array.max())} in {name} does not fit in 64 bits")
    if kind in "iu":
        return Times("int", array.astype(INT64))
    if kind == "f":
        _reject(~np.isfinite(array), array, name, "timestamps must be finite")
        return Times("float", array.astype(FLOAT64))
    if kind == "M":
        return Times("date", _nanoseconds(array, name))
    raise InvalidTypeError(f"{name} has dtype {array.dtype}; {WANTED}")


def _from_objects(values: list[object], name: str) -> NDArray[Any]:
    """Return dates or numbers from Python objects."""
    # A pandas Timestamp keeps its nanoseconds only by its own conversion.
    values = [v.to_datetime64() if hasattr(v, "to_datetime64") else v for v in values]
    dates = isinstance(values[0], (datetime, np.datetime64)) if values else False
    for position, value in enumerate(values):
        right = isinstance(value, (datetime, np.datetime64)) if dates else is_number(value)
        if not right:
            where = f"timestamp at position {position} of {name}"
            raise wrong_type(where, value, f"{WANTED}, all of one kind")
        if isinstance(value, datetime) and value.tzinfo is not None:
            values[position] = value.astimezone(timezone.utc).replace(tzinfo=None)
        if is_int(value) and not INT64_MIN <= value <= INT64_MAX:
            raise ValueError(f"timestamp {show(value)} in {name} does not fit in 64 bits")
    if dates:
        fine = [
            _nanoseconds(np.array([value], "datetime64"), name, p) for p, value in enumerate(values)
        ]
        return np.concatenate(fine).view("datetime64[ns]")
    if all(map(is_int, values)):
        return np.array(values, INT64)
    for position, value in enumerate(values):
        if is_int(value) and abs(int(value)) > EXACT_INTS:
            raise ValueError(
                f"timestamp {value} at position {position} of {name} is an int that is not exact "
                "as a float, and others are floats; give all as ints"
            )
    return np.array(values, FLOAT64)


def _nanoseconds(array: NDArray[Any], name: str, first: int = 0) -> NDArray[np.int64]:
    """Return dates as nanoseconds; messages count positions from ``first``."""
    _reject(np.isnat(array), array, name, "every point needs a time", first)
    fine, wrong = _as_nanoseconds(array)
    _reject(wrong, array, name, "dates must lie between the years 1678 and 2262", first)
    return fine


def _reject(
    wrong: NDArray[np.bool_], array: NDArray[Any], name: str, wanted: str, first: int = 0
) -> None:
    """Raise if a timestamp is wrong."""
    if wrong.any():
        position = int(np.argmax(wrong))
        raise ValueError(
            f"timestamp at position {first + position} of {name} is {array[position]}; {wanted}"
        )


def _as_nanoseconds(array: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return dates or timedeltas in nanoseconds, and which of them cannot be converted exactly."""
    unit = f"{array.dtype.kind}8[ns]"
    try:
        fine = array.astype(unit)
    except OverflowError:  # from NumPy 2.5 on; before, it wraps around
        if len(array) == 1:
            return np.zeros(1, INT64), np.ones(1, bool)
        each = [_as_nanoseconds(array[i : i + 1]) for i in range(len(array))]
        return np.concatenate([one[0] for one in each]), np.concatenate([one[1] for one in each])
    wrong: NDArray[np.bool_] = fine.astype(array.dtype) != array
    return fine.astype(INT64), wrong
