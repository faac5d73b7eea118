"""Text files as tables: CSV, TSV and lines of JSON, also compressed by gzip.

Text is UTF-8, with or without a byte order mark. Messages name the line in which a row begins,
counted from 1; a row of CSV can span several lines.
"""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain
from typing import IO, Any

from dynhac._core import Meter
from dynhac.cli.layout import Layout
from dynhac.cli.parse import is_number
from dynhac.cli.printable import printable
from dynhac.cli.rows import BLOCK_ROWS, JsonCells, RowTable, TextCells
from dynhac.cli.table import Table
from dynhac.input.errors import show
from dynhac.progress import metered

READ_SIZE = 1 << 20
"""Characters between two reports of progress."""

JSON = "json"
"""What stands for a delimiter in lines of JSON."""

MAX_FIELD = 1 << 30
"""Characters of a field of CSV: a vector as text exceeds the default of the csv module."""


def read_text(
    source: str,
    file: IO[bytes],
    size: int | None,
    delimiter: str | None,
    layout: Layout,
    ids_only: bool,
    *,
    compressed: bool = False,
) -> Table:
    """Return the table in a file of ``size`` bytes; None if its size is unknown.

    ``delimiter`` is that of the fields, or `JSON`; None: JSON if the text begins with a brace, else
    CSV.
    """
    plain: Any = gzip.GzipFile(fileobj=file) if compressed else file
    text = TextIOWrapper(plain, encoding="utf-8-sig", errors="surrogateescape", newline="")
    with metered(None) as meter:
        meter.begin(f"reading {printable(source)}", "bytes", size)
        try:
            lines = _lines(text, file, meter)
            head = list(_until_filled(lines))
            if not head:
                raise ValueError("empty; at least one row is needed")
            lines = chain(head, lines)
            if delimiter is None:
                delimiter = JSON if head[-1].lstrip().startswith("{") else ","
            if delimiter == JSON:
                return _read_json(source, lines, layout, ids_only)
            return _read_csv(source, lines, delimiter, layout, ids_only)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"cannot be read as a gzip file: {error}") from error
        finally:
            text.detach()  # the caller closes the file


