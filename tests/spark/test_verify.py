"""The check on Spark finds forgeries of all kinds."""

import pyarrow as pa
import pytest
from pyarrow import parquet

from dynhac.input.errors import FileError
from dynhac.spark import SparkDendrogram, build
from dynhac.spark.dendrogram import top_names
from dynhac.spark.verify import Rule, in_two_places, replay

INF = float("inf")
NAMES = ("part", "seq", "a", "b", "size_a", "size_b", "weight", "similarity", "least")
# The path 1 - 2 - 3 - 4 with weights 8, 4, 6, in one part, in units of the resolution.
EDGES = [(1, 2, 8), (2, 3, 4), (3, 4, 6)]
MERGES = [
    (0, 0, 1, 2, 1, 1, 8, 8.0, 8.0),
    (0, 1, 3, 4, 1, 1, 6, 6.0, 6.0),
    (0, 2, 1, 3, 2, 2, 4, 1.0, 1.0),
]


def judged(merges, heavy=0.0):
    """What the replay says of merges on the path."""
    halves = [(0, x, y, w, 1, 1, INF) for u, v, w in EDGES for x, y in ((u, v), (v, u))]
    given = ("part", "u", "v", "w", "size_u", "size_v", "least")
    tables = [
        pa.table(
            {name: [row[i] for row in rows] for i, name in enumerate(names)} | {"bucket": zeros}
        )
        for names, rows in ((NAMES, merges), (given, halves))
        for zeros in ([0] * len(rows),)
    ]
    found = replay(Rule(0.1, heavy, 1.0))(*tables).to_pylist()[0]
    return found["bad"], found["wrong"]


def changed(row, **values):
    """The merges with other values in a row."""
    new = tuple(values.get(name, old) for name, old in zip(NAMES, MERGES[row], strict=True))
    return [new if i == row else merge for i, merge in enumerate(MERGES)]


def test_the_true_merges_are_right():
    assert judged(MERGES) == (0, 0)
    assert judged(MERGES, heavy=1.5) == (1, 0)


@pytest.mark.parametrize(
    ("row", "values"),
    [
        (0, {"weight": 7}),
        (0, {"similarity": 8.1}),
        (2, {"similarity": 1.0 + 1e-9}),
        (2, {"least": 6.0}),
        (2, {"size_a": 3}),
        (2, {"size_b": 1}),
        (0, {"a": 2, "b": 1}),  # of equal sizes the smaller name
        (1, {"b": 2}),  # lost before
        (1, {"a": 4, "b": 4}),
        (1, {"a": 3, "b": 99}),
        (2, {"seq": -1}),  # before its children
    ],
)
def test_a_merge_that_is_forged_is_found(row, values):
    bad, wrong = judged(changed(row, **values))
    assert bad or wrong


def test_a_merge_that_is_not_good_is_found():
    first = (0, -1, 2, 3, 1, 1, 4, 4.0, 4.0)  # 2 has an edge of 8 to 1
    assert judged([first]) == (1, 0)


def test_a_cluster_in_two_places_is_found(spark):
    for rows, found in (
        ([(0, 1, 2), (0, 1, 3), (5, 7, 8)], 0),
        ([(0, 1, 2), (1, 3, 2)], 1),  # 2 is lost twice
        ([(0, 1, 2), (0, 3, 2)], 1),
        ([(0, 1, 2), (1, 1, 3)], 1),  # 1 grows in two parts
    ):
        assert in_two_places(spark.createDataFrame(rows, "part long, a long, b long")) == found


def test_names_that_go_in_a_circle(spark):
    with pytest.raises(FileError, match="the merges are damaged"):
        top_names(spark.createDataFrame([(1, 2), (2, 1)], "id long, label long"))


def test_forged_files_and_other_edges(spark, tmp_path):
    edges = spark.createDataFrame([(u, v, w / 8) for u, v, w in EDGES], "u long, v long, w double")
    tree = build(edges, path=tmp_path / "tree")
    assert tree.verify()
    more = edges.union(spark.createDataFrame([(7, 8, 0.5)], edges.schema))
    with pytest.raises(ValueError, match=r"edges has the vertex [78], which is not in the hier"):
        tree.verify(edges=more)
    true = tree.merges.toArrow()
    for forged in (
        true.slice(1),
        true.set_column(0, "round", pa.array([1, 1, 2], pa.int32())),
    ):
        folder = tmp_path / "tree" / "merges"
        for file in folder.iterdir():
            file.unlink()
        parquet.write_table(forged, folder / "merges.parquet")
        report = SparkDendrogram.load(tmp_path / "tree", spark).verify(0.5, edges=edges)
        assert not report
        assert report.wrong_similarities
