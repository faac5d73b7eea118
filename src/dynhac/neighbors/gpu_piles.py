"""Which slot has which row of a table, where only the first of many equal vectors have rows.

Slots with the same vector form a *pile*. A search for k vectors needs at most the k smallest slots
of every pile. So only the smallest `reach` slots of a pile have rows, and the others are *hidden*:
a search among very many equal vectors examines few of them. As the vectors of a pile are equal, a
slot that is removed leaves its row to the next hidden one.

Piles are found by a hash of 64 bits and confirmed by a comparison of the vectors. Should two
vectors have the same hash without being equal, then the second has no pile: it always has a row.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.neighbors.arrays import look_up, with_room
from dynhac.neighbors.equal_vectors import require_distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac.neighbors.gpu_arrays import Arrays
    from dynhac.neighbors.index import Ints

FREE, HIDDEN = -1, -2
FIRST_REACH = 64


class Piles:
    """Slots, their rows, and their piles."""

    def __init__(self) -> None:
        self.count = 0  # of slots
        self.reach = FIRST_REACH
        self.row_of: Ints = np.empty(0, np.int64)  # by slot; FREE or HIDDEN without a row
        self.slot_of: Ints = np.empty(0, np.int64)  # by row
        self._hash_of: Ints = np.empty(0, np.int64)  # by slot
        # By hash: the smallest slot of the pile; all slots, ascending, if there are several.
        self._first: dict[int, int] = {}
        self._members: dict[int, list[int]] = {}

    def check_new(self, slots: Ints) -> None:
        """Raise KeyError unless the slots can be added."""
        if (slots < 0).any():
            raise KeyError(f"slot {slots.min()} is negative; slots must be >= 0")
        held = slots[look_up(self.row_of, slots, FREE) != FREE]
        if len(held):
            raise KeyError(f"slot {held[0]} is held already; remove it first")
        require_distinct(slots)

    def check_held(self, slots: Ints) -> None:
        """Raise KeyError unless the slots can be removed."""
        free = look_up(self.row_of, slots, FREE) == FREE
        if free.any():
            raise KeyError(f"slot {slots[np.argmax(free)]} is not held")
        require_distinct(slots)

    def equals(self, hashes: Ints, first_row: int) -> tuple[Ints, Ints]:
        """Return which new vectors have the hash of another one, and of each the row of that.

        It is held already, or new and earlier in the list. New vectors have the rows from
        ``first_row`` on.
        """
        new: dict[int, int] = {}
        places, rows = [], []
        for place, hash_ in enumerate(hashes.tolist()):
            slot = self._first.get(hash_)
            other = new.setdefault(hash_, place) if slot is None else -1
            if other != place:
                places.append(place)
                rows.append(first_row + other if slot is None else int(self.row_of[slot]))
        return np.array(places, np.int64), np.array(rows, np.int64)

    def add(self, slots: Ints, hashes: Ints, first_row: int, equal: Ints, unequal: Ints) -> Ints:
        """Give new slots the rows from ``first_row`` on; return the rows that are not needed.

        ``equal`` and ``unequal`` are the places that `equals` returned, with and without another
        vector that is really equal.
        """
        n = len(slots)
        size = int(slots.max(initial=-1)) + 1
        self.row_of = with_room(self.row_of, size, FREE)
        self._hash_of = with_room(self._hash_of, size)
        self.slot_of = with_room(self.slot_of, first_row + n)
        self.row_of[slots] = np.arange(first_row, first_row + n)
        self.slot_of[first_row : first_row + n] = slots
        self._hash_of[slots] = hashes
        self.count += n
        alone = np.ones(n, bool)
        alone[equal] = alone[unequal] = False
        self._first.update(zip(hashes[alone].tolist(), slots[alone].tolist(), strict=True))
        joined: dict[int, list[int]] = {}
        for hash_, slot in zip(hashes[equal].tolist(), slots[equal].tolist(), strict=True):
            joined.setdefault(hash_, []).append(slot)
        surplus: list[int] = []
        for hash_, new in joined.items():
            members = self._members.setdefault(hash_, [self._first[hash_]])
            shown = members[max(0, self.reach - len(new)) : self.reach] + new
            for slot in new:
                insort(members, slot)
            self._first[hash_] = members[0]
            for slot in shown:
                if len(members) > self.reach and slot > members[self.reach - 1]:
                    surplus.append(int(self.row_of[slot]))
                    self.row_of[slot] = HIDDEN
        return np.array(surplus, np.int64)

    def remove(self, slots: Ints) -> tuple[Ints, Ints]:
        """Remove slots; return the rows that are not needed any more, and rows with a new slot."""
        hashes = self._hash_of[slots].tolist()
        left: dict[int, list[int]] = {}
        unneeded: list[int] = []
        for slot, hash_ in zip(slots.tolist(), hashes, strict=True):
            members = self._members.get(hash_)
            if members is None or not _remove_from(members, slot):
                if self._first.get(hash_) == slot:
                    del self._first[hash_]
                unneeded.append(int(self.row_of[slot]))
            elif self.row_of[slot] >= 0:
                left.setdefault(hash_, []).append(int(self.row_of[slot]))
            else:
                left.setdefault(hash_, [])
            self.row_of[slot] = FREE
        self.count -= len(slots)
        renamed: list[int] = []
        for hash_, rows in left.items():
            members = self._members[hash_]
            for slot in members[: self.reach]:
                if self.row_of[slot] == HIDDEN:
                    row = rows.pop()
                    self.row_of[slot], self.slot_of[row] = row, slot
                    renamed.append(row)
            unneeded.extend(rows)
            if members:
                self._first[hash_] = members[0]
            else:
                del self._first[hash_]
            if len(members) < 2:
                del self._members[hash_]
        return np.array(unneeded, np.int64), np.array(renamed, np.int64)

    def move(self, gaps: Ints, movers: Ints) -> None:
        """Let the slots of the rows ``movers`` have the rows ``gaps``."""
        slots = self.slot_of[movers]
        self.slot_of[gaps] = slots
        self.row_of[slots] = gaps

    def surfacing(self, reach: int) -> tuple[Ints, Ints]:
        """Return the hidden slots that a larger reach shows, and of each a row with its vector."""
        hidden, sources = [], []
        for members in self._members.values():
            for slot in members[self.reach : reach]:
                hidden.append(slot)
                sources.append(int(self.row_of[members[0]]))
        return np.array(hidden, np.int64), np.array(sources, np.int64)

    def surface(self, reach: int, slots: Ints, first_row: int) -> None:
        """Make the reach larger, and give slots that were hidden the rows from ``first_row`` on."""
        self.reach = reach
        n = len(slots)
        self.slot_of = with_room(self.slot_of, first_row + n)
        self.row_of[slots] = np.arange(first_row, first_row + n)
        self.slot_of[first_row : first_row + n] = slots

    def smallest(self, count: int) -> Ints:
        """Return the smallest slots, ascending, at most ``count``."""
        return np.flatnonzero(self.row_of != FREE)[:count]

    def held(self) -> tuple[Ints, Ints]:
        """Return all slots, ascending, and of each a row that has its vector."""
        slots = np.flatnonzero(self.row_of != FREE)
        rows = self.row_of[slots]
        for i in np.flatnonzero(rows == HIDDEN).tolist():
            rows[i] = self.row_of[self._first[int(self._hash_of[slots[i]])]]
        return slots, rows


def _remove_from(members: list[int], slot: int) -> bool:
    """Remove a slot from a pile; return whether it was in it."""
    place = bisect_left(members, slot)
    if place == len(members) or members[place] != slot:
        return False
    del members[place]
    return True


def hash_weights(dimension: int) -> NDArray[np.int64]:
    """Return two odd numbers for every dimension, for `hashes_of`."""
    rng = np.random.default_rng(20)
    return rng.integers(-(2**63), 2**63, size=(2, dimension), dtype=np.int64) | 1


def hashes_of(xp: Arrays, vectors: Any, weights: Any) -> Any:
    """Return a hash of every row, the same for rows with the same bytes."""
    mixed = xp.bits(vectors) * weights[0]
    mixed = (mixed ^ (mixed >> 32)) * weights[1]
    return xp.total(mixed, 1)
