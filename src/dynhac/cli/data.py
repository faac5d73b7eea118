"""Files of vectors, edges and ids, as columns.

A file holds one of three things, told by its columns: edges (u, v and usually w), vectors (anything
else that is numbers, with an optional column of ids and one of timestamps), or ids alone. What the
values must be like is the model's business; here they only get their types.

Ids in text files have no type. They stay text in a `Data` with ``untyped`` set, until `ids_for`
makes them what the ids of the store are.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.cli.parse import date_of, is_number
from dynhac.extras import optional
from dynhac.input.errors import counted, show

TEXT_SUFFIXES = {".csv": ",", ".tsv": "\t", ".txt": ","}
SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".txt", ".parquet", ".pq")
KINDS = ("points", "graph", "ids")


class Columns(NamedTuple):
    """How the user calls the columns that are not part of a vector."""

    id: str = "id"
    time: str = "timestamp"


USUAL = Columns()


class Data(NamedTuple):
    """What a file holds; columns that it does not have are None."""

    source: str
    vectors: NDArray[Any] | None = None
    ids: Any = None
    times: NDArray[Any] | None = None
    u: Any = None
    v: Any = None
    w: NDArray[Any] | None = None
    untyped: bool = False
    names: list[str] | None = None  # of the columns that vectors are made of

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        if self.u is not None:
            return "graph"
        return "ids" if self.vectors is None else "points"

    def __len__(self) -> int:
        held = self.u if self.u is not None else self.vectors
        return len(self.ids if held is None else held)

    def require(self, kind: str, wanted: str) -> None:
        """Raise if the file holds something else."""
        if self.kind != kind:
            held = {"points": "vectors", "graph": "edges", "ids": "ids without vectors"}[self.kind]
            raise ValueError(f"{self.source} holds {held}; {wanted}")


def read_data(path: str, columns: Columns = USUAL, *, ids_only: bool = False) -> Data:
    """Return what is in a file.

    With ``ids_only`` a file without column names is a list of ids, and columns beside the ids do
    not count.
    """
    if path == "-":
        from dynhac.cli.textfiles import read_text

        return read_text("standard input", sys.stdin.buffer, 0, ",", columns, ids_only)
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: cannot read {suffix or 'a file without an ending'}; DATA must "
                         f"end in one of {', '.join(SUFFIXES)}")  # fmt: skip
    if not os.path.exists(path):
        raise FileNotFoundError(2, "no such file", path)
    if suffix in TEXT_SUFFIXES:
        from dynhac.cli.textfiles import read_text

        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            return read_text(path, file, size, TEXT_SUFFIXES[suffix], columns, ids_only)
    if suffix in (".npy", ".npz"):
        return _read_numpy(path, columns, ids_only)
    return _read_parquet(path, columns, ids_only)


def ids_for(column: Any, text: bool | None, data: Data) -> Any:
    """Return a column of ids of the kind that the store has: str if ``text``, int if not.

    None: the store has none yet, and ids in a text file are ints if they all look like it.
    """
    if column is None or not data.untyped:
        return column
    if text is None:
        text = not all(map(_looks_int, column))
    if text:
        return list(column)
    return [parse_id(id, False, f" in {data.source}") for id in column]


def parse_id(id: str, text: bool, where: str = "") -> int | str:
    """Return an id that a user has typed, as what the ids of the store are."""
    if text:
        return id
    if not _looks_int(id):
        raise ValueError(f"id {show(id)}{where} is not an int, as the ids of the store are")
    return int(id)


def parse_times(column: list[str], source: str) -> NDArray[Any]:
    """Return timestamps out of text: all ints, all numbers, or all dates."""
    for dtype in (np.int64, np.float64):
        try:
            return np.array(column, dtype)
        except (ValueError, OverflowError):
            continue
    try:
        dates = [date_of(text) for text in column if not is_number(text)]
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    if len(dates) < len(column):
        number = next(filter(is_number, column))
        raise ValueError(f"{source}: timestamps are a mix, such as {show(number)} and {dates[0]}; "
                         "they must be all numbers or all dates")  # fmt: skip
    return np.array(dates)


def _looks_int(id: str) -> bool:
    digits = id[1:] if id.startswith("-") else id
    return digits.isascii() and digits.isdigit() and (digits[0] != "0" or id == "0")


def _read_numpy(path: str, columns: Columns, ids_only: bool) -> Data:
    from zipfile import BadZipFile

    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"X": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except (ValueError, EOFError, BadZipFile) as error:
        hint = ""
        if "allow_pickle" in str(error):
            hint = "; arrays of Python objects cannot be read, save ids with ids.astype(str)"
        raise ValueError(f"{path} is no file of numpy that can be read{hint}") from error
    if {"u", "v"} <= set(arrays):
        return Data(path, u=arrays["u"], v=arrays["v"], w=arrays.get("w"))
    ids = arrays.get("ids", arrays.get(columns.id))
    if ids_only:
        ids = arrays.get("X") if ids is None else ids
        if ids is None:
            raise ValueError(f"{path} has no array ids, only {', '.join(arrays)}")
        return Data(path, ids=ids)
    if "X" not in arrays:
        raise ValueError(f"{path} has no array X, only {', '.join(arrays) or 'nothing at all'}; "
                         "vectors must be called X, and edges u, v and w")  # fmt: skip
    times = arrays.get("timestamps", arrays.get(columns.time))
    if arrays["X"].ndim != 2:
        raise ValueError(f"{path}: X has shape {arrays['X'].shape}; it must be a table with a row "
                         "for every vector")  # fmt: skip
    return Data(path, arrays["X"], ids, times)


def _read_parquet(path: str, columns: Columns, ids_only: bool) -> Data:
    parquet = optional("pyarrow.parquet", "arrow", "reading Parquet files")
    try:
        table = parquet.read_table(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} is no Parquet file that can be read: {error}") from error
    names = list(table.column_names)
    for name in names:
        if table[name].null_count:
            missing = counted(table[name].null_count, "missing value", "missing values")
            raise ValueError(f"{path}: column {name} has {missing}; every row needs one")
    if {"u", "v"} <= set(names) and columns.id not in names:
        weights = _arrow_column(table, "w")
        return Data(path, u=_arrow_column(table, "u"), v=_arrow_column(table, "v"), w=weights)
    ids = _arrow_column(table, columns.id)
    if ids_only:
        if ids is None and len(names) == 1:
            ids = _arrow_column(table, names[0])
        if ids is None:
            raise ValueError(f"{path} has no column {columns.id}, only {', '.join(names)}")
        return Data(path, ids=ids)
    rest = [name for name in names if name not in columns]
    if not rest:
        raise ValueError(f"{path} has no columns of vectors, only {', '.join(names)}")
    times = _arrow_column(table, columns.time)
    if len(rest) == 1 and hasattr(table.schema.field(rest[0]).type, "value_type"):
        return Data(path, _list_column(table[rest[0]], rest[0], path), ids, times)
    vectors = np.column_stack([_number_column(table, name, path) for name in rest])
    return Data(path, vectors, ids, times, names=rest)


def _arrow_column(table: Any, name: str) -> Any:
    if name not in table.column_names:
        return None
    values = table[name].to_numpy()
    return values.tolist() if values.dtype == object else values


def _list_column(column: Any, name: str, path: str) -> NDArray[Any]:
    """Return lists of numbers as rows."""
    compute = optional("pyarrow.compute", "arrow", "reading Parquet files")
    lengths = compute.list_value_length(column).to_numpy()
    wrong = np.flatnonzero(lengths != lengths[0]) if len(lengths) else lengths
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"{path}: row {row} of {name} has length {lengths[row]}, row 0 has {lengths[0]}; all "
            "rows must have one length"
        )
    flat = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    values: NDArray[Any] = np.concatenate([np.empty(0, np.float32), *flat])
    return values.reshape(len(lengths), -1 if values.size else 0)


def _number_column(table: Any, name: str, path: str) -> NDArray[Any]:
    values: NDArray[Any] = table[name].to_numpy()
    if values.dtype.kind not in "iuf":
        raise ValueError(
            f"{path}: column {name} holds {table.schema.field(name).type}, not numbers; if it has "
            "the ids, say --id-column, and if it has the times, --time-column"
        )
    return values
