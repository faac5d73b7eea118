"""What commands write: text, tables and JSON to standard output, and files.

On a terminal, text has colours and lines are cut to its width; elsewhere neither. A file appears
under its name when it is complete.

Ids and names of columns may have any characters. In text for people, and in all that goes to a
terminal, control characters are escaped (see `printable`). Data in pipes and files is exact.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.cli.printable import json_escaped, printable
from dynhac.extras import optional
from dynhac.files.leftovers import remove_leftovers
from dynhac.input.payloads import field_of

if TYPE_CHECKING:
    from rich.console import RenderableType

TABLE_ENDINGS = ".csv, .tsv, .jsonl, .parquet or .npz"
"""The files that `write_columns` can write several columns to."""

COLUMN_ENDINGS = ".csv, .tsv, .jsonl, .parquet, .npz or .npy"
"""The files that `write_columns` can write."""

UNLIMITED_WIDTH = 100_000
"""Columns of text that does not go to a terminal."""


def print_text(text: RenderableType) -> None:
    """Write text for people to standard output."""
    from rich.console import Console

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    if isinstance(text, str):
        text = printable(text, keep="\n")
    as_it_is: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
    if sys.stdout.isatty():
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # what the terminal cannot show
        PlainConsole(**as_it_is).print(text)
        return
    out = StringIO()
    Console(file=out, width=UNLIMITED_WIDTH, no_color=True, **as_it_is).print(text)
    plain = "\n".join(line.rstrip() for line in out.getvalue().split("\n"))
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(plain.encode(encoding, "replace").decode(encoding))


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]], numbers: int) -> None:
    """Write a table for people; the first ``numbers`` columns are aligned to the right."""
    from rich.table import Table

    rows = [[printable(cell) for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold", show_header=bool(names))
    for position, cells in enumerate(zip(*rows, strict=True)):
        name = names[position] if names else ""
        table.add_column(
            name,
            justify="right" if position < numbers else "left",
            no_wrap=True,
            # If the terminal is too narrow, only lists of ids are cut.
            min_width=None if name == "ids" else max(map(len, (name, *cells))),
        )
    for row in rows:
        table.add_row(*row)
    print_text(table)


def print_json(value: object) -> None:
    """Write JSON in one line to standard output."""
    write_stdout(to_json(value) + "\n")


def write_stdout(text: str) -> None:
    """Write text for programs to standard output, in UTF-8, and flush it."""
    sys.stdout.flush()
    if sys.stdout.isatty():
        text = printable(text, keep="\n\t")
    rest = memoryview(utf8(text))
    while rest:  # an unbuffered stream (python -u) may write only a part
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()


def to_json(value: object) -> str:
    """Return JSON in one line; numpy arrays and scalars become lists and numbers."""
    return json_escaped(
        json.dumps(value, default=lambda v: v.tolist(), ensure_ascii=False, allow_nan=False)
    )


@contextmanager
def new_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``, and move what is there to ``path`` at the end.

    If the block raises, nothing is left behind; what a killed process has left is removed.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ValueError(f"{path}: the folder {folder} does not exist")
    remove_leftovers(folder, re.compile(rf"\.{re.escape(path.name)}\.partial-(\d+)"))
    temporary = folder / f".{path.name}.partial-{os.getpid()}"
    _remove(temporary)  # of an earlier process with the same id, such as in a container
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        _remove(temporary)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_file(path: Path, write: Callable[[Path], object]) -> None:
    """Call ``write`` with a temporary path, and move the complete file to ``path``.

    Of a symbolic link, to what it points to. A device or a pipe is never replaced by a file.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a regular file; give the name of a file")
    with new_path(path.resolve()) as temporary:
        write(temporary)


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays to an .npz file, or the last one to a numpy file of any other name."""
    # An array of objects would be pickled: str ids become an array of fixed width.
    plain: Any = {n: a.astype(str) if a.dtype == object else a for n, a in arrays.items()}

    def save(temporary: Path) -> None:
        with temporary.open("wb") as file:  # numpy appends an ending to a path without it
            if path.suffix.lower() == ".npz":
                np.savez(file, **plain)
            else:
                np.save(file, list(plain.values())[-1])

    write_file(path, save)


def write_columns(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    """Write columns to a file of the format of its ending, or only the last one to an .npy file.

    "-" is CSV on standard output.
    """
    suffix = path.suffix.lower()
    if str(path) == "-":
        write_stdout(_csv_text(columns, ","))
    elif suffix in (".csv", ".tsv"):
        text = _csv_text(columns, "," if suffix == ".csv" else "\t")
        write_file(path, lambda file: file.write_bytes(utf8(text)))
    elif suffix in (".jsonl", ".ndjson"):
        rows = zip(*map(_json_values, columns.values()), strict=True)
        lines = "".join(to_json(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
        write_file(path, lambda file: file.write_bytes(utf8(lines)))
    elif suffix in (".parquet", ".pq"):
        arrow = optional("pyarrow", "arrow", "writing Parquet files")
        parquet = optional("pyarrow.parquet", "arrow", "writing Parquet files")
        table = arrow.table(columns)
        write_file(path, lambda file: parquet.write_table(table, str(file)))
    elif suffix in (".npy", ".npz"):
        write_arrays(path, columns)
    else:
        raise ValueError(
            f"{path}: cannot write {suffix or 'a file without an ending'}; it must end in "
            f"{COLUMN_ENDINGS}"
        )


def _json_values(column: NDArray[Any]) -> list[Any]:
    """Return the values of a column for JSON, which has no nan: None in its place."""
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        return [value if math.isfinite(value) else None for value in values]
    return values


def print_columns(
    columns: dict[str, NDArray[Any]],
    out: Path | None,
    json: bool,
    *,
    summary: str,
    facts: dict[str, Any],
    rows: Callable[[], dict[str, Any]],
    show: Callable[[], None],
) -> None:
    """Write a result that is a table: to the file ``out`` if given, and to standard output.

    Standard output gets one of these:

    - With ``json``, the ``facts``, and ``rows()`` unless they are in the file.
    - The ``summary`` if the table is in a file.
    - What ``show()`` prints, on a terminal.
    - CSV otherwise, and always if ``out`` is "-".
    """
    to_file = out is not None and str(out) != "-"
    if out is not None and to_file:
        write_columns(out, columns)
    if json:
        print_json(facts if to_file else facts | rows())
    elif to_file:
        print_text(f"{out}: {summary}")
    elif out is None and sys.stdout.isatty():
        show()
    else:
        write_columns(Path("-"), columns)


def _csv_text(columns: dict[str, NDArray[Any]], delimiter: str) -> str:
    """Return columns as CSV, with a line of names."""
    out = StringIO()
    lists = [column.tolist() for column in columns.values()]
    # A carriage return ends a row for readers, but the writer does not quote it by itself.
    returns = any(isinstance(value, str) and "\r" in value for values in lists for value in values)
    writer = csv.writer(
        out,
        delimiter=delimiter,
        lineterminator="\n",
        quoting=csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL,
    )
    writer.writerow(columns)
    writer.writerows(zip(*lists, strict=True))
    return out.getvalue()


def utf8(text: str) -> bytes:
    """Return text in UTF-8; lone surrogates, which ids of older stores may have, are escaped."""
    return text.encode(errors="backslashreplace")


def payload_cells(
    payloads: Sequence[dict[str, Any] | None], names: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """Return columns of text with fields of payloads: "" where there is no such field."""
    columns = {}
    for name in names:
        cells = [field_of(payload, name) for payload in payloads]
        texts = ["" if c is None else c if isinstance(c, str) else to_json(c) for c in cells]
        columns[name] = np.array(texts, object)
    return columns


def sample_text(ids: Sequence[Any] | NDArray[Any], count: int, most: int = 5) -> str:
    """Return some ids as a list, which ends in "…" if there are more; ``count`` is their number."""
    shown = [printable(str(id)) for id in ids[:most]]
    return ", ".join([*shown, "…"] if count > len(shown) else shown)
