"""The columns of a file that become the payloads of its points: an object for every row.

A row without a value in a column lacks the field. Cells of CSV are text; a column of them in which
all are numbers becomes one of numbers. A column called "payload" that holds objects, or their JSON
as text, is not a field: its objects are the payloads themselves, with the other columns added. So a
file that ``dynhac export`` has written can be read again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

WHOLE = "payload"
"""The name of a column that holds payloads."""

INT = re.compile(r"-?(0|[1-9]\d{0,17})")
FLOAT = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")


def objects_of(columns: dict[str, list[Any]], count: int) -> list[dict[str, Any] | None]:
    """Return the payloads of ``count`` rows, from columns of plain values."""
    return [
        payload_of(dict(zip(columns, row, strict=True)))
        for row in (zip(*columns.values(), strict=True) if columns else [()] * count)
    ]


def payload_of(fields: dict[str, Any]) -> dict[str, Any] | None:
    """Return the payload of a row; None if it has no values."""
    given = {name: value for name, value in fields.items() if value is not None}
    whole = given.get(WHOLE)
    if isinstance(whole, str) and whole.startswith("{"):
        try:
            whole = json.loads(whole)
        except (ValueError, RecursionError):
            return given
    if isinstance(whole, dict):
        del given[WHOLE]
        given = {**whole, **given}
    return given or None


def typed_text(cells: Sequence[str]) -> list[Any]:
    """Return cells of a column of CSV: numbers if all are, else text; None for empty ones.

    >>> typed_text(["1", "", "2.5"]), typed_text(["007", "8"])
    ([1, None, 2.5], ['007', '8'])
    """
    filled = [cell for cell in cells if cell.strip()]
    if all(map(INT.fullmatch, filled)) or all(map(_is_float, filled)):
        return [_number(cell) if cell.strip() else None for cell in cells]
    return [cell if cell.strip() else None for cell in cells]


def _is_float(cell: str) -> bool:
    return FLOAT.fullmatch(cell) is not None and math.isfinite(float(cell))


def _number(cell: str) -> int | float:
    return int(cell) if INT.fullmatch(cell) else float(cell)


def plain_values(values: Iterable[Any]) -> list[Any]:
    """Return values of a column in memory as JSON has them: dates as text, nan as None."""
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return plain_values(value)
    if isinstance(value, dict):
        return dict(zip(value, plain_values(value.values()), strict=True))
    return value
