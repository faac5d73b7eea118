"""The nearest stored point by exhaustive search, under insertion and deletion.

One matrix-vector product gives every squared distance up to rounding. All points that could be
nearest despite rounding are computed again in float64, so the answer is exact; of equal distances
the lowest slot is returned. Slots are rows of the arrays; those of removed points are reused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Scan:
    """Points in slots, searched all at once.

    Up to 8 coordinates are kept in float64, which saves most of the second computations.
    """

    def __init__(self, dimension: int) -> None:
        dtype = np.float64 if dimension <= 8 else np.float32
        self._rough = np.zeros((1024, dimension), dtype)
        self._square = np.full(1024, np.inf, dtype)  # inf: the slot is empty
        self._free: list[int] = []
        self._used = 0  # slots below this have been used
        self._longest = 0.0

    def add(self, point: NDArray[np.float64]) -> int:
        """Store a point and return its slot."""
        slot = self._free.pop() if self._free else self._used
        if slot == self._used:
            self._used += 1
            if self._used > len(self._rough):
                self._rough = np.concatenate([self._rough, np.zeros_like(self._rough)])
                self._square = np.concatenate([self._square, np.full_like(self._square, np.inf)])
        self._rough[slot] = point
        square = float(self._rough[slot] @ self._rough[slot])
        self._square[slot] = square
        self._longest = max(self._longest, square**0.5)
        return slot

    def remove(self, slot: int) -> None:
        """Empty a slot."""
        self._square[slot] = np.inf
        self._free.append(slot)

    def nearest(self, point: NDArray[np.float64], excluded: Any = ()) -> int:
        """Return the slot of the point nearest to ``point`` outside ``excluded``, or -1."""
        rows = self._rough[: self._used]
        distance = rows @ (point * -2).astype(rows.dtype)
        distance += self._square[: self._used]
        if len(excluded):
            distance[excluded] = np.inf
        least = distance.min(initial=np.inf)
        if least == np.inf:
            return -1
        # Largest error of a squared distance: rounding of the product and the sums.
        reach = float(np.sqrt(point @ point)) + self._longest
        margin = (len(point) + 8) * np.finfo(rows.dtype).eps * reach**2
        slots = np.flatnonzero(distance <= least + 2 * margin)
        if len(slots) == 1:
            return int(slots[0])
        exact = ((rows[slots] - point) ** 2).sum(axis=1)
        return int(slots[exact.argmin()])
