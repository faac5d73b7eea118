"""A table from columns in memory: the arrays of numpy files, and the columns of Arrow and Parquet.

A file gives its columns as `Columns`. Rows are counted from 0, as in numpy and Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dynhac.cli.layout import LISTS, NUMBERS, OTHER, Layout
from dynhac.cli.parse import parse_timestamps
from dynhac.cli.payload_columns import objects_of, plain_values
from dynhac.cli.table import Table, as_vectors
from dynhac.input.errors import InvalidTypeError, counted, show


class Columns(Protocol):
    """The columns of a file, by name."""

    @property
    def names(self) -> Sequence[str]:
        """All names, in the order of the file."""

    def kind(self, name: str) -> str:
        """Return what a column holds: numbers, lists or other."""

    def description(self, name: str) -> str:
        """Return what messages say about what a column holds."""

    def load(self, names: Sequence[str]) -> None:
        """Read the columns that are used; called before `values` and `matrix`."""

    def values(self, name: str) -> Any:
        """Return a column as an array, or as a list of str."""

    def matrix(self, name: str) -> NDArray[Any]:
        """Return a column of lists as an array with a row for each list."""

    def objects(self, name: str) -> list[Any]:
        """Return a column as Python values, None for missing ones."""


def table_of(source: str, columns: Columns, layout: Layout, ids_only: bool) -> Table:
    """Return the table that some columns are, or raise."""
    roles = layout.roles(columns.names, ids_only)
    if not roles.decided:
        roles = roles.decide({name: columns.kind(name) for name in roles.rest})
    vector = roles.numbers if roles.vector is None else [roles.vector]
    payload = roles.payload_columns
    columns.load([*roles.fields.values(), *(vector or []), *(payload or [])])
    fields = {field: columns.values(name) for field, name in roles.fields.items()}
    if "timestamps" in fields:
        fields["timestamps"] = _timestamps(fields["timestamps"])
    if roles.vector is not None:
        fields["vectors"] = _vectors(columns, roles.vector)
    elif roles.numbers:
        fields["vectors"] = _stacked(columns, roles.numbers)
    table = Table(source, **fields, roles=roles)
    if payload is None:
        return table
    values = {name: plain_values(columns.objects(name)) for name in payload}
    for name, column in values.items():
        if len(column) != len(table):
            raise ValueError(
                f"{name} has {counted(len(column), 'entry', 'entries')} for {len(table):,} rows; "
                "every row needs one"
            )
    return replace(table, payload=objects_of(values, len(table)))


class ArrayColumns:
    """The arrays of a numpy file: those of two dimensions are columns of lists."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._arrays = arrays

    @property
    def names(self) -> Sequence[str]:
        """All names, in the order of the file."""
        return list(self._arrays)

    def kind(self, name: str) -> str:
        """Return what a column holds: numbers, lists or other."""
        array = self._arrays[name]
        if array.dtype.kind not in "iuf" or array.ndim not in (1, 2):
            return OTHER
        return NUMBERS if array.ndim == 1 else LISTS

    def description(self, name: str) -> str:
        """Return what messages say about what a column holds."""
        return f"has dtype {self._arrays[name].dtype} and shape {self._arrays[name].shape}"

    def load(self, names: Sequence[str]) -> None:
        """Read the columns that are used: all are in memory."""

    def values(self, name: str) -> Any:
        """Return an array."""
        return self._arrays[name]

    def matrix(self, name: str) -> NDArray[Any]:
        """Return an array of two dimensions."""
        return self._arrays[name]

    def objects(self, name: str) -> list[Any]:
        """Return an array as Python values; dates as datetime64."""
        array = self._arrays[name]
        return list(array) if array.dtype.kind == "M" else list(array.tolist())


def _vectors(columns: Columns, name: str) -> NDArray[np.float32]:
    kind = columns.kind(name)
    if kind == OTHER:
        raise ValueError(
            f"{name} {columns.description(name)}; vectors must be numbers, in two dimensions or in "
            "lists"
        )
    if kind == NUMBERS:
        return _stacked(columns, [name])
    array = columns.matrix(name)
    if len(array) and not array.shape[1]:
        raise ValueError(f"{name} has vectors without entries; they need at least one")
    return as_vectors(array, _row, lambda column: f"entry {column} of {name}")


def _stacked(columns: Columns, names: list[str]) -> NDArray[np.float32]:
    """Return columns of numbers beside each other."""
    vectors: NDArray[np.float32] | None = None
    for position, name in enumerate(names):
        if columns.kind(name) != NUMBERS:
            raise ValueError(f"{name} {columns.description(name)}; it must have numbers")
        column = columns.values(name)
        if vectors is None:
            vectors = np.empty((len(column), len(names)), np.float32)
        if len(column) != len(vectors):
            raise ValueError(
                f"{name} has {counted(len(column), 'entry', 'entries')}, but {names[0]} has "
                f"{len(vectors):,}; all must have the same number"
            )
        one = as_vectors(column.reshape(-1, 1), _row, [name].__getitem__)
        vectors[:, position] = one[:, 0]
    assert vectors is not None  # there is a name
    return vectors


def _timestamps(values: Any) -> Any:
    """Return timestamps as they are; text is parsed."""
    kind = values.dtype.kind if isinstance(values, np.ndarray) else "O"
    if kind not in "OU":
        return values
    texts = list(values) if isinstance(values, list) else values.ravel().tolist()
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidTypeError(
                f"{_row(row)}: timestamp {show(text)} is neither a number nor a date"
            )
    return parse_timestamps(texts, _row) if texts else np.empty(0)


def _row(row: int) -> str:
    return f"row {row}"
