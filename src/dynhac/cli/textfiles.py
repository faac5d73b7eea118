"""CSV files, read in pieces under a progress bar.

The first line may name the columns; it does not if all of it is numbers. Numbers go straight into
arrays, piece by piece; only ids and timestamps are kept as text.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from itertools import chain, islice
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.cli.data import Columns, Data, parse_times
from dynhac.cli.parse import is_number
from dynhac.cli.progress import bytes_bar
from dynhac.input.errors import show

ROWS = 4096
"""Rows in a piece."""


def read_text(
    source: str, file: IO[bytes], size: int, delimiter: str, columns: Columns, ids_only: bool
) -> Data:
    """Return what is in a text file; ``size`` is its length in bytes, 0 if not known."""
    with bytes_bar(f"reading {source}", size) as advance:
        lines = _lines(file, advance)
        rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
        try:
            return _read_rows(source, rows, columns, ids_only)
        except csv.Error as error:
            raise ValueError(f"{source}, line {rows.line_num}: {error}") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"{source} is not text in UTF-8: {error.reason}") from error


def _lines(file: IO[bytes], advance: Callable[[int], None]) -> Iterator[str]:
    text = TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        for line in text:
            advance(len(line))
            yield line
    finally:
        text.detach()  # the caller closes the file


def _read_rows(source: str, rows: Any, columns: Columns, ids_only: bool) -> Data:
    filled: Iterator[list[str]] = (row for row in rows if row)
    first = next(filled, None)
    if first is None:
        raise ValueError(f"{source} is empty; it needs at least one row")
    named = not all(map(is_number, first))
    if ids_only and columns.id not in first and len(first) == 1:
        named = False
    names = [name.strip() if named else f"column {i}" for i, name in enumerate(first)]
    if named and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{source} has two columns called {show(twice)}; names must differ")
    if not named:
        filled = chain([first], filled)

    if {"u", "v"} <= set(names) and columns.id not in names:
        text, numbers = ["u", "v"], [name for name in names if name == "w"]
    elif ids_only:
        text, numbers = [columns.id if named else names[0]], []
        if text[0] not in names:
            raise ValueError(f"{source} has no column {columns.id}, only {', '.join(names)}")
    else:
        text = [name for name in names if name in columns]
        numbers = [name for name in names if name not in columns]
        if not numbers:
            raise ValueError(f"{source} has no columns of vectors, only {', '.join(names)}")

    table = _Table(source, names, text, numbers)
    while piece := list(islice(filled, ROWS)):
        table.add(piece, rows.line_num)
    held, array = table.texts, table.array()
    if text[:2] == ["u", "v"]:
        weights = array[:, 0] if numbers else None
        return Data(source, u=held["u"], v=held["v"], w=weights, untyped=True)
    if ids_only:
        return Data(source, ids=held[text[0]], untyped=True)
    times = held.get(columns.time)
    return Data(
        source,
        array,
        held.get(columns.id),
        None if times is None else parse_times(times, source),
        untyped=True,
        names=numbers if named else None,
    )


class _Table:
    """Rows split into columns of text and an array of numbers."""

    def __init__(self, source: str, names: list[str], text: list[str], numbers: list[str]) -> None:
        self.texts: dict[str, list[str]] = {name: [] for name in text}
        self._source = source
        self._names = names
        self._places = [names.index(name) for name in numbers]
        self._pieces: list[NDArray[np.float64]] = []

    def add(self, rows: list[list[str]], last_line: int) -> None:
        """Take a piece; ``last_line`` is the number of its last line, for messages."""
        width = len(self._names)
        for back, row in enumerate(reversed(rows)):
            if len(row) != width:
                raise ValueError(
                    f"{self._source}, about line {last_line - back}: {len(row)} fields, but the "
                    f"first line has {width}"
                )
        for name, column in self.texts.items():
            place = self._names.index(name)
            column += [row[place] for row in rows]
        picked = [[row[place] for place in self._places] for row in rows]
        try:
            self._pieces.append(np.array(picked, np.float64).reshape(len(rows), len(self._places)))
        except ValueError:
            self._name_wrong_number(rows, last_line)
            raise

    def array(self) -> NDArray[np.float64]:
        """Return all numbers, a row for each row of the file."""
        empty = np.empty((0, len(self._places)))
        return np.concatenate(self._pieces) if self._pieces else empty

    def _name_wrong_number(self, rows: list[list[str]], last_line: int) -> None:
        for back, row in reversed(list(enumerate(reversed(rows)))):
            for place in self._places:
                if not is_number(row[place]):
                    raise ValueError(
                        f"{self._source}, about line {last_line - back}: {show(row[place])} in "
                        f"{self._names[place]} is not a number; if this column has the ids, say "
                        "--id-column, and if it has the times, --time-column"
                    )
