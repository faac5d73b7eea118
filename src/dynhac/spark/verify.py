"""The check of a hierarchy on Spark: contracts the graph with the merges alone, and replays them.

It shares nothing with the build but the merges: the graph is contracted round by round by joins,
and every merge is judged in plain Python. A merge of a part is judged by the clusters that the
earlier merges of its part have made, and by the clusters outside as they were before the round.
That is stricter than what the order of rounds needs, since clusters that merge are never nearer to
a third one than the nearer of the two.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynhac.input.columns import real_number
from dynhac.input.errors import show
from dynhac.models.verification import VerifyReport
from dynhac.spark import input, names
from dynhac.spark.dendrogram import top_names

if TYPE_CHECKING:
    from dynhac.spark.dendrogram import SparkDendrogram

FOUND = "merges long, bad long, worst double, wrong long"
SLACK = 2.0**-40
SAME = 1e-12
"""Relative errors that rounding may cause: of a comparison, and of a similarity."""
SHARES = 1 << 20
BUCKET_ROWS = 200_000


@dataclass(frozen=True)
class Rule:
    """What merges are judged by; ``heavy`` is the least linkage, in units of the resolution."""

    epsilon: float
    heavy: float
    resolution: float


@dataclass
class Found:
    """What the replay of merges has found."""

    merges: int = 0
    bad: int = 0
    worst: float = 1.0
    wrong: int = 0

    def add(self, merges: int, bad: int, worst: float, wrong: int) -> None:
        """Add what was found elsewhere."""
        self.merges += merges
        self.bad += bad
        self.worst = max(self.worst, worst)
        self.wrong += wrong


def verify(dendrogram: SparkDendrogram, edges: Any, sample: float | None) -> VerifyReport:
    """Return what the check finds; see `SparkDendrogram.verify`."""
    from pyspark.sql import functions as F

    began = time.perf_counter()
    if edges is None:
        raise ValueError("edges is None; after load, give verify the edges that build was given")
    share = 1.0 if sample is None else real_number(sample, "sample")
    if share > 1:
        raise ValueError(f"sample is {sample!r}; it is a share of the parts, from 0 to 1")
    chosen = F.pmod(F.xxhash64("part", "round"), F.lit(SHARES)) < int(share * SHARES)
    last = (F.col("round") == dendrogram.rounds) & (F.col("part") == 0)
    limits = (dendrogram.epsilon, dendrogram.threshold, dendrogram.resolution)
    heavy = input.heavy_linkage(*limits)
    rule = Rule(dendrogram.epsilon, heavy, dendrogram.resolution)
    graph = _units(dendrogram, edges)
    clusters = dendrogram.vertices.select(
        "id", F.lit(1).cast("long").alias("size"), F.lit(float("inf")).alias("least")
    )
    found = Found(wrong=abs(dendrogram.n_merges - _in_rounds(dendrogram)))
    for number in range(1, dendrogram.rounds + 1):
        merges = dendrogram._merges.where(F.col("round") == number).localCheckpoint()
        found.wrong += in_two_places(merges)
        found.add(*_judge(graph, clusters, merges.where(chosen | last), rule))
        if found.wrong:
            break  # what follows may be no tree
        image = top_names(merges.select(F.col("b").alias("id"), F.col("a").alias("label")))
        graph = _contracted(graph, image)
        clusters = _joined(clusters, merges, image)
    left = 0 if found.wrong else _heavy_left(graph, clusters, heavy)
    counts = (found.merges, found.bad, found.worst, found.wrong, left)
    ok = not (found.bad or found.wrong or left)
    return VerifyReport(ok, *counts, (), time.perf_counter() - began)


def _units(dendrogram: SparkDendrogram, edges: Any) -> Any:
    """Return the edges as (u, v, w) of numbers, u < v, weights in units of the resolution."""
    from pyspark.sql import functions as F

    frame, text = input.edge_columns(edges)
    if text != dendrogram._text:
        raise ValueError("edges has ids of another type than the build")
    known = dendrogram.vertices.select(F.col("name" if text else "id").alias("end"))
    ends = frame.select(F.col("u").alias("end")).union(frame.select("v"))
    stray = ends.join(known, "end", "left_anti").first()
    if stray is not None:
        raise ValueError(
            f"edges has the vertex {show(stray['end'])}, which is not in the hierarchy; give "
            "verify the edges that build was given"
        )
    if text:
        frame = names.with_numbers(frame, dendrogram.vertices)
    scaled = F.col("w") / F.lit(dendrogram.resolution)
    units = F.floor(scaled)
    units = units + F.when(scaled - units >= 0.5, 1).otherwise(0)
    return frame.select(
        F.least("u", "v").alias("u"), F.greatest("u", "v").alias("v"), units.alias("w")
    ).localCheckpoint()


def _in_rounds(dendrogram: SparkDendrogram) -> int:
    """Return how many merges are in a round of the build."""
    from pyspark.sql import functions as F

    inside = F.col("round").between(1, dendrogram.rounds)
    count: int = dendrogram._merges.where(inside).count()
    return count


def in_two_places(merges: Any) -> int:
    """Return how many clusters lose their name twice in a round, or are in two parts of it."""
    from pyspark.sql import functions as F

    lost = merges.select("part", F.col("b").alias("name"), F.lit(1).alias("lost"))
    kept = merges.select("part", F.col("a").alias("name"), F.lit(0).alias("lost"))
    of_name = lost.union(kept).groupBy("name")
    in_two = (F.sum("lost") > 1) | (F.min("part") < F.max("part"))
    count: int = of_name.agg(in_two.alias("in_two")).where("in_two").count()
    return count


def _contracted(graph: Any, image: Any) -> Any:
    from pyspark.sql import functions as F

    for end in ("u", "v"):
        of_end = image.select(F.col("id").alias(end), F.col("label").alias("_to"))
        graph = graph.join(of_end, end, "left").withColumn(end, F.coalesce("_to", end)).drop("_to")
    pair = (F.least("u", "v").alias("u"), F.greatest("u", "v").alias("v"))
    between = graph.where("u != v").groupBy(*pair).agg(F.sum("w").alias("w"))
    return between.localCheckpoint()


def _joined(clusters: Any, merges: Any, image: Any) -> Any:
    """Return the clusters after a round: (id, size, least)."""
    from pyspark.sql import functions as F

    made = merges.select(
        F.col("a").alias("id"),
        F.lit(0).cast("long").alias("size"),
        F.col("similarity").alias("least"),
    )
    all_parts = clusters.union(made).join(image, "id", "left")
    name = F.coalesce("label", "id").alias("id")
    joined = all_parts.groupBy(name).agg(F.sum("size").alias("size"), F.min("least").alias("least"))
    return joined.localCheckpoint()


def _judge(graph: Any, clusters: Any, merges: Any, rule: Rule) -> tuple[int, int, float, int]:
    """Replay the merges of a round in their parts."""
    from pyspark.sql import functions as F

    ends = merges.select("part", F.col("a").alias("u")).union(merges.select("part", "b"))
    near = clusters.select(F.col("id").alias("u"), F.col("size").alias("size_u"), "least")
    far = clusters.select(F.col("id").alias("v"), F.col("size").alias("size_v"))
    halves = graph.select("u", "v", "w").union(graph.select("v", "u", "w"))
    edges = halves.join(ends.distinct(), "u").join(near, "u").join(far, "v")
    edges = edges.select("part", "u", "v", "w", "size_u", "size_v", "least")
    buckets = max(1, edges.count() // BUCKET_ROWS)
    bucket = F.pmod(F.xxhash64("part"), F.lit(buckets))
    columns = ("part", "seq", "a", "b", "size_a", "size_b", "weight", "similarity", "least")
    # Columns get new identities: Spark takes those of the two sides for one another otherwise.
    given, made = (
        frame.toDF(*frame.columns).withColumn("bucket", bucket).groupBy("bucket")
        for frame in (edges, merges.select(*columns))
    )
    judged = made.cogroup(given).applyInArrow(replay(rule), FOUND)
    row = judged.agg(F.sum("merges"), F.sum("bad"), F.max("worst"), F.sum("wrong")).first()
    return row[0] or 0, row[1] or 0, row[2] or 1.0, row[3] or 0


def _heavy_left(graph: Any, clusters: Any, heavy: float) -> int:
    from pyspark.sql import functions as F

    for end in ("u", "v"):
        size = clusters.select(F.col("id").alias(end), F.col("size").alias(f"size_{end}"))
        graph = graph.join(size, end)
    linkage = F.col("w") / (F.col("size_u").cast("double") * F.col("size_v"))
    left: int = graph.where(linkage >= heavy * (1 + SLACK)).count()
    return left


def replay(rule: Rule) -> Callable[[Any, Any], Any]:
    """Return the function that judges the merges of some parts, with all edges at their ends."""

    def run(merges: Any, edges: Any) -> Any:
        import pyarrow as pa

        parts: dict[int, Part] = defaultdict(Part)
        for part, *edge in _rows(edges):
            parts[part].add_edge(*edge)
        found = Found()
        for part, _, *merge in sorted(_rows(merges)):
            goodness, linkage, right = parts[part].merge(*merge, resolution=rule.resolution)
            good = goodness <= (1 + rule.epsilon) * (1 + SLACK)
            heavy = linkage >= rule.heavy * (1 - SLACK)
            found.add(1, not (good and heavy), goodness, not right)
        return pa.table({name: [value] for name, value in vars(found).items()})

    return run


def _rows(table: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a table, without the bucket."""
    columns = (column.to_pylist() for column in table.drop_columns(["bucket"]).columns)
    return list(zip(*columns, strict=True))


