"""Columns of ids and weights, as users have them, into what the engine takes.

An id column becomes a contiguous int64 array or a list of str; nothing in between, so that ``[1,
"a"]`` or ``[True]`` can never slip through a conversion. A weight column becomes a contiguous
float64 array. Arrays that are right already are passed through, not copied. Only what can be told
from a column alone is checked here; values are judged by the engine, against the graph.
"""

from __future__ import annotations

import math
from array import array as StdlibArray
from collections.abc import Iterable, Mapping, Sized
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeGuard

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from dynhac.input.errors import InvalidTypeError, show

if TYPE_CHECKING:
    from collections.abc import Sequence

Ids: TypeAlias = "ArrayLike"
"""Ids as users give them: one int or str, or a list, tuple, range, array or column of them."""

IdColumn: TypeAlias = "NDArray[np.int64] | list[str]"
"""Ids as the package handles them."""

INT64 = np.dtype(np.int64)
FLOAT64 = np.dtype(np.float64)
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
# A weight has up to 62 bits, and a product of two sizes too: within these bounds every weight and
# every similarity is finite and has its full precision.
FINEST, COARSEST = 2.0**-960, 2.0**960

NO_IDS: NDArray[np.int64] = np.empty(0, INT64)
NO_IDS.setflags(write=False)
NO_WEIGHTS: NDArray[np.float64] = np.empty(0, FLOAT64)
NO_WEIGHTS.setflags(write=False)


def id_column(values: object, name: str) -> IdColumn:
    """Return ids as an int64 array or a list of str; ``name`` is what messages call the column."""
    if (
        type(values) is ndarray
        and values.dtype is INT64
        and values.ndim == 1
        and values.flags.c_contiguous
    ):
        return values
    if isinstance(values, str):
        return [str.__str__(values)]
    if isinstance(values, (int, np.integer)):
        return _ids_from_objects((values,), name)
    if isinstance(values, (list, tuple)):
        return _ids_from_objects(values, name)
    if isinstance(values, range):
        return _ids_from_range(values, name)
    return _ids_from_array(_as_array(values, name, "ids"), name)


def weight_column(values: object, name: str) -> NDArray[np.float64]:
    """Return weights as a float64 array; ``name`` is what messages call the column."""
    if (
        type(values) is ndarray
        and values.dtype is FLOAT64
        and values.ndim == 1
        and values.flags.c_contiguous
    ):
        return values
    if isinstance(values, (int, float, np.integer, np.floating)):
        return _weights_from_objects((values,), name)
    if isinstance(values, (list, tuple)):
        return _weights_from_objects(values, name)
    array = _as_array(values, name, "weights")
    if array.size == 0:
        return NO_WEIGHTS
    if array.dtype.kind in "iuf":
        return np.ascontiguousarray(array, dtype=FLOAT64)
    if array.dtype.kind == "O":
        return _weights_from_objects(array.tolist(), name)
    raise InvalidTypeError(f"weights in {name} have dtype {array.dtype}; they must be int or float")


def edge_columns(u: object, v: object, w: object) -> tuple[IdColumn, IdColumn, NDArray[np.float64]]:
    """Return the three columns of an edge list, checked to be of one length."""
    from_ids = id_column(u, "edges u")
    to_ids = id_column(v, "edges v")
    weights = weight_column(w, "edges w")
    if not len(from_ids) == len(to_ids) == len(weights):
        raise _different_lengths({"edges u": from_ids, "edges v": to_ids, "edges w": weights})
    return from_ids, to_ids, weights


def pair_columns(pairs: object) -> tuple[IdColumn, IdColumn]:
    """Return the two columns of a list of pairs, checked to be of one length."""
    if not isinstance(pairs, tuple) or len(pairs) != 2:
        raise InvalidTypeError(
            f"remove_edges must be a tuple (u, v) of two columns, not {_kind_of(pairs)}; "
            "for a list of pairs use tuple(zip(*pairs))"
        )
    from_ids = id_column(pairs[0], "remove_edges u")
    to_ids = id_column(pairs[1], "remove_edges v")
    if len(from_ids) != len(to_ids):
        raise _different_lengths({"remove_edges u": from_ids, "remove_edges v": to_ids})
    return from_ids, to_ids


