"""Bodies of requests: read within limits, and parsed into columns.

Points come as a JSON list of objects ``{"id", "vector", "timestamp", "payload"}``, as NDJSON with
one object a line, or as an Arrow IPC stream with columns of these names. All but the vector may be
left out, but for all points together. Rows count from 0, lines of NDJSON from 1.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from starlette.requests import ClientDisconnect, Request

from dynhac.cli.parse import parse_date
from dynhac.input.errors import show
from dynhac.serve import arrow
from dynhac.serve.problems import Problem
from dynhac.serve.settings import Settings

JSON, NDJSON = "application/json", "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
NUMBERS = frozenset((int, float))
FIELDS = ("id", "vector", "timestamp", "payload")
FIELD_SET = frozenset(FIELDS)
LONGEST_ID = 1_000
"""Characters of an id: ids are in addresses, in events, and often in an answer."""
IN_THREAD = 1 << 16
"""Bytes; larger bodies are parsed in another thread, so that other requests do not wait."""


class Points(NamedTuple):
    """New points as columns, for `DynHAC.update`."""

    vectors: Any
    ids: Any = None
    timestamps: Any = None
    payload: list[dict[str, Any] | None] | None = None


class Budget:
    """Counts the bytes of all bodies in memory."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0

    def require_room(self, size: int, own: int = 0) -> None:
        """Raise Problem 429 if there are too many bytes for more; a body may always be alone.

        ``own``: how many of those that are counted are of the same body.
        """
        others = self.used - own
        if others and self.used + size > self.most:
            raise Problem(
                429,
                f"requests with {others:,} bytes are waiting already; try again",
                {"Retry-After": "1"},
            )

    def reserve(self, size: int) -> None:
        """Count bytes that were read."""
        self.used += size

    def release(self, size: int) -> None:
        """Bytes that were counted are gone."""
        self.used -= size


class Body:
    """A body that is being read; its bytes are counted until `close`."""

    def __init__(self, request: Request, budget: Budget, settings: Settings) -> None:
        self._request, self._budget = request, budget
        self._most = settings.max_body
        self.size = 0

    async def read(self) -> bytes:
        """Return the body; Problem 400, 413 or 429."""
        declared = self._request.headers.get("content-length", "")
        if declared.isdigit():
            self._require_room(int(declared))
        parts = []
        try:
            async for part in self._request.stream():
                self._require_room(len(part))
                self._budget.reserve(len(part))  # what is only announced takes no memory
                self.size += len(part)
                parts.append(part)
        except ClientDisconnect:  # or it was too slow, see dynhac.serve.protocol
            raise Problem(400, "the body ended too early") from None
        return b"".join(parts)

    def _require_room(self, size: int) -> None:
        if self.size + size > self._most:
            raise Problem(
                413,
                f"the body has more than {self._most:,} bytes; send several smaller batches",
                {"Connection": "close"},
            )
        self._budget.require_room(size, self.size)

    def close(self) -> None:
        """The body is not needed any more."""
        self._budget.release(self.size)
        self.size = 0