class Part:
    """The clusters of a part, with all their edges."""

    def __init__(self) -> None:
        self.weights: dict[int, dict[int, int]] = defaultdict(dict)
        self.size: dict[int, int] = {}
        self.least: dict[int, float] = {}

    def add_edge(self, u: int, v: int, w: int, size_u: int, size_v: int, least: float) -> None:
        """Add an edge at a cluster u of the part; v may be outside."""
        self.weights[u][v] = w
        self.size[u], self.size[v] = size_u, size_v
        self.least[u] = least

    def merge(
        self,
        a: int,
        b: int,
        size_a: int,
        size_b: int,
        weight: int,
        similarity: float,
        stated: float,
        *,
        resolution: float,
    ) -> tuple[float, float, bool]:
        """Merge b into a; return goodness and linkage, and whether what is stated is right."""
        w = self.weights[a].get(b, 0)
        if not w or a not in self.least or b not in self.least:
            return float("inf"), 0.0, False
        linkage = w / (self.size[a] * self.size[b])
        smallest = min(self.least[a] / resolution, self.least[b] / resolution, linkage)
        largest = max(
            x / (self.size[end] * self.size[y])
            for end in (a, b)
            for y, x in self.weights[end].items()
        )
        right = (
            (self.size[a], self.size[b], w) == (size_a, size_b, weight)
            and (size_a, -a) > (size_b, -b)
            and _same(similarity, linkage * resolution)
            and _same(stated, smallest * resolution)
        )
        joined = self.weights.pop(b)
        del joined[a], self.weights[a][b]
        for y, x in joined.items():
            self.weights[a][y] = self.weights[a].get(y, 0) + x
        for y in self.weights[a]:
            if y in self.least:
                self.weights[y].pop(b, None)
                self.weights[y][a] = self.weights[a][y]
        self.size[a] += self.size.pop(b)
        del self.least[b]
        self.least[a] = smallest * resolution
        return largest / smallest, linkage, right


def _same(x: float, y: float) -> bool:
    return abs(x - y) <= SAME * y
