"""Values that are more than a number or a word: similarities, ages, moments."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from dynhac.input.errors import show

DATE = re.compile(r"(\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?)(Z|\+00:?00)?")
AGE = re.compile(r"(\d+)\s*(s|m|h|d|w|ms)")


def similarity_of(text: str | None) -> Any:
    """Return the parameter ``similarity`` for "gaussian:0.5" and the like."""
    if text is None or ":" not in text:
        return text
    name, _, sigma = text.partition(":")
    try:
        return name, float(sigma)
    except ValueError:
        raise ValueError(
            f"--similarity is {text!r}; after the colon there must be a number, as in gaussian:0.5"
        ) from None


def age_of(text: str | None) -> Any:
    """Return the parameter ``max_age`` for "12h" (a span of dates) or "3600" (a number)."""
    if text is None:
        return None
    found = AGE.fullmatch(text.strip())
    if found:
        unit = {"w": "W", "d": "D"}.get(found[2], found[2])
        return np.timedelta64(int(found[1]), unit)  # type: ignore[call-overload]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    raise ValueError(
        f"--max-age is {text!r}; it must be a number, in units of the timestamps, or a time such "
        "as 90s, 15m, 12h or 7d"
    )


def moment_of(value: Any) -> Any:
    """Return a timestamp out of JSON: a number as it is, a string as a date."""
    return date_of(value) if isinstance(value, str) else value


def date_of(text: str) -> Any:
    """Return a date, with or without a time of day, in UTC."""
    try:
        found = DATE.fullmatch(text.strip())
        if found:
            return np.datetime64(found[1])
    except ValueError:
        pass
    raise ValueError(
        f"timestamp {show(text)} is neither a number nor a date; write dates in UTC, as in "
        "2025-03-01T12:30"
    ) from None


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
