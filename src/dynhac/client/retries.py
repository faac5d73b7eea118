"""When a request is sent again, and after what time."""

from __future__ import annotations

import random

AGAIN = (429, 502, 503, 504)
"""Statuses of answers after which a request is sent again."""
FIRST = 0.1
LONGEST = 10.0


def pause(attempt: int, retry_after: str | None = None) -> float:
    """Return how many seconds to wait after an attempt, counted from 0.

    The time doubles from attempt to attempt. A random part keeps clients that failed together from
    trying again together.
    """
    wait: float = min(FIRST * 2.0**attempt, LONGEST) * random.uniform(0.5, 1.0)
    if retry_after is not None and retry_after.isdigit():
        wait = max(wait, min(float(retry_after), LONGEST))
    return wait
