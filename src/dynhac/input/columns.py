"""Columns of ids and weights: from what users pass to what the engine takes.

An id column becomes a contiguous int64 array or a list of str. It is never converted by way of
another type, so ``[1, "a"]`` and ``[True]`` are always rejected. The one exception: a `uuid.UUID`
is taken for its str, wherever an id is. A weight column becomes a contiguous float64 array. Arrays
of the right type are not copied. The checks here need only the column itself; the engine checks the
values against the graph.
"""

from __future__ import annotations

import math
from array import array as StdlibArray
from collections.abc import Iterable, Sized
from sys import float_info
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard
from uuid import UUID

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from dynhac.input.errors import InvalidTypeError, show, wrong_type

if TYPE_CHECKING:
    from collections.abc import Sequence

Id: TypeAlias = "int | str | UUID"
"""One id as users pass it; a UUID stands for its str."""

Ids: TypeAlias = "ArrayLike | UUID | Sequence[UUID]"
"""Ids as users pass them: one int or str, or a list, tuple, range, array or column of them."""

IdColumn: TypeAlias = "NDArray[np.int64] | list[str]"
"""Ids inside the package."""

EdgeColumns: TypeAlias = "tuple[IdColumn, IdColumn, NDArray[np.float64]]"
"""Edges u, v, w: columns of the same length."""

INT64 = np.dtype(np.int64)
FLOAT64 = np.dtype(np.float64)
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
# Bounds of the resolution. A weight has up to 62 bits, and so has a product of two sizes: within
# these bounds every weight and every similarity is finite and has full precision.
FINEST, COARSEST = 2.0**-960, 2.0**960

NUMBERS = (int, float, np.integer, np.floating)
"""The types of numbers, and of some other values: `NO_NUMBERS`."""

NO_NUMBERS = (bool, np.timedelta64)
"""Types that are among `NUMBERS` for Python, or an integer for NumPy, but are no numbers."""

NO_IDS: NDArray[np.int64] = np.empty(0, INT64)
NO_IDS.setflags(write=False)
NO_WEIGHTS: NDArray[np.float64] = np.empty(0, FLOAT64)
NO_WEIGHTS.setflags(write=False)


def id_column(values: object, name: str) -> IdColumn:
    """Return ids as an int64 array or a list of str; messages call the column ``name``."""
    if _is_column(values, INT64):
        return values
    if isinstance(values, str):
        return [str.__str__(values)]
    if isinstance(values, (int, np.integer)):
        return _ids_from_objects((values,), name)
    if isinstance(values, (list, tuple)):
        return _ids_from_objects(values, name)
    if isinstance(values, range):
        return _int64_from_ints(values, name)
    if isinstance(values, UUID):
        return [str(values)]
    return _ids_from_array(_as_array(values, name, "ids"), name)


def check_new_ids(ids: IdColumn | tuple[int, ...], name: str) -> None:
    """Raise if one of the ids that a model is to take up is not valid Unicode.

    A str of Python can hold a lone surrogate, but UTF-8 cannot: files of results would fail.
    """
    if not isinstance(ids, list):
        return
    try:
        "".join(ids).encode()
    except UnicodeEncodeError:
        position, id = next((p, id) for p, id in enumerate(ids) if not _is_unicode(id))
        raise ValueError(
            f"id {show(id)} at position {position} of {name} has a lone surrogate; ids must be "
            "valid Unicode"
        ) from None


def weight_column(values: object, name: str) -> NDArray[np.float64]:
    """Return weights as a float64 array; messages call the column ``name``."""
    if _is_column(values, FLOAT64):
        return values
    if isinstance(values, NUMBERS):
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


def edge_columns(u: object, v: object, w: object) -> EdgeColumns:
    """Return the three columns of an edge list, which must have the same length."""
    from_ids = id_column(u, "edges u")
    to_ids = id_column(v, "edges v")
    weights = weight_column(w, "edges w")
    _check_lengths("edges", from_ids, to_ids, weights)
    return from_ids, to_ids, weights


def pair_columns(pairs: object) -> tuple[IdColumn, IdColumn]:
    """Return the two columns of a list of pairs, which must have the same length."""
    if not isinstance(pairs, tuple) or len(pairs) != 2:
        size = f" of length {len(pairs)}" if isinstance(pairs, (tuple, list)) else ""
        raise InvalidTypeError(
            "remove_edges must be a tuple (u, v) of two columns, not "
            f"{type(pairs).__name__}{size}; for a list of pairs use tuple(zip(*pairs))"
        )
    from_ids = id_column(pairs[0], "remove_edges u")
    to_ids = id_column(pairs[1], "remove_edges v")
    _check_lengths("remove_edges", from_ids, to_ids)
    return from_ids, to_ids


def are_strings(columns: Iterable[tuple[str, IdColumn]]) -> bool | None:
    """Return whether the ids in the named columns are str; None if there are no ids."""
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
    if not is_number(value):
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
    """Return the value of an array without dimensions; any other value unchanged."""
    return value[()] if isinstance(value, ndarray) and value.ndim == 0 else value


def plain_id(value: object) -> object:
    """Return one id as the models know it: an array without dimensions as its value, a UUID as str.

    Any other value is returned unchanged.
    """
    value = scalar(value)
    return str(value) if isinstance(value, UUID) else value


def is_number(value: object) -> TypeGuard[float]:
    """Whether ``value`` is an int or a float, and neither a bool nor a timedelta64."""
    return isinstance(value, NUMBERS) and not isinstance(value, NO_NUMBERS)


