"""What the Python workers of Spark do in a round: functions from Arrow tables to Arrow tables.

Every vertex u has its edges as *half edges* (u, v, w, size of v). A round goes through five steps,
and between two of them Spark brings packed rows to the group that they are addressed to:

1. `scatter_edges` (input only): half edges go to the home of u.
2. `build_block`, at a home: sums the half edges by pair. The *block* holds all edges of all
   vertices of the home. It names the heaviest neighbour of each vertex; the driver makes *parts* of
   them, see `dynhac.spark.parts`.
3. `scatter_parts`, at a home: the vertices go to the bucket of their part, with their edges.
4. `run_parts`, in a bucket: merges inside each part. Every vertex, with its image, goes home. Edges
   between two images of the bucket go to the homes of both. An edge to another bucket is told to
   the home of its far end v, since only that learns the image of v.
5. `follow_images`, at a home: such an edge becomes a half edge of the image of v, and goes to the
   home of that. Step 2 follows.

An edge between two parts is thus known at both ends as the other end sees it: the half edges of a
vertex are written by its neighbours. Nothing depends on the order of rows.

A row is (kind, to, data), and for what the driver reads more columns, null elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac.input.columns import FLOAT64, INT64
from dynhac.spark.blocks import (
    Column,
    Floats,
    Ints,
    find,
    group_of,
    pack,
    packed_by,
    runs,
    spread,
    unpack_all,
    xxhash64,
)

HALF, SURVIVOR, BLOCK, HEAVIEST, REPEATED, PART, VERTEX, CROSS, MERGE = range(9)
"""Kinds of rows: half edges; vertices with their size and least linkage; the block of a home; the
heaviest neighbour of a vertex; a pair that the input lists twice; vertices of parts with their
edges; vertices with their image; half edges whose far end is yet to be followed; a merge."""

MESSAGES = "kind byte, to int, data binary"
BLOCKS = f"{MESSAGES}, id long, other long, degree long"
MERGES = (
    "part long, seq long, a long, b long, size_a long, size_b long, weight long, "
    "similarity double, least double"
)
RESULTS = f"{MESSAGES}, {MERGES}"

CHUNK = 1 << 20
"""Edges of the input that are packed together."""

Table = Any  # pyarrow.Table
Step = Callable[[Table], Table]


def scatter_edges(homes: int, resolution: float) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Step 1: edges (u, v, w) as half edges, w in units of the resolution."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for u, v, w in _chunks(batches):
            units = fixed_point(w, resolution)
            near, far = np.concatenate([u, v]), np.concatenate([v, u])
            weights, sizes = np.concatenate([units, units]), np.ones(2 * len(u), INT64)
            rows = _Rows(MESSAGES)
            rows.send(HALF, group_of(near, homes), near, far, weights, sizes)
            yield from rows.table().to_batches()

    return run


def fixed_point(weights: Floats, resolution: float) -> Ints:
    """Return weights in units of the resolution, rounded as the engine rounds them."""
    scaled = weights / resolution
    whole = np.floor(scaled)
    return whole.astype(INT64) + (scaled - whole >= 0.5)


def _chunks(batches: Iterator[Any]) -> Iterator[tuple[Ints, Ints, Floats]]:
    held: list[list[Column]] = []
    count = 0
    for batch in batches:
        if batch.num_rows:
            held.append([column.to_numpy(zero_copy_only=False) for column in batch.columns])
            count += batch.num_rows
        if count >= CHUNK:
            u, v, w = (np.concatenate(column) for column in zip(*held, strict=True))
            yield u, v, w
            held, count = [], 0
    if held:
        u, v, w = (np.concatenate(column) for column in zip(*held, strict=True))
        yield u, v, w


def build_block(heavy: float, *, first: bool) -> Step:
    """Step 2: the block of a home. A vertex without a heavy edge is finished and left out."""

    def run(table: Table) -> Table:
        home = table["to"][0].as_py()
        rows = _Rows(BLOCKS, table)
        u, v, w, size_v = unpack_all(_data(table, HALF), 4)
        order = np.lexsort((v, u))
        u, v, w, size_v = u[order], v[order], w[order], size_v[order]
        starts = _pair_starts(u, v)
        if first and len(starts) < len(u):
            repeated = np.setdiff1d(np.arange(len(u)), starts)
            once = repeated[u[repeated] < v[repeated]]  # the other end reports the rest
            rows.add(kind=REPEATED, to=home, id=u[once], other=v[once])
        if len(starts):
            w = np.add.reduceat(w, starts)
        u, v, size_v = u[starts], v[starts], size_v[starts]
        begin = runs(u)
        ids, degree = u[begin[:-1]], np.diff(begin)
        if first:
            rows.add(kind=VERTEX, to=home, id=ids, degree=degree)
        size, least = np.ones(len(ids), INT64), np.full(len(ids), np.inf)
        if not first:
            known, sizes, leasts = unpack_all(_data(table, SURVIVOR), 3)
            order = np.argsort(known)
            position, present = find(known[order], ids)
            if not present.all():
                raise RuntimeError(f"vertex {ids[~present][0]} has edges, but has not survived")
            size, least = sizes[order][position], leasts[order][position].view(FLOAT64)
        linkage = w / (np.repeat(size, degree).astype(FLOAT64) * size_v)
        if len(ids):
            most = np.maximum.reduceat(linkage, begin[:-1])
            best = _heaviest(u, v, linkage == np.repeat(most, degree))
            kept = (most >= heavy) & (most > 0)
            edges = np.repeat(kept, degree)
            ids, size, least, degree, best = (c[kept] for c in (ids, size, least, degree, best))
            v, w, size_v = v[edges], w[edges], size_v[edges]
            rows.add(kind=HEAVIEST, to=home, id=ids, other=best, degree=degree)
        block = pack(ids, size, least, degree, v, w, size_v)
        rows.add(kind=BLOCK, to=home, data=[block], degree=np.array([len(v)]))
        return rows.table()

    return run


def _pair_starts(u: Ints, v: Ints) -> Ints:
    """Return where the runs of equal pairs begin."""
    if not len(u):
        return np.empty(0, INT64)
    return np.concatenate([[0], np.flatnonzero((u[1:] != u[:-1]) | (v[1:] != v[:-1])) + 1])


def _heaviest(u: Ints, v: Ints, is_most: NDArray[np.bool_]) -> Ints:
    """Return the heaviest neighbour of each vertex; of equal ones that of the largest hash.

    The hash is one of the pair, the same at both ends. So the heaviest edges form trees, whose
    roots are pairs of vertices that are each other's heaviest neighbour.
    """
    u, v = u[is_most], v[is_most]
    low, high = np.minimum(u, v), np.maximum(u, v)
    ranks = xxhash64(xxhash64(low).view(INT64) ^ high)
    order = np.lexsort((high, low, ranks, u))
    last = runs(u[order])[1:] - 1
    heaviest: Ints = v[order][last]
    return heaviest


def scatter_parts(buckets: int) -> Callable[[Table, Table], Table]:
    """Step 3: the vertices of a block, with their edges, to the buckets of their parts."""

    def run(labels: Table, blocks: Table) -> Table:
        rows = _Rows(MESSAGES, blocks)
        if blocks.num_rows:
            ids, size, least, degree, v, w, size_v = unpack_all(_data(blocks, BLOCK), 7)
            known, parts = (labels[name].to_numpy() for name in ("id", "part"))
            order = np.argsort(known)
            position, present = find(known[order], ids)
            if not present.all():
                raise RuntimeError(f"vertex {ids[~present][0]} is in no part")
            part = parts[order][position]
            starts = np.cumsum(degree) - degree
            bucket = group_of(part, buckets)
            order = np.argsort(bucket, kind="stable")
            bounds = runs(bucket[order]).tolist()
            data = []
            for first, last in pairwise(bounds):
                here = order[first:last]
                edges = spread(starts[here], degree[here])
                vertices = (column[here] for column in (ids, size, least, degree))
                data.append(pack(*vertices, v[edges], w[edges], size_v[edges], part[here]))
            rows.add(kind=PART, to=bucket[order[bounds[:-1]]], data=data)
        return rows.table()

    return run


def run_parts(homes: int, epsilon: float, heavy: float, resolution: float) -> Step:
    """Step 4: merge inside the parts of a bucket; the blocks of a whole graph are one part."""

    def run(table: Table) -> Table:
        from dynhac.subgraph import subgraph_round

        whole = _data(table, BLOCK)
        columns = unpack_all(whole, 7) if whole else unpack_all(_data(table, PART), 8)
        ids, size, least, degree, v, w, size_v = columns[:7]
        part = np.zeros(len(ids), INT64) if whole else columns[7]
        given = _half_edges(ids, size, least.view(FLOAT64), degree, part, v, w, size_v)
        vertices, merges, edges = subgraph_round(given, epsilon, heavy)
        rows = _Rows(RESULTS, table)
        _add_merges(rows, merges, ids, part, resolution)
        if not whole:
            _send_home(rows, vertices, edges, homes)
        return rows.table()

    return run


def _add_merges(rows: _Rows, merges: Table, ids: Ints, part: Ints, resolution: float) -> None:
    """Add the merges, counted from 0 in each part: their order in the bucket means nothing."""
    order = np.argsort(ids)
    of_a = part[order][np.searchsorted(ids[order], merges["a"].to_numpy())]
    by_part = np.lexsort((merges["seq"].to_numpy(), of_a))
    of_a = of_a[by_part]
    bounds = runs(of_a)
    names = ("a", "b", "size_a", "size_b", "w", "similarity", "least")
    a, b, size_a, size_b, w, similarity, least = (
        merges[name].to_numpy()[by_part] for name in names
    )
    rows.add(
        kind=MERGE,
        to=0,
        part=of_a,
        seq=np.arange(len(of_a)) - np.repeat(bounds[:-1], np.diff(bounds)),
        a=a,
        b=b,
        size_a=size_a,
        size_b=size_b,
        weight=w,
        similarity=similarity * resolution,
        least=least * resolution,
    )


def _half_edges(
    ids: Ints, size: Ints, least: Floats, degree: Ints, part: Ints, v: Ints, w: Ints, size_v: Ints
) -> Table:
    """Return the table that `subgraph_round` takes.

    The parts are numbered. All vertices of other buckets are given to one part, the last: so an
    edge to another bucket comes back from both.
    """
    import pyarrow as pa

    parts, number = np.unique(part, return_inverse=True)
    order = np.argsort(ids)
    position, present = find(ids[order], v)
    near = np.repeat(number, degree)
    other = np.where(present, number[order][position], len(parts))
    u, size_u, least_u = (np.repeat(column, degree) for column in (ids, size, least))
    names = ("part", "other_part", "u", "v", "w", "size_u", "size_v", "least_u")
    return pa.table(dict(zip(names, (near, other, u, v, w, size_u, size_v, least_u), strict=True)))


def _send_home(rows: _Rows, vertices: Table, edges: Table, homes: int) -> None:
    """Send the vertices and the summed edges of a bucket to where the next round needs them."""
    names = ("id", "image", "size", "least", "finished")
    columns = (vertices[name].to_numpy(zero_copy_only=False) for name in names)
    order = np.argsort(vertices["id"].to_numpy())
    id, image, size, least, finished = (column[order] for column in columns)
    rows.send(VERTEX, group_of(id, homes), id, image, size, least, finished.astype(INT64))
    u, v, w = (edges[name].to_numpy() for name in ("u", "v", "w"))
    size_u = size[np.searchsorted(id, u)]
    at_v, here = find(id, v)
    inner = np.flatnonzero(here)
    inner = inner[~finished[at_v[inner]]]
    x, y, weight = u[inner], image[at_v[inner]], w[inner]
    size_x, size_y = size_u[inner], size[at_v[inner]]
    for near, far, far_size in ((x, y, size_y), (y, x, size_x)):
        rows.send(HALF, group_of(near, homes), near, far, weight, far_size)
    far = v[~here]
    rows.send(CROSS, group_of(far, homes), far, u[~here], w[~here], size_u[~here])


def follow_images(homes: int) -> Step:
    """Step 5: half edges whose far end was merged in another bucket."""

    def run(table: Table) -> Table:
        rows = _Rows(MESSAGES, table)
        columns = unpack_all(_data(table, VERTEX), 5)
        order = np.argsort(columns[0])
        id, image, size, least, finished = (column[order] for column in columns)
        v, a, w, size_a = unpack_all(_data(table, CROSS), 4)
        position, present = find(id, v)
        kept = np.flatnonzero(present)
        kept = kept[finished[position[kept]] == 0]
        near = image[position[kept]]
        rows.send(HALF, group_of(near, homes), near, a[kept], w[kept], size_a[kept])
        survives = (id == image) & (finished == 0)
        to = group_of(id[survives], homes)
        rows.send(SURVIVOR, to, id[survives], size[survives], least[survives])
        return rows.table()

    return run


def _data(table: Table, kind: int) -> list[Any]:
    """Return the packed data of the rows of a kind."""
    chosen = table.filter(np.equal(table["kind"].to_numpy(), kind))
    return [value.as_buffer() for value in chosen["data"]]


class _Rows:
    """Rows of a result, of several kinds.

    A setting of Spark decides whether bytes are of the large type of Arrow: they are as those in
    the table that was given, if there is one.
    """

    def __init__(self, schema: str, given: Table | None = None) -> None:
        import pyarrow as pa

        types = {"byte": pa.int8(), "int": pa.int32(), "long": pa.int64(), "double": pa.float64()}
        types["binary"] = pa.binary() if given is None else given.schema.field("data").type
        fields = (field.split() for field in schema.split(", "))
        self._schema = pa.schema([(name, types[type]) for name, type in fields])
        self._batches: list[Any] = []

    def add(self, kind: int, to: int | Ints, **columns: Any) -> None:
        """Add rows with these columns; the other columns are null."""
        import pyarrow as pa

        count = max(len(column) for column in columns.values())
        given = columns | {"kind": np.full(count, kind), "to": np.broadcast_to(to, count)}
        arrays = [
            pa.array(given[field.name], type=field.type)
            if field.name in given
            else pa.nulls(count, type=field.type)
            for field in self._schema
        ]
        self._batches.append(pa.table(arrays, schema=self._schema))

    def send(self, kind: int, to: Ints, *columns: Column) -> None:
        """Add a row for every group, with what is addressed to it, packed."""
        packed = list(packed_by(to, *columns))
        groups = np.array([group for group, _ in packed], INT64)
        self.add(kind=kind, to=groups, data=[data for _, data in packed])

    def table(self) -> Table:
        """Return all rows."""
        import pyarrow as pa

        return pa.concat_tables([self._schema.empty_table(), *self._batches]).combine_chunks()
