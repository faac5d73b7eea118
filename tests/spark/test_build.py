"""Builds on Spark: good by every check, the same whatever the order, and able to go on.

A round of Spark takes seconds however small the graph, so that many shapes share a graph.
"""

import random

import numpy as np
import oracles
import pyarrow as pa
import pytest
import spark_rounds
import strategies
from spark_session import cloudpickle_by_value

from dynhac import GraphHAC, _core
from dynhac.spark import SparkDendrogram, build, work
from dynhac.spark.folder import Folder

RESOLUTION = strategies.RESOLUTION
SHAPES = ("path", "star", "clique", "grid", "ring", "apart", "blobs", "sparse")
LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
SMALL = {"part_edges": 40, "bucket_edges": 400, "local_edges": 120}


def zoo(seed=0):
    """Every shape with every palette: ``(n, {(u, v): units})``; vertex n - 1 has no edges."""
    rng = random.Random(seed)
    edges, first = {}, 0
    for name in SHAPES:
        for weight in strategies.PALETTES.values():
            for u, v in getattr(strategies, name)(12):
                edges[first + u, first + v] = int(weight(rng) / RESOLUTION)
            first += 12
    return first, edges


def frame(spark, edges, order=None, partitions=2, ids=lambda v: v):
    rows = [(*pair, w * RESOLUTION) for pair, w in edges.items()]
    if order is not None:
        random.Random(order).shuffle(rows)
        rows = [(v, u, w) if i % 3 else (u, v, w) for i, (u, v, w) in enumerate(rows)]
    u, v, w = ([row[i] for row in rows] for i in range(3))
    columns = {"u": [ids(x) for x in u], "v": [ids(x) for x in v], "w": w}
    return spark.createDataFrame(pa.table(columns)).repartition(partitions)


def merges_of(tree):
    columns = ("round", "part", "seq", "a", "b")
    return tree.merges.toArrow().sort_by([(name, "ascending") for name in columns])


def as_bytes(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


def library_check(tree, n, edges):
    """The full check of the library, in the order (round, seq)."""
    rows = spark_rounds.as_rows(n, merges_of(tree).to_pylist())
    children = np.array([row[:2] for row in rows], np.int64).reshape(-1, 2)
    similarity, level = (np.array([row[i] for row in rows]) for i in (2, 3))
    u, v = (np.array([pair[i] for pair in edges], np.int64) for i in (0, 1))
    w = np.array(list(edges.values()), np.int64)
    return _core.check(
        n, u, v, w, children, similarity, level.astype(np.int32),
        tree.epsilon, tree.threshold, tree.resolution,
    )  # fmt: skip


@pytest.fixture(scope="module")
def built(spark, tmp_path_factory):
    """The zoo at ε = 0.1, in several rounds."""
    n, edges = zoo()
    path = tmp_path_factory.mktemp("zoo") / "tree"
    told = []
    tree = build(frame(spark, edges), path=path, **SMALL, progress=told.append)
    return n, edges, tree, told


def test_every_merge_is_good(built):
    n, edges, tree, told = built
    assert tree.rounds >= 3
    merges = merges_of(tree).to_pylist()
    spark_rounds.assert_good(n, edges, merges, 0.1, 0.0, RESOLUTION)
    found = library_check(tree, n, edges)
    assert (found.bad_merges, found.wrong_similarities, found.heavy_edges_left) == (0, 0, 0)
    ended = [report.phase for report in told if report.ended]
    assert ended == ["reading", *(f"round {r + 1}" for r in range(tree.rounds))]


def test_the_check_on_spark_agrees_and_finds_what_is_wrong(spark, built, tmp_path):
    n, edges, tree, _ = built
    report = tree.verify()
    found = library_check(tree, n, edges)
    assert report.ok
    assert report.merges == tree.n_merges
    # It judges by what is outside of a part as it was before the round, which is stricter.
    assert found.worst_goodness <= report.worst_goodness * (1 + 1e-9) <= 1.1 * (1 + 1e-8)
    wrong = edges | {next(iter(edges)): 3 * 2**32}
    sampled = tree.verify(0.0, edges=frame(spark, edges))
    assert sampled.ok
    assert sampled.merges < tree.n_merges
    assert not tree.verify(edges=frame(spark, wrong)).ok


@pytest.mark.parametrize(
    ("order", "partitions", "bucket_edges", "adaptive"),
    [(1, 1, 150, True), (2, 5, 10**6, False)],
)
def test_the_merges_are_the_same(spark, built, tmp_path, order, partitions, bucket_edges, adaptive):
    _, edges, tree, _ = built
    before = {
        key: spark.conf.get(key)
        for key in ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions", LARGE)
    }
    spark.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    spark.conf.set(LARGE, str(adaptive).lower())
    try:
        given = frame(spark, edges, order, partitions)
        again = build(given, path=tmp_path / "tree", **SMALL | {"bucket_edges": bucket_edges})
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)
    assert as_bytes(merges_of(again)) == as_bytes(merges_of(tree))


