"""Payloads on the command line: columns that are kept, shown, found and exported."""

import json

import numpy as np
import pytest
from cli_runs import error_of, ok, ok_json, usage

import dynhac

CSV = """id,x,y,title,topic,n
a,0.0,0.0,Oil price falls,oil,1
b,0.1,0.0,Oil prices rise,oil,2
c,5.0,5.0,Gold mine,gold,3
d,5.1,5.0,"Gold, the mine",,4
"""


@pytest.fixture
def store(tmp_path):
    (tmp_path / "a.csv").write_text(CSV)
    store = tmp_path / "store"
    named = ("--payload-column", "title", "--payload-column", "topic", "--payload-column", "n")
    ok("build", tmp_path / "a.csv", "-o", store, *named)
    return store


def payloads(store, *ids):
    with dynhac.open(store, mode="r") as model:
        return model.payloads(list(ids))


def test_named_columns(store):
    first = {"title": "Oil price falls", "topic": "oil", "n": 1}
    assert payloads(store, "a", "d") == [first, {"title": "Gold, the mine", "n": 4}]


def test_all_other_columns(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"id": 1, "vector": [0, 0], "title": "oil", "tags": ["x"]}\n'
        '{"id": 2, "vector": [1, 0], "other": {"deep": null}, "skip": 1}\n'
        '{"id": 3, "vector": [1, 1]}\n'
    )
    ok("build", tmp_path / "a.jsonl", "-o", tmp_path / "s", "--payload", "--ignore", "skip",
       "--vector-column", "vector")  # fmt: skip
    assert payloads(tmp_path / "s", 1, 2, 3) == [
        {"title": "oil", "tags": ["x"]},
        {"other": {"deep": None}},
        None,
    ]


def test_columns_of_text_keep_their_text(tmp_path):
    (tmp_path / "a.csv").write_text("x,y,zip,kind,note\n0,0,007,1,\n1,1,10,b,\n")
    ok("build", tmp_path / "a.csv", "-o", tmp_path / "s", "--payload-column", "zip",
       "--payload-column", "kind", "--payload-column", "note")  # fmt: skip
    assert payloads(tmp_path / "s", 0, 1) == [
        {"zip": "007", "kind": "1"},
        {"zip": "10", "kind": "b"},
    ]


def test_numpy_and_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    days = np.array(["2024-01-02", "NaT"], "M8[D]")
    np.savez(tmp_path / "a.npz", X=np.eye(2), title=["oil", "gold"], day=days)
    ok("build", tmp_path / "a.npz", "-o", tmp_path / "s", "--payload")
    assert payloads(tmp_path / "s", 0, 1) == [
        {"title": "oil", "day": "2024-01-02"},
        {"title": "gold"},
    ]
    table = arrow.table({"x": [0.0, 1.0], "title": ["oil", None], "tags": [["a"], None]})
    parquet.write_table(table, tmp_path / "a.parquet")
    ok("build", tmp_path / "a.parquet", "-o", tmp_path / "t", "--payload")
    assert payloads(tmp_path / "t", 0, 1) == [{"title": "oil", "tags": ["a"]}, None]


def test_later_files_have_payloads_too(store, tmp_path):
    (tmp_path / "b.csv").write_text("title,id,y,x\nRain,e,1,1\n")
    ok("insert", store, tmp_path / "b.csv")
    (tmp_path / "c.csv").write_text("id,y,x\na,1,1\n")
    ok("update", store, tmp_path / "c.csv")
    lines = '{"id": "f", "x": 1, "y": 2, "title": "Snow"}\n'
    lines += '{"insert": [1, 2], "id": "g", "payload": {"title": "Fog"}}\n'
    ok("tail", store, "--theta", "0.5", input=lines)
    titles = [{"title": "Rain"}, {"title": "Snow"}, {"title": "Fog"}]
    assert payloads(store, "a", "e", "f", "g") == [None, *titles]


def test_find(store):
    assert ok("find", store, "oil", "--show", "title") == (
        "id,title\na,Oil price falls\nb,Oil prices rise\n"
    )
    assert ok_json("find", store, "--where", "n=4")["ids"] == ["d"]
    assert ok_json("find", store, "mine", "--where", "topic=gold")["payloads"] == [
        {"title": "Gold mine", "topic": "gold", "n": 3}
    ]
    assert ok_json("find", store, "--limit", "1")["ids"] == ["a"]
    assert "FIELD=VALUE" in usage("find", store, "--where", "topic")
    assert ok("find", store, "nothing") == "id,payload\n"


def test_clusters_and_labels(store):
    rows = ok("clusters", store, "--theta", "0.5", "--names", "title", "--show", "topic").split(
        "\n"
    )
    assert rows[0].startswith("cluster,name,size,")
    assert rows[0].endswith(",representatives,topic")
    assert '"oil, price' in rows[1]
    assert rows[1].endswith("a;b,oil;oil")
    found = ok_json("clusters", store, "--theta", "0.5", "--names", "ALL")
    assert found["largest"][1]["name"].startswith("gold")
    rows = ok("clusters", store, "--theta", "0.5", "--members", "--show", "n").split("\n")
    assert rows[0] == "id,cluster,typicality,outlier_score,n"
    assert rows[1].endswith(",1")
    rows = ok("labels", store, "--theta", "0.5", "--show", "topic", "-o", "-").split("\n")
    assert rows[:2] == ["id,label,topic", "a,0,oil"]


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_export_and_build_again(store, tmp_path, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    file = tmp_path / f"points{ending}"
    ok("export", store, "-o", file, "--format", "points")
    if ending == ".jsonl":
        first = json.loads(file.read_text().splitlines()[0])
        assert list(first) == ["id", "vector", "payload"]
    ok("build", file, "-o", tmp_path / "again", "--payload")
    assert payloads(tmp_path / "again", *"abcd") == payloads(store, *"abcd")
    with dynhac.open(store, mode="r") as one, dynhac.open(tmp_path / "again", mode="r") as other:
        assert one.vectors().tolist() == other.vectors().tolist()
    assert "jsonl" in error_of("export", store, "-o", tmp_path / "a.npz", "--format", "points")


def test_errors(tmp_path, store):
    (tmp_path / "g.csv").write_text("u,v,w,title\n1,2,0.5,x\n")
    assert "edges of a graph" in error_of(
        "build", tmp_path / "g.csv", "-o", tmp_path / "g", "--payload"
    )
    message = error_of(
        "build", tmp_path / "a.csv", "-o", tmp_path / "g", "--payload-column", "none"
    )
    assert "no column 'none'" in message
    assert "either" in usage("build", tmp_path / "a.csv", "-o", tmp_path / "g", "--payload",
                             "--payload-column", "n")  # fmt: skip
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize("times", [[5, 3], [0.5, 0.25], ["2024-03-01T12:00", "2024-03-01T12:01"]])
def test_timestamps_are_exported(tmp_path, times):
    given = np.array(times, "M8[s]") if isinstance(times[0], str) else times
    with dynhac.open(tmp_path / "store", n_neighbors=2) as model:
        model.insert([[0.0], [9.0]], ids=["gone", "x"], timestamps=given)
        model.delete("gone")
        model.insert([[1.0], [2.0]], ids=["a", "b"], timestamps=given)
        expected = model.timestamps.tolist()
    ok("export", tmp_path / "store", "-o", tmp_path / "points.jsonl")
    ok("build", tmp_path / "points.jsonl", "-o", tmp_path / "again")
    with dynhac.open(tmp_path / "again", mode="r") as again:
        assert again.ids.tolist() == ["x", "a", "b"]
        assert again.timestamps.tolist() == expected
