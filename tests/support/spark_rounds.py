"""The rounds of a build without Spark: lists and dictionaries take the place of its shuffles.

Parts, homes and buckets are drawn at random: any of them must give a good hierarchy.
"""

import math
from collections import defaultdict

import numpy as np
import oracles
import pyarrow as pa

from dynhac.spark import work


def table(rows):
    return pa.Table.from_pylist(
        rows, schema=pa.schema([("kind", pa.int8()), ("to", pa.int32()), ("data", pa.binary())])
    )


def grouped(tables, kinds):
    """Tables (kind, to, data), one per group, of the rows of some kinds."""
    groups = defaultdict(list)
    for each in tables:
        for row in each.select(["kind", "to", "data"]).to_pylist():
            if row["kind"] in kinds:
                groups[row["to"]].append(row)
    return {to: table(rows) for to, rows in groups.items()}


def rows_of(tables, kind):
    return [row for each in tables for row in each.to_pylist() if row["kind"] == kind]


def build(edges, epsilon, threshold, resolution, rng, rounds=3):
    """Merges (round, part, seq, a, ...) of edges {(u, v): weight in units}, as dictionaries."""
    heavy = threshold / (1 + epsilon) / resolution
    u, v = (np.array([pair[end] for pair in edges], np.int64) for end in (0, 1))
    w = np.array(list(edges.values()), float) * resolution
    batch = pa.record_batch({"u": u, "v": v, "w": w})
    homes = rng.randrange(1, 4)
    sent = [
        pa.Table.from_batches([b]) for b in work.scatter_edges(homes, resolution)(iter([batch]))
    ]
    merges = []
    for number in range(1, rounds + 1):
        step = work.build_block(heavy, first=number == 1)
        at_homes = grouped(sent, (work.HALF, work.SURVIVOR)).values()
        blocks = [step(each) for each in at_homes]
        best = {row["id"]: row["other"] for row in rows_of(blocks, work.HEAVIEST)}
        packed = grouped(blocks, (work.BLOCK,))
        if number == rounds:
            given = [row for each in packed.values() for row in each.to_pylist()]
            in_buckets = [table(given)] if given else []
            homes = 1
        else:
            buckets, homes = rng.randrange(1, 4), rng.randrange(1, 4)
            labels = {id: rng.choice((id, other, 7)) for id, other in best.items()}
            known = pa.table(
                {"id": pa.array(labels, pa.int64()), "part": pa.array(labels.values(), pa.int64())}
            )
            parts = [work.scatter_parts(buckets)(known, each) for each in packed.values()]
            in_buckets = list(grouped(parts, (work.PART,)).values())
        results = [work.run_parts(homes, epsilon, heavy, resolution)(each) for each in in_buckets]
        merges += [row | {"round": number} for row in rows_of(results, work.MERGE)]
        told = grouped(results, (work.VERTEX, work.CROSS)).values()
        sent = [work.follow_images(homes)(each) for each in told] + results
    return merges


def as_rows(n, merges):
    """Merges in the form of `oracles`: one level for each (round, seq), children first."""
    order = sorted(merges, key=lambda merge: (merge["round"], merge["seq"], merge["a"]))
    levels = sorted({(merge["round"], merge["seq"]) for merge in order})
    level = {key: number for number, key in enumerate(levels)}
    node = {(v, 1): v for v in range(n)}
    rows = []
    for merge in order:
        ends = (node[merge["a"], merge["size_a"]], node[merge["b"], merge["size_b"]])
        key = level[merge["round"], merge["seq"]]
        rows.append(oracles.Row(*ends, merge["similarity"], key))
        node[merge["a"], merge["size_a"] + merge["size_b"]] = n + len(rows) - 1
    return rows


def assert_good(n, edges, merges, epsilon, threshold, resolution):
    """The independent check of a build on leaves 0..n-1."""
    rows = as_rows(n, merges)
    judged = oracles.full_check(n, edges, rows, epsilon, threshold, resolution)
    assert judged.ok, judged
    low = [math.inf] * n
    for row in rows:
        low.append(min(low[row.left], low[row.right], row.similarity))
    stated = sorted(merge["least"] for merge in merges)
    assert np.allclose(stated, sorted(low[n:]), rtol=1e-12, atol=0)
    return rows
