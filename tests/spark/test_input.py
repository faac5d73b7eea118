"""Edges that are wrong, and the resolution that fits the weights."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dynhac.spark import build
from dynhac.spark.blocks import group_of, xxhash64
from dynhac.spark.input import Weights

INF, NAN = float("inf"), float("nan")
GOOD = [(1, 2, 0.5), (2, 3, 0.25)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((7, 7, 1.0), r"edge \(7, 7\) is a self loop"),
        ((7, 8, NAN), r"weight of edge \(7, 8\) is nan; weights must be finite and > 0"),
        ((7, 8, INF), r"weight of edge \(7, 8\) is inf"),
        ((7, 8, -0.5), r"weight of edge \(7, 8\) is -0\.5"),
        ((7, 8, 0.0), r"weight of edge \(7, 8\) is 0\.0"),
        ((7, 8, None), r"weight of edge \(7, 8\) is None"),
        ((None, 8, 0.5), r"edge \(None, 8\) has an end that is null"),
        ((7, 8, 1e-11), r"weight of edge \(7, 8\) is 1e-11, which rounds to 0"),
        ((7, 8, math.nextafter(2.0**-33, 0)), r"weight of edge \(7, 8\) is .*, which rounds to 0"),
        ((2, 1, 0.5), r"edge \(1, 2\) is listed twice"),
    ],
)
def test_an_edge_that_is_wrong_is_named(spark, tmp_path, row, message):
    edges = spark.createDataFrame([*GOOD, row], "u long, v long, w double")
    with pytest.raises(ValueError, match=message):
        build(edges, path=tmp_path / "tree")


def test_names_are_told_and_not_numbers(spark, tmp_path):
    edges = spark.createDataFrame([("b", "a", 0.5), ("a", "b", 0.5)], "u string, v string, w float")
    with pytest.raises(ValueError, match=r"edge \('a', 'b'\) is listed twice"):
        build(edges, path=tmp_path / "tree")


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("u long, v long, x double", "it must have u, v and w"),
        ("u double, v long, w double", "column u of edges is double"),
        ("u string, v long, w double", "all integers or all strings"),
        ("u long, v long, w string", "column w of edges is string"),
        ("u long, v long, w double, u long", "edges has 2 columns u"),
    ],
)
def test_columns_that_are_wrong(spark, tmp_path, schema, message):
    with pytest.raises(TypeError, match=message):
        build(spark.createDataFrame([], schema), path=tmp_path / "tree")


def test_vertices_that_are_wrong(spark, tmp_path):
    edges = spark.createDataFrame(GOOD, "u long, v long, w double")
    for vertices, message in (
        ([5], "vertices is a list; it must be a DataFrame of Spark, with one column of integers"),
        (spark.createDataFrame([], "id double"), r"\('id', 'double'\).* one, of integers"),
        (spark.createDataFrame([], "id string"), r"\('id', 'string'\).* one, of integers"),
        (spark.createDataFrame([], "id long, x long"), "it must have one"),
        (spark.createDataFrame([(None,)], "id long"), "an id that is null"),
    ):
        with pytest.raises(ValueError, match=message):
            build(edges, path=tmp_path / "tree", vertices=vertices)


def test_what_is_no_frame_of_spark():
    pytest.importorskip("pyspark")
    with pytest.raises(TypeError, match=r"edges is a list; .* GraphHAC\.from_graph"):
        build([(1, 2, 0.5)], path="nowhere")


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
def test_edges_that_change_between_two_readings(spark, tmp_path):
    marker = tmp_path / "read"

    def fewer(batches):
        read = marker.exists()
        marker.touch()
        for batch in batches:
            yield batch.slice(1) if read else batch

    edges = spark.createDataFrame(GOOD, "u long, v long, w double").coalesce(1)
    edges = edges.mapInArrow(fewer, "u long, v long, w double")
    with pytest.raises(ValueError, match="edges gave 1 row when read again, and 2 before"):
        build(edges, path=tmp_path / "tree")


def test_no_edges(spark, tmp_path):
    edges = spark.createDataFrame([], "source int, target int, weight float")
    alone = spark.createDataFrame([(5,), (-3,), (5,)], "id int")
    tree = build(edges, path=tmp_path / "tree", vertices=alone)
    assert (tree.n_leaves, tree.n_merges, tree.rounds) == (2, 0, 0)
    assert tree.to_dendrogram().ids.tolist() == [-3, 5]
    assert sorted(map(tuple, tree.labels(0.5).collect())) == [(-3, -3), (5, 5)]
    assert tree.labels().count() == 2
    assert tree.verify().ok


def test_the_largest_ids(spark, tmp_path):
    low, high = -(2**63), 2**63 - 1
    rows = [(low, high, 0.5), (high, 0, 0.25), (0, 1, 0.75), (-1, 5, 0.5), (5, 6, 0.25)]
    edges = spark.createDataFrame(rows, "u long, v long, w double")
    tree = build(edges, path=tmp_path / "tree", part_edges=2, bucket_edges=2, local_edges=2)
    assert tree.n_merges == 5
    assert tree.verify().ok


def test_homes_are_those_of_sparks_hash(spark):
    values = np.array([0, 1, -1, 2**63 - 1, -(2**63), *range(100, 1000, 7)], np.int64)
    frame = spark.createDataFrame([(int(value),) for value in values], "id long")
    rows = frame.selectExpr("id", "xxhash64(id)", "pmod(xxhash64(id), 7)").collect()
    hashes = dict(zip(values.tolist(), xxhash64(values).view(np.int64).tolist(), strict=True))
    groups = dict(zip(values.tolist(), group_of(values, 7).tolist(), strict=True))
    assert all((hashes[id], groups[id]) == (hashed, group) for id, hashed, group in rows)


@pytest.mark.parametrize(
    ("counts", "exponent"),
    [({}, -32), ({-1: 1000}, -32), ({-1: 2**21}, -31), ({-1: 10**9}, -23), ({0: 2**40}, -11)],
)
def test_all_weights_fit_at_the_resolution(counts, exponent):
    weights = Weights(counts)
    resolution = weights.resolution(None)
    assert resolution == 2.0**exponent
    assert weights.bound / Fraction(resolution) < 2**53


def test_weights_beyond_every_resolution():
    with pytest.raises(ValueError, match=r"^the weights may add up to 2\^1028; scale them down$"):
        Weights({1023: 8}).resolution(None)


def test_a_resolution_that_is_too_fine():
    weights = Weights({-1: 10**9})
    assert weights.resolution(2.0**-10) == 2.0**-10
    with pytest.raises(ValueError, match=r"resolution is 2\.3\d*e-10; .* take 1\.19209e-07"):
        weights.resolution(2.0**-32)
