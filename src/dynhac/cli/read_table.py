"""Input files as tables: which format a file has, and numpy files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from dynhac.cli.columns import ArrayColumns, table_of
from dynhac.cli.command import errors_in, print_message
from dynhac.cli.layout import Layout, listed
from dynhac.cli.read_arrow import ARROW, PARQUET, read_arrow
from dynhac.cli.read_text import JSON, read_text
from dynhac.cli.table import Table

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ",", ".jsonl": JSON, ".ndjson": JSON}
"""Text files, by their ending, which may be followed by .gz."""

NUMPY = (".npy", ".npz")
SUFFIXES = (*DELIMITERS, *PARQUET, *ARROW, *NUMPY)
STDIN = "standard input"


def read_table(path: str, layout: Layout, *, ids_only: bool = False) -> Table:
    """Return the table in a file; "-" is CSV or lines of JSON on standard input.

    With ``ids_only`` a file without column names is a list of ids, and columns other than the ids
    are ignored. Otherwise a message names the columns that are ignored but were not asked to be.
    """
    with errors_in(STDIN if path == "-" else path):
        table = _read(path, layout, ids_only)
    ignored = table.roles.ignored if table.roles is not None else []
    if ignored and not ids_only and layout.vector is None:
        kind = "are not part of an edge" if table.kind == "graph" else "are not part of the vector"
        print_message("note", f"{table.source}: ignored columns, which {kind}: {listed(ignored)}")
    return table


def _read(path: str, layout: Layout, ids_only: bool) -> Table:
    if path == "-":
        return read_text(STDIN, sys.stdin.buffer, None, None, layout, ids_only)
    endings = [suffix.lower() for suffix in Path(path).suffixes[-2:]]
    compressed = endings[-1:] == [".gz"]
    suffix = ("", *endings[:-1])[-1] if compressed else ("", *endings)[-1]
    if suffix not in SUFFIXES or (compressed and suffix not in DELIMITERS):
        ending = (suffix if suffix in SUFFIXES else "") + ("".join(endings[-1:]))
        raise ValueError(
            f"cannot read {ending or 'a file without an ending'}; "
            f"DATA must end in one of {', '.join(SUFFIXES)}; text files may be compressed (.gz)"
        )
    if not os.path.exists(path):
        raise ValueError("no such file")
    if suffix in DELIMITERS:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            delimiter = DELIMITERS[suffix]
            return read_text(path, file, size, delimiter, layout, ids_only, compressed=compressed)
    if suffix in NUMPY:
        return _read_numpy(path, layout, ids_only)
    return read_arrow(path, suffix, layout, ids_only)


def _read_numpy(path: str, layout: Layout, ids_only: bool) -> Table:
    """Return the table in a numpy file.

    The usual names of arrays are X, ids and timestamps. An .npy file is an array X, or for
    ``ids_only`` one of ids, or an array of records, whose fields are columns.
    """
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            arrays = {"X": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # numpy raises errors of its parsers for damaged files
        hint = ""
        if "allow_pickle" in str(error):
            hint = "; it has arrays of Python objects; save ids with ids.astype(str)"
        raise ValueError(f"cannot be read as a numpy file{hint}") from error
    if isinstance(loaded, np.ndarray):
        if loaded.dtype.names is not None:
            arrays = {name: loaded[name] for name in loaded.dtype.names}
        elif ids_only:
            return Table(path, ids=loaded)
        elif loaded.ndim != 2:
            raise ValueError(f"the array has shape {loaded.shape}; it must have two dimensions, "
                             "and a row for every vector")  # fmt: skip
    layout = layout._replace(
        usual_ids=("ids", *layout.usual_ids),
        usual_times=("timestamps", *layout.usual_times),
        usual_vector="X" if "X" in arrays else layout.usual_vector,
    )
    if not arrays:
        raise ValueError("empty; an array of vectors is needed, called X")
    if ids_only and len(arrays) == 1 and layout.id is None:
        layout = layout._replace(id=next(iter(arrays)))
    return table_of(path, ArrayColumns(arrays), layout, ids_only)
