"""Commands without --theta: the clusters are chosen automatically."""

import csv
import io
import json

import numpy as np
import pytest
from cli_runs import error_of, ok, ok_json

import dynhac

CENTRES = np.random.default_rng(5).normal(scale=8, size=(4, 3))


@pytest.fixture
def points():
    rng = np.random.default_rng(6)
    blobs = CENTRES[rng.integers(0, 4, 240)] + rng.normal(size=(240, 3))
    return np.vstack([blobs, rng.uniform(-25, 25, (60, 3))]).astype(np.float32)


@pytest.fixture
def store(tmp_path, points):
    np.savez(tmp_path / "built.npz", X=points[:260])
    np.savez(tmp_path / "new.npz", X=points[200:])
    ok("build", tmp_path / "built.npz", "-o", tmp_path / "store", "-k", 15)
    return tmp_path / "store"


CUTS = [
    ({}, ()),
    ({"min_size": 8}, ("--min-size", 8)),
    ({"min_size": 8, "noise": "nearest"}, ("--min-size", 8, "--noise", "nearest")),
    ({"conductance": 0.1}, ("--conductance", 0.1)),
    ({"theta": 0.2, "min_size": 3, "noise": "nearest"},
     ("--theta", 0.2, "--min-size", 3, "--noise", "nearest")),
]  # fmt: skip


@pytest.mark.parametrize(("cut", "options"), CUTS, ids=str)
def test_labels_clusters_and_predictions(tmp_path, store, points, cut, options):
    with dynhac.open(store, mode="r") as model:
        labels, clusters = model.labels(**cut), model.clusters(**cut)
        predicted = model.predict(points[200:], **cut).labels
    found = ok_json("labels", store, *options)
    assert found["labels"] == labels.tolist()
    assert found["clusters"] == labels.max() + 1 > 1
    shown = ok_json("clusters", store, *options)
    assert {row["cluster"]: row["size"] for row in shown["largest"]} == {
        cluster.id: cluster.size for cluster in clusters.largest()
    }
    assert shown["in_none"] == int((labels < 0).sum())
    assert ok_json("predict", store, tmp_path / "new.npz", *options)["labels"] == predicted.tolist()


def test_values_that_are_wrong(store):
    assert "--min-size is 1; the automatic choice" in error_of("labels", store, "--min-size", 1)
    assert "--conductance is 2.0; it must be" in error_of("clusters", store, "--conductance", 2)


def test_tail(tmp_path, store, points):
    lines = "".join(json.dumps({"insert": x.tolist()}) + "\n" for x in points[260:])
    with dynhac.open(store) as model:
        expected = model.watch(min_size=8)
        state = expected.clusters()
    out = [json.loads(line) for line in ok(
        "tail", store, "--min-size", 8, "--state", input=lines
    ).splitlines()]  # fmt: skip
    assert {e["cluster"]: e["size"] for e in out if e["event"] == "state"} == state
    sizes = state | {e["cluster"]: e["size"] for e in out if "line" in e}
    with dynhac.open(store) as model:
        (watch,) = model.watches
        assert (watch.theta, watch.min_size) == (None, 8)
        assert {id: size for id, size in sizes.items() if size} == watch.clusters()
        followed = model.predict(points[200:], watch=watch).labels.tolist()
    new = tmp_path / "new.npz"
    assert ok_json("predict", store, new, "--watch")["labels"] == followed
    assert ok_json("predict", store, new, "--watch", "--min-size", 8)["labels"] == followed
    assert "no such watch, only automatic with min_size 8" in error_of(
        "predict", store, new, "--watch", "--min-size", 9
    )
    ok("tail", store, input="")
    with dynhac.open(store, mode="r") as model:
        assert [watch.min_size for watch in model.watches] == [8, 25]
        default = model.predict(points[200:], watch=model.watches[1]).labels.tolist()
    # Of several watches, the one with the default parameters is meant.
    assert ok_json("predict", store, new, "--watch")["labels"] == default


def test_suggest(store):
    with dynhac.open(store, mode="r") as model:
        found = model.suggest(3, min_size=10)
    result = ok_json("suggest", store, "--most", 3, "--min-size", 10)
    assert result["cuts"] == [cut._asdict() for cut in found]
    assert result["automatic"] == found.automatic._asdict()
    assert (result["points"], result["min_size"]) == (260, 10)
    text = ok("suggest", store, "--min-size", 10)
    assert text.startswith("260 points; clusters of at least 10 points\n")
    assert f"{found[0].theta:g}" in text
    assert "automatic" in text
    assert "no cut has a cluster of 1,000 points" in ok("suggest", store, "--min-size", 1000)
    assert "--min-size is 1; " in error_of("suggest", store, "--min-size", 1)
    assert "--most is 0; " in error_of("suggest", store, "--most", 0)


@pytest.mark.parametrize("min_size", [None, 8, 1])
def test_tree(store, min_size):
    with dynhac.open(store, mode="r") as model:
        labels = model.labels(min_size=min_size and max(min_size, 2))
        ids = model.ids
    options = () if min_size is None else ("--min-size", min_size)
    result = ok_json("tree", store, "--depth", 99, "--top", 999, "--examples", 999, *options)
    assert result["automatic"] == labels.max() + 1
    label_of = dict(zip(ids.tolist(), labels.tolist(), strict=True))
    marked = set()

    def check(branch):
        inside = {label_of[id] for id in branch["ids"]}
        assert len(branch["ids"]) == branch["size"]
        one = len(inside) == 1 and inside != {-1}
        assert branch["cluster"] == (min(inside) if one else None)
        assert branch["clusters"] == len(inside - {-1})
        marked.add(branch["cluster"])
        for part in branch["parts"]:
            check(part)

    for branch in result["tree"]:
        check(branch)
    assert len(marked - {None}) > 1
    assert all(b["cluster"] is None for b in ok_json("tree", store, "--theta", 0.2)["tree"])
    text = ok("tree", store, *options)
    assert f"; {labels.max() + 1} automatic clusters\n" in text
    assert "  cluster " in text


def test_nothing_found(tmp_path):
    ok("build", "-", "-o", tmp_path / "s", input="id,x\na,0\nb,1\n")
    rows = list(csv.DictReader(io.StringIO(ok("labels", tmp_path / "s"))))
    assert [row["label"] for row in rows] == ["-1", "-1"]
    assert ok_json("clusters", tmp_path / "s")["clusters"] == 0
    assert "0 automatic clusters" in ok("tree", tmp_path / "s")