def test_cuts_are_those_of_the_dendrogram(built):
    n, edges, tree, _ = built
    local = tree.to_dendrogram()
    assert local.ids.tolist() == sorted({v for pair in edges for v in pair})
    assert (np.diff(local.min_similarity) <= 0).all()
    for theta in (0.9, 0.2):
        labels = tree.labels(theta).toArrow().sort_by("id")
        assert labels["id"].to_pylist() == local.ids.tolist()
        assert same_partition(labels["label"].to_pylist(), local.labels(theta).tolist())
        assert all(
            labels["label"][i].as_py() in (None, *local.ids.tolist()) for i in range(0, n // 2, 9)
        )
    small = tree.labels(0.2, min_size=4).toArrow().sort_by("id")
    given = [-1 if label is None else label for label in small["label"].to_pylist()]
    wanted = local.labels(0.2, min_size=4).tolist()
    assert same_partition(given, wanted)
    assert [label < 0 for label in given] == [label < 0 for label in wanted]
    automatic = tree.labels(min_size=4).toArrow().sort_by("id")
    given = [-1 if label is None else label for label in automatic["label"].to_pylist()]
    assert same_partition(given, local.labels(min_size=4).tolist())


def same_partition(left, right):
    return len(set(zip(left, right, strict=True))) == len(set(left)) == len(set(right))


def test_epsilon_0_is_exact(spark, tmp_path):
    rng = random.Random(5)
    pairs = strategies.sparse(60) + [(60 + u, 60 + v) for u, v in strategies.clique(12)]
    edges = {pair: rng.randrange(2**20, 2**32) for pair in pairs}
    options = {"epsilon": 0.0, "threshold": 0.05, **SMALL}
    tree = build(frame(spark, edges), path=tmp_path / "tree", **options)
    rows = spark_rounds.as_rows(72, merges_of(tree).to_pylist())
    assert tree.rounds >= 2
    assert oracles.assert_exact(72, edges, rows, 0.05)


def test_one_worker_is_enough_for_few_edges_and_ids_may_be_str(spark, tmp_path):
    edges = {(0, 1): 9, (1, 2): 3, (3, 4): 7}
    edges = {pair: w << 28 for pair, w in edges.items()}
    names = ["ä", "Z", "a b", "", "zz"]
    given = frame(spark, edges, ids=names.__getitem__)
    alone = spark.createDataFrame([("alone",), ("ä",)], "id string")
    tree = build(given, path=tmp_path / "tree", vertices=alone)
    assert repr(tree) == "<SparkDendrogram: 6 leaves, 3 merges, 1 round, resolution 2.32831e-10>"
    again = SparkDendrogram.load(tmp_path / "tree", spark)
    one = GraphHAC.from_graph(
        tuple(given.toArrow()[name].to_pylist() for name in "uvw"), [*names, "alone"]
    )
    local = again.to_dendrogram()
    assert local.ids.tolist() == sorted([*names, "alone"], key=str.encode)
    assert sorted(local.similarity) == pytest.approx(sorted(one.dendrogram().similarity))
    cut = {row["id"]: row["label"] for row in again.labels(0.4).collect()}
    assert cut["ä"] == cut["Z"] != cut["zz"] == cut[""]
    assert cut["alone"] == "alone"
    assert {row["a"] for row in again.merges.collect()} <= set(names)
    assert again.verify(edges=given).ok
    with pytest.raises(ValueError, match="give verify the edges"):
        again.verify()


def test_a_star_and_a_hub(spark, tmp_path):
    rng = random.Random(0)
    edges = {(0, leaf): rng.choice((2**31, 2**32)) for leaf in range(1, 400)}
    given = frame(spark, edges)
    with pytest.raises(ValueError, match=r"vertex 0 has 399 edges, .* local_edges is 300"):
        build(given, path=tmp_path / "hub", part_edges=50, local_edges=300)
    ring = {(1000 + i, 1000 + (i + 1) % 60): 2**31 for i in range(60)}
    options = {"part_edges": 50, "bucket_edges": 100, "local_edges": 400}
    tree = build(frame(spark, edges | ring), path=tmp_path / "tree", **options)
    assert tree.rounds <= 3
    assert tree.n_merges == 399 + 59
    assert tree.verify().ok


def test_a_build_goes_on_after_a_round_that_was_killed(spark, built, tmp_path, monkeypatch):
    _, edges, tree, _ = built
    write_json = Folder.write_json

    def killed(self, name, values):
        if name == "state/3":
            raise KeyboardInterrupt
        write_json(self, name, values)

    monkeypatch.setattr(Folder, "write_json", killed)
    path = tmp_path / "tree"
    with pytest.raises(KeyboardInterrupt):
        build(frame(spark, edges), path=path, **SMALL)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="not complete"):
        SparkDendrogram.load(path, spark)
    first = {file: file.stat().st_mtime_ns for file in (path / "results" / "1").iterdir()}
    with pytest.raises(ValueError, match=r"epsilon is 0\.2, but the build in .* has 0\.1"):
        build(frame(spark, edges), path=path, epsilon=0.2, **SMALL)
    with pytest.raises(ValueError, match="is one of other edges"):
        build(frame(spark, dict(zip(edges, reversed(edges.values()), strict=True))), path=path)
    with pytest.raises(ValueError, match="is one of other vertices"):
        build(frame(spark, edges), path=path, vertices=spark.range(3))
    with pytest.raises(ValueError, match=r"max_rounds is 1, and .* edges are left"):
        build(frame(spark, edges), path=path, **SMALL | {"max_rounds": 1})
    told = []

    def note(report):
        told.append(report.phase)
        if report.phase == "round 3":
            now = {file: file.stat().st_mtime_ns for file in (path / "results" / "1").iterdir()}
            assert now == first

    again = build(frame(spark, edges, order=4), path=path, **SMALL, progress=note)
    assert "round 2" not in told
    assert "round 3" in told
    assert as_bytes(merges_of(again)) == as_bytes(merges_of(tree))
    same = build(frame(spark, edges), path=path)
    assert as_bytes(merges_of(same)) == as_bytes(merges_of(tree))
    fewer = dict(list(edges.items())[1:])
    with pytest.raises(ValueError, match="is one of other edges"):
        build(frame(spark, fewer), path=path)


def test_a_task_that_fails_is_tried_again(spark, built, tmp_path, monkeypatch):
    _, edges, tree, _ = built
    marker = tmp_path / "failed"
    run_parts = work.run_parts

    def failing(*arguments):
        step = run_parts(*arguments)

        def run(table):
            result = step(table)
            if not marker.exists():
                marker.touch()
                raise OSError("injected")
            return result

        return run

    monkeypatch.setattr(work, "run_parts", failing)
    with cloudpickle_by_value(__name__):
        again = build(frame(spark, edges), path=tmp_path / "tree", **SMALL)
    assert marker.exists()
    assert as_bytes(merges_of(again)) == as_bytes(merges_of(tree))