def is_int(value: object) -> TypeGuard[int]:
    """Whether ``value`` is an integer, and neither a bool nor a timedelta64."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, NO_NUMBERS)


def is_masked(values: object) -> bool:
    """Whether ``values`` is a masked array of numpy, whose mask a conversion would lose."""
    return type(values).__module__.startswith("numpy.ma")


def _is_column(values: object, dtype: np.dtype[Any]) -> TypeGuard[NDArray[Any]]:
    """Whether ``values`` can be used as it is: a contiguous column of exactly this dtype."""
    return (
        type(values) is ndarray
        and values.dtype is dtype
        and values.ndim == 1
        and values.flags.c_contiguous
    )


def _check_lengths(name: str, *columns: Sized) -> None:
    if len(set(map(len, columns))) > 1:
        lengths = ", ".join(
            f"{name} {letter} has {len(c):,}" for letter, c in zip("uvw", columns, strict=False)
        )
        raise ValueError(f"columns of different lengths: {lengths}; they must have one length")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_array(values: object, name: str, what: str) -> NDArray[np.generic]:
    """Return a column that numpy can convert as a one-dimensional array."""
    if is_masked(values):
        raise InvalidTypeError(f"{what} in {name} are a masked array; give a plain one")
    if not (hasattr(values, "__array__") or isinstance(values, StdlibArray)):
        raise InvalidTypeError(
            f"{what} in {name} are of type {type(values).__name__}; give a list or an array"
        )
    missing: Any = None
    nulls = getattr(values, "null_count", 0)  # a number in pyarrow, a method in polars
    if nulls() if callable(nulls) else nulls:  # a null would become nan
        missing = np.asarray(values.is_null())  # type: ignore[attr-defined]
    elif what == "ids" and callable(getattr(values, "isna", None)):  # pandas would make floats
        missing = np.asarray(values.isna())  # type: ignore[attr-defined]
    if missing is not None and missing.any():
        raise InvalidTypeError(
            f"{what} in {name} have missing values, the first at position {np.argmax(missing)}; "
            "every entry needs a value"
        )
    array = np.asarray(values)
    if array.ndim == 0:  # an array without dimensions
        return array.reshape(1)
    if array.ndim != 1:
        raise InvalidTypeError(
            f"{what} in {name} have shape {array.shape}; they must be one-dimensional"
        )
    return array


def _ids_from_array(array: NDArray[np.generic], name: str) -> IdColumn:
    if array.size == 0:
        return NO_IDS
    kind = array.dtype.kind
    if kind == "i" or (kind == "u" and array.max() <= INT64_MAX):
        return np.ascontiguousarray(array, dtype=INT64)
    if kind == "U":
        return array.tolist()  # type: ignore[no-any-return]
    if kind in "uOT":
        return _ids_from_objects(array.tolist(), name)
    raise InvalidTypeError(
        f"ids in {name} have dtype {array.dtype}; ids must be all int or all str"
        + (", and a float cannot be one" if kind == "f" else "")
    )


def _ids_from_objects(values: Sequence[object], name: str) -> IdColumn:
    """Return ids from Python objects, after a check of all their types."""
    types = set(map(type, values))
    if types == {int}:
        return _int64_from_ints(values, name)  # type: ignore[arg-type]
    if types == {str}:
        return list(values)  # type: ignore[arg-type]
    if not types:
        return NO_IDS
    if all(issubclass(t, (int, np.integer)) and not issubclass(t, NO_NUMBERS) for t in types):
        return _int64_from_ints(list(map(int, values)), name)  # type: ignore[arg-type]
    if all(issubclass(t, str) for t in types):
        return list(map(str.__str__, values))  # the plain str that == and hash use
    if any(issubclass(t, UUID) for t in types):
        return _ids_from_objects([plain_id(value) for value in values], name)
    wanted = "ids must be all int or all str"
    for position, value in enumerate(values):
        if not (is_int(value) or isinstance(value, str)):
            raise wrong_type(f"id at position {position} of {name}", value, wanted)
        if isinstance(value, str) != isinstance(values[0], str):
            break
    raise InvalidTypeError(
        f"ids in {name} are a mix: {show(values[0])} at position 0, {show(value)} at position "
        f"{position}; {wanted}"
    )


def _int64_from_ints(values: Sequence[int], name: str) -> NDArray[np.int64]:
    try:
        return np.fromiter(values, INT64, len(values))
    except OverflowError:
        wrong = (p for p, value in enumerate(values) if not INT64_MIN <= value <= INT64_MAX)
        position = next(wrong)
        raise ValueError(
            f"id {show(values[position])} at position {position} of {name} does not fit in 64 "
            f"bits; int ids must lie between {INT64_MIN} and {INT64_MAX}"
        ) from None


def _weights_from_objects(values: Sequence[object], name: str) -> NDArray[np.float64]:
    types = set(map(type, values))
    if any(not issubclass(t, NUMBERS) or issubclass(t, NO_NUMBERS) for t in types):
        position = next(p for p, value in enumerate(values) if not is_number(value))
        where = f"weight at position {position} of {name}"
        raise wrong_type(where, values[position], "weights must be int or float")
    try:
        return np.array(values, dtype=FLOAT64)
    except OverflowError:
        position = next(p for p, v in enumerate(values) if is_int(v) and abs(v) > float_info.max)
        raise ValueError(
            f"weight at position {position} of {name} is {show(values[position])}, an int too "
            "large for a float"
        ) from None