def are_strings(columns: Iterable[tuple[str, IdColumn]]) -> bool | None:
    """Return whether the ids in all the named columns are str; None when there are no ids."""
    first: tuple[str, IdColumn] | None = None
    for name, column in columns:
        if len(column):
            if first is None:
                first = name, column
            elif isinstance(column, list) != isinstance(first[1], list):
                raise InvalidTypeError(
                    f"ids are a mix: {show(first[1][0])} in {first[0]}, {show(column[0])} in "
                    f"{name}; ids must be all int or all str"
                )
    return None if first is None else isinstance(first[1], list)


def real_number(value: object, name: str, least: float = 0.0, *, above: bool = False) -> float:
    """Return a finite parameter >= ``least`` (> with ``above``) as a float, or raise."""
    wanted = f"a finite number {'>' if above else '>='} {least:g}"
    value = scalar(value)
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise InvalidTypeError(f"{name} is {show(value)}; it must be {wanted}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < least or (above and number == least):
        raise ValueError(f"{name} is {show(value)}; it must be {wanted}")
    return number


def resolution_of_weights(value: object) -> float:
    """Return the parameter ``resolution``, or raise."""
    resolution = real_number(value, "resolution", above=True)
    if not FINEST <= resolution <= COARSEST:
        raise ValueError(
            f"resolution is {show(value)}; it must lie between {FINEST:.3g} and {COARSEST:.3g}"
        )
    return resolution


def whole_number(value: object, name: str, least: int, most: int | None = None) -> int:
    """Return an integer parameter from ``least`` to ``most``, or raise."""
    wanted = f"an integer >= {least}" + ("" if most is None else f" and <= {most}")
    value = scalar(value)
    if not is_int(value):
        raise InvalidTypeError(f"{name} is {show(value)}; it must be {wanted}")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} is {show(value)}; it must be {wanted}")
    return int(value)


def scalar(value: object) -> object:
    """Return the number in an array without dimensions, anything else as it is."""
    return value[()] if isinstance(value, ndarray) and value.ndim == 0 else value


