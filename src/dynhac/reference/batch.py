"""From a batch as ``GraphHAC`` takes it to the vertex updates of the paper.

The paper deletes vertices and inserts new ones with all their edges; it has no update of an edge
between two existing vertices. For such an update one end of the edge is deleted and inserted again
with its new edges.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from dynhac.reference.merges import Id, as_ids, fixed_point

InputGraph = dict[Id, dict[Id, int]]
"""The user's graph with fixed-point weights, vertices in order of insertion."""


def read_batch(
    before: InputGraph,
    add: Iterable[Any],
    edges: tuple[Sequence[Any], Sequence[Any], Sequence[float]],
    remove: Iterable[Any],
    remove_edges: tuple[Sequence[Any], Sequence[Any]],
    resolution: float,
) -> tuple[list[Id], list[Id], InputGraph]:
    """Check a batch and apply it to a copy of the graph: removals, additions, then edges.

    Returns the vertices to delete, those to insert, and the graph after the batch.
    Raises ``KeyError`` for an unknown id or edge and ``ValueError`` for any other error.
    """
    graph = {v: dict(neighbours) for v, neighbours in before.items()}
    removed, added = as_ids(remove), as_ids(add)

    for v in removed:
        if v not in before:
            raise KeyError(f"cannot remove {v!r}: no such id")
        if v not in graph:
            raise ValueError(f"{v!r} is removed twice")
        for y in graph.pop(v):
            graph[y].pop(v, None)
    touched = list(zip(*map(as_ids, remove_edges), strict=True))
    for u, v in touched:
        _check_ends(graph, u, v)
        if v not in graph[u]:
            raise KeyError(f"cannot remove edge {(u, v)}: no such edge")
        del graph[u][v], graph[v][u]

    for v in added:
        if v in graph:
            raise ValueError(f"cannot add {v!r}: it is present already, or listed twice")
        if graph and isinstance(v, str) != isinstance(next(iter(graph)), str):
            raise TypeError(f"id {v!r} is of another kind than the ids before it")
        graph[v] = {}
    weights: dict[tuple[Id, Id], int] = {}  # of each pair, in the direction listed first
    for u, v, w in zip(as_ids(edges[0]), as_ids(edges[1]), edges[2], strict=True):
        _check_ends(graph, u, v)
        if u == v:
            raise ValueError(f"edge {(u, v)} is a self loop")
        pair = (v, u) if (v, u) in weights else (u, v)
        weight = fixed_point(float(w), (u, v), resolution)
        if weights.setdefault(pair, weight) != weight:
            raise ValueError(f"edge {(u, v)} is listed with two different weights")
    for (u, v), weight in weights.items():
        if graph[u].get(v) != weight:
            graph[u][v] = graph[v][u] = weight
            touched.append((u, v))

    again: dict[Id, None] = {}  # an ordered set
    new = set(added)
    for u, v in touched:
        if not ({u, v} & new or u in again or v in again):
            again[u] = None
    return removed + list(again), added + list(again), graph


def _check_ends(graph: InputGraph, u: Id, v: Id) -> None:
    for end in (u, v):
        if end not in graph:
            raise KeyError(f"edge {(u, v)}: no id {end!r}")
