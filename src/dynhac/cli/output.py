"""What commands write: files that are complete or not there, JSON, and text for people.

People see colours and lines cut to the width of their terminal; in a pipe or file there are no
colours and nothing is cut.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.extras import optional

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

UNBOUND = 100_000
"""Columns of a terminal that is none."""

PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
"""Text is shown as it is."""


def show(what: RenderableType) -> None:
    """Write something for people to standard output."""
    from rich.console import Console

    if sys.stdout.isatty():
        _terminal().print(what)
        return
    paper = Console(file=StringIO(), width=UNBOUND, no_color=True, **PLAIN)
    paper.print(what)
    text = paper.file.getvalue()  # type: ignore[attr-defined]
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def _terminal() -> Console:
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Terminal(**PLAIN)


def show_table(names: Sequence[str], rows: Sequence[Sequence[str]], numbers: int) -> None:
    """Write a table for people; the first ``numbers`` columns are numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", show_header=bool(names))
    for position, cells in enumerate(zip(*rows, strict=True)):
        name = names[position] if names else ""
        table.add_column(
            name,
            justify="right" if position < numbers else "left",
            no_wrap=True,
            # Where there is not enough room, lists of ids are cut, and nothing else.
            min_width=None if name == "ids" else max(map(len, (name, *cells))),
        )
    for row in rows:
        table.add_row(*row)
    show(table)


def write_text(text: str) -> None:
    """Write to standard output what programs read: in UTF-8, at once, and all of it."""
    sys.stdout.flush()
    rest = memoryview(text.encode())
    while rest:  # without a buffer (python -u) a signal may leave some of it unwritten
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()


def show_json(value: object) -> None:
    """Write one JSON document, or one line of a stream of them."""
    write_text(to_json(value) + "\n")


def to_json(value: object) -> str:
    """Return JSON in one line; numpy's arrays and numbers become lists and plain numbers."""
    text = json.dumps(value, default=_plain, ensure_ascii=False, allow_nan=False)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # half a character, which only an escape can stand for
            text = json.dumps(value, default=_plain, allow_nan=False)
    return text


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a file beside ``path``, and put it there when it is complete."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ValueError(f"{path}: the folder {folder} does not exist")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    beside = folder / f".{path.stem}.partial-{os.getpid()}{path.suffix}"
    try:
        write(beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_columns(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    """Write columns to a file: .csv, .parquet, .npz, or the last one alone to .npy."""
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        text = csv_text(columns, "," if suffix == ".csv" else "\t").encode()
        write_file(path, lambda file: file.write_bytes(text))
    elif suffix in (".parquet", ".pq"):
        arrow = optional("pyarrow", "arrow", "writing Parquet files")
        parquet = optional("pyarrow.parquet", "arrow", "writing Parquet files")
        table = arrow.table(columns)
        write_file(path, lambda file: parquet.write_table(table, str(file)))
    elif suffix == ".npy":
        write_file(path, lambda file: np.save(file, list(columns.values())[-1]))
    elif suffix == ".npz":
        plain: Any = {n: c.astype(str) if c.dtype == object else c for n, c in columns.items()}
        write_file(path, lambda file: np.savez(file, **plain))
    else:
        raise ValueError(
            f"{path}: cannot write {suffix or 'a file without an ending'}; it must end in .csv, "
            ".tsv, .parquet, .npz or .npy"
        )


def csv_text(columns: dict[str, NDArray[Any]], delimiter: str = ",") -> str:
    """Return columns as CSV, with a line of names."""
    out = StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return out.getvalue()


def few(ids: Sequence[Any] | NDArray[Any], count: int, most: int = 5) -> str:
    """Return some ids as examples; ``count`` is how many there are."""
    shown = [str(id) for id in ids[:most]]
    return ", ".join([*shown, "…"] if count > len(shown) else shown)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (Path, np.dtype)):
        return str(value)
    raise TypeError(f"cannot write {type(value).__name__} as JSON")
