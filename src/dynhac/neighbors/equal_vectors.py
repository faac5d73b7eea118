"""Equal vectors share one key, so that an index needs to hold each distinct vector only once.

The *members* of a key are the slots with its vector. Without keys, an index would have to examine
hundreds of equal vectors to find the k with the smallest slots. With them, a search finds keys, and
`members_of` replaces each key by its first members.

Keys are 0, 1, 2, ...; a key without members is free and is reused.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from dynhac.neighbors.arrays import look_up, with_room

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac.neighbors.index import Distances, Ints, Vectors


class EqualVectors:
    """The key of each slot, and the members of each key."""

    def __init__(self) -> None:
        self.count = 0  # of slots
        self._key_by_digest: dict[bytes, int] = {}
        self._digest_of: dict[int, bytes] = {}  # by key
        self._free: list[int] = []  # free keys, the next one to use last
        self._key_of: Ints = np.empty(0, np.int64)  # by slot; -1 if it is not held
        # By key: the number of members and the smallest one; several members are in _members.
        self._sizes: Ints = np.empty(0, np.int64)
        self._first: Ints = np.empty(0, np.int64)
        self._members: dict[int, list[int]] = {}  # ascending

    def add(self, slots: Ints, vectors: Vectors) -> tuple[Ints, Ints]:
        """Add slots; return the keys of the new distinct vectors, and their rows in ``vectors``.

        Vectors are compared by their bytes, so a zero must not be -0.0. Raises KeyError if a slot
        is held already or listed twice.
        """
        if (slots < 0).any():
            raise KeyError(f"slot {slots.min()} is negative; slots must be >= 0")
        held = slots[look_up(self._key_of, slots, -1) >= 0]
        if len(held):
            raise KeyError(f"slot {held[0]} is held already; remove it first")
        require_distinct(slots)
        self._key_of = with_room(self._key_of, int(slots.max(initial=-1)) + 1)
        new_keys, new_rows = [], []
        for row, (slot, vector) in enumerate(zip(slots.tolist(), vectors, strict=True)):
            digest = _digest(vector)
            key = self._key_by_digest.get(digest)
            if key is None:
                key = self._free.pop() if self._free else len(self._digest_of)
                self._set_digest(key, digest)
                new_keys.append(key)
                new_rows.append(row)
            self._join(slot, key)
        return np.array(new_keys, np.int64), np.array(new_rows, np.int64)

    def remove(self, slots: Ints) -> Ints:
        """Remove slots; return the keys that have no members left.

        Raises KeyError if a slot is not held or listed twice.
        """
        keys = look_up(self._key_of, slots, -1)
        if (keys < 0).any():
            raise KeyError(f"slot {slots[np.argmax(keys < 0)]} is not held")
        require_distinct(slots)
        members = zip(slots.tolist(), keys.tolist(), strict=True)
        unused = [key for slot, key in members if self._leave(slot, key)]
        for key in unused:
            del self._key_by_digest[self._digest_of.pop(key)]
        self._free.extend(unused)
        return np.array(unused, np.int64)

    def held(self) -> tuple[Ints, Ints]:
        """Return all slots, ascending, and their keys."""
        slots = np.flatnonzero(self._key_of >= 0)
        return slots, self._key_of[slots]

    def keys_of(self, slots: Ints) -> Ints:
        """Return the keys of slots that are held."""
        return self._key_of[slots]

    def free_keys(self) -> Ints:
        """Return the free keys, the next one to use last."""
        return np.array(self._free, np.int64)

    def load(self, slots: Ints, slot_keys: Ints, free: Ints, keys: Ints, vectors: Vectors) -> None:
        """Restore what `held` and `free_keys` returned, with the vectors of all keys, ascending.

        Raises ValueError if these are not slots, or not their keys and vectors.
        """
        for column in (slots, slot_keys, free):
            if column.dtype != np.int64 or column.ndim != 1:
                raise ValueError("slots and keys of its index are not columns of whole numbers")
        if len(slots) and (slots[0] < 0 or (slots[1:] <= slots[:-1]).any()):
            raise ValueError("the slots of its index are not ascending")
        if len(slots) != len(slot_keys) or not np.array_equal(np.unique(slot_keys), keys):
            raise ValueError("the keys of its index are not those of its vectors")
        all_keys = np.sort(np.concatenate((keys, free)))
        if not np.array_equal(all_keys, np.arange(len(all_keys))):
            raise ValueError("the free keys of its index are not those that are not in use")
        self._free = free.tolist()
        for key, vector in zip(keys.tolist(), vectors, strict=True):
            self._set_digest(key, _digest(vector))
        if len(self._key_by_digest) != len(keys):
            raise ValueError("two keys of its index have the same vector")
        self._key_of = with_room(self._key_of, int(slots.max(initial=-1)) + 1)
        for slot, key in zip(slots.tolist(), slot_keys.tolist(), strict=True):
            self._join(slot, key)

    def members_of(
        self, rows: Ints, keys: Ints, distances: Distances, k: int
    ) -> tuple[Ints, Ints, Distances]:
        """Return rows, slots and distances with each key replaced by its first ``k`` members.

        A key is left out if ``k`` slots of its row are nearer.
        """
        sizes = self._sizes[keys]
        if (sizes == 1).all():
            return rows, self._first[keys], distances
        near = _near_enough(rows, sizes, distances, k)
        rows, keys, distances = rows[near], keys[near], distances[near]
        sizes = np.minimum(sizes[near], k)
        slots = np.repeat(self._first[keys], sizes)
        shared = sizes > 1
        members = (self._members[key][:k] for key in keys[shared].tolist())
        slots[np.repeat(shared, sizes)] = list(chain.from_iterable(members))
        return np.repeat(rows, sizes), slots, np.repeat(distances, sizes)

    def _set_digest(self, key: int, digest: bytes) -> None:
        self._key_by_digest[digest] = key
        self._digest_of[key] = digest

    def _join(self, slot: int, key: int) -> None:
        """Make a slot a member of a key."""
        self._sizes = with_room(self._sizes, key + 1, fill=0)
        self._first = with_room(self._first, key + 1)
        self._key_of[slot] = key
        self._sizes[key] += 1
        if self._sizes[key] > 1:
            members = self._members.setdefault(key, [int(self._first[key])])
            insort(members, slot)
            slot = members[0]
        self._first[key] = slot
        self.count += 1

    def _leave(self, slot: int, key: int) -> bool:
        """Remove a slot from its key; return whether the key has no members left."""
        self._key_of[slot] = -1
        self._sizes[key] -= 1
        self.count -= 1
        members = self._members.get(key)
        if members is None:
            return True
        del members[bisect_left(members, slot)]
        self._first[key] = members[0]
        if len(members) == 1:
            del self._members[key]
        return False


def _near_enough(rows: Ints, sizes: Ints, distances: Distances, k: int) -> NDArray[np.bool_]:
    """Return which entries may be among the ``k`` nearest slots of their row.

    ``sizes`` tells how many slots each entry counts for.
    """
    order = np.lexsort((distances, rows))
    row, size = rows[order], sizes[order]
    so_far = np.cumsum(size)
    first = np.searchsorted(row, row)
    so_far -= so_far[first] - size[first]  # within the row
    last_needed = order[(so_far >= k) & (so_far - size < k)]
    limit = np.full(int(rows.max()) + 1, np.inf)
    limit[rows[last_needed]] = distances[last_needed]
    return distances <= limit[rows]


def require_distinct(slots: Ints) -> None:
    """Raise KeyError if a slot is listed twice."""
    ordered = np.sort(slots)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise KeyError(f"slot {twice[0]} is listed twice; list it once")


def _digest(vector: NDArray[np.float32]) -> bytes:
    """Return a digest that is equal for two vectors only if they are equal."""
    return blake2b(vector.data, digest_size=16).digest()
