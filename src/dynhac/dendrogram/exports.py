"""Exports of a dendrogram: Newick text, networkx graph, Arrow and pandas tables.

All of them number the nodes as `Dendrogram` does: leaves first, then merges, children before their
parent. A table has one row per node in that order; a value that only merges have is null for a
leaf, and vice versa. Nothing here is recursive, because a tree may be as deep as it has merges. The
linkage matrix of scipy is in `dynhac.dendrogram.linkage`.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.extras import optional

if TYPE_CHECKING:
    import networkx
    import pandas
    import pyarrow

    from dynhac.dendrogram.dendrogram import Dendrogram
    from dynhac.dendrogram.linkage import DistanceRule

# Characters that end an unquoted name or have a meaning in some dialect ("_" is read as a blank).
NEEDS_QUOTES = re.compile(r"""[\s()\[\]{}<>'":;,=_/\\&#]""")

Column = tuple[NDArray[Any], NDArray[np.bool_]]
"""The values of all nodes, and which of them are null; a null is a placeholder."""


def newick(
    dendrogram: Dendrogram,
    distance: DistanceRule | None = None,
    *,
    join: bool = False,
    node_ids: bool = False,
) -> str:
    """Return a dendrogram in Newick format.

    Leaves have height 0. The height of a merge is its distance in `Dendrogram.linkage`, by default
    ``1 / min_similarity - 1``. The length of a branch is the difference of the heights of its ends.

    Parameters
    ----------
    dendrogram : Dendrogram
        The dendrogram to export.
    distance : callable, optional
        Another rule from similarities to distances, as for `Dendrogram.linkage`.
    join : bool, default False
        If False, separate trees are written one per line. If True, they are joined under one root
        without a name, by branches without a length.
    node_ids : bool, default False
        Whether merges are named by their stable ids. Leaves are named by their ids, so with int ids
        a leaf and a merge may have the same name.

    Returns
    -------
    str
        Every tree ends with a semicolon; "" if there are no leaves. Names are quoted if the
        format requires it.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC.from_graph((["a", "b"], ["b", "it's c"], [0.5, 0.25]), ["a", "b", "it's c"])
    >>> print(g.dendrogram().to_newick())
    ((a:1.0,b:1.0):6.0,'it''s c':7.0);
    """
    n, merges = dendrogram.n_leaves, len(dendrogram)
    heights = np.zeros(n + merges)
    order = np.argsort(-dendrogram.min_similarity, kind="stable")
    heights[n + order] = dendrogram.linkage(distance)[:merges, 2]  # rows have this order
    if not np.isfinite(heights).all():
        raise ValueError(
            "distance must return finite numbers for Newick, which has no infinite lengths; "
            f"it returned {heights.max()}"
        )
    parent = _parents(dendrogram)
    lengths = zip((heights[parent] - heights).tolist(), parent.tolist(), strict=True)
    length = [f":{length!r}" if above >= 0 else "" for length, above in lengths]
    children = dendrogram.children.tolist()
    label = list(map(str, dendrogram.node_ids.tolist())) if node_ids else [""] * merges
    name = [_quoted(str(id)) for id in dendrogram.ids.tolist()]

    trees = []
    for root in dendrogram.roots.tolist():
        text: list[str] = []
        stack: list[int | str] = [root]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                text.append(item)
            elif item < n:
                text.append(name[item] + length[item])
            else:
                left, right = children[item - n]
                text.append("(")
                stack += [")" + label[item - n] + length[item], right, ",", left]
        trees.append("".join(text))
    if join and len(trees) > 1:
        return f"({','.join(trees)});"
    return "\n".join(tree + ";" for tree in trees)


def networkx_graph(dendrogram: Dendrogram) -> networkx.DiGraph[int]:
    """Return a dendrogram as a directed graph, with an edge from every merge to its two children.

    Nodes are named by their numbers, 0 to n - 1 for leaves. A leaf has the attributes ``id`` and
    ``size`` (1), a merge ``node_id``, ``similarity``, ``min_similarity`` and ``size``.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC.from_graph((["a", "b"], ["b", "c"], [0.9, 0.5]), ["a", "b", "c"])
    >>> tree = g.dendrogram().to_networkx()
    >>> list(tree.edges)
    [(3, 0), (3, 1), (4, 3), (4, 2)]
    >>> tree.nodes[0], tree.nodes[4]["size"]
    ({'id': 'a', 'size': 1}, 3)
    """
    graph = optional("networkx", "networkx", "to_networkx()").DiGraph()
    n = dendrogram.n_leaves
    graph.add_nodes_from((i, {"id": id, "size": 1}) for i, id in enumerate(dendrogram.ids.tolist()))
    names = ("node_id", "similarity", "min_similarity", "size")
    arrays = (getattr(dendrogram, name).tolist() for name in ("node_ids", *names[1:]))
    graph.add_nodes_from(
        (n + j, dict(zip(names, row, strict=True)))
        for j, row in enumerate(zip(*arrays, strict=True))
    )
    graph.add_edges_from(
        (n + j, child) for j, pair in enumerate(dendrogram.children.tolist()) for child in pair
    )
    return graph


def arrow_table(dendrogram: Dendrogram) -> pyarrow.Table:
    """Return a dendrogram as an Arrow table with one row per node, leaves first.

    Its columns are ``node`` (the number of the row), ``node_id``, ``left``, ``right``, ``parent``
    (null at a root), ``similarity``, ``min_similarity``, ``size`` and ``id``. A leaf has an ``id``
    (int64 or string) and a ``size`` of 1; its other columns except ``parent`` are null. The
    metadata of the schema have ``epsilon``, ``threshold``, ``resolution`` and ``version``.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC.from_graph(([10, 20], [20, 30], [0.9, 0.5]))
    >>> table = g.dendrogram().to_arrow()
    >>> table["parent"].to_pylist(), table["id"].to_pylist()
    ([3, 3, 4, 4, None], [10, 20, 30, None, None])
    """
    pa = optional("pyarrow", "arrow", "to_arrow()")
    arrays = {
        name: pa.array(values, type=pa.string() if values.dtype == object else None, mask=null)
        for name, (values, null) in _columns(dendrogram).items()
    }
    metadata = {
        name: repr(getattr(dendrogram, name))
        for name in ("epsilon", "threshold", "resolution", "version")
    }
    return pa.table(arrays).replace_schema_metadata(metadata)


def write_parquet(dendrogram: Dendrogram, path: str | os.PathLike[str]) -> None:
    """Write the table of `arrow_table` to a Parquet file."""
    parquet = optional("pyarrow.parquet", "arrow", "to_parquet()")
    parquet.write_table(arrow_table(dendrogram), os.fspath(path))


def pandas_frame(dendrogram: Dendrogram) -> pandas.DataFrame:
    """Return the table of `arrow_table` as a pandas DataFrame; pyarrow is not needed.

    Integer columns have the nullable dtype Int64; a missing similarity is nan.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC.from_graph(([10, 20], [20, 30], [0.9, 0.5]))
    >>> frame = g.dendrogram().to_pandas()
    >>> frame.loc[frame["parent"].isna(), "size"].tolist()
    [3]
    """
    pd = optional("pandas", "pandas", "to_pandas()")
    columns = {}
    for name, (values, null) in _columns(dendrogram).items():
        if values.dtype == np.int64:
            columns[name] = pd.arrays.IntegerArray(values, null)
        elif values.dtype == object:
            columns[name] = pd.array(values, dtype="string")
        else:
            columns[name] = np.where(null, np.nan, values)
    return pd.DataFrame(columns)


def _parents(dendrogram: Dendrogram) -> NDArray[np.int64]:
    """Return the parent of each node, -1 for a root."""
    n, merges = dendrogram.n_leaves, len(dendrogram)
    parent = np.full(n + merges, -1, dtype=np.int64)
    parent[dendrogram.children] = np.arange(n, n + merges)[:, None]
    return parent


def _quoted(name: str) -> str:
    if name and name.isprintable() and not NEEDS_QUOTES.search(name):
        return name
    return "'" + name.replace("'", "''") + "'"


def _columns(dendrogram: Dendrogram) -> dict[str, Column]:
    n, merges = dendrogram.n_leaves, len(dendrogram)
    is_leaf = np.arange(n + merges) < n

    def of_merges(values: NDArray[Any]) -> Column:
        return np.concatenate([np.zeros(n, values.dtype), values]), is_leaf

    parent = _parents(dendrogram)
    strings = dendrogram.ids.dtype == object
    filler = np.full(merges, None) if strings else np.zeros(merges, np.int64)
    full = np.zeros(n + merges, dtype=np.bool_)
    return {
        "node": (np.arange(n + merges), full),
        "node_id": of_merges(dendrogram.node_ids),
        "left": of_merges(dendrogram.children[:, 0]),
        "right": of_merges(dendrogram.children[:, 1]),
        "parent": (parent, parent < 0),
        "similarity": of_merges(dendrogram.similarity),
        "min_similarity": of_merges(dendrogram.min_similarity),
        "size": (np.concatenate([np.ones(n, np.int64), dendrogram.size]), full),
        "id": (np.concatenate([dendrogram.ids, filler]), ~is_leaf),
    }
