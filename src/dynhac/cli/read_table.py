"""Input files as tables.

The first line of a text file names the columns, unless all of it is numbers. Text is read in
blocks of rows: numbers are converted block by block; only ids and timestamps are kept as text.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from dynhac._core import Meter
from dynhac.cli.command import errors_in
from dynhac.cli.parse import is_number, parse_timestamps
from dynhac.cli.table import ColumnNames, Table
from dynhac.extras import optional
from dynhac.input.errors import counted, show
from dynhac.progress import metered

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ","}
SUFFIXES = (".npy", ".npz", *DELIMITERS, ".parquet", ".pq")
BLOCK_ROWS = 4096
READ_SIZE = 1 << 20
"""Characters between two reports of progress."""


def read_table(path: str, names: ColumnNames, *, ids_only: bool = False) -> Table:
    """Return the table in a file; "-" is CSV on standard input.

    With ``ids_only`` a file without column names is a list of ids, and columns other than the ids
    are ignored.
    """
    if path == "-":
        with errors_in("standard input"):
            return _read_csv("standard input", sys.stdin.buffer, None, ",", names, ids_only)
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: cannot read {suffix or 'a file without an ending'}; DATA must "
                         f"end in one of {', '.join(SUFFIXES)}")  # fmt: skip
    if not os.path.exists(path):
        raise FileNotFoundError(2, "no such file", path)
    with errors_in(path):
        if suffix in DELIMITERS:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                return _read_csv(path, file, size, DELIMITERS[suffix], names, ids_only)
        if suffix in (".npy", ".npz"):
            return _read_numpy(path, names, ids_only)
        return _read_parquet(path, names, ids_only)


def _read_csv(
    source: str,
    file: IO[bytes],
    size: int | None,
    delimiter: str,
    names: ColumnNames,
    ids_only: bool,
) -> Table:
    """Return the table in a file of ``size`` bytes; None if its size is unknown."""
    text = TextIOWrapper(file, encoding="utf-8-sig", newline="")
    with metered(None) as meter:
        meter.begin(f"reading {source}", "bytes", size)
        lines = _lines(text, meter)
        rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
        try:
            return _read_rows(source, rows, names, ids_only)
        except csv.Error as error:
            raise ValueError(f"line {rows.line_num}: {error}") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"not text in UTF-8: {error.reason}") from error
        finally:
            text.detach()  # the caller closes the file


def _lines(text: TextIOWrapper, meter: Meter) -> Iterator[str]:
    while lines := text.readlines(READ_SIZE):
        meter.advance(sum(map(len, lines)))
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


def _read_numpy(path: str, names: ColumnNames, ids_only: bool) -> Table:
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            arrays = {"X": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except (ValueError, EOFError, BadZipFile) as error:
        hint = ""
        if "allow_pickle" in str(error):
            hint = "; it has arrays of Python objects; save ids with ids.astype(str)"
        raise ValueError(f"cannot be read as a numpy file{hint}") from error
    listed = ", ".join(arrays) or "nothing"
    if {"u", "v"} <= set(arrays):
        return Table(path, u=arrays["u"], v=arrays["v"], w=arrays.get("w"))
    ids = arrays.get("ids", arrays.get(names.id))
    if ids_only:
        ids = arrays.get("X") if ids is None else ids
        if ids is None:
            raise ValueError(f"no array ids, only {listed}")
        return Table(path, ids=ids)
    if "X" not in arrays:
        raise ValueError(f"no array X, only {listed}; the array of vectors must be called X, and "
                         "those of edges u, v and w")  # fmt: skip
    timestamps = arrays.get("timestamps", arrays.get(names.time))
    if arrays["X"].ndim != 2:
        raise ValueError(f"X has shape {arrays['X'].shape}; it must have two dimensions, and a "
                         "row for every vector")  # fmt: skip
    return Table(path, arrays["X"], ids, timestamps)


def _read_parquet(path: str, names: ColumnNames, ids_only: bool) -> Table:
    parquet = optional("pyarrow.parquet", "arrow", "reading Parquet files")
    try:
        table = parquet.read_table(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"cannot be read as a Parquet file: {error}") from error
    columns = list(table.column_names)
    for name in columns:
        if table[name].null_count:
            missing = counted(table[name].null_count, "missing value", "missing values")
            raise ValueError(f"column {name} has {missing}; every row needs one")
    if ids_only and len(columns) == 1:
        columns = [names.id]
        table = table.rename_columns(columns)
    attributes, numbers = names.assign(columns, ids_only)
    fields = {attribute: _values(table[name]) for name, attribute in attributes.items()}
    if not numbers:
        return Table(path, **fields)
    if "u" in fields:
        return Table(path, w=_values(table["w"]), **fields)
    if len(numbers) == 1 and hasattr(table[numbers[0]].type, "value_type"):
        return Table(path, _vectors_from_lists(table[numbers[0]], numbers[0]), **fields)
    vectors = np.column_stack([_number_column(table, name) for name in numbers])
    return Table(path, vectors, vector_columns=numbers, **fields)


def _values(column: Any) -> Any:
    values = column.to_numpy()
    return values.tolist() if values.dtype == object else values


def _vectors_from_lists(column: Any, name: str) -> NDArray[Any]:
    """Return a column of lists of numbers as an array with a row for each list."""
    compute = optional("pyarrow.compute", "arrow", "reading Parquet files")
    lengths = compute.list_value_length(column).to_numpy()
    wrong = np.flatnonzero(lengths != lengths[0]) if len(lengths) else lengths
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"row {row} of {name} has length {lengths[row]}, row 0 has {lengths[0]}; all rows must "
            "have one length"
        )
    flat = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    values: NDArray[Any] = np.concatenate([np.empty(0, np.float32), *flat])
    return values.reshape(len(lengths), -1 if values.size else 0)


def _number_column(table: Any, name: str) -> NDArray[Any]:
    values: NDArray[Any] = table[name].to_numpy()
    if values.dtype.kind not in "iuf":
        raise ValueError(
            f"column {name} holds {table.schema.field(name).type}, not numbers; if these are ids, "
            "use --id-column, and if timestamps, --time-column"
        )
    return values
