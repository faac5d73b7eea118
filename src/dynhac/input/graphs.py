"""Edge columns from graphs of other libraries.

Accepted as edges are: a tuple ``(u, v, w)`` of columns; a table (mapping, pandas, pyarrow, polars,
structured array) with columns u, v and w; a scipy.sparse matrix, whose rows and columns are
positions in a list of ids; a networkx graph. Objects are recognised by their attributes: none of
those libraries is imported here.
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

if TYPE_CHECKING:
    from numpy.typing import NDArray

Edges: TypeAlias = object
"""Weighted edges as users pass them; see the top of this file."""


def graph_edges(
    edges: object,
    add: IdColumn | None,
    remove: IdColumn,
    held_ids: Callable[[], NDArray[Any]],
    holds: Callable[[Any], bool],
) -> tuple[IdColumn, EdgeColumns]:
    """Return the ids to add and the edges of a batch; ``edges`` is any graph that is accepted.

    ``held_ids`` returns the ids in the graph before the batch, ``holds`` whether it has an id.
    """
    new = NO_IDS if add is None else add
    if _is_sparse(edges):
        if add is not None:
            return new, _sparse_edges(edges, add, "the ids in add")
        return new, _sparse_edges(edges, held_ids(), "the ids of the graph")
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
    if _is_sparse(graph):
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
        hint = "a list of triples use tuple(zip(*triples))"
        if isinstance(edges, np.ndarray):
            hint = "a dense matrix use scipy.sparse.coo_array(matrix)"
        raise InvalidTypeError(
            f"edges is of type {type(edges).__name__}; it must be a tuple (u, v, w) of columns, a "
            f"table with columns u, v and w, a scipy.sparse matrix or a networkx graph (for {hint})"
        )
    missing = [name for name in ("u", "v", "w") if name not in names]
    if missing:
        raise ValueError(
            f"edges is a table without column {missing[0]}; it must have columns u, v and w, "
            f"and has {', '.join(map(str, names)) or 'none'}"
        )
    table: Any = edges
    return edge_columns(table["u"], table["v"], table["w"])


def _sparse_edges(matrix: Any, ids: IdColumn | NDArray[Any], whose: str) -> EdgeColumns:
    """Return the non-zero entries of a scipy.sparse matrix whose row i is vertex ``ids[i]``.

    One triangle or both may be filled. Duplicate entries are summed, as in scipy; stored zeros are
    no edges.
    """
    if matrix.shape != (len(ids), len(ids)):
        raise ValueError(
            f"edges is a sparse matrix of shape {matrix.shape}; its rows and columns are "
            f"{whose}, so it must be of shape ({len(ids)}, {len(ids)})"
        )
    if matrix.dtype.kind not in "iuf":
        raise InvalidTypeError(
            f"edges is a sparse matrix of dtype {matrix.dtype}; weights must be int or float"
        )
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    entries = rows.tocoo()
    u, v, w = entries.row, entries.col, entries.data
    if not np.all(w):
        kept = np.flatnonzero(w)
        u, v, w = u[kept], v[kept], w[kept]
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


def _is_sparse(edges: object) -> bool:
    return type(edges).__module__.startswith("scipy.sparse") and hasattr(edges, "tocsr")


def _is_networkx(edges: object) -> bool:
    return hasattr(edges, "is_multigraph") and hasattr(edges, "nodes") and hasattr(edges, "edges")
