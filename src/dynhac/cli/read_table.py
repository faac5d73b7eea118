"""Input files as tables: numpy and Parquet files; `read_csv` reads text."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac.cli.command import errors_in
from dynhac.cli.read_csv import read_csv
from dynhac.cli.table import ColumnNames, Table
from dynhac.extras import optional
from dynhac.input.errors import counted

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ","}
SUFFIXES = (".npy", ".npz", *DELIMITERS, ".parquet", ".pq")


def read_table(path: str, names: ColumnNames, *, ids_only: bool = False) -> Table:
    """Return the table in a file; "-" is CSV on standard input.

    With ``ids_only`` a file without column names is a list of ids, and columns other than the ids
    are ignored.
    """
    if path == "-":
        with errors_in("standard input"):
            return read_csv("standard input", sys.stdin.buffer, None, ",", names, ids_only)
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
                return read_csv(path, file, size, DELIMITERS[suffix], names, ids_only)
        if suffix in (".npy", ".npz"):
            return _read_numpy(path, names, ids_only)
        return _read_parquet(path, names, ids_only)


def _read_numpy(path: str, names: ColumnNames, ids_only: bool) -> Table:
    from zipfile import BadZipFile

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
    if "u" not in fields and len(numbers) == 1:
        lists = table[numbers[0]]
        if hasattr(lists.type, "value_type"):
            return Table(path, _vectors_from_lists(lists, numbers[0]), **fields)
    array = np.column_stack([_number_column(table, name) for name in numbers])
    if "u" in fields:
        return Table(path, w=array[:, 0], **fields)
    return Table(path, array, vector_columns=numbers, **fields)


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
