"""What a neighbour index has found, and what can be wrong with it.

An index answers in rows: the nearest slots of every slot asked for, with their distances. Two
points may find each other, and a point finds itself; an edge comes of it once, or not at all (see
`core/nearest_edges.h`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac._core import WeightedEdges, nearest_edges, weighted_edges
from dynhac.errors import InvalidTypeError
from dynhac.inputs import INT64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynhac._core import PointTable
    from dynhac.points.store import Slots
    from dynhac.similarity import Similarity


class FoundRows(NamedTuple):
    """What an index has found for the slots ``own``, a row for each; -1: there was nothing left."""

    own: Slots
    found: Slots
    distances: NDArray[np.float64]

    def edges(self, most: int, similarity: Similarity, least: float) -> WeightedEdges:
        """Return the edges of every slot to its nearest ``most`` others.

        Without those whose similarity is below ``least``. A row may be one longer: the point itself
        is in it, or else there were so many at the same distance that it had no room, and then the
        last is one too many.
        """
        if similarity.rule is not None:
            return weighted_edges(*self, most, similarity.rule, least)
        u, v, distances = nearest_edges(*self, most)
        return WeightedEdges(u, v, similarity(distances), least)

    def and_then(self, more: FoundRows) -> FoundRows:
        """Return these rows and, below them, others, which are of other slots."""
        both, begin = (self, more), len(self.own)
        shape = begin + len(more.own), max(rows.found.shape[1] for rows in both)
        found, distances = np.full(shape, -1, INT64), np.full(shape, np.inf)
        for rows, part in zip(both, (slice(0, begin), slice(begin, None)), strict=True):
            found[part, : rows.found.shape[1]] = rows.found
            distances[part, : rows.found.shape[1]] = rows.distances
        return FoundRows(np.concatenate((self.own, more.own)), found, distances)


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
