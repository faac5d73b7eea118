"""Edges out of what a neighbour index has found: every pair once, with its similarity.

An index finds pairs of slots (a point and one of its nearest) with their distances. Two points may
find each other, and a point finds itself; an edge comes of it once, or not at all. A similarity
that rounds to 0 at the resolution of the graph is no edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.errors import InvalidTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynhac.points.store import Slots


class EdgeList(NamedTuple):
    """Edges between slots; ``u`` is the point that was searched for."""

    u: Slots
    v: Slots
    distance: NDArray[np.float64]

    def at(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> EdgeList:
        """Return some of the edges."""
        return EdgeList(self.u[places], self.v[places], self.distance[places])


def from_one(
    own: Slots, found: Slots, distances: NDArray[np.float64], gaps_anywhere: bool
) -> EdgeList:
    """Return the edges from one point, which is not in the index, to all that was found.

    Where nothing was found stands -1: at the end, or, with ``gaps_anywhere``, in any place.
    """
    if found.item(-1) < 0 or (gaps_anywhere and found.min() < 0):
        some = found >= 0
        found, distances = found[some], distances[some]
    return EdgeList(own.repeat(len(found)), found, distances)


def other_points(own: Slots, found: Slots, distances: NDArray[np.float64], most: int) -> EdgeList:
    """Return the edges from points to the nearest ``most`` others among what was found.

    A row has up to ``most + 1`` entries. The point itself is one of them, or else there were so
    many at the same distance that it had no room, and then the last is one too many.
    """
    others = (found != own[:, None]) & (found >= 0)
    if found.shape[1] > most:
        others[np.count_nonzero(others, axis=1) > most, -1] = False
    rows, columns = np.nonzero(others)
    return EdgeList(own[rows], found[rows, columns], distances[rows, columns])


def joined(first: EdgeList, second: EdgeList) -> EdgeList:
    """Return the edges of both lists, one after the other."""
    if not len(first.u):
        return second
    return EdgeList(
        np.concatenate((first.u, second.u)),
        np.concatenate((first.v, second.v)),
        np.concatenate((first.distance, second.distance)),
    )


def each_once(edges: EdgeList) -> EdgeList:
    """Return the edges without those found before from their other end."""
    if len(edges.u) < 2:
        return edges
    low, high = np.minimum(edges.u, edges.v), np.maximum(edges.u, edges.v)
    _, first = np.unique(low * (int(high.max()) + 1) + high, return_index=True)
    if len(first) == len(low):
        return edges
    first.sort()
    return edges.at(first)


def check_answer(name: str, found: object, distances: object, shape: tuple[int, int]) -> None:
    """Raise if what an index of a user's own returned is not what a query has to return."""
    for what, kind, array in (("slots", "int", found), ("distances", "float", distances)):
        if not isinstance(array, np.ndarray) or array.dtype.kind != kind[0]:
            raise InvalidTypeError(
                f"the index {name} returned {what} that are not an array of {kind}"
            )
        if array.shape != shape:
            raise ValueError(
                f"the index {name} returned {what} of shape {array.shape}; it must be {shape}"
            )
    if np.isnan(distances).any():  # type: ignore[call-overload]
        raise ValueError(f"the index {name} returned a distance that is nan")


def check_held(
    name: str, found: Slots, arrival: Slots, leaving: Sequence[int], new: Sequence[int]
) -> None:
    """Raise if an index of a user's own found slots that it does not hold."""
    inside = (found >= 0) & (found < len(arrival))
    known = np.where(inside, found, 0)
    held = (arrival[known] >= 0) & ~np.isin(known, leaving)
    held |= np.isin(known, new)
    wrong = (found != -1) & ~(inside & held)
    if wrong.any():
        raise ValueError(
            f"the index {name} found slot {found[wrong][0]}, which is not in use; it must return "
            "slots that were added and not removed, or -1"
        )