def _until_filled(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines up to the first one that is not blank; nothing if there is none."""
    blank: list[str] = []
    for line in lines:
        if line.strip():
            yield from blank
            yield line
            return
        blank.append(line)


def _lines(text: TextIOWrapper, file: IO[bytes], meter: Meter) -> Iterator[str]:
    """Yield the lines of a text; raise if one is not UTF-8."""
    number = before = 0
    while lines := text.readlines(READ_SIZE):
        if file.seekable():
            meter.advance(file.tell() - before)
            before = file.tell()
        try:
            "".join(lines).encode()
        except UnicodeEncodeError:
            raise _not_utf8(lines, number + 1) from None
        number += len(lines)
        yield from lines


def _not_utf8(lines: list[str], first: int) -> ValueError:
    """Return the error for the first byte that is not UTF-8; it was decoded as a surrogate."""
    number, byte = next(
        (number, ord(char) & 0xFF)
        for number, line in enumerate(lines, first)
        for char in line
        if "\ud800" <= char <= "\udfff"
    )
    encoding = "UTF-16" if number == 1 and byte in (0xFE, 0xFF) else "LATIN1"
    return ValueError(
        f"line {number}: byte 0x{byte:02x} is not text in UTF-8; convert the file, for example by "
        f"iconv -f {encoding} -t UTF-8"
    )


def _read_csv(
    source: str, lines: Iterator[str], delimiter: str, layout: Layout, ids_only: bool
) -> Table:
    with _large_fields():
        reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
        rows = _numbered(reader)
        start, first = next(rows)
        names = _names(first, layout, ids_only)
        named = names is not None
        if names is None:
            names = [f"column {i}" for i in range(len(first))]
            if ids_only:
                names[0] = layout.id or layout.usual_ids[0]
            layout = layout._replace(usual_vector=None)
            rows = chain([(start, first)], rows)
        table = RowTable(names, layout.roles(names, ids_only), TextCells())
        for numbers, block in _blocks(rows):
            for number, row in zip(numbers, block, strict=True):
                if len(row) != len(names):
                    raise ValueError(
                        f"line {number}: {len(row)} fields, but the first line has "
                        f"{len(names)}; every line needs as many, and a field with a "
                        f"{'comma' if delimiter == ',' else 'tab'} needs quotes"
                    )
            table.add(numbers, block)
    return table.table(source, named)


def _names(first: list[str], layout: Layout, ids_only: bool) -> list[str] | None:
    """Return the names in the first row of CSV; None if it has none."""
    names = [name.strip() for name in first]
    if layout.header is not None:
        return names if layout.header else None
    if ids_only and len(names) == 1 and names[0] not in (layout.id, *layout.usual_ids):
        return None  # a list of ids
    if not all(map(is_number, names)):
        return names
    if len(names) > 1 and names == [str(i) for i in range(len(names))]:
        raise ValueError(
            f"the first line is {names[0]} to {names[-1]}: names of columns, or a vector? Use "
            "--header or --no-header"
        )
    return None


def _numbered(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of CSV that are not blank, each with the number of its first line."""
    start = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            hint = "a quote that is not closed" if "end of data" in str(error) else error
            raise ValueError(f"line {start}: {hint}") from error
        if row:
            yield start, row
        start = reader.line_num + 1


def _blocks(rows: Iterator[tuple[int, Any]]) -> Iterator[tuple[list[int], list[Any]]]:
    numbers: list[int] = []
    block: list[Any] = []
    for number, row in rows:
        numbers.append(number)
        block.append(row)
        if len(block) == BLOCK_ROWS:
            yield numbers, block
            numbers, block = [], []
    if block:
        yield numbers, block


@contextmanager
def _large_fields() -> Iterator[None]:
    """Let fields of CSV be large while the block runs."""
    before = csv.field_size_limit(MAX_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _read_json(source: str, lines: Iterator[str], layout: Layout, ids_only: bool) -> Table:
    table: JsonRows | None = None
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    rows = ((number, parse_object(line, number)) for number, line in numbered)
    for numbers, block in _blocks(rows):
        if table is None:
            table = JsonRows(block[0], layout, ids_only)
        table.add(numbers, block)
    assert table is not None  # there is a line that is not blank
    return table.table(source)


class JsonRows:
    """Objects of JSON as rows of a table; the first object has the names of the columns."""

    def __init__(self, first: dict[str, Any], layout: Layout, ids_only: bool = False) -> None:
        payload = None if ids_only else layout.wanted_payload
        unjudged = {*layout.ignore, *(payload or ())}
        self._names = [name for name in first if name not in unjudged]
        self._ignored = set(layout.ignore)
        self._known = {*self._names, *unjudged}
        # An object may lack a key that is ignored, or part of the payload.
        plain = layout._replace(ignore=(), payload=None, usual_payload=None)
        roles = plain.roles(self._names, ids_only)
        if payload is not None:
            roles = roles.with_payload(payload)
        self._strict = not roles.decided
        self._rows = RowTable(self._names, roles, JsonCells())

    def add(self, lines: Sequence[int], objects: Sequence[dict[str, Any]]) -> None:
        """Add objects, each from a line of the file; raise if they are not valid."""
        names = self._names
        if self._strict:
            for line, row in zip(lines, objects, strict=True):
                self._check_keys(line, row)
        cells = [[row.get(name) for name in names] for row in objects]
        if self._ignored:
            objects = [{k: row[k] for k in row if k not in self._ignored} for row in objects]
        self._rows.add(lines, cells, objects)

    def table(self, source: str) -> Table:
        """Return all rows as a table."""
        return self._rows.table(source)

    def _check_keys(self, line: int, row: dict[str, Any]) -> None:
        """Raise if a row has numbers under a key that the first row does not have."""
        if row.keys() <= self._known:
            return
        for name, value in row.items():
            if name not in self._known and type(value) in (int, float, list):
                raise ValueError(
                    f"line {line}: {name} is {show(value)}, but the first row has no {name}; rows "
                    f"must have the same numbers; to leave this one out use --ignore {name}"
                )


def parse_object(line: str | bytes, number: int | None = None) -> dict[str, Any]:
    """Return the object in a line of JSON, or raise."""
    place = "" if number is None else f"line {number}: "
    try:
        value = json.loads(line)
    except ValueError as error:
        why = str(error)
        if isinstance(error, json.JSONDecodeError):  # its own text has a number of a line, too
            why = f"{error.msg} at column {error.colno}"
        raise ValueError(f"{place}not JSON: {why}; every line must be an object") from None
    except RecursionError:
        raise ValueError(f"{place}not JSON: nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"{place}{show(value)} is not an object")
    if not value:
        raise ValueError(f"{place}an empty object")
    return value
