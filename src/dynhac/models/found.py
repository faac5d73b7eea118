"""What an index of a user's own has found, and what can be wrong with it.

An index answers in rows: the nearest slots of every slot asked for, with their distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynhac.input.columns import INT64
from dynhac.input.errors import InvalidTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dynhac._core import PointTable
    from dynhac.models.store import Slots


def checked(
    name: str,
    signed: bool,
    table: PointTable,
    answer: object,
    rows: int,
    k: int,
    steps: Sequence[tuple[bool, Slots]],
    leaving: Slots,
) -> tuple[Slots, NDArray[np.float64]]:
    """Return what an index of a user's own answered, in arrays of its own, or raise.

    Parameters
    ----------
    name : str
        What messages call the index.
    signed : bool
        Whether distances of the metric may be negative.
    table : PointTable
        The points before the update.
    answer : object
        What the index returned.
    rows, k : int
        The shape that is right.
    steps : sequence
        What the update has done to the index: whether it added, and the slots.
    leaving : slots
        What the update lets go.
    """
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        size = f" of {len(answer)}" if isinstance(answer, (tuple, list)) else ""
        raise InvalidTypeError(
            f"the index {name} returned a {type(answer).__name__}{size}; it must return two "
            "arrays, slots and distances"
        )
    found, distances = answer
    check_answer(name, found, distances, (rows, k), signed)
    # Copies: what is checked is what is used, whatever the index does with its arrays.
    found = each_once(found.astype(INT64))
    distances = distances.astype(np.float64, order="C")
    check_held(name, found, table, leaving, [slots for add, slots in steps if add])
    return found, distances


def check_answer(
    name: str, found: object, distances: object, shape: tuple[int, int], signed: bool
) -> None:
    """Raise if what an index of a user's own returned is not what a query has to return.

    ``signed`` tells whether distances of the metric may be negative.
    """
    for what, kind, array in (("slots", "int", found), ("distances", "float", distances)):
        if (
            not isinstance(array, np.ndarray)
            or array.dtype.kind != kind[0]
            or isinstance(array, np.ma.MaskedArray)
        ):
            raise InvalidTypeError(
                f"the index {name} returned {what} that are not an array of {kind}"
            )
        if array.shape != shape:
            raise ValueError(
                f"the index {name} returned {what} of shape {array.shape}; it must be {shape}"
            )
    if np.isnan(distances).any():  # type: ignore[call-overload]
        raise ValueError(f"the index {name} returned a distance that is nan")
    if not signed and np.any(distances < 0):  # type: ignore[operator]
        raise ValueError(f"the index {name} returned a distance that is negative")


def each_once(found: Slots) -> Slots:
    """Return the rows with -1 for slots that are in their row before, in C's order."""
    order = np.argsort(found, axis=1, kind="stable")
    ascending = np.take_along_axis(found, order, 1)
    again = np.zeros(found.shape, bool)
    again[:, 1:] = ascending[:, 1:] == ascending[:, :-1]
    once = np.empty(found.shape, INT64)
    np.put_along_axis(once, order, np.where(again, -1, ascending), 1)
    return once


def check_held(
    name: str, found: Slots, table: PointTable, leaving: Slots, added: Sequence[Slots]
) -> None:
    """Raise if an index of a user's own found slots that it does not hold."""
    slots = found.ravel()
    held = (table.arrivals_of(slots) >= 0) & ~np.isin(slots, leaving)
    for more in added:
        held |= np.isin(slots, more)
    wrong = (slots != -1) & ~held
    if wrong.any():
        raise ValueError(
            f"the index {name} found slot {slots[wrong][0]}, which is not in use; it must return "
            "slots that were added and not removed, or -1"
        )
