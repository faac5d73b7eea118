"""A neighbour index of the user's own, with its answers checked.

The index gets copies of all arrays, so that it may write to them. Its answers are checked and
copied. If it raises in `add` or `remove`, its length tells whether the step was made. If that
cannot be told, or the step was interrupted, the index is no longer *intact*: what it holds is
unknown, and it must not be used again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.input.errors import InvalidTypeError
from dynhac.neighbors.arrays import look_up, with_room

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from dynhac.neighbors.index import Distances, Ints, NeighborIndex, Vectors


class CheckedIndex:
    """Wraps an index of the user's own; has the methods of `NeighborIndex`.

    Parameters
    ----------
    index : NeighborIndex
        The index to wrap. If it is not empty, call `hold` next.
    signed : bool
        Whether distances of the metric may be negative.

    Attributes
    ----------
    index : NeighborIndex
        The wrapped index.
    intact : bool
        Whether the index holds exactly the slots that were added and not removed. False during a
        step, and for good after a step of which it is not known whether it was made.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.neighbors import ExactIndex
    >>> from dynhac.neighbors.checked import CheckedIndex
    >>> checked = CheckedIndex(ExactIndex(), signed=False)
    >>> checked.add(np.array([0, 1]), np.array([[0.0], [5.0]], np.float32))
    >>> checked.query(np.array([[4.0]], np.float32), 1)[0].tolist()
    [[1]]
    """

    __slots__ = ("_held", "_signed", "index", "intact")

    def __init__(self, index: NeighborIndex, signed: bool) -> None:
        self.index = index
        self.intact = True
        self._signed = signed
        self._held: NDArray[np.bool_] = np.empty(0, bool)  # by slot

    def __len__(self) -> int:
        return len(self.index)

    def add(self, slots: Ints, vectors: Vectors) -> None:
        """See `NeighborIndex.add`."""
        self._held = with_room(self._held, int(slots.max(initial=-1)) + 1, fill=False)
        self._change(slots, True, lambda: self.index.add(slots.copy(), vectors.copy()))

    def remove(self, slots: Ints) -> None:
        """See `NeighborIndex.remove`."""
        self._change(slots, False, lambda: self.index.remove(slots.copy()))

    def query(self, vectors: Vectors, k: int) -> tuple[Ints, Distances]:
        """See `NeighborIndex.query`; rows may be in any order, and slots that repeat become -1.

        Raises
        ------
        InvalidTypeError
            The index did not return an array of int and an array of float.
        ValueError
            An array has the wrong shape, a distance is nan or negative, or a slot is not held.
        """
        slots, distances = self._checked(self.index.query(vectors.copy(), k), (len(vectors), k))
        return _without_repeats(slots), distances

    def save(self) -> dict[str, NDArray[Any]]:
        """See `NeighborIndex.save`."""
        return self.index.save()

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `NeighborIndex.load`; `hold` must come next."""
        self.index.load(arrays)

    def hold(self, slots: Ints) -> None:
        """Record the slots that the wrapped index holds: after `load`, or if it was not empty."""
        self._held = np.zeros(int(slots.max(initial=-1)) + 1, bool)
        self._held[slots] = True

    def _change(self, slots: Ints, held: bool, make: Callable[[], None]) -> None:
        """Make a step after which these slots are held or not, and record it."""
        # Not intact until the outcome is known: an interrupt may come between any two lines.
        intact, self.intact = self.intact, False
        try:
            make()
        except Exception:
            before = np.count_nonzero(self._held)
            after = before + (len(slots) if held else -len(slots))
            size = self._size()
            if size == after:
                self._held[slots] = held
            self.intact = intact and size in (before, after)
            raise
        self._held[slots] = held
        self.intact = intact

    def _size(self) -> int | None:
        """Return the length of the index after an error; None if it cannot tell."""
        try:
            return len(self.index)
        except Exception:
            return None

    def _checked(self, answer: object, shape: tuple[int, int]) -> tuple[Ints, Distances]:
        """Return the two arrays of an answer; raise if they are not what a query must return."""
        start = f"the index {type(self.index).__name__}"
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            size = f" of {len(answer)}" if isinstance(answer, (tuple, list)) else ""
            raise InvalidTypeError(
                f"{start} returned a {type(answer).__name__}{size}; it must return two arrays, "
                "slots and distances"
            )
        for what, kind, array in zip(("slots", "distances"), ("int", "float"), answer, strict=True):
            if (
                not isinstance(array, np.ndarray)
                or array.dtype.kind != kind[0]
                or isinstance(array, np.ma.MaskedArray)
            ):
                raise InvalidTypeError(f"{start} returned {what} that are not an array of {kind}")
            if array.shape != shape:
                raise ValueError(
                    f"{start} returned {what} of shape {array.shape}; it must be {shape}"
                )
        # Copies, before their values are checked: the index may still write to its own arrays.
        slots, distances = answer[0].astype(np.int64), answer[1].astype(np.float64, order="C")
        if np.isnan(distances).any():
            raise ValueError(f"{start} returned a distance that is nan")
        if not self._signed and np.any(distances < 0):
            raise ValueError(f"{start} returned a distance that is negative")
        flat = slots.ravel()
        wrong = flat[(flat != -1) & ~look_up(self._held, flat, False)]
        if len(wrong):
            raise ValueError(
                f"{start} found slot {wrong[0]}, which is not in use; it must return slots that "
                "were added and not removed, or -1"
            )
        return slots, distances


def _without_repeats(found: Ints) -> Ints:
    """Return the rows in C order, with -1 in place of slots that occur earlier in their row."""
    order = np.argsort(found, axis=1, kind="stable")
    ascending = np.take_along_axis(found, order, 1)
    repeated = np.zeros(found.shape, bool)
    repeated[:, 1:] = ascending[:, 1:] == ascending[:, :-1]
    slots = np.empty(found.shape, np.int64)
    np.put_along_axis(slots, order, np.where(repeated, -1, ascending), 1)
    return slots
