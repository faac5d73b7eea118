"""``dynhac clusters`` shows what the library says of the clusters, in every format."""

import csv
import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from cli_runs import error_of, ok, ok_json, usage

import dynhac
from dynhac import DynHAC


@pytest.fixture
def points():
    return np.random.default_rng(5).normal(size=(60, 3)).astype(np.float32)


@pytest.fixture(params=["int", "str"])
def ids(request):
    return [i if request.param == "int" else f"p,{i}" for i in range(60)]


@pytest.fixture
def store(tmp_path, points, ids):
    with dynhac.open(tmp_path / "store", n_neighbors=8) as made:
        made.insert(points, ids=ids)
    return tmp_path / "store"


@pytest.fixture
def expected(points, ids):
    model = DynHAC(n_neighbors=8)
    model.insert(points, ids=ids)
    return model.clusters(0.2, min_size=2)


def table(text, delimiter=","):
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def test_csv_and_files(tmp_path, store, expected):
    args = ("clusters", store, "--theta", 0.2, "--min-size", 2, "--representatives", 2)
    rows = table(ok(*args))
    largest = expected.largest()
    assert len(largest) > 3
    assert [int(row["cluster"]) for row in rows] == [cluster.id for cluster in largest]
    for row, cluster in zip(rows, largest, strict=True):
        assert int(row["size"]) == cluster.size
        for name in ("cohesion", "density", "similarity"):
            assert float(row[name]) == getattr(cluster, name)
        assert (int(row["nearest"]), float(row["nearest_linkage"])) == cluster.nearest[0]
        assert row["representatives"] == ";".join(map(str, cluster.members[:2]))
    assert ok(*args, "-o", "-") == ok(*args)
    for name in ("a.csv", "a.tsv", "a.parquet", "a.npz"):
        said = ok(*args, "-o", tmp_path / name)
        assert f"60 points in {len(largest)} clusters; in none: " in said
    assert (tmp_path / "a.csv").read_text() == ok(*args)
    assert table((tmp_path / "a.tsv").read_text(), "\t") == rows
    assert pq.read_table(tmp_path / "a.parquet")["size"].to_pylist() == [len(c) for c in largest]
    with np.load(tmp_path / "a.npz") as arrays:
        assert arrays["cluster"].tolist() == [cluster.id for cluster in largest]


def test_json(store, expected):
    args = ("clusters", store, "--theta", 0.2, "--min-size", 2)
    result = ok_json(*args)
    assert (result["points"], result["clusters"], result["update"]) == (60, len(expected), 1)
    assert result["in_none"] == (expected.labels < 0).sum()
    assert result["largest"] == [cluster.to_dict() for cluster in expected.largest()]
    result = ok_json(*args, "--top", 2, "--representatives", 1, "--members")
    assert result["clusters"] == len(expected)
    for row, cluster in zip(result["largest"], expected.largest(2), strict=True):
        members = row.pop("members")
        assert row == cluster.to_dict(1)
        assert [point["id"] for point in members] == cluster.members.tolist()
        assert [point["typicality"] for point in members] == cluster.typicality.tolist()
        assert [point["outlier_score"] for point in members] == cluster.outlier_score.tolist()


def test_members(store, expected):
    args = ("clusters", store, "--theta", 0.2, "--min-size", 2, "--members")
    rows = table(ok(*args))
    points = [str(id) for cluster in expected.largest() for id in cluster.members.tolist()]
    assert [row["id"] for row in rows] == points
    scores = np.concatenate([cluster.outlier_score for cluster in expected.largest()])
    assert [float(row["outlier_score"]) for row in rows] == scores.tolist()
    assert len(table(ok(*args, "--top", 1))) == expected.sizes.max()
    nothing = ("clusters", store, "--theta", 0.99, "--min-size", 50)
    assert ok(*nothing, "--members") == "id,cluster,typicality,outlier_score\n"
    assert ok_json(*nothing)["largest"] == []
    alone = ok_json("clusters", store, "-n", 60, "--members", "--top", 1)["largest"][0]
    assert (alone["cohesion"], alone["members"][0]["typicality"]) == (None, None)


def test_json_lines_of_single_points(tmp_path, store):
    out = tmp_path / "a.jsonl"
    ok("clusters", store, "-n", 60, "-o", out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["size"] for row in rows] == [1] * 60
    assert {row["cohesion"] for row in rows} == {None}
    ok("clusters", store, "-n", 60, "--members", "-o", out)
    assert {json.loads(line)["typicality"] for line in out.read_text().splitlines()} == {None}


def test_errors(tmp_path, store):
    assert "give only one of --theta" in usage("clusters", store, "--theta", 0.2, "-n", 3)
    assert "--clusters is 61; " in error_of("clusters", store, "-n", 61)
    assert "--theta is -0.5; " in error_of("clusters", store, "--theta", -0.5)
    message = error_of("clusters", store, "-n", 3, "-o", tmp_path / "a.npy")
    assert "a table cannot be a .npy file; it must end in .csv" in message
    assert "it must end in .csv" in error_of("clusters", store, "-n", 3, "-o", tmp_path / "a.x")
