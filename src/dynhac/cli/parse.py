"""Values from text: similarities, ages, timestamps and ids."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac.input.columns import INT64_MAX, INT64_MIN
from dynhac.input.errors import show

DATE = re.compile(r"(\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?)(Z|\+00:?00)?")
DIGITS = len(str(INT64_MAX))
AGE = re.compile(r"(\d+)\s*(s|m|h|d|w|ms)")


def parse_similarity(text: str | None) -> Any:
    """Return the parameter ``similarity`` for a name, or for a name and sigma: "gaussian:0.5"."""
    if text is None or ":" not in text:
        return text
    name, _, sigma = text.partition(":")
    try:
        return name, float(sigma)
    except ValueError:
        raise ValueError(
            f"similarity is {text!r}; after the colon there must be a number, as in gaussian:0.5"
        ) from None


def parse_age(text: str | None, name: str = "max_age", number: str = "") -> Any:
    """Return a length of time for "12h" (a time span) or "3600" (a number)."""
    if text is None:
        return None
    match = AGE.fullmatch(text.strip())
    if match:
        unit = {"w": "W", "d": "D"}.get(match[2], match[2])
        try:
            return np.timedelta64(int(match[1]), unit)  # type: ignore[call-overload]
        except (OverflowError, ValueError):  # more digits than an int may have
            raise ValueError(f"{name} is {show(text)}; it must be below 292 years") from None
    for type in (int, float):
        with suppress(ValueError):
            return type(text)
    number = number or "a number, in units of the timestamps"
    raise ValueError(
        f"{name} is {show(text)}; it must be {number}, or a time span such as 90s, 15m, 12h or 7d"
    )


def parse_patience(text: str | None) -> Any:
    """Return the patience of a watch for "20" (updates), "12h" or "3600.0" (times)."""
    return parse_age(text, "patience", "a number of updates")


def parse_date(text: str) -> Any:
    """Return a date in UTC, with or without a time of day."""
    match = DATE.fullmatch(text.strip())
    if match:
        with suppress(ValueError):  # there is no such day or time
            return np.datetime64(match[1])
    raise ValueError(
        f"timestamp {show(text)} is neither a number nor a date; write dates in UTC, as in "
        "2025-03-01T12:30"
    )


def parse_timestamps(column: list[str], place: Callable[[int], str]) -> NDArray[Any]:
    """Return timestamps that are all ints, all numbers or all dates.

    ``place`` tells what messages call a row.
    """
    for dtype in (np.int64, np.float64):
        with suppress(ValueError, OverflowError):
            return np.array(column, dtype)
    numbers = list(map(is_number, column))
    if any(numbers):
        row = numbers.index(not numbers[0])
        raise ValueError(
            f"{place(row)}: timestamps are a mix, such as {show(column[0])} and "
            f"{show(column[row])}; they must be all numbers or all dates"
        )
    dates = []
    for row, text in enumerate(column):
        try:
            dates.append(parse_date(text))
        except ValueError as error:
            raise ValueError(f"{place(row)}: {error}") from None
    return np.array(dates)


def parse_id(id: str, str_ids: bool) -> int | str:
    """Return an id that was given as text, with the type of the ids of a store."""
    if str_ids:
        return id
    if not is_int_id(id):
        raise ValueError(f"id {show(id)} is not an int of 64 bits, but the ids of the store are")
    return int(id)


def is_int_id(id: str) -> bool:
    """Whether an id is the usual decimal form of an int64, so that ``str(int(id)) == id``."""
    digits = id[1:] if id.startswith("-") else id
    return (
        digits.isascii()
        and digits.isdigit()
        and (digits[0] != "0" or id == "0")
        and (len(digits) < DIGITS or (len(digits) == DIGITS and INT64_MIN <= int(id) <= INT64_MAX))
    )


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
