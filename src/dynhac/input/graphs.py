"""Edge columns from graphs of other libraries.

Accepted as edges are: a tuple ``(u, v, w)`` of columns; a table (mapping, pandas, pyarrow, polars,
structured array) with columns u, v and w, or source, target and weight, as networkx names them; a
matrix of similarities, an array or one of scipy.sparse, whose rows and columns are positions in a
list of ids (`dynhac.input.matrices`); a networkx graph. Objects are recognised by their attributes:
none of those libraries is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dynhac.input.columns import (
    NO_IDS,
    EdgeColumns,
    IdColumn,
    Ids,
    are_strings,
    edge_columns,
    id_column,
    is_number,
)
from dynhac.input.errors import InvalidTypeError, show, wrong_type
from dynhac.input.matrices import check_square, is_dense, is_sparse, matrix_edges

if TYPE_CHECKING:
    from numpy.typing import NDArray

Edges: TypeAlias = object
"""Weighted edges as users pass them; see the top of this file."""

COLUMN_NAMES = (("u", "v", "w"), ("source", "target", "weight"))
"""What the columns of a table of edges may be called; the first names that a table has count."""

SHOWN = 12  # columns of a table that a message lists


def graph_edges(
    edges: object,
    resolution: float,
    add: IdColumn | None,
    remove: IdColumn,
    held_ids: Callable[[], NDArray[Any]],
    holds: Callable[[Any], bool],
) -> tuple[IdColumn, EdgeColumns]:
    """Return the ids to add and the edges of a batch; ``edges`` is any graph that is accepted.

    ``held_ids`` returns the ids in the graph before the batch, ``holds`` whether it has an id.
    """
    new = NO_IDS if add is None else add
    if is_sparse(edges) or is_dense(edges):
        if add is not None:
            return new, _matrix_edges(edges, resolution, add, "the ids in add")
        return new, _matrix_edges(edges, resolution, held_ids(), "the ids of the graph")
    if not _is_networkx(edges):
        return new, edge_list(edges)
    nodes, listed = _networkx_edges(edges)
    are_strings((("add", new), ("remove", remove), ("the nodes of edges", nodes)))
    listed_new, gone = set(_plain(new)), set(_plain(remove))
    fresh = [id for id in _plain(nodes) if id not in listed_new and (id in gone or not holds(id))]
    return id_column([*_plain(new), *fresh], "add"), listed


def vertices_and_edges(graph: object) -> tuple[Ids | None, object]:
    """Return the vertices of a graph, or None if its edges include them, and its edges."""
    if _is_networkx(graph):
        return None, graph
    if is_sparse(graph) or is_dense(graph):
        matrix: Any = graph
        return range(matrix.shape[0]), matrix
    u, v, w = edge_list(graph)
    if are_strings((("edges u", u), ("edges v", v))):
        return list(dict.fromkeys([*u, *v])), (u, v, w)
    mentioned = np.concatenate([u, v])
    ids, first = np.unique(mentioned, return_index=True)
    return ids[np.argsort(first)], (u, v, w)


def edge_list(edges: object) -> EdgeColumns:
    """Return the edges of a tuple of columns or a table."""
    if isinstance(edges, tuple):
        if len(edges) == 3:
            return edge_columns(*edges)
        raise InvalidTypeError(
            f"edges is a tuple of length {len(edges)}; it must be (u, v, w), three columns"
        )
    names: list[object] | None = None
    if isinstance(edges, Mapping):
        names = list(edges)
    elif hasattr(edges, "column_names"):  # pyarrow
        names = list(edges.column_names)
    elif hasattr(edges, "columns"):  # pandas, polars
        names = list(edges.columns)
    elif isinstance(edges, np.ndarray) and edges.dtype.names is not None:
        names = list(edges.dtype.names)
    if names is None:
        raise InvalidTypeError(
            f"edges is of type {type(edges).__name__}; it must be a tuple (u, v, w) of columns, a "
            "table with columns u, v and w, a matrix, or a networkx graph (for a list of triples "
            "use tuple(zip(*triples)))"
        )
    wanted = next((known for known in COLUMN_NAMES if set(known) <= set(names)), None)
    if wanted is None:
        found = ", ".join(show(name) for name in names[:SHOWN]) or "none"
        more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
        raise ValueError(
            "edges is a table that must have columns u, v and w, or source, target and weight; it "
            f"has {found}{more} (for a matrix of similarities give an array)"
        )
    table: Any = edges
    return edge_columns(*(table[name] for name in wanted))


def _matrix_edges(
    matrix: Any, resolution: float, ids: IdColumn | NDArray[Any], whose: str
) -> EdgeColumns:
    """Return the edges of a matrix whose row i is vertex ``ids[i]``."""
    check_square(matrix)
    if len(ids) != matrix.shape[0]:
        raise ValueError(
            f"edges is a matrix of shape {matrix.shape}; its rows and columns are {whose}, so it "
            f"must be of shape ({len(ids)}, {len(ids)})"
        )
    u, v, w = matrix_edges(matrix, resolution)
    named = np.array(ids, object) if isinstance(ids, list) else ids
    return edge_columns(named[u], named[v], w)


def _networkx_edges(graph: Any) -> tuple[IdColumn, EdgeColumns]:
    """Return the nodes of a networkx graph, and its edges with their attribute "weight"."""
    if graph.is_multigraph():
        raise InvalidTypeError(
            "edges is a networkx multigraph; join parallel edges into one and give a plain Graph"
        )
    nodes = id_column(list(graph.nodes), "the nodes of the graph")
    listed = list(graph.edges(data="weight"))
    for u, v, weight in listed:
        if weight is None:
            raise ValueError(
                f"edge ({show(u)}, {show(v)}) has no attribute 'weight'; every edge needs one"
            )
        if not is_number(weight):
            where = f"weight of edge ({show(u)}, {show(v)})"
            raise wrong_type(where, weight, "weights must be int or float")
    return nodes, edge_columns(*([edge[i] for edge in listed] for i in range(3)))


def _plain(ids: IdColumn) -> list[Any]:
    """Return ids as a list of int or str."""
    return ids if isinstance(ids, list) else ids.tolist()


def _is_networkx(edges: object) -> bool:
    return hasattr(edges, "is_multigraph") and hasattr(edges, "nodes") and hasattr(edges, "edges")