def media_type(request: Request, allowed: Sequence[str]) -> str:
    """Return the type of a body; Problem 415: it is not allowed here."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in allowed:
        raise Problem(415, f"the Content-Type is {given[:80]!r}; it must be {' or '.join(allowed)}")
    return given


def parse_json(body: bytes, what: str = "the body") -> Any:
    """Return the value; Problem 400: it is not JSON."""
    try:
        return json.loads(body)
    except RecursionError:
        raise Problem(400, f"{what} is nested too deeply") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise Problem(400, f"{what} is not JSON: {str(error)[:200]}") from None


def parse_points(kind: str, body: bytes) -> Points:
    """Return the points in a body; Problem 400 or ValueError: it is not right."""
    if kind == ARROW:
        return _arrow_points(body)
    if kind == NDJSON:
        return points_of(_parse_lines(body))
    return points_of(parse_json(body))


def _parse_lines(body: bytes) -> list[Any]:
    """Return the values of all lines that are not empty; Problem 400: one of them is not JSON."""
    scan: Any = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
    try:
        lines = [line.strip() for line in body.decode().split("\n")]
        rows = [scan(line, 0) for line in lines if line]
        if [end for _, end in rows] == [len(line) for line in lines if line]:
            return [value for value, _ in rows]
    except (StopIteration, ValueError, RecursionError):
        pass
    numbered = enumerate(body.split(b"\n"), 1)  # the slow way, which tells the line
    return [parse_json(line, f"line {number}") for number, line in numbered if line.strip()]


def points_of(rows: Any) -> Points:
    """Return points that are a list of objects as columns."""
    if not isinstance(rows, list):
        raise Problem(422, f"the points are {show(rows)}; they must be a list of objects")
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise Problem(422, f"row {number} is {show(row)}; it must be an object")
        if not FIELD_SET.issuperset(row):
            other = next(name for name in row if name not in FIELD_SET)
            raise Problem(
                422, f"row {number} has a field {show(other)}; the fields are {', '.join(FIELDS)}"
            )
    ids, vectors, times, payload = ([row.get(name) for row in rows] for name in FIELDS)
    for number, vector in enumerate(vectors):
        if not isinstance(vector, list):
            raise Problem(422, f"row {number} has no vector, a list of numbers")
    for number, each in enumerate(payload):
        if each is not None and not isinstance(each, dict):
            raise Problem(422, f"the payload of row {number} is {show(each)}; it must be an object")
    check_numbers(vectors)
    has_times = _all_or_none(times, "a timestamp")
    return Points(
        vectors,
        ids if _all_or_none(ids, "an id") else None,
        _times(times) if has_times else None,
        payload if any(each is not None for each in payload) else None,
    )


def _all_or_none(column: list[Any], what: str) -> bool:
    """Whether all points have a value; Problem: only some of them have one."""
    missing = column.count(None)
    if missing in (0, len(column)):
        return not missing
    row = next(i for i, value in enumerate(column) if (value is None) != (column[0] is None))
    raise Problem(
        422,
        f"row {row} differs from row 0 in having {what}; all points of a batch have one, or none",
    )


def check_ids(ids: Any, name: str) -> None:
    """Raise if an id is longer than a service takes."""
    for position, id in enumerate(ids if isinstance(ids, list) else ()):
        if isinstance(id, str) and len(id) > LONGEST_ID:
            raise Problem(
                422,
                f"id {show(id)} at position {position} of {name} has {len(id):,} characters; it "
                f"must have at most {LONGEST_ID:,}",
            )


def check_numbers(vectors: list[list[Any]]) -> None:
    """Raise if a vector holds something else than numbers, naming row and column."""
    for row, vector in enumerate(vectors):
        if NUMBERS.issuperset(map(type, vector)):
            continue
        column = next(i for i, value in enumerate(vector) if type(value) not in NUMBERS)
        raise Problem(
            422,
            f"row {row}, column {column} of the vectors is {show(vector[column])}; vectors must be "
            "lists of numbers",
        )


def _times(column: list[Any]) -> Any:
    """Return timestamps: numbers, or dates as text."""
    if not any(isinstance(time, str) for time in column):
        return column
    dates = []
    for row, time in enumerate(column):
        if not isinstance(time, str):
            raise Problem(422, f"the timestamp of row {row} is {show(time)}, but others are dates")
        try:
            dates.append(parse_date(time))
        except ValueError as error:
            raise Problem(422, f"row {row}: {error}") from None
    return np.array(dates)


def _arrow_points(body: bytes) -> Points:
    """Return the points in an Arrow IPC stream."""
    columns = arrow.read_columns(body, FIELDS)
    if "vector" not in columns:
        raise Problem(422, "there is no column vector")
    for name in ("id", "vector", "timestamp"):
        if name in columns and columns[name].null_count:
            row = columns[name].is_null().index(True).as_py()
            raise Problem(422, f"row {row} of column {name} is null")
    ids, times, payload = (columns.get(name) for name in ("id", "timestamp", "payload"))
    return Points(
        arrow.vectors_of(columns["vector"]),
        None if ids is None else arrow.values_of(ids),
        None if times is None else _arrow_times(times),
        None if payload is None else _arrow_payload(payload),
    )


def _arrow_times(column: Any) -> Any:
    """Return timestamps as an array of numbers or dates."""
    return _times(column.to_pylist()) if arrow.is_text(column) else arrow.values_of(column)


def _arrow_payload(column: Any) -> list[dict[str, Any] | None]:
    """Return a column of payloads: structs, or JSON text."""
    rows: list[Any] = column.to_pylist()
    if arrow.is_text(column):
        rows = [
            None if text is None else parse_json(text.encode(), f"the payload of row {row}")
            for row, text in enumerate(rows)
        ]
    for row, payload in enumerate(rows):
        if payload is not None and not isinstance(payload, dict):
            raise Problem(422, f"the payload of row {row} is {show(payload)}; it must be an object")
    return rows
