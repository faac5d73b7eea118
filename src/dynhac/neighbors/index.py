"""The interface of a nearest-neighbour index, as a model uses it.

An index holds one vector per *slot*, a small int that the model chooses and reuses. Vectors are
passed as the user gave them; the index prepares them for its metric (see `metrics`). Its answers
depend only on the vectors that it holds and, for an approximate index, on the order of additions
and removals: never on random numbers, the clock, or whether it was saved and loaded in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
"""Slots, or other positions in arrays."""
Vectors: TypeAlias = NDArray[np.float32]
"""One vector per row."""
Distances: TypeAlias = NDArray[np.float64]


@runtime_checkable
class NeighborIndex(Protocol):
    """A nearest-neighbour index with insertion and deletion: any object with these methods."""

    def add(self, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add one vector per slot.

        Raises
        ------
        KeyError
            A slot is held already or listed twice. Nothing has changed then.
        """

    def remove(self, slots: NDArray[np.int64]) -> None:
        """Remove the vectors of these slots.

        Raises
        ------
        KeyError
            A slot is not held or listed twice. Nothing has changed then.
        """

    def query(
        self, vectors: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return slots and distances of the ``k`` nearest, each of shape (number of vectors, k).

        Rows ascend by (distance, slot). If fewer than ``k`` vectors are held, rows are filled with
        slot -1 at distance inf. A vector that is held is found too, at distance 0 from itself (but
        with cosine a zero vector has distance 1 from every vector, and with inner products a vector
        need not be its own nearest).
        """

    def save(self) -> dict[str, NDArray[Any]]:
        """Return the state as plain arrays of bool, int, float or bytes (uint8)."""

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a saved state in a new, empty index.

        Whatever is added and removed later, the answers are those that the saved index would give.
        """

    def __len__(self) -> int: ...
