"""String ids: the engine knows int64 keys only, and this table translates.

Invariants:

- A key is never given to a second string; the counter moves on before a key is used.
- Every key in the engine has its string here. The converse need not hold: strings that the engine
  does not know (of a batch that was rejected, or of vertices removed) are *suspects* until swept.
  They do no harm, since whether a vertex exists is always asked of the engine.

So an exception at any point, be it an interrupt between two lines, leaves a table that is right.
One thread at a time may change the table; looking up is safe at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from dynhac.inputs import NO_IDS, IdColumn

UNKNOWN_KEY = -1
"""Stands for a string that has no key. The engine never holds it, and rejects it as unknown."""


class Names:
    """A table of strings and their keys."""

    __slots__ = ("_key_of", "_name_of", "_next_key", "_suspects")

    def __init__(self) -> None:
        self._key_of: dict[str, int] = {}
        self._name_of: dict[int, str] = {}
        self._next_key = 0
        self._suspects: dict[str, None] = {}

    def key(self, name: str) -> int:
        """Return the key of one string, or ``UNKNOWN_KEY``."""
        return self._key_of.get(name, UNKNOWN_KEY)

    def keys(self, names: IdColumn) -> NDArray[np.int64]:
        """Return the keys of strings, ``UNKNOWN_KEY`` for those that have none."""
        if not isinstance(names, list):
            return NO_IDS  # an empty column has no kind
        found = map(self._key_of.get, names, repeat(UNKNOWN_KEY))
        return np.fromiter(found, np.int64, len(names))

    def reserve(self, names: IdColumn) -> None:
        """Give a key to every string that has none."""
        if not isinstance(names, list):
            return
        fresh = dict.fromkeys(name for name in names if name not in self._key_of)
        if fresh:
            first = self._next_key
            self._next_key = first + len(fresh)
            self._suspects.update(fresh)
            self._name_of.update(zip(range(first, self._next_key), fresh, strict=True))
            self._key_of.update(zip(fresh, range(first, self._next_key), strict=True))

    def suspect(self, names: IdColumn) -> None:
        """Remember strings that the engine may soon know no more."""
        if isinstance(names, list):
            self._suspects.update(dict.fromkeys(names))

    def sweep(self, known: Callable[[int], bool]) -> None:
        """Forget the suspects that the engine does not know."""
        for name in self._suspects:
            key = self._key_of.get(name)
            if key is not None and not known(key):
                del self._key_of[name]
                self._name_of.pop(key, None)
        self._suspects = {}

    def ids(self, keys: NDArray[np.int64]) -> NDArray[np.object_]:
        """Return the strings of keys. KeyError: one is not in the engine any more."""
        ids = np.empty(len(keys), dtype=object)
        ids[:] = list(map(self._name_of.__getitem__, keys.tolist()))
        return ids
