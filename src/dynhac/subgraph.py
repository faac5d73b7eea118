"""One round of hierarchical clustering on parts of a graph that is too large for one machine.

`subgraph_round` is what a worker of Spark, Dask or Ray calls on the parts that it was given. It
merges inside the parts; the caller distributes the graph, joins the results and repeats.

The guarantee is that of TeraHAC (L. Dhulipala, J. Łącki, J. Lee, V. Mirrokni, 2023). The linkage of
two clusters is the weight between them divided by the product of their sizes, and ``least(x)`` is
the smallest similarity of the merges that made x. A merge of x and y is *good* if all linkages of
x and of y are at most ``(1 + epsilon) * min(least(x), least(y), linkage(x, y))``. To judge it,
nothing but the edges of the two is needed. Any dendrogram made of good merges is a (1 + epsilon)-
approximate one of the whole graph, whatever the parts are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynhac import _core
from dynhac.extras import optional
from dynhac.input.columns import real_number

if TYPE_CHECKING:
    import pyarrow

INPUT = {
    "part": "int64",
    "other_part": "int64",
    "u": "int64",
    "v": "int64",
    "w": "int64",
    "size_u": "int64",
    "size_v": "int64",
    "least_u": "double",
}
"""The columns that `subgraph_round` reads, and their types."""

VERTICES = ("id", "image", "size", "least", "finished")
MERGES = ("a", "b", "size_a", "size_b", "w", "similarity", "least", "seq")
EDGES = ("part", "other_part", "u", "v", "w", "size_u", "size_v", "least_u", "least_v")


class SubgraphRound(NamedTuple):
    """What `subgraph_round` returns.

    Similarities are in units of the weights. No table depends on the order of the rows that were
    given, and the rows of a part do not depend on the other parts.

    Attributes
    ----------
    vertices : pyarrow.Table
        A row for every ``u``, sorted by part and id: ``id``; ``image``, the name of the cluster
        that it belongs to now; ``size`` and ``least`` of that cluster (the smallest similarity of
        the merges that made it, inf for a single point). The cluster is ``finished`` if it has no
        linkage of at least `heavy`; it will never have one again.
    merges : pyarrow.Table
        ``a`` and ``b``, the names of the two clusters; ``size_a`` and ``size_b``; ``w``, the weight
        between them; ``similarity``, their linkage; ``least`` of the union; ``seq``, which counts
        the merges of a part from 0. The union has the name ``a``, that of the larger cluster; of
        two clusters of one size, the smaller name. So a name and a size identify a cluster. Over
        all rounds, every merge is good in the order (round, seq); merges with the same round and
        seq may come in any order.
    edges : pyarrow.Table
        The edges that are left, summed by pair: ``part``, ``other_part``, ``u``, ``v``, ``w``,
        ``size_u``, ``size_v``, ``least_u``, ``least_v``. Inside a part (``part == other_part``)
        both ends are images, and ``u < v``. Between two parts, ``u`` is an image and ``v`` is as it
        was given, because its part may be with another worker: look up its image, and add up the
        weights of each pair. ``size_v`` and ``least_v`` are null there. Such an edge comes once,
        from the smaller of the two parts. Edges with an end that is finished are left out, except
        for a ``v`` in another part.
    """

    vertices: pyarrow.Table
    merges: pyarrow.Table
    edges: pyarrow.Table


def subgraph_round(table: pyarrow.Table, epsilon: float, heavy: float) -> SubgraphRound:
    """Merge good edges inside each of the given parts of a graph until none is left.

    Parameters
    ----------
    table : pyarrow.Table
        The half edges of all vertices of one or more parts. The columns are of type int64, except
        for ``least_u``, float64. Other columns are ignored.

        - ``u``, a vertex of part ``part``; ``v``, a vertex of part ``other_part``. An edge inside a
          part has two rows, one from each end. Of an edge between two parts, each part has the row
          from its own end.
        - ``w``: the weight of the edge, in 1 to 2**53.
        - ``size_u``, ``size_v``: how many points the ends consist of.
        - ``least_u``: the smallest similarity of the merges that made u; inf for a single point.
    epsilon : float
        Merges are (1 + epsilon)-good, also with regard to the edges to other parts. 0 is exact.
    heavy : float
        Edges with a linkage below this are not merged. For clusters at a similarity `threshold` and
        above it is ``threshold / (1 + epsilon)``, in units of the weights; 0 merges all.

    Raises
    ------
    ValueError
        If a column is missing or of another type, a value is null or not as above, a vertex
        has two parts, sizes or values of ``least_u``, an edge is given twice or lacks its other
        half, `epsilon` or `heavy` is not finite and >= 0, or a sum of weights exceeds 2**53.

    Examples
    --------
    The path 1 - 2 - 3 - 4 with weights 10, 8, 6. Vertices 1, 2 and 3 are in part 0, and 4 is in
    part 1, which is somewhere else.

    >>> import pyarrow as pa
    >>> from dynhac.subgraph import subgraph_round
    >>> inf = float("inf")
    >>> table = pa.table({
    ...     "part": [0, 0, 0, 0, 0],
    ...     "other_part": [0, 0, 0, 0, 1],
    ...     "u": [1, 2, 2, 3, 3],
    ...     "v": [2, 1, 3, 2, 4],
    ...     "w": [10, 10, 8, 8, 6],
    ...     "size_u": [1, 1, 1, 1, 1],
    ...     "size_v": [1, 1, 1, 1, 1],
    ...     "least_u": [inf, inf, inf, inf, inf],
    ... })
    >>> result = subgraph_round(table, epsilon=0.1, heavy=1)
    >>> result.merges.select(["a", "b", "w", "similarity", "seq"]).to_pylist()
    [{'a': 1, 'b': 2, 'w': 10, 'similarity': 10.0, 'seq': 0}]
    >>> result.vertices.select(["id", "image", "size"]).to_pydict()
    {'id': [1, 2, 3], 'image': [1, 1, 3], 'size': [2, 2, 1]}

    Vertex 3 has a linkage of 8 / 2 to the new cluster, but one of 6 to vertex 4: it waits.

    >>> result.edges.select(["part", "other_part", "u", "v", "w"]).to_pydict()
    {'part': [0, 0], 'other_part': [0, 1], 'u': [1, 3], 'v': [3, 4], 'w': [8, 6]}
    """
    pa = optional("pyarrow", "arrow", "subgraph_round()")
    if not isinstance(table, pa.Table):
        raise TypeError(f"table is a {type(table).__name__}; it must be a pyarrow.Table")
    columns = {name: _column(table, name, kind) for name, kind in INPUT.items()}
    vertices, merges, edges = _core.subgraph_round(
        **columns, epsilon=real_number(epsilon, "epsilon"), heavy=real_number(heavy, "heavy")
    )
    left = dict(zip(EDGES, edges, strict=True))
    unknown = left["part"] != left["other_part"]
    masks = {"size_v": unknown, "least_v": unknown}
    *numbers, finished = vertices
    return SubgraphRound(
        pa.table([*numbers, finished.view(np.bool_)], names=VERTICES),
        pa.table(list(merges), names=MERGES),
        pa.table({name: pa.array(values, mask=masks.get(name)) for name, values in left.items()}),
    )


def _column(table: Any, name: str, kind: str) -> Any:
    """Return a column as an array, without copying if it is one chunk and aligned."""
    if table.column_names.count(name) != 1:
        raise ValueError(
            f"the table has {table.column_names.count(name)} columns {name!r}; it must have one, "
            f"and its columns are {table.column_names}"
        )
    column = table.column(name)
    if str(column.type) != kind:
        raise ValueError(f"the column {name!r} is of type {column.type}; it must be {kind}")
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise ValueError(f"row {row}: {name} is null; every value must be given")
    dtype = np.dtype(np.float64 if kind == "double" else np.int64)
    chunks = [
        np.frombuffer(chunk.buffers()[1], dtype, len(chunk), chunk.offset * dtype.itemsize)
        for chunk in column.chunks
        if len(chunk)
    ]
    if not chunks:
        return np.empty(0, dtype)
    return np.require(chunks[0] if len(chunks) == 1 else np.concatenate(chunks), None, "A")
