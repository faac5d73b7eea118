"""Arrays that grow, are read at any position, and are processed in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

LEAST_CAPACITY = 64


def with_room(array: NDArray[Any], length: int, fill: int = -1) -> NDArray[Any]:
    """Return ``array``, or a copy filled up to at least twice its length if that is too short."""
    if length <= len(array):
        return array
    capacity = max(length, 2 * len(array), LEAST_CAPACITY)
    longer = np.full((capacity, *array.shape[1:]), fill, array.dtype)
    longer[: len(array)] = array
    return longer


def look_up(array: NDArray[Any], positions: NDArray[np.int64], missing: int) -> NDArray[Any]:
    """Return ``array[positions]``, with ``missing`` for positions outside of the array."""
    found = np.full(len(positions), missing, array.dtype)
    inside = (positions >= 0) & (positions < len(array))
    found[inside] = array[positions[inside]]
    return found


def parts(count: int, size: int) -> Iterator[slice]:
    """Yield slices of up to ``size`` entries, at least one, that divide ``count`` entries."""
    step = max(1, size)
    for begin in range(0, count, step):
        yield slice(begin, begin + step)
