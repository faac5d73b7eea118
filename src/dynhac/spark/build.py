"""`build`: the rounds, driven from here and done by Spark.

A round makes parts of the graph, merges inside each in one worker, and contracts the graph; see
`dynhac.spark.work` for its steps. When few edges are left, one worker finishes. The state after
every round is on disk, so that a build can go on after a crash, and Spark never computes a round
again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynhac.extras import optional
from dynhac.input.columns import real_number, whole_number
from dynhac.input.errors import InvalidTypeError, counted, show
from dynhac.progress import ProgressOption, metered
from dynhac.spark import input, names, work
from dynhac.spark.dendrogram import FORMAT, MERGES, SparkDendrogram
from dynhac.spark.folder import Folder, arrow_only
from dynhac.spark.parts import HOPS, assign_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dynhac._core import Meter

PART_EDGES = 500_000
BUCKET_EDGES = 1_000_000
LOCAL_EDGES = 1_000_000
MAX_ROUNDS = 100
GUARANTEED = ("epsilon", "threshold", "resolution")
"""Parameters that a build which goes on must have had from its beginning."""


def build(
    edges: DataFrame,
    *,
    path: str | os.PathLike[str],
    epsilon: float = 0.1,
    threshold: float = 0.0,
    resolution: float | None = None,
    vertices: DataFrame | None = None,
    part_edges: int = PART_EDGES,
    bucket_edges: int = BUCKET_EDGES,
    local_edges: int = LOCAL_EDGES,
    max_rounds: int = MAX_ROUNDS,
    progress: ProgressOption = None,
) -> SparkDendrogram:
    """Return the (1+ε)-approximate average-linkage hierarchy of a graph of any size.

    The merges are the same for any order and partitioning of ``edges``, any ``bucket_edges`` and
    any settings of Spark. If ``path`` holds a build of these edges that was interrupted, it goes on
    after the last complete round; if it is complete, it is returned.

    Parameters
    ----------
    edges : pyspark.sql.DataFrame
        Columns u, v and w, or source, target and weight; every pair once, in any order and
        direction. Ids are integers or strings, weights are numbers > 0. The frame is read twice:
        one that is expensive to compute should be written to Parquet first.
    path : str
        Folder for the result and for what is kept between rounds: anywhere that all workers can
        write to.
    epsilon, threshold : float
        As for `GraphHAC`.
    resolution : float, optional
        Weights are rounded to multiples of this. By default 2^-32, or the next power of two at
        which all weights together are less than 2^53 units.
    vertices : pyspark.sql.DataFrame, optional
        One column of ids, for vertices without edges.
    part_edges : int
        A part, inside of which one worker merges, has about this many edges at most, counted at
        each of its vertices. Most parts are much smaller; only those around hubs are cut.
    bucket_edges : int
        Parts are given to workers in buckets of about this many edges.
    local_edges : int
        What one worker can hold: if no more edges are left, one worker finishes; and no vertex may
        have more edges than this. The larger, the fewer rounds. It takes about 350 bytes for
        each edge.
    max_rounds : int
        After so many rounds an error is raised; the build can go on with other parameters.
    progress : bool or callable, optional
        Whether to show how far the call is, or a function to tell; see `Progress`. Every round is a
        phase.

    Raises
    ------
    ValueError
        An edge that is wrong or listed twice, or a vertex with too many edges; the message names
        it.
    """
    optional("pyspark", "spark", "dynhac.spark.build")
    optional("pyarrow", "spark", "dynhac.spark.build")
    given, text = input.edge_columns(edges)
    options = Options(
        whole_number(part_edges, "part_edges", 1),
        whole_number(bucket_edges, "bucket_edges", 1),
        whole_number(local_edges, "local_edges", 1),
        whole_number(max_rounds, "max_rounds", 1),
    )
    parameters = {
        "epsilon": real_number(epsilon, "epsilon"),
        "threshold": real_number(threshold, "threshold"),
    }
    folder = Folder(edges.sparkSession, path)
    with metered(progress) as meter, arrow_only():
        run = _Build(folder, options, meter)
        run.start(given, text, parameters, resolution, vertices)
        run.finish_rounds()
    return SparkDendrogram(folder, given)


@dataclass(frozen=True)
class Options:
    """Numbers that decide about speed and rounds, not about the guarantee."""

    part_edges: int
    bucket_edges: int
    local_edges: int
    max_rounds: int


class _Build:
    """A build that is going on: ``meta`` and ``state`` are what the folder says."""

    def __init__(self, folder: Folder, options: Options, meter: Meter) -> None:
        self.folder, self.options, self.meter = folder, options, meter
        self.meta: dict[str, Any] = {}
        self.state: dict[str, Any] = {}

    # --- input -----------------------------------------------------------------------------------

    def start(
        self,
        edges: Any,
        text: bool,
        parameters: dict[str, float],
        resolution: float | None,
        vertices: Any,
    ) -> None:
        """Read the edges into blocks, unless that is done."""
        found = self.folder.find()
        self.meter.begin("reading", "edges", None)
        weights = input.count_weights(edges)
        parameters["resolution"] = weights.resolution(resolution)
        input.check_underflow(edges, weights, parameters["resolution"])
        isolated = None if vertices is None else _isolated(vertices, text)
        self.meta = {
            "format": FORMAT,
            "versions": _versions(self.folder.spark),
            "parameters": parameters | vars(self.options),
            "ids": "str" if text else "int",
            "edges": weights.edges,
            "weights": {str(e): n for e, n in weights.counts.items()},
            "digest": weights.digest,
            "isolated": _digest(isolated),
        }
        if found is None:
            self.folder.start(self.meta)
        else:
            _check_same(found, self.meta, self.folder.path)
        self.state = self.folder.read_json("state/0") or self._read_edges(edges, text, isolated)
        self.meter.advance(weights.edges)
        self.meter.end()

    def _read_edges(self, edges: Any, text: bool, isolated: Any) -> dict[str, Any]:
        from pyspark.sql import functions as F

        folder = self.folder
        if text:
            ids = edges.select(F.col("u").alias("name")).union(edges.select("v"))
            names.number_names(folder, ids if isolated is None else ids.union(isolated))
            numbers = folder.read("vertices", names.VERTICES)
            folder.write("input", names.with_numbers(edges, numbers))
            edges = folder.read("input", "u long, v long, w double")
        half_edges = 2 * self.meta["edges"]
        homes = self._groups(half_edges)
        parameters = self.meta["parameters"]
        sent = edges.mapInArrow(work.scatter_edges(homes, parameters["resolution"]), work.MESSAGES)
        self._write_blocks(0, sent, homes, first=True)
        blocks = folder.read("edges/0", work.BLOCKS)
        repeated = blocks.where(F.col("kind") == work.REPEATED).orderBy("id", "other").first()
        if repeated is not None:
            u, v = (show(self._name(repeated[end])) for end in ("id", "other"))
            raise ValueError(f"edge ({u}, {v}) is listed twice; list every pair once")
        seen = blocks.where(F.col("kind") == work.VERTEX)
        again = (seen.agg(F.sum("degree")).first()[0] or 0) // 2
        if again != self.meta["edges"]:
            raise ValueError(
                f"edges gave {counted(again, 'row', 'rows')} when read again, and "
                f"{self.meta['edges']:,} before; write them to Parquet first"
            )
        if not text:
            ids = seen.select("id")
            folder.write("vertices", ids if isolated is None else ids.union(isolated).distinct())
        count = folder.read("vertices", "id long").count()
        return self._write_state(0, homes, all_vertices=count)

    def _groups(self, half_edges: int) -> int:
        return max(1, -(-half_edges // self.options.bucket_edges))

    # --- rounds ----------------------------------------------------------------------------------

    def finish_rounds(self) -> None:
        """Do what rounds are left, and write the merges."""
        if self.folder.read_json("result") is not None:
            return
        done = 0
        while (state := self.folder.read_json(f"state/{done + 1}")) is not None:
            done, self.state = done + 1, state
        while self.state["half_edges"]:
            edges = -(-self.state["half_edges"] // 2)
            if done >= self.options.max_rounds:
                most, left = self.options.max_rounds, counted(edges, "edge is", "edges are")
                raise ValueError(
                    f"max_rounds is {most}, and {left} left; call build again with more, or with "
                    "larger part_edges or local_edges"
                )
            done += 1
            self.meter.begin(f"round {done}", "edges", edges)
            if edges <= self.options.local_edges:
                self._finish_in_one_worker(done)
            else:
                self._distributed_round(done)
            self.meter.advance(edges)
            self.meter.end()
        self._write_merges(done)

    def _finish_in_one_worker(self, number: int) -> None:
        from pyspark.sql import functions as F

        blocks = self._blocks(number).where(F.col("kind") == work.BLOCK)
        to_one = blocks.select("kind", F.lit(0).alias("to"), "data")
        ran = _grouped(to_one, 1).applyInArrow(self._run_parts(1), work.RESULTS)
        self.folder.write(f"results/{number}", ran)
        self.state = {"half_edges": 0, "vertices": 0, "homes": 1}
        self.folder.write_json(f"state/{number}", self.state)

    def _distributed_round(self, number: int) -> None:
        from pyspark.sql import functions as F

        blocks = self._blocks(number)
        self._check_hub()
        heaviest = blocks.where(F.col("kind") == work.HEAVIEST).select("id", "other", "degree")
        homes = self.state["homes"]
        buckets = self._groups(self.state["half_edges"])
        parts = assign_parts(self.folder, heaviest, self.options.part_edges, number)
        home = F.pmod(F.xxhash64("id"), F.lit(homes)).cast("int")
        addressed = _grouped(parts.withColumn("to", home), homes)
        packed = blocks.where(F.col("kind") == work.BLOCK).select("kind", "to", "data")
        sent = addressed.cogroup(_grouped(packed, homes)).applyInArrow(
            work.scatter_parts(buckets), work.MESSAGES
        )
        ran = _grouped(sent, buckets).applyInArrow(self._run_parts(buckets), work.RESULTS)
        self.folder.write(f"results/{number}", ran)
        self._contract(number, buckets)

    def _contract(self, number: int, homes: int) -> None:
        """Write the edges between the images that a round has left."""
        from pyspark.sql import functions as F

        results = self.folder.read(f"results/{number}", work.RESULTS).select("kind", "to", "data")
        at_homes = results.where(F.col("kind").isin(work.VERTEX, work.CROSS))
        followed = _grouped(at_homes, homes).applyInArrow(work.follow_images(homes), work.MESSAGES)
        inner = results.where(F.col("kind") == work.HALF)
        self._write_blocks(number, followed.union(inner), homes, first=False)
        self.state = self._write_state(number, homes)

    def _blocks(self, number: int) -> Any:
        """Return the blocks before a round."""
        return self.folder.read(f"edges/{(number - 1) % 2}", work.BLOCKS)

    def _write_blocks(self, number: int, sent: Any, homes: int, *, first: bool) -> None:
        blocks = _grouped(sent, homes).applyInArrow(
            work.build_block(self._heavy, first=first), work.BLOCKS
        )
        self.folder.write(f"edges/{number % 2}", blocks)

    def _write_state(self, number: int, homes: int, **more: int) -> dict[str, Any]:
        """Write what is left after a round."""
        from pyspark.sql import functions as F

        blocks = self._blocks(number + 1).where(F.col("kind").isin(work.BLOCK, work.HEAVIEST))
        is_block = F.col("kind") == work.BLOCK
        of_vertex = F.when(~is_block, F.col("degree"))
        row = blocks.agg(
            F.coalesce(F.sum(F.when(is_block, F.col("degree"))), F.lit(0)),
            F.count(of_vertex),
            F.max(F.struct(of_vertex.alias("degree"), F.bitwise_not("id"))),
        ).first()
        state = {"half_edges": row[0], "vertices": row[1], "homes": homes, **more}
        if row[1]:
            state |= {"largest_degree": row[2][0], "hub": ~row[2][1]}
        self.folder.write_json(f"state/{number}", state)
        return state

    @property
    def _heavy(self) -> float:
        """The least linkage that is merged, in units of the resolution."""
        return input.heavy_linkage(*(self.meta["parameters"][name] for name in GUARANTEED))

    def _run_parts(self, homes: int) -> work.Step:
        parameters = self.meta["parameters"]
        return work.run_parts(homes, parameters["epsilon"], self._heavy, parameters["resolution"])

    def _check_hub(self) -> None:
        """Raise if a vertex has more edges than one worker holds."""
        degree, most = self.state["largest_degree"], self.options.local_edges
        if degree > most:
            hub = show(self._name(self.state["hub"]))
            raise ValueError(
                f"vertex {hub} has {degree:,} edges, and one worker must hold all edges of a "
                f"vertex: local_edges is {most:,}; raise it, if the workers have the memory, or "
                "leave out the vertex or its lightest edges"
            )

    def _name(self, id: int) -> object:
        """Return the id that the user knows a vertex by."""
        if self.meta["ids"] == "int":
            return id
        named = self.folder.read("vertices", names.VERTICES).where(f"id = {id}").first()
        return named["name"]

    # --- end -------------------------------------------------------------------------------------

    def _write_merges(self, rounds: int) -> None:
        from pyspark.sql import functions as F

        folder = self.folder
        merges = folder.spark.createDataFrame([], MERGES)
        for number in range(1, rounds + 1):
            made = folder.read(f"results/{number}", work.RESULTS).where(F.col("kind") == work.MERGE)
            columns = [field.split()[0] for field in work.MERGES.split(", ")]
            merges = merges.union(made.select(F.lit(number).alias("round"), *columns))
        folder.write("merges", merges)
        first = folder.read_json("state/0") or {}
        result = {
            "rounds": rounds,
            "vertices": first["all_vertices"],
            "merges": folder.read("merges", MERGES).count(),
        }
        folder.write_json("result", result)
        leftovers = [f"results/{number}" for number in range(1, rounds + 1)] + ["edges/0"]
        if rounds > 1:
            leftovers += ["edges/1", *(f"pointers/{hop}" for hop in range(HOPS + 1))]
        if self.meta["ids"] == "str":
            leftovers.append("input")
        for name in leftovers:
            folder.empty(name)


def _grouped(frame: Any, groups: int) -> Any:
    """Return a frame grouped by the column ``to``, in partitions that Spark need not guess.

    There are more partitions than groups, so that fewer share one.
    """
    return frame.repartition(1 if groups == 1 else 2 * groups, "to").groupBy("to")


def _isolated(vertices: Any, text: bool) -> Any:
    """Return the column of ids as the vertices that are stored."""
    from pyspark.sql import functions as F

    wanted = "strings" if text else "integers"
    if not hasattr(vertices, "sparkSession"):
        raise InvalidTypeError(
            f"vertices is a {type(vertices).__name__}; it must be a DataFrame of Spark, with one "
            f"column of {wanted}"
        )
    types = vertices.dtypes
    if len(types) != 1 or types[0][1] not in (("string",) if text else input.WHOLE):
        raise InvalidTypeError(
            f"vertices has columns {types}; it must have one, of {wanted} as the ids in edges"
        )
    column = F.col(types[0][0])
    if vertices.where(column.isNull()).first() is not None:
        raise ValueError("vertices has an id that is null")
    return vertices.select(column.cast("string" if text else "long"))


def _digest(vertices: Any) -> list[int]:
    """Return how many distinct ids there are, and a hash of them for any order."""
    from pyspark.sql import functions as F

    if vertices is None:
        return [0, 0]
    ids = vertices.toDF("id").distinct()
    digest = F.coalesce(F.bit_xor(F.xxhash64("id")), F.lit(0))
    return list(ids.agg(F.count("*"), digest).first())


def _versions(spark: Any) -> dict[str, str]:
    from dynhac.version import __version__

    return {"dynhac": __version__, "spark": str(spark.version)}


def _check_same(found: dict[str, Any], wanted: dict[str, Any], path: str) -> None:
    """Raise if a folder holds the build of something else."""
    if found.get("format") != FORMAT:
        raise ValueError(
            f"{path} holds a build of format {show(found.get('format'))}; this version of dynhac "
            f"reads and writes format {FORMAT}"
        )
    if any(found[name] != wanted[name] for name in ("ids", "edges", "weights", "digest")):
        raise ValueError(
            f"the build in {path} is one of other edges ({found['edges']:,}, here "
            f"{wanted['edges']:,}); give another path"
        )
    if found["isolated"] != wanted["isolated"]:
        raise ValueError(f"the build in {path} is one of other vertices; give another path")
    for name in GUARANTEED:
        before, now = found["parameters"][name], wanted["parameters"][name]
        if before != now:
            raise ValueError(
                f"{name} is {now!r}, but the build in {path} has {before!r}; go on with that, or "
                "give another path"
            )
