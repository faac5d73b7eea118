"""`SparkDendrogram`: a hierarchy that lies in a folder, in Parquet.

`merges` has one row per merge:

| column         | type   | meaning                                                             |
|----------------|--------|---------------------------------------------------------------------|
| round          | int    | the round in which it was made, from 1                              |
| part           | long   | the part of the graph inside which it was made                      |
| seq            | long   | its place among the merges of this round and part, from 0           |
| a, b           | long   | the two clusters; the union is called a                             |
| size_a, size_b | long   | how many vertices they have                                         |
| weight         | long   | the total weight between them, in units of the resolution           |
| similarity     | double | its linkage: weight * resolution / (size_a * size_b)                |
| least          | double | the smallest linkage of this merge and those below it               |

A cluster is called like one of its vertices. The larger side gives its name to the union, of two
equal ones that of the smaller name. So (name, size) is one node of the dendrogram, every vertex
loses its name at most once, and from any vertex it takes at most log2(n) such losses to the root.
Merges in the order (round, seq) have children before parents; parts of a round do not touch.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.dendrogram.cuts import one_theta, snap
from dynhac.dendrogram.dendrogram import Dendrogram
from dynhac.extras import optional
from dynhac.input.columns import whole_number
from dynhac.input.errors import FileError, counted
from dynhac.spark import names
from dynhac.spark.blocks import find
from dynhac.spark.folder import Folder, arrow_only
from dynhac.spark.work import MERGES as MERGE_COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dynhac.models.verification import VerifyReport

FORMAT = 2
MERGES = f"round int, {MERGE_COLUMNS}"
MOST_LEAVES = 50_000_000
"""Leaves that `to_dendrogram` brings to one machine, unless told otherwise."""
MOST_PASSES = 8
"""Passes of `top_names` for chains of up to 64 names and more: log2(n) for any n."""


class SparkDendrogram:
    """A hierarchy in a folder, made by `build`.

    Attributes
    ----------
    path : str
        The folder.
    epsilon, threshold : float
        The parameters of the build.
    resolution : float
        Weights were rounded to multiples of this.
    n_leaves, n_merges, rounds : int
        How many vertices, merges and rounds there are.
    """

    def __init__(self, folder: Folder, edges: Any = None) -> None:
        meta = folder.read_json("meta")
        if meta is None:
            raise FileError(f"{folder.path} holds no hierarchy of dynhac.spark.build")
        if meta.get("format") != FORMAT:
            raise FileError(f"{folder.path} has format {meta.get('format')}; this is {FORMAT}")
        result = folder.read_json("result")
        if result is None:
            raise FileError(f"the build in {folder.path} is not complete; call build again")
        self._folder, self._edges, self._meta = folder, edges, meta
        self.path = folder.path
        parameters = meta["parameters"]
        self.epsilon: float = parameters["epsilon"]
        self.threshold: float = parameters["threshold"]
        self.resolution: float = parameters["resolution"]
        self.n_leaves: int = result["vertices"]
        self.n_merges: int = result["merges"]
        self.rounds: int = result["rounds"]

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], spark: SparkSession | None = None
    ) -> SparkDendrogram:
        """Return the hierarchy in a folder; ``spark`` is the session (default: the active one)."""
        sql = optional("pyspark.sql", "spark", "SparkDendrogram.load")
        session = spark or sql.SparkSession.builder.getOrCreate()
        return cls(Folder(session, path))

    def __repr__(self) -> str:
        leaves = counted(self.n_leaves, "leaf", "leaves")
        merges = counted(self.n_merges, "merge", "merges")
        rounds = counted(self.rounds, "round", "rounds")
        return f"<SparkDendrogram: {leaves}, {merges}, {rounds}, resolution {self.resolution:g}>"

    def __len__(self) -> int:
        return self.n_merges

    @property
    def _text(self) -> bool:
        return bool(self._meta["ids"] == "str")

    @property
    def vertices(self) -> DataFrame:
        """The vertices: ``id``, and ``name`` if ids are strings; then ``id`` is a number."""
        schema = names.VERTICES if self._text else "id long"
        return self._folder.read("vertices", schema)

    @property
    def _merges(self) -> Any:
        return self._folder.read("merges", MERGES)

    @property
    def merges(self) -> DataFrame:
        """The merges, one in a row; ``a`` and ``b`` are ids as they were given.

        Columns round, part, seq, a, b, size_a, size_b, weight, similarity and least; in the order
        of (round, seq) children come before parents. The union of ``a`` and ``b`` is called ``a``.
        """
        merges = self._merges
        for end in ("a", "b") if self._text else ():
            merges = self._named(merges, end)
        return merges.select([field.split()[0] for field in MERGES.split(", ")])

    def _named(self, frame: Any, column: str) -> Any:
        """Return a frame with the names of the vertices in a column."""
        from pyspark.sql import functions as F

        if not self._text:
            return frame
        named = self.vertices.select(F.col("id").alias(column), F.col("name").alias("_name"))
        joined = frame.join(named, column, "left").drop(column)
        return joined.withColumnRenamed("_name", column)

    def labels(self, theta: float | None = None, *, min_size: int | None = None) -> DataFrame:
        """Return flat clusters as a frame (id, label): the label is the id of one of the members.

        Parameters
        ----------
        theta : float, optional
            Clusters are the vertices of the maximal subtrees all of whose merges have a linkage of
            at least ``theta``. By default the clusters are chosen automatically, as by
            `Dendrogram.labels`: that rule needs the whole tree on one machine, so it is for what
            `to_dendrogram` can hold.
        min_size : int, optional
            The label of vertices in smaller clusters is null; 1 by default, and 25 for automatic
            clusters.
        """
        if theta is None:
            return self._automatic(min_size)
        value = one_theta(theta)
        if not value >= self.threshold:
            raise ValueError(
                f"theta is {value!r}; it must be a similarity >= {self.threshold:g}, the threshold "
                "of the build"
            )
        least = 1 if min_size is None else whole_number(min_size, "min_size", 1)
        labels = self._cut(float(snap(value, self.resolution)))
        if least > 1:
            labels = _without_small(labels, least)
        return self._named(self._named(labels, "id"), "label").select("id", "label")

    def _cut(self, theta: float) -> Any:
        """Return (id, label) by pointer jumping from each absorbed name to the one it became."""
        from pyspark.sql import functions as F

        made = self._merges.where(F.col("least") >= theta)
        lost = made.select(F.col("b").alias("id"), F.col("a").alias("label"))
        lost = top_names(lost)
        labels = self.vertices.select("id").join(lost, "id", "left")
        return labels.select("id", F.coalesce("label", "id").alias("label"))

    def _automatic(self, min_size: int | None) -> DataFrame:
        pa = optional("pyarrow", "spark", "SparkDendrogram.labels")
        tree = self.to_dendrogram()
        labels = tree.labels(min_size=min_size)
        first = np.full(int(labels.max(initial=-1)) + 1, -1)
        inside = np.flatnonzero(labels >= 0)
        first[labels[inside][::-1]] = inside[::-1]
        ids = pa.array(tree.ids, type=pa.string() if self._text else pa.int64())
        where = pa.array(np.append(first, -1)[labels], mask=labels < 0)
        table = pa.table({"id": ids, "label": ids.take(where)})
        frame: DataFrame = self._folder.spark.createDataFrame(table)
        return frame

    def to_dendrogram(self, max_leaves: int = MOST_LEAVES) -> Dendrogram:
        """Return the hierarchy in memory, with everything that a `Dendrogram` can do.

        Leaves are in ascending order of their ids. It takes about 200 bytes a leaf, and as much in
        Spark's driver (``spark.driver.maxResultSize``).
        """
        if self.n_leaves > max_leaves:
            raise ValueError(
                f"the hierarchy has {self.n_leaves:,} leaves; to_dendrogram brings at most "
                f"max_leaves = {max_leaves:,} to one machine: raise it if the memory is there, or "
                "use merges and labels(theta)"
            )
        vertices = self.vertices.toArrow()
        keys = vertices["id"].to_numpy()
        order = np.argsort(keys)
        keys = ids = keys[order]
        if self._text:
            ids = vertices["name"].to_numpy(zero_copy_only=False)[order]
        merges = self._merges.drop("part", "weight").toArrow()
        columns = {name: merges[name].to_numpy() for name in merges.column_names}
        tree = _tree(keys, columns)
        return Dendrogram(
            ids, *tree, np.arange(len(merges)), self.epsilon, self.threshold, 0, self.resolution
        )

    def verify(
        self, sample: float | None = None, *, edges: DataFrame | None = None
    ) -> VerifyReport:
        """Check the merges against the edges, with Spark; independently of how they were made.

        The graph is contracted round by round; inside every part the merges are replayed, and each
        is judged by all edges at the two clusters. It costs about as much as the build.

        Parameters
        ----------
        sample : float, optional
            The share of the parts that are replayed, from 0 to 1; by default all. The edges that
            are left in the end, and the part that one worker finished, are always checked.
        edges : pyspark.sql.DataFrame, optional
            The edges, as they were given to `build`; needed after `load`.
        """
        from dynhac.spark.verify import verify

        with arrow_only():
            return verify(self, self._edges if edges is None else edges, sample)


def top_names(lost: Any) -> Any:
    """Return (id, label) with each label replaced by the end of its chain of labels.

    Every pass doubles the steps that are taken; chains have at most log2(n).

    Raises FileError if a chain has no end.
    """
    from pyspark.sql import functions as F

    lost = lost.localCheckpoint()
    for _ in range(MOST_PASSES):
        over = lost.select(F.col("id").alias("label"), F.col("label").alias("over"))
        joined = lost.join(over, "label", "left").localCheckpoint()
        moved = joined.where(F.col("over").isNotNull()).limit(1).count()
        lost = joined.select("id", F.coalesce("over", "label").alias("label"))
        if not moved:
            return lost
    raise FileError("the merges are damaged: clusters are merged into one another")


def _without_small(labels: Any, least: int) -> Any:
    from pyspark.sql import functions as F

    small = labels.groupBy("label").count().where(F.col("count") < least)
    joined = labels.join(small, "label", "left")
    return joined.select("id", F.when(F.col("count").isNull(), F.col("label")).alias("label"))


def _tree(
    keys: NDArray[np.int64], merges: dict[str, NDArray[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return children, similarity, min_similarity and size, in descending order of the third.

    A parent has no larger ``least`` than its children, and of equal ones it was made later.
    """
    order = np.lexsort((merges["b"], merges["seq"], merges["round"], -merges["least"]))
    a, b, size_a, size_b = (merges[name][order] for name in ("a", "b", "size_a", "size_b"))
    size = size_a + size_b
    # Nodes are looked up by name and size, here of one number: the place of the name, and the size.
    n = len(keys)
    place_a, place_b = np.searchsorted(keys, a), np.searchsorted(keys, b)
    made = np.lexsort((size, place_a))
    names_made, sizes_made = place_a[made], size[made]
    children = np.empty((len(a), 2), np.int64)
    for side, (place, wanted) in enumerate(((place_a, size_a), (place_b, size_b))):
        children[:, side] = place
        merged = wanted > 1
        children[merged, side] = n + _nodes(
            names_made, sizes_made, made, place[merged], wanted[merged]
        )
    return children, merges["similarity"][order], merges["least"][order], size


def _nodes(
    names: NDArray[np.int64],
    sizes: NDArray[np.int64],
    made: NDArray[np.int64],
    name: NDArray[np.int64],
    size: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the merges that made the nodes (name, size), which are sorted in (names, sizes)."""
    if not len(name):
        return np.empty(0, np.int64)
    base = int(max(sizes.max(), size.max())) + 1
    # n and the sizes are at most 2^31 for what fits in memory: the product fits in 63 bits.
    position, present = find(names * base + sizes, name * base + size)
    if not present.all():
        raise FileError("a merge joins a cluster that was not made")
    return made[position]