def is_int(value: object) -> TypeGuard[int]:
    """Whether ``value`` is an integer and not a bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _different_lengths(columns: Mapping[str, Sized]) -> ValueError:
    told = ", ".join(f"{name} has {len(column):,}" for name, column in columns.items())
    return ValueError(f"columns of different lengths: {told}; they must have one length")


def _kind_of(value: object) -> str:
    size = f" of length {len(value)}" if isinstance(value, (tuple, list)) else ""
    return f"{type(value).__name__}{size}"


def _as_array(values: object, name: str, what: str) -> NDArray[np.generic]:
    """Return a column of a type that numpy can see through as a one-dimensional array."""
    if type(values).__module__.startswith("numpy.ma"):
        raise InvalidTypeError(f"{what} in {name} are a masked array; give a plain one")
    if not (hasattr(values, "__array__") or isinstance(values, StdlibArray)):
        raise InvalidTypeError(
            f"{what} in {name} are of type {type(values).__name__}; give a list or an array"
        )
    nulls = getattr(values, "null_count", 0)  # a number in pyarrow, a method in polars
    if nulls() if callable(nulls) else nulls:  # they would give nan for a null
        _raise_missing(values.is_null(), name, what)  # type: ignore[attr-defined]
    missing = getattr(values, "isna", None)
    if what == "ids" and callable(missing) and np.any(missing()):  # pandas would give floats
        _raise_missing(missing(), name, what)
    array = np.asarray(values)
    if array.ndim == 0:  # a scalar in the guise of an array
        return array.reshape(1)
    if array.ndim != 1:
        raise InvalidTypeError(
            f"{what} in {name} have shape {array.shape}; they must be one-dimensional"
        )
    return array


def _raise_missing(is_missing: object, name: str, what: str) -> NoReturn:
    position = int(np.argmax(np.asarray(is_missing)))
    raise InvalidTypeError(
        f"{what} in {name} have missing values, the first at position {position}; every entry "
        "needs a value"
    )


def _ids_from_array(array: NDArray[np.generic], name: str) -> IdColumn:
    if array.size == 0:
        return NO_IDS
    kind = array.dtype.kind
    if kind == "u" and array.dtype.itemsize == 8:
        top = int(np.argmax(array))
        if int(array[top]) > INT64_MAX:
            raise _too_large(int(array[top]), top, name)
    if kind in "iu":
        return np.ascontiguousarray(array, dtype=INT64)
    if kind == "U":
        return array.tolist()  # type: ignore[no-any-return]
    if kind in "OT":
        return _ids_from_objects(array.tolist(), name)
    raise InvalidTypeError(
        f"ids in {name} have dtype {array.dtype}; ids must be all int or all str"
        + (", and a float cannot be one" if kind == "f" else "")
    )


def _ids_from_range(values: range, name: str) -> NDArray[np.int64]:
    if not values:
        return NO_IDS
    for position in (0, len(values) - 1):
        if not INT64_MIN <= values[position] <= INT64_MAX:
            raise _too_large(values[position], position, name)
    return np.fromiter(values, INT64, len(values))


def _ids_from_objects(values: Sequence[object], name: str) -> IdColumn:
    """Return ids out of Python objects, whose types are all looked at."""
    types = set(map(type, values))
    if types == {int}:
        return _int64_from_ints(values, name)
    if types == {str}:
        return list(values)  # type: ignore[arg-type]
    if not types:
        return NO_IDS
    if all(issubclass(t, (int, np.integer)) and t is not bool for t in types):
        return _int64_from_ints([int(value) for value in values if is_int(value)], name)
    if all(issubclass(t, str) for t in types):
        return list(map(str.__str__, values))  # what == and hash go by
    first: object = None
    for position, value in enumerate(values):
        if not (is_int(value) or isinstance(value, str)):
            raise InvalidTypeError(
                f"id at position {position} of {name} is {show(value)} "
                f"({type(value).__name__}); ids must be all int or all str"
            )
        if position == 0:
            first = value
        elif isinstance(value, str) != isinstance(first, str):
            break
    raise InvalidTypeError(
        f"ids in {name} are a mix: {show(first)} at position 0, {show(value)} at position "
        f"{position}; ids must be all int or all str"
    )


def _int64_from_ints(values: Sequence[object], name: str) -> NDArray[np.int64]:
    try:
        return np.array(values, dtype=INT64)
    except OverflowError:
        for position, value in enumerate(values):
            if is_int(value) and not INT64_MIN <= value <= INT64_MAX:
                raise _too_large(value, position, name) from None
        raise


def _too_large(value: int, position: int, name: str) -> ValueError:
    return ValueError(
        f"id {show(value)} at position {position} of {name} does not fit in 64 bits; "
        f"int ids must lie between {INT64_MIN} and {INT64_MAX}"
    )


def _weights_from_objects(values: Sequence[object], name: str) -> NDArray[np.float64]:
    numbers = (int, float, np.integer, np.floating)
    if any(not issubclass(t, numbers) or t is bool for t in set(map(type, values))):
        for position, value in enumerate(values):
            if not isinstance(value, numbers) or isinstance(value, bool):
                raise InvalidTypeError(
                    f"weight at position {position} of {name} is {show(value)} "
                    f"({type(value).__name__}); weights must be int or float"
                )
    try:
        return np.array(values, dtype=FLOAT64)
    except OverflowError:
        for position, value in enumerate(values):
            if isinstance(value, int) and abs(value) >= 2**1024:
                raise ValueError(
                    f"weight at position {position} of {name} is {show(value)}, an int too large "
                    "for a float"
                ) from None
        raise
