"""Equal vectors share one key, so that an index needs to hold each distinct vector only once.

The *members* of a key are the slots with its vector. Without keys, an index would have to examine
hundreds of equal vectors to find the k with the smallest slots. With them, a search finds keys, and
`members_of` replaces each key by its first members.

Keys are 0, 1, 2, ...; a key without members is free and is reused.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from dynhac.neighbors.rows import LEAST_CAPACITY, require_absent, require_present, with_room

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


class EqualVectors:
    """The key of each slot, and the members of each key."""

    __slots__ = ("_digests", "_first", "_free", "_key_by_digest", "_key_of", "_members", "count")

    def __init__(self) -> None:
        self.count = 0  # of slots
        self._key_by_digest: dict[bytes, int] = {}
        self._digests: list[bytes] = []  # by key; meaningless for a free key
        self._free: list[int] = []  # free keys, the next one to use last
        self._key_of: NDArray[np.int64] = np.full(LEAST_CAPACITY, -1, np.int64)  # by slot
        # By key: its only member, or -1; several members are in _members, ascending.
        self._first: NDArray[np.int64] = np.full(LEAST_CAPACITY, -1, np.int64)
        self._members: dict[int, list[int]] = {}

    def add(
        self, slots: NDArray[np.int64], vectors: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Add slots; return the keys of the new distinct vectors, and their rows in ``vectors``.

        Vectors are compared by their bytes, so a zero must not be -0.0. Raises KeyError if a slot
        is held already or listed twice.
        """
        require_absent(self._key_of, slots)
        self._key_of = with_room(self._key_of, slots)
        new_keys, new_rows = [], []
        for row, (slot, vector) in enumerate(zip(slots.tolist(), vectors, strict=True)):
            digest = _digest(vector)
            key = self._key_by_digest.get(digest)
            if key is None:
                key = self._new_key(digest)
                new_keys.append(key)
                new_rows.append(row)
            self._join(slot, key)
        self.count += len(slots)
        return np.array(new_keys, np.int64), np.array(new_rows, np.int64)

    def remove(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Remove slots; return the keys that have no members left.

        Raises KeyError if a slot is not held or listed twice.
        """
        require_present(self._key_of, slots)
        members = zip(slots.tolist(), self._key_of[slots].tolist(), strict=True)
        unused = [key for slot, key in members if self._leave(slot, key)]
        self.count -= len(slots)
        for key in unused:
            del self._key_by_digest[self._digests[key]]
        self._free.extend(unused)
        return np.array(unused, np.int64)

    def held(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return all slots, ascending, and their keys."""
        slots = np.flatnonzero(self._key_of >= 0)
        return slots, self._key_of[slots]

    def free_keys(self) -> NDArray[np.int64]:
        """Return the free keys, the next one to use last."""
        return np.array(self._free, np.int64)

    def load(
        self,
        slots: NDArray[np.int64],
        keys: NDArray[np.int64],
        free: NDArray[np.int64],
        vectors: Mapping[int, NDArray[np.float32]],
    ) -> None:
        """Restore slots and keys from `held`, `free_keys` and the vector of each key."""
        self._key_of = with_room(self._key_of, slots)
        for slot, key in zip(slots.tolist(), keys.tolist(), strict=True):
            self._join(slot, key)
        self.count = len(slots)
        self._free = free.tolist()
        self._digests = [b""] * (len(vectors) + len(free))
        for key, vector in vectors.items():
            self._digests[key] = _digest(vector)
            self._key_by_digest[self._digests[key]] = key

    def members_of(
        self,
        rows: NDArray[np.int64],
        keys: NDArray[np.int64],
        distances: NDArray[np.float64],
        k: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return rows, slots and distances with each key replaced by its first ``k`` members.

        A key is left out if ``k`` slots of its row are nearer.
        """
        slots = self._first[keys]
        shared = slots < 0
        if not shared.any():
            return rows, slots, distances
        several, place = np.unique(keys[shared], return_inverse=True)
        members = [np.array(self._members[key][:k], np.int64) for key in several.tolist()]
        lengths = np.array([len(group) for group in members], np.int64)
        sizes = np.ones(len(keys), np.int64)
        sizes[shared] = lengths[place]
        begins = np.zeros(len(keys), np.int64)  # of a shared key's members in the list of all
        begins[shared] = (np.cumsum(lengths) - lengths)[place]

        near = _near_enough(rows, sizes, distances, k)
        single, several_left = near & ~shared, near & shared
        counts = sizes[several_left]
        ends = np.cumsum(counts)
        within = np.arange(counts.sum()) - np.repeat(ends - counts, counts)
        found = np.concatenate(members)[np.repeat(begins[several_left], counts) + within]
        return (
            np.concatenate([rows[single], np.repeat(rows[several_left], counts)]),
            np.concatenate([slots[single], found]),
            np.concatenate([distances[single], np.repeat(distances[several_left], counts)]),
        )

    def _new_key(self, digest: bytes) -> int:
        """Return a new or free key for a new vector."""
        if self._free:
            key = self._free.pop()
            self._digests[key] = digest
        else:
            key = len(self._digests)
            self._digests.append(digest)
        self._key_by_digest[digest] = key
        return key

    def _join(self, slot: int, key: int) -> None:
        """Make a slot a member of a key."""
        self._key_of[slot] = key
        if key >= len(self._first):
            self._first = with_room(self._first, np.array([key]))
        if key in self._members:
            insort(self._members[key], slot)
        elif (other := int(self._first[key])) >= 0:
            self._members[key] = sorted((slot, other))
            self._first[key] = -1
        else:
            self._first[key] = slot

    def _leave(self, slot: int, key: int) -> bool:
        """Remove a slot from its key; return whether the key has no members left."""
        self._key_of[slot] = -1
        members = self._members.get(key)
        if members is None:
            self._first[key] = -1
            return True
        del members[bisect_left(members, slot)]
        if len(members) == 1:
            self._first[key] = self._members.pop(key)[0]
        return False


def _near_enough(
    rows: NDArray[np.int64], sizes: NDArray[np.int64], distances: NDArray[np.float64], k: int
) -> NDArray[np.bool_]:
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


def _digest(vector: NDArray[np.float32]) -> bytes:
    """Return a digest that is equal for two vectors only if they are equal."""
    return blake2b(vector.data, digest_size=16).digest()
