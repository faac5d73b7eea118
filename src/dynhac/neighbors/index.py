"""What a model asks of an index of nearest neighbours.

An index holds vectors under slots, small ints that the model chooses and uses again. Vectors come
as users gave them; what a metric needs done to them (see `metrics`) the index does. Everything it
answers follows from the vectors it holds and, for approximate ones, from the order in which they
came: never from chance, the clock, or whether it was saved and loaded in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class NeighborIndex(Protocol):
    """Nearest neighbours among vectors that come and go; any object with these methods will do."""

    def add(self, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Hold one vector per slot.

        Raises
        ------
        KeyError
            A slot that is held already, or listed twice; nothing is changed then.
        """

    def remove(self, slots: NDArray[np.int64]) -> None:
        """Forget the vectors of these slots.

        Raises
        ------
        KeyError
            A slot that is not held, or listed twice; nothing is changed then.
        """

    def query(
        self, vectors: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return slots and distances of the ``k`` nearest, each of shape (number of vectors, k).

        Rows ascend by (distance, slot). Where fewer than ``k`` are held, slot -1 at distance inf
        fills the row. A vector that is held is found too, at distance 0 from itself (with cosine
        a zero vector is at distance 1 from everything, and with inner products a vector need not
        be its own nearest).
        """

    def save(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays of bool, int, float or bytes (uint8)."""

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take up a saved state; only for an index that is new and empty.

        From then on the answers are those that the saved index gives, whatever is added and
        removed.
        """

    def __len__(self) -> int: ...
