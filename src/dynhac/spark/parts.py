"""Parts: which vertices meet in one worker in a round.

Every vertex points to its heaviest neighbour. The pointers form trees; the root of a tree is a pair
of vertices that point to each other, and that pair can always be merged. A few hops along the
pointers take every vertex up its tree, at most 2^HOPS steps; the vertices that arrive at the same
vertex are one *part*. Any parts are right: only the number of rounds depends on them.

A part with more than ``part_edges`` edges (counted at each of its vertices) is cut: the hash of a
vertex, salted with the round, tells its piece. The root pair stays together, so that every round
merges something. A part has room for twice the edges of its largest vertex, since pieces of a star
have nothing to merge without the centre.
"""

from __future__ import annotations

from typing import Any

from dynhac.spark.folder import Folder

HOPS = 3
POINTERS = "id long, top long, degree long, root boolean"
"""A vertex, the vertex that it has arrived at, and whether it is one of a root pair."""


def assign_parts(folder: Folder, heaviest: Any, part_edges: int, salt: int) -> Any:
    """Return a frame (id, part) of the vertices of (id, other, degree).

    Every hop is written: a plan that refers to itself twice in each hop would grow exponentially.
    """
    from pyspark.sql import functions as F

    up = heaviest.select(F.col("id").alias("other"), F.col("other").alias("over"))
    is_root = F.col("over") == F.col("id")
    top = F.when(is_root, F.least("id", "other")).otherwise(F.col("other"))
    start = heaviest.join(up, "other").select(
        "id", top.alias("top"), "degree", is_root.alias("root")
    )
    folder.write("pointers/0", start)
    for hop in range(HOPS):
        pointers = folder.read(f"pointers/{hop}", POINTERS)
        up = pointers.select(F.col("id").alias("top"), F.col("top").alias("over"))
        moved = pointers.join(up, "top").select("id", F.col("over").alias("top"), "degree", "root")
        folder.write(f"pointers/{hop + 1}", moved)
    return cut_large(folder.read(f"pointers/{HOPS}", POINTERS), part_edges, salt)


def cut_large(pointers: Any, part_edges: int, salt: int) -> Any:
    """Return (id, part) of (id, top, degree, root): the vertices of one top, or pieces of them."""
    from pyspark.sql import functions as F

    room = F.greatest(F.lit(part_edges), 2 * F.max("degree"))
    large = (
        pointers.groupBy("top")
        .agg(F.ceil(F.sum("degree") / room).alias("pieces"))
        .where("pieces > 1")
    )
    piece = F.pmod(F.xxhash64("id", F.lit(salt)), F.col("pieces"))
    stays = F.col("pieces").isNull() | F.col("root") | (piece == 0)
    part = F.when(stays, F.col("top")).otherwise(F.xxhash64("top", piece))
    return pointers.join(F.broadcast(large), "top", "left").select("id", part.alias("part"))
