"""``dynhac predict`` gives the answers of the library, in every format."""

import csv
import io

import numpy as np
import pyarrow.parquet as pq
import pytest
from cli_runs import error_of, ok, ok_json, run, usage

import dynhac


@pytest.fixture
def points():
    rng = np.random.default_rng(5)
    centres = rng.normal(scale=8, size=(4, 3))
    return (centres[rng.integers(0, 4, 80)] + rng.normal(size=(80, 3))).astype(np.float32)


@pytest.fixture
def store(tmp_path, points):
    np.savez(tmp_path / "built.npz", X=points[:60])
    np.savez(tmp_path / "new.npz", X=points[60:])
    ok("build", tmp_path / "built.npz", "-o", tmp_path / "store", "-k", 8)
    return tmp_path / "store"


def test_formats(tmp_path, store, points):
    with dynhac.open(store, mode="r") as model:
        labels, scores, neighbors = model.predict(points[60:], 0.3)
    new = tmp_path / "new.npz"
    rows = list(csv.DictReader(io.StringIO(ok("predict", store, new, "--theta", 0.3))))
    assert list(rows[0]) == ["row", "label", "score", "nearest1", "nearest2", "nearest3"]
    assert [int(row["label"]) for row in rows] == labels.tolist()
    assert [float(row["score"]) for row in rows] == scores.tolist()
    assert [int(row["nearest1"]) for row in rows] == neighbors.ids[:, 0].tolist()
    found = ok_json("predict", store, new, "--theta", 0.3, "-k", 2)
    assert (found["labels"], found["scores"]) == (labels.tolist(), scores.tolist())
    assert found["nearest"] == neighbors.ids[:, :2].tolist()
    assert found["similarities"] == neighbors.similarities[:, :2].tolist()
    assert found["rows"] == list(range(20))
    assert found["in_clusters"] == int((labels >= 0).sum())
    text = ok("predict", store, new, "--theta", 0.3, "-o", tmp_path / "out.parquet", "-k", 0)
    assert text == f"{tmp_path / 'out.parquet'}: 20 rows, {(labels >= 0).sum()} in clusters\n"
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["row", "label", "score"]
    ok("predict", store, new, "--theta", 0.3, "-o", tmp_path / "out.npy")
    assert np.load(tmp_path / "out.npy").tolist() == labels.tolist()
    ok("predict", store, new, "--theta", 0.3, "-o", tmp_path / "out.npz")
    assert np.load(tmp_path / "out.npz")["score"].tolist() == scores.tolist()


def test_cuts_and_watches(tmp_path, store, points):
    new = tmp_path / "new.npz"
    with dynhac.open(store) as model:
        by_count = model.predict(points[60:], n_clusters=9, min_size=2).labels.tolist()
        watch = model.watch(0.4, min_size=2)
        followed = model.predict(points[60:], watch=watch).labels.tolist()
        model.watch(min_size=5)
        # A reader works while a writer runs.
        found = ok_json("predict", store, new, "-n", 9, "--min-size", 2)
        assert found["labels"] == by_count
    assert ok_json("predict", store, new, "--theta", 0.4, "--watch")["labels"] == followed
    assert (
        error_of("predict", store, new, "--theta", 0.5, "--watch")
        == f"{store} has no such watch, only theta 0.4 with min_size 2; automatic with min_size 5"
    )
    assert "no such watch" in error_of(
        "predict", store, new, "--theta", 0.4, "--watch", "--min-size", 3
    )


def test_which_watch(tmp_path, store, points):
    with dynhac.open(store) as model:
        patient = model.watch(0.4, patience=3)
        model.insert(points[60:])  # so the cluster ids of the two watches differ
        plain = model.watch(0.4, min_size=2)
        expected = [
            model.predict(points[60:], watch=watch).labels.tolist() for watch in (patient, plain)
        ]
    assert expected[0] != expected[1]
    asked = ("predict", store, tmp_path / "new.npz", "--theta", 0.4, "--watch")
    assert ok_json(*asked, "--patience", 3)["labels"] == expected[0]
    assert ok_json(*asked, "--min-size", 2)["labels"] == expected[1]
    assert (
        "has several such watches: theta 0.4 with min_size 1 and patience 3 updates; theta 0.4 "
        "with min_size 2; give --min-size, --patience"
    ) in error_of(*asked)
    assert "has no such watch, only" in error_of(*asked, "--patience", 4)
    assert "--patience needs --watch" in usage(*asked[:-1], "--patience", 3)


def test_names_of_rows_and_columns(tmp_path):
    (tmp_path / "a.csv").write_text("id,x,y\nann,0,0\nbob,0,1\ncid,9,9\n")
    store = tmp_path / "named"
    ok("build", tmp_path / "a.csv", "-o", store)
    text = ok("predict", store, "-", "--theta", 0.4, "-k", 5, input="y,id,x\n0.5,zoe,0\n9,dan,5\n")
    zoe, dan = csv.DictReader(io.StringIO(text))
    assert [zoe[name] for name in ("id", "label", "nearest3")] == ["zoe", "0", "cid"]
    assert {zoe["nearest1"], zoe["nearest2"]} == {"ann", "bob"}
    assert float(zoe["score"]) == pytest.approx(2 / 3)
    assert [dan[name] for name in ("id", "label", "nearest1")] == ["dan", "-1", "cid"]
    assert "no column 'y', only x, z" in error_of(
        "predict", store, "-", "--theta", 0.4, input="x,z\n0.5,0\n"
    )


def test_errors(tmp_path, store):
    new = tmp_path / "new.npz"
    assert "give only one of --theta" in usage("predict", store, new, "--theta", 0.4, "-n", 3)
    for option in (("-n", 3), ("--conductance", 0.3), ("--noise", "nearest")):
        assert "cannot be used with --watch" in usage("predict", store, new, *option, "--watch")
    for option in ("", " --theta 0.4"):
        assert error_of("predict", store, new, *option.split(), "--watch") == (
            f"{store} has no watch; make one with: dynhac tail {store}{option}"
        )
    assert "--theta is -0.5" in error_of("predict", store, new, "--theta", -0.5)
    assert "2 dimensions, but the vectors of this model have 3" in error_of(
        "predict", store, "-", "--theta", 0.4, input="1,2\n"
    )
    (tmp_path / "edges.csv").write_text("u,v,w\n1,2,0.5\n")
    ok("build", tmp_path / "edges.csv", "-o", tmp_path / "graph")
    assert "holds a graph; predict needs a store of points" in error_of(
        "predict", tmp_path / "graph", new, "--theta", 0.4
    )
    assert run("predict", tmp_path / "none", new, "--theta", 0.4).exit_code == 1
