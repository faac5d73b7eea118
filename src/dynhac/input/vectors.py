"""Vectors: from what users pass to rows of float32.

All checks that need only the vectors are made here; messages name the row, the column and the
value. A single vector becomes a matrix of one row, with a flag, since the answer is then one id.
Values are rounded to float32, but none may be lost: one that would become infinite, or 0 without
being 0, is rejected.

The columns of a table (pandas, polars, pyarrow) are checked one by one, so that messages name them.
None of those libraries is imported here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from dynhac._core import one_vector
from dynhac.input.columns import FLOAT64, is_masked, is_number
from dynhac.input.errors import InvalidTypeError, counted, show, wrong_type

FLOAT32 = np.dtype(np.float32)
WANTED = "it must be one vector or a table with a row for every vector"
LARGEST = float(np.finfo(np.float32).max)
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)

NO_VECTORS: NDArray[np.float32] = np.empty((0, 0), FLOAT32)
NO_VECTORS.setflags(write=False)


def vector_rows(values: object, dimension: int | None) -> tuple[NDArray[np.float32], bool]:
    """Return vectors as rows of a contiguous float32 array, and whether it was a single one.

    Parameters
    ----------
    values : array-like
        Shape (n, d) or (d,); an empty list holds no vectors.
    dimension : int or None
        The number of columns required; None for any.
    """
    if dimension is not None:
        row = one_vector(values, dimension)
        if row is not None:
            return row, True
    array = _number_array(values)
    one = array.ndim == 1 and len(array) > 0
    if one:
        array = array.reshape(1, -1)
    if array.ndim == 1 or array.shape == (0, 0):
        return NO_VECTORS, False
    if array.ndim != 2:
        raise InvalidTypeError(f"X has shape {array.shape}; {WANTED}")
    rows, columns = array.shape
    if dimension is not None and columns != dimension:
        hint = ""
        if one and dimension == 1:
            hint = f"; for {columns:,} points of one dimension give shape ({columns}, 1)"
        raise ValueError(
            f"{'the vector' if one else 'X'} has {counted(columns, 'dimension', 'dimensions')}, "
            f"but the vectors of this model have {dimension:,}{hint}"
        )
    if columns == 0 and rows:
        raise ValueError(f"X has shape {array.shape}; vectors must have at least one dimension")
    return _checked_rows(array), one


def _number_array(values: object) -> NDArray[np.generic]:
    """Return the values as an array of int or float, or raise."""
    if is_masked(values):
        raise InvalidTypeError("X is a masked array; give a plain one")
    if hasattr(values, "toarray"):
        raise InvalidTypeError(f"X is a {type(values).__name__}; give X.toarray()")
    if isinstance(values, (str, bytes)) or values is None:
        raise InvalidTypeError(f"X is {show(values)}; it must be an array or lists of numbers")
    for name, column in _doubtful_columns(values):
        _check_column(name, column)
    try:
        array = np.asarray(values)
    except ValueError:
        _check_lengths(values)
        raise
    if array.ndim == 0:
        raise wrong_type("X", values, WANTED)
    if array.dtype.kind == "O":
        return _numbers_from_objects(array)
    if array.dtype.kind not in "iuf":
        raise InvalidTypeError(
            f"X has dtype {array.dtype}; it must hold int or float"
            + ("" if array.size == 0 else f", and row 0 starts with {show(array.flat[0])}")
        )
    return array


def _doubtful_columns(table: Any) -> Iterator[tuple[object, NDArray[np.generic]]]:
    """Give the name and the values of each column of a table that may hold other than numbers."""
    columns: Iterator[tuple[object, object]]
    if hasattr(table, "iloc") and hasattr(table, "columns"):  # pandas
        columns = (
            (table.columns[place], table.iloc[:, place])
            for place, dtype in enumerate(table.dtypes)
            if not isinstance(dtype, np.dtype) or dtype.kind not in "iuf"
        )
    elif hasattr(table, "column_names"):  # pyarrow
        columns = zip(table.column_names, table.columns, strict=True)
    elif hasattr(table, "iter_columns"):  # polars
        columns = ((column.name, column) for column in table.iter_columns())
    else:
        return
    for name, column in columns:
        array = np.asarray(column)
        if array.dtype.kind not in "iuf":
            yield name, array


def _check_column(name: object, column: NDArray[np.generic]) -> None:
    """Raise if a column of a table does not hold numbers."""
    for row, value in enumerate(column):
        value = value.item() if isinstance(value, np.generic) else value
        if not is_number(value):
            hint = "leave the column out, or make numbers of it"
            if isinstance(value, (list, tuple, ndarray)):
                hint = f"to insert the vectors in this column give X[{show(name)}]"
            raise wrong_type(
                f"row {row} of column {show(name)} of X", value, f"X must hold int or float; {hint}"
            )


def _numbers_from_objects(array: NDArray[np.generic]) -> NDArray[np.generic]:
    if array.ndim == 1 and len(array) and all(isinstance(v, (list, ndarray)) for v in array):
        return _number_array(array.tolist())  # a column of lists, from a table
    for where, value in np.ndenumerate(array):
        if not is_number(value):
            raise wrong_type(_place(where), value, "X must hold int or float")
        if isinstance(value, int) and abs(value) > LARGEST:
            raise _out_of_range(where, value)
    return array.astype(FLOAT64)


def _checked_rows(array: NDArray[np.generic]) -> NDArray[np.float32]:
    with np.errstate(over="ignore", under="ignore"):
        rows = array.astype(FLOAT32, order="C")
    finite = np.isfinite(rows)
    if not finite.all():
        where = np.unravel_index(int(np.argmin(finite)), rows.shape)
        value = float(array[where])
        if math.isfinite(value):
            raise _out_of_range(where, value)
        raise ValueError(f"{_place(where)} is {value}; vectors must be finite")
    if array.dtype != FLOAT32 and np.count_nonzero(rows) != np.count_nonzero(array):
        lost = (rows == 0) & (array != 0)
        where = np.unravel_index(int(np.argmax(lost)), rows.shape)
        raise _out_of_range(where, array[where])
    return rows


def _place(where: tuple[int | np.intp, ...]) -> str:
    row = f"row {where[0]}, " if len(where) > 1 else ""
    return f"{row}column {where[-1]} of X"


def _out_of_range(where: tuple[int | np.intp, ...], value: Any) -> ValueError:
    """Return the exception for a value that becomes infinite, or 0, as a float32."""
    if abs(value) > 1:
        return ValueError(
            f"{_place(where)} is {show(value)}, which does not fit in float32; values must lie "
            f"between {-LARGEST:.3g} and {LARGEST:.3g}"
        )
    return ValueError(
        f"{_place(where)} is {show(value)}, which becomes 0 as a float32; values must be 0, or at "
        f"least {SMALLEST:.3g} in size; scale the vectors up"
    )


def _check_lengths(rows: object) -> None:
    """Raise an error that names the row if rows differ in length."""
    if isinstance(rows, (list, tuple)):
        lengths = [f"length {len(r)}" if hasattr(r, "__len__") else "no length" for r in rows]
        for row, length in enumerate(lengths):
            if length != lengths[0]:
                raise InvalidTypeError(
                    f"row {row} of X has {length}, row 0 has {lengths[0]}; all rows must have one "
                    "length"
                )
