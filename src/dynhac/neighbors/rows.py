"""Vectors by slot, stored in the rows of one matrix.

Rows 0 to n - 1 are in use, in no particular order: a removal moves rows from the end into the
gaps. ``row_of[slot]`` is the row of a slot, or -1. Storage grows by doubling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_CAPACITY = 64


class Rows:
    """A matrix of vectors with a slot for every row, and further columns.

    Parameters
    ----------
    *columns : str
        Names of further float32 arrays with one value per row, kept in step with the vectors.
    """

    __slots__ = ("_floats", "_slots", "count", "row_of")

    def __init__(self, *columns: str) -> None:
        self.count = 0
        self.row_of: NDArray[np.int64] = np.full(LEAST_CAPACITY, -1, np.int64)
        self._slots: NDArray[np.int64] = np.empty(0, np.int64)
        self._floats: dict[str, NDArray[np.float32]] = {"vectors": np.empty((0, 0), np.float32)}
        for name in columns:
            self._floats[name] = np.empty(0, np.float32)

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """Return a column, as a view of the rows in use."""
        return self._floats[name][: self.count]

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The vectors, one row each; a view."""
        return self._floats["vectors"][: self.count]

    @property
    def slots(self) -> NDArray[np.int64]:
        """The slot of every row; a view."""
        return self._slots[: self.count]

    def append(self, slots: NDArray[np.int64], **columns: NDArray[np.float32]) -> None:
        """Add slots that are not held, with their vectors and other columns."""
        n = self.count + len(slots)
        dimension = columns["vectors"].shape[1]
        if self.count == 0 and dimension != self._floats["vectors"].shape[1]:
            self._floats["vectors"] = np.empty((len(self._slots), dimension), np.float32)
        if n > len(self._slots):
            self._grow(max(n, 2 * len(self._slots), LEAST_CAPACITY))
        self.row_of = with_room(self.row_of, slots)
        new = slice(self.count, n)
        self._slots[new] = slots
        for name, values in columns.items():
            self._floats[name][new] = values
        self.row_of[slots] = np.arange(self.count, n)
        self.count = n

    def delete(self, slots: NDArray[np.int64]) -> None:
        """Remove slots that are held."""
        rows = self.row_of[slots]
        self.row_of[slots] = -1
        n = self.count - len(slots)
        stays = np.ones(len(slots), bool)  # for the rows from n on
        stays[rows[rows >= n] - n] = False
        movers = n + np.flatnonzero(stays)
        gaps = rows[rows < n]
        for array in self._floats.values():
            array[gaps] = array[movers]
        self._slots[gaps] = self._slots[movers]
        self.row_of[self._slots[gaps]] = gaps
        self.count = n

    def _grow(self, capacity: int) -> None:
        for name, old in self._floats.items():
            new = np.empty((capacity, *old.shape[1:]), np.float32)
            new[: self.count] = old[: self.count]
            self._floats[name] = new
        self._slots = np.concatenate([self.slots, np.empty(capacity - self.count, np.int64)])


def require_absent(where: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
    """Raise KeyError if a slot is listed twice or held, that is, ``where[slot]`` is not -1."""
    if len(slots) == 0:
        return
    if slots.min() < 0:
        raise KeyError(f"slot {slots.min()} is negative; slots must be >= 0")
    known = slots[slots < len(where)]
    held = known[where[known] >= 0]
    if len(held):
        raise KeyError(f"slot {held[0]} is held already; remove it first")
    _require_distinct(slots)


def require_present(where: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
    """Raise KeyError if a slot is listed twice or not held, that is, ``where[slot]`` is -1."""
    held = (slots >= 0) & (slots < len(where))
    held[held] = where[slots[held]] >= 0
    if not held.all():
        raise KeyError(f"slot {slots[np.argmin(held)]} is not held")
    _require_distinct(slots)


def with_room(where: NDArray[Any], slots: NDArray[np.int64], fill: int = -1) -> NDArray[Any]:
    """Return ``where``, or a longer copy with ``fill`` if it is too short for these slots."""
    top = int(slots.max()) if len(slots) else -1
    if top < len(where):
        return where
    longer = np.full(max(top + 1, 2 * len(where)), fill, where.dtype)
    longer[: len(where)] = where
    return longer


def _require_distinct(slots: NDArray[np.int64]) -> None:
    if len(slots) > 1:
        ordered = np.sort(slots)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(twice):
            raise KeyError(f"slot {twice[0]} is listed twice; list it once")
