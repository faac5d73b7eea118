"""Numbers for ids that are strings: their ranks, so that they do not depend on the partitions.

The distinct names are brought into ranges of the alphabet and written, each with the number of its
range. The counts of the ranges give the first rank of each, and the rank of a name follows from its
place in its range.
"""

from __future__ import annotations

from typing import Any

from dynhac.spark.folder import Folder

RANGES = "name string, range int"
VERTICES = "id long, name string"


def number_names(folder: Folder, names: Any) -> None:
    """Write `vertices`: the distinct names of a column ``name``, and their ranks as ``id``."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    ranged = names.distinct().repartitionByRange("name")
    folder.write("names", ranged.withColumn("range", F.spark_partition_id()))
    stored = folder.read("names", RANGES)
    ranges = stored.groupBy("range").agg(F.count("*").alias("n"), F.min("name"), F.max("name"))
    first, last, offsets = 0, None, []
    for number, count, low, high in sorted(ranges.collect(), key=lambda row: row[2].encode()):
        if last is not None and low.encode() <= last:
            raise RuntimeError(f"Spark's ranges of names overlap at {low!r}")
        offsets.append((number, first))
        first, last = first + count, high.encode()
    firsts = folder.spark.createDataFrame(offsets, "range int, first long")
    place = F.row_number().over(Window.partitionBy("range").orderBy("name"))
    numbered = stored.join(F.broadcast(firsts), "range")
    folder.write(
        "vertices", numbered.select((F.col("first") + place - 1).cast("long").alias("id"), "name")
    )
    folder.empty("names")


def with_numbers(edges: Any, vertices: Any) -> Any:
    """Return edges (u, v, w) with the numbers of their ends in place of the names."""
    from pyspark.sql import functions as F

    for end in ("u", "v"):
        of_end = vertices.select(F.col("name").alias(end), F.col("id").alias(f"{end}_id"))
        edges = edges.join(of_end, end)
    return edges.select(F.col("u_id").alias("u"), F.col("v_id").alias("v"), "w")
