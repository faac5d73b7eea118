"""CSV files as tables, read in blocks of rows under a progress bar.

The first line names the columns, unless all of it is numbers. Numbers are converted block by block;
only ids and timestamps are kept as text.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from itertools import chain, islice
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.cli.parse import is_number, parse_timestamps
from dynhac.cli.progress import bytes_bar
from dynhac.cli.table import ColumnNames, Table
from dynhac.input.errors import show

BLOCK_ROWS = 4096


def read_csv(
    source: str, file: IO[bytes], size: int, delimiter: str, names: ColumnNames, ids_only: bool
) -> Table:
    """Return the table in a file of ``size`` bytes; 0 if its size is unknown."""
    with bytes_bar(f"reading {source}", size) as advance:
        lines = _lines(file, advance)
        rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
        try:
            return _read_rows(source, rows, names, ids_only)
        except csv.Error as error:
            raise ValueError(f"line {rows.line_num}: {error}") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"not text in UTF-8: {error.reason}") from error


def _lines(file: IO[bytes], advance: Callable[[int], None]) -> Iterator[str]:
    text = TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        for line in text:
            advance(len(line))
            yield line
    finally:
        text.detach()  # the caller closes the file


def _read_rows(source: str, rows: Any, names: ColumnNames, ids_only: bool) -> Table:
    filled: Iterator[list[str]] = (row for row in rows if row)
    first = next(filled, None)
    if first is None:
        raise ValueError("empty; at least one row is needed")
    named = not all(map(is_number, first))
    if ids_only and names.id not in first and len(first) == 1:
        named = False
    columns = [name.strip() if named else f"column {i}" for i, name in enumerate(first)]
    if named and len(set(columns)) < len(columns):
        repeated = next(name for name in columns if columns.count(name) > 1)
        raise ValueError(f"two columns called {show(repeated)}; names must differ")
    if not named:
        filled = chain([first], filled)

    edges = {"u", "v"} <= set(columns) and names.id not in columns
    if edges:
        text, numbers = ["u", "v"], [name for name in columns if name == "w"]
    elif ids_only:
        text, numbers = [names.id if named else columns[0]], []
        if text[0] not in columns:
            raise ValueError(f"no column {names.id}, only {', '.join(columns)}")
    else:
        text = [name for name in columns if name in names]
        numbers = [name for name in columns if name not in names]
        if not numbers:
            raise ValueError(f"no columns of vectors, only {', '.join(columns)}")

    parsed = _ParsedRows(columns, text, numbers)
    while block := list(islice(filled, BLOCK_ROWS)):
        parsed.add(block, rows.line_num)
    texts, array = parsed.texts, parsed.numbers()
    if edges:
        weights = array[:, 0] if numbers else None
        return Table(source, u=texts["u"], v=texts["v"], w=weights, untyped_ids=True)
    if ids_only:
        return Table(source, ids=texts[text[0]], untyped_ids=True)
    timestamps = texts.get(names.time)
    return Table(
        source,
        array,
        texts.get(names.id),
        None if timestamps is None else parse_timestamps(timestamps),
        untyped_ids=True,
        vector_columns=numbers if named else None,
    )


class _ParsedRows:
    """Rows split into columns of text and one array of numbers."""

    def __init__(self, columns: list[str], text: list[str], numbers: list[str]) -> None:
        self.texts: dict[str, list[str]] = {name: [] for name in text}
        self._columns = columns
        self._positions = [columns.index(name) for name in numbers]
        self._blocks: list[NDArray[np.float64]] = [np.empty((0, len(numbers)))]

    def add(self, rows: list[list[str]], last_line: int) -> None:
        """Add a block of rows; ``last_line`` is the number of its last line, for messages."""
        width = len(self._columns)
        first_line = last_line - len(rows) + 1  # exact if no row spans several lines
        for line, row in enumerate(rows, first_line):
            if len(row) != width:
                raise ValueError(
                    f"about line {line}: {len(row)} fields, but the first line has {width}"
                )
        for name, column in self.texts.items():
            position = self._columns.index(name)
            column += [row[position] for row in rows]
        picked = [[row[position] for position in self._positions] for row in rows]
        try:
            block = np.array(picked, np.float64)
        except ValueError:
            self._raise_wrong_number(rows, first_line)
            raise
        self._blocks.append(block.reshape(len(rows), len(self._positions)))

    def numbers(self) -> NDArray[np.float64]:
        """Return all numbers, with a row for each row of the file."""
        return np.concatenate(self._blocks)

    def _raise_wrong_number(self, rows: list[list[str]], first_line: int) -> None:
        for line, row in enumerate(rows, first_line):
            for position in self._positions:
                if not is_number(row[position]):
                    raise ValueError(
                        f"about line {line}: {show(row[position])} in {self._columns[position]} is "
                        "not a number; if this column has the ids, use --id-column, and if the "
                        "timestamps, --time-column"
                    )
