"""Repair: points that deletions have left with few edges.

An edge ends with either of its points. Most points have more edges than neighbours they look for,
since others look for them; but a point whose neighbours leave one after the other would end up
alone. So a point that has just lost a neighbour and has fewer than half as many edges as it looks
for neighbours is joined to its nearest ones anew.

Only the neighbourhood of what leaves is looked at. All points are judged by the graph that the
batch leaves behind, with the edges of its new points, and before any repair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynhac.inputs import NO_IDS

if TYPE_CHECKING:
    from dynhac.inputs import IdColumn
    from dynhac.points.modelgraph import ModelGraph
    from dynhac.points.store import PointStore, Slots


def short_of_edges(
    graph: ModelGraph,
    store: PointStore,
    leaving: IdColumn,
    leaving_slots: Slots,
    gained: Slots,
    n_neighbors: int,
    n_points: int,
) -> Slots:
    """Return the slots of the points to repair, ascending.

    Parameters
    ----------
    graph : ModelGraph
        The graph before the batch.
    store : PointStore
        The points before the batch.
    leaving, leaving_slots : ids and slots
        The points that leave.
    gained : slots
        Both ends of the edges that the batch adds.
    n_neighbors : int
        How many neighbours points look for.
    n_points : int
        The number of points after the batch: a point cannot have as many edges.
    """
    # Fewer than so many edges are too few.
    enough = min((n_neighbors + 1) // 2, n_points - 1)
    near, degree = graph.low_degrees_around(leaving, enough - 1 + len(leaving))
    if not len(near):
        return NO_IDS
    slots = store.slots(near.tolist(), len(near))
    slots, first, lost = np.unique(slots, return_index=True, return_counts=True)
    degree = degree[first] - lost
    short = (degree < enough) & ~np.isin(slots, leaving_slots)
    slots, degree = slots[short], degree[short]
    if not len(slots) or not len(gained):
        return slots
    place = np.searchsorted(slots, gained)
    place[place == len(slots)] = 0
    hits = place[slots[place] == gained]
    return slots[degree + np.bincount(hits, minlength=len(slots)) < enough]
