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

from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac.input.columns import INT64, NO_IDS, IdColumn
from dynhac.input.errors import FileError

UNKNOWN_KEY = -1
"""Stands for a string that has no key. The engine never holds it, and rejects it as unknown."""

PARTS = ("names/text", "names/lengths", "names/next_key")
MOST_KEYS = 2**62
UINT8 = np.dtype(np.uint8)


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

    def claim(self, name: str) -> int:
        """Return the key of one string, a new one if it has none."""
        key = self._key_of.get(name)
        if key is None:
            key = self._next_key
            self._next_key = key + 1
            self._suspects[name] = None
            self._name_of[key] = name
            self._key_of[name] = key
        return key

    def doubt(self, name: str) -> int:
        """Return the key of one string, which the engine may soon know no more."""
        key = self._key_of.get(name, UNKNOWN_KEY)
        if key != UNKNOWN_KEY:
            self._suspects[name] = None
        return key

    def suspect(self, names: IdColumn) -> None:
        """Remember strings that the engine may soon know no more."""
        if isinstance(names, list):
            self._suspects.update(dict.fromkeys(names))

    def sweep(self, known: Callable[[int], bool], inserted: object = None) -> None:
        """Forget the suspects that the engine does not know; ``inserted`` is one that it does."""
        suspects = self._suspects
        suspects.pop(inserted, None)  # type: ignore[call-overload]
        if not suspects:
            return
        for name in suspects:
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

    def save(self, keys: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return arrays that hold the strings of these keys; there must be no suspects."""
        encoded = [name.encode("utf-8", "surrogatepass") for name in self.ids(keys)]
        text = np.frombuffer(b"".join(encoded), np.uint8)
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        return dict(zip(PARTS, (text, lengths, np.array([self._next_key], INT64)), strict=True))

    @classmethod
    def load(cls, keys: NDArray[np.int64], arrays: Mapping[str, NDArray[Any]]) -> Names:
        """Return the table of which `save` made the arrays for the same keys, or raise."""
        text, lengths, (next_key,) = (arrays[part] for part in PARTS)
        if text.ndim != 1 or [a.dtype for a in (text, lengths, next_key)] != [UINT8, INT64, INT64]:
            raise FileError("names are of a wrong type")
        if not 0 <= next_key <= MOST_KEYS or (keys < 0).any() or (keys >= next_key).any():
            raise FileError("keys of names are out of range")
        if lengths.shape != keys.shape or (lengths < 0).any() or (lengths > len(text)).any():
            raise FileError("lengths of names are out of range")
        ends = np.cumsum(lengths)
        if (ends[-1] if len(ends) else 0) != len(text):
            raise FileError("names do not have their lengths")
        whole = text.tobytes()
        bounds = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
        decoded = [whole[begin:end].decode("utf-8", "surrogatepass") for begin, end in bounds]
        table = cls()
        table._name_of = dict(zip(keys.tolist(), decoded, strict=True))
        table._key_of = dict(zip(decoded, keys.tolist(), strict=True))
        table._next_key = int(next_key)
        if len(table._key_of) != len(decoded):
            raise FileError("a name is there twice")
        return table
