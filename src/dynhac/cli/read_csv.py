"""CSV files as tables, read in blocks of rows under a progress bar.

The first line names the columns, unless all of it is numbers. Numbers are converted block by block;
only ids and timestamps are kept as text.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import chain, islice
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.cli.parse import is_number, parse_timestamps
from dynhac.cli.progress import Advance, progress_bar
from dynhac.cli.table import ColumnNames, Table
from dynhac.input.errors import show

BLOCK_ROWS = 4096
READ_SIZE = 1 << 20
"""Characters between two updates of the progress bar."""


def read_csv(
    source: str,
    file: IO[bytes],
    size: int | None,
    delimiter: str,
    names: ColumnNames,
    ids_only: bool,
) -> Table:
    """Return the table in a file of ``size`` bytes; None if its size is unknown."""
    text = TextIOWrapper(file, encoding="utf-8-sig", newline="")
    with progress_bar(f"reading {source}", size, "bytes") as advance:
        lines = _lines(text, advance)
        rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
        try:
            return _read_rows(source, rows, names, ids_only)
        except csv.Error as error:
            raise ValueError(f"line {rows.line_num}: {error}") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"not text in UTF-8: {error.reason}") from error
        finally:
            text.detach()  # the caller closes the file


def _lines(text: TextIOWrapper, advance: Advance) -> Iterator[str]:
    while lines := text.readlines(READ_SIZE):
        advance(sum(map(len, lines)))
        yield from lines


def _read_rows(source: str, rows: Any, names: ColumnNames, ids_only: bool) -> Table:
    filled: Iterator[list[str]] = (row for row in rows if row)
    first = next(filled, None)
    if first is None:
        raise ValueError("empty; at least one row is needed")
    list_of_ids = ids_only and len(first) == 1 and names.id not in first
    named = not list_of_ids and not all(map(is_number, first))
    if named:
        columns = [name.strip() for name in first]
        if len(set(columns)) < len(columns):
            repeated = next(name for name in columns if columns.count(name) > 1)
            raise ValueError(f"two columns called {show(repeated)}; names must differ")
    else:
        columns = [f"column {i}" for i in range(len(first))]
        if ids_only:
            columns[0] = names.id
        filled = chain([first], filled)
    attributes, numbers = names.assign(columns, ids_only)

    fields: dict[str, Any] = {attribute: [] for attribute in attributes.values()}
    blocks = [np.empty((0, len(numbers)))]
    while block := list(islice(filled, BLOCK_ROWS)):
        first_line = rows.line_num - len(block) + 1  # exact if no row spans several lines
        for line, row in enumerate(block, first_line):
            if len(row) != len(columns):
                raise ValueError(
                    f"about line {line}: {len(row)} fields, but the first line has {len(columns)}"
                )
        for name, attribute in attributes.items():
            position = columns.index(name)
            fields[attribute] += [row[position] for row in block]
        blocks.append(_numbers(block, columns, numbers, first_line))
    array = np.concatenate(blocks)
    if "timestamps" in fields:
        fields["timestamps"] = parse_timestamps(fields["timestamps"])
    if "u" in fields:
        fields["w"] = array[:, 0] if numbers else None
    elif not ids_only:
        fields |= {"vectors": array, "vector_columns": numbers if named else None}
    return Table(source, **fields, untyped_ids=True)


def _numbers(
    rows: list[list[str]], columns: list[str], names: list[str], first_line: int
) -> NDArray[np.float64]:
    """Return the columns of numbers of a block, with a row for each of its rows."""
    positions = [columns.index(name) for name in names]
    try:
        picked = np.array([[row[position] for position in positions] for row in rows], np.float64)
    except ValueError:
        for line, row in enumerate(rows, first_line):
            for name, position in zip(names, positions, strict=True):
                if not is_number(row[position]):
                    raise ValueError(
                        f"about line {line}: {show(row[position])} in {name} is not a number; if "
                        "this column has the ids, use --id-column, and if the timestamps, "
                        "--time-column"
                    ) from None
        raise
    return picked.reshape(len(rows), len(names))
