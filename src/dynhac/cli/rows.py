"""A table from rows that are read one after the other: lines of CSV, or objects of JSON.

Rows come in blocks. The cells of vectors are converted block by block, and cells of columns that
are not used are dropped, so memory holds little more than the table. If the columns of the vector
are not known, the first block decides what every column holds. A column must hold the same in all
rows: one with numbers and text is an error, because it may be a vector with a wrong value.

Two classes know the cells: `TextCells` for CSV, in which everything is text, and `JsonCells`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac.cli.layout import LISTS, NUMBERS, OTHER, Roles
from dynhac.cli.parse import is_number, parse_timestamps
from dynhac.cli.payload_columns import objects_of, payload_of, typed_text
from dynhac.cli.table import Table, as_vectors
from dynhac.input.errors import counted, show

BLOCK_ROWS = 4096
NAN = "nan"
"""What a cell holds that is a number in a column of numbers, and a word in one of text."""


class TextCells:
    """Cells of CSV: text, of which an empty one is a missing value."""

    untyped_ids = True

    def kind(self, cell: Any) -> str | None:
        """Return what a cell holds; None if there is no value."""
        try:
            return NUMBERS if math.isfinite(float(cell)) else NAN
        except ValueError:
            return OTHER if cell.strip() else None

    def is_missing(self, cell: Any) -> bool:
        """Whether there is no value."""
        return not cell.strip()

    def is_number(self, cell: Any) -> bool:
        """Whether a cell holds a number, which may be nan."""
        return is_number(cell)

    def is_id(self, cell: Any) -> bool:
        """Whether a cell can be an id."""
        return True

    def vector(self, cell: Any) -> Any:
        """Return the list in a cell, or the cell itself if it holds none."""
        try:
            return json.loads(cell)
        except (ValueError, RecursionError):
            return cell


class JsonCells:
    """Values of JSON, of which null is a missing value."""

    untyped_ids = False

    def kind(self, cell: Any) -> str | None:
        """Return what a cell holds; None if there is no value."""
        if isinstance(cell, list):
            return LISTS
        if cell is None:
            return None
        if isinstance(cell, float) and not math.isfinite(cell):
            return NAN
        return NUMBERS if self.is_number(cell) else OTHER

    def is_missing(self, cell: Any) -> bool:
        """Whether there is no value."""
        return cell is None

    def is_number(self, cell: Any) -> bool:
        """Whether a cell holds a number, which may be nan."""
        return type(cell) in (int, float)

    def is_id(self, cell: Any) -> bool:
        """Whether a cell can be an id."""
        return type(cell) in (int, str)

    def vector(self, cell: Any) -> Any:
        """Return the list in a cell."""
        return cell


class RowTable:
    """Collects rows: `add` takes them, `table` returns what they are."""

    def __init__(self, names: Sequence[str], roles: Roles, cells: TextCells | JsonCells) -> None:
        self._positions = {name: position for position, name in enumerate(names)}
        self._roles = roles
        self._cells = cells
        self._judged = roles.rest if not roles.decided else []
        self._seen: dict[str, dict[str, tuple[int, Any]]] = {name: {} for name in self._judged}
        self._with_nan: set[str] = set()
        self._fields: dict[str, list[Any]] = {field: [] for field in roles.fields if field != "w"}
        self._blocks: list[NDArray[Any]] = []
        self._payload: list[dict[str, Any]] = []
        self._lines: list[int] = []  # of all rows, for messages about timestamps

    def add(
        self,
        lines: Sequence[int],
        rows: Sequence[Sequence[Any]],
        objects: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        """Add rows, each of which begins in a line of the file; raise if they are not valid.

        Rows of JSON come with their objects, which may have more keys than there are columns.
        """
        for name in self._judged:
            self._judge(name, lines, rows)
        if not self._roles.decided:
            kinds = {
                name: next(iter(seen), NUMBERS if name in self._with_nan else OTHER)
                for name, seen in self._seen.items()
            }
            self._roles = self._roles.decide(kinds)
            self._judged = self._roles.rest
            for name in self._judged:  # from now on a column without values is one without numbers
                self._seen[name].setdefault(OTHER, (lines[0], rows[0][self._positions[name]]))
        if self._roles.payload is not None:
            self._payload += self._payload_cells(rows, objects)
        for field, column in self._fields.items():
            column += self._field(field, lines, rows)
        if "timestamps" in self._fields:
            self._lines += lines
        if self._roles.vector is not None:
            self._blocks.append(self._vectors(self._roles.vector, lines, rows))
        elif "w" in self._roles.fields:
            self._blocks.append(self._numbers([self._roles.fields["w"]], lines, rows, "weights"))
        elif self._roles.numbers:
            names = self._roles.numbers
            array = self._numbers(names, lines, rows)
            self._blocks.append(
                as_vectors(array, lambda row: f"line {lines[row]}", lambda column: names[column])
            )

    def table(self, source: str, named: bool = True) -> Table:
        """Return all rows as a table; ``named`` says whether the file has names of columns."""
        fields: dict[str, Any] = dict(self._fields)
        array = np.concatenate(self._blocks) if self._blocks else np.empty((0, 0))
        if "w" in self._roles.fields:
            fields["w"] = array.ravel()
        elif not self._roles.decided or self._roles.vector is not None or self._roles.numbers:
            fields["vectors"] = array
        if "timestamps" in fields:
            fields["timestamps"] = self._timestamps(fields["timestamps"])
        if self._roles.payload is not None:
            fields["payload"] = self._payloads()
        roles = self._roles if named and self._roles.decided else None
        return Table(source, **fields, untyped_ids=self._cells.untyped_ids, roles=roles)

    def _payload_cells(
        self, rows: Sequence[Sequence[Any]], objects: Sequence[dict[str, Any]] | None
    ) -> list[dict[str, Any]]:
        """Return the cells of the payload of each row, by column."""
        roles = self._roles
        names = roles.payload_columns or []
        if objects is None:
            places = [self._positions[name] for name in names]
            return [dict(zip(names, (row[p] for p in places), strict=True)) for row in rows]
        if roles.payload:
            return [{name: row[name] for name in names if name in row} for row in objects]
        taken = {*roles.fields.values(), roles.vector, *(roles.numbers or ())}
        return [{name: row[name] for name in row if name not in taken} for row in objects]

    def _payloads(self) -> list[dict[str, Any] | None]:
        if not self._cells.untyped_ids or not self._payload:
            return [payload_of(cells) for cells in self._payload]
        names = list(self._payload[0])
        columns = {name: typed_text([cells[name] for cells in self._payload]) for name in names}
        return objects_of(columns, len(self._payload))

    def _judge(self, name: str, lines: Sequence[int], rows: Sequence[Sequence[Any]]) -> None:
        """Note what a column holds; raise if it is not always the same."""
        seen, position = self._seen[name], self._positions[name]
        for line, row in zip(lines, rows, strict=True):
            kind = self._cells.kind(row[position])
            if kind == NAN:
                self._with_nan.add(name)
            elif kind is not None and kind not in seen:
                seen[kind] = line, row[position]
                if len(seen) > 1:
                    first_kind, (first, other) = next(iter(seen.items()))
                    raise ValueError(
                        f"line {line}: {show(row[position])} in {name} is {_noun(kind)}, but "
                        f"{show(other)} in line {first} is {_noun(first_kind)}; {_hint(name)}"
                    )

    def _column(self, name: str, rows: Sequence[Sequence[Any]]) -> list[Any]:
        position = self._positions[name]
        return [row[position] for row in rows]

    def _field(self, field: str, lines: Sequence[int], rows: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the cells of ids or timestamps."""
        name = self._roles.fields[field]
        column = self._column(name, rows)
        for line, cell in zip(lines, column, strict=True):
            if self._cells.is_missing(cell):
                raise ValueError(f"line {line}: {name} is empty; every row needs a value")
            if field != "timestamps" and not self._cells.is_id(cell):
                raise ValueError(
                    f"line {line}: {name} is {show(cell)}; ids must be all int or all str"
                )
        return column

    def _numbers(
        self,
        names: list[str],
        lines: Sequence[int],
        rows: Sequence[Sequence[Any]],
        what: str = "vectors",
    ) -> NDArray[np.float64]:
        """Return columns of numbers, with a row for each row."""
        positions = [self._positions[name] for name in names]
        picked = [[row[position] for position in positions] for row in rows]
        try:
            if not self._cells.untyped_ids:  # numpy would convert text and bools
                _check_types(picked)
            array = np.array(picked, np.float64)
        except (ValueError, TypeError, OverflowError):
            for line, row in zip(lines, picked, strict=True):
                for name, cell in zip(names, row, strict=True):
                    if self._cells.is_missing(cell):
                        raise ValueError(
                            f"line {line}: {name} is empty; every row needs a number"
                        ) from None
                    if not self._cells.is_number(cell):
                        raise ValueError(
                            f"line {line}: {show(cell)} in {name} is not a number; "
                            + (_hint(name) if what == "vectors" else "weights must be numbers")
                        ) from None
            raise ValueError(f"lines {lines[0]} to {lines[-1]}: a number is too large") from None
        return array.reshape(len(rows), len(names))

    def _vectors(
        self, name: str, lines: Sequence[int], rows: Sequence[Sequence[Any]]
    ) -> NDArray[np.float32]:
        """Return a column of lists of numbers, with a row for each list."""
        vectors = []
        width = self._blocks[0].shape[1] if self._blocks else None
        for line, cell in zip(lines, self._column(name, rows), strict=True):
            vector = self._cells.vector(cell)
            if self._cells.is_missing(cell):
                raise ValueError(f"line {line}: {name} is empty; every row needs a list of numbers")
            if type(vector) in (int, float):
                vector = [vector]
            if not isinstance(vector, list):
                raise ValueError(
                    f"line {line}: {name} is {show(cell)}; it must be a list of numbers, such as "
                    "[0.1, 0.2]"
                )
            width = len(vector) if width is None else width
            if len(vector) != width or not vector:
                first = "" if not vector else f", but the first one has {width:,}"
                raise ValueError(
                    f"line {line}: {name} has {counted(len(vector), 'entry', 'entries')}{first}; "
                    "all vectors must have the same number of entries, at least one"
                )
            vectors.append(vector)
        try:
            _check_types(vectors)
            array = np.array(vectors, np.float64)
        except (TypeError, OverflowError):
            for line, vector in zip(lines, vectors, strict=True):
                for position, value in enumerate(vector):
                    if type(value) not in (int, float):
                        raise ValueError(
                            f"line {line}: entry {position} of {name} is {show(value)}; it must be "
                            "a number"
                        ) from None
            raise ValueError(f"lines {lines[0]} to {lines[-1]}: a number is too large") from None
        return as_vectors(
            array, lambda row: f"line {lines[row]}", lambda column: f"entry {column} of {name}"
        )

    def _timestamps(self, column: list[Any]) -> Any:
        if any(isinstance(value, str) for value in column):
            return parse_timestamps(list(map(str, column)), lambda row: f"line {self._lines[row]}")
        return np.array(column)


def _check_types(rows: Iterable[Sequence[Any]]) -> None:
    if not set(map(type, chain.from_iterable(rows))) <= {int, float}:
        raise TypeError


def _noun(kind: str) -> str:
    return {NUMBERS: "a number", LISTS: "a list", OTHER: "not a number"}[kind]


def _hint(name: str) -> str:
    return (
        f"to leave out this column use --ignore {name}; if it has the ids use --id-column, and if "
        "the timestamps --time-column"
    )
