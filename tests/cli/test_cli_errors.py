"""Wrong input: a message of one line that names it, the right exit code, and no change."""

import os
import shutil
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_runs import COMMAND, error_of, ok, run, usage

import dynhac

CSV = "id,x,y\na,0,0\nb,0.1,0\nc,5,5\n"


@pytest.fixture
def store(tmp_path):
    ok("build", "-", "-o", tmp_path / "store", input=CSV)
    return tmp_path / "store"


@pytest.fixture
def graph(tmp_path):
    ok("build", "-", "-o", tmp_path / "graph", input="u,v,w\n1,2,0.5\n2,3,0.25\n")
    return tmp_path / "graph"


def number(path):
    with dynhac.open(path, mode="r") as opened:
        return opened.update_number


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "standard input: empty"),
        ("\n\n", "standard input: empty"),
        ("x,y\n1,2\n3\n", "line 3: 1 fields, but the first line has 2"),
        ("x,y\n1,2\n3,abc\n4,5\n", "line 3: 'abc' in y is not a number"),
        ("x,y\n1,2\n3,\n", "standard input: line 3: y is empty"),
        ("x,x\n1,2\n", "two columns called 'x'"),
        ("x,id,y\n1,a,nan\n", "standard input: line 2: y is nan"),
        ("x,y\n\n1,inf\n", "standard input: line 3: y is inf"),
        ("x,y\n1,1e300\n", "does not fit in float32"),
        ("id\na\n", "no columns of numbers for vectors, only id"),
        ("id,x\na,1\na,2\n", "'a'"),
        ("timestamp,x\n2025-01-01,1\nnoon,2\n", "line 3: timestamp 'noon'"),
        ("timestamp,x\n5,1\n2025-01-01,2\n", "a mix, such as '5' and '2025-01-01'"),
        ("timestamp,x\ntoday,1\n", "timestamp 'today' is neither a number nor a date"),
        ("timestamp,x\n2025-02-30,1\n", "timestamp '2025-02-30'"),
        ('x,y\n1,"2\n', "line 2: a quote that is not closed"),
        ("u,v,w\na,b,-1\n", "weight of edge ('a', 'b') is -1.0"),
        ("u,v,w\na,a,1\n", "self loop"),
        ("u,v,w\na,b,x\n", "'x' in w is not a number"),
        ("u,v\na,b\n", "no column w"),
    ],
)
def test_text_files(tmp_path, text, message):
    assert message in error_of("build", "-", "-o", tmp_path / "s", input=text)
    assert not list(tmp_path.iterdir())  # nothing is left behind


def test_text_that_is_not_utf8(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"x,y\n1,\xff\n")
    assert "a.csv: line 2: byte 0xff is not text in UTF-8" in error_of(
        "build", tmp_path / "a.csv", "-o", tmp_path / "s"
    )


def test_numpy_files(tmp_path):
    path = tmp_path / "s"
    (tmp_path / "a.npy").write_bytes(b"no array")
    assert "a.npy: cannot be read as a numpy file" in error_of(
        "build", tmp_path / "a.npy", "-o", path
    )
    (tmp_path / "a.npz").write_bytes(b"PK no archive")
    assert "a.npz: cannot be read as a numpy file" in error_of(
        "build", tmp_path / "a.npz", "-o", path
    )
    np.savez(tmp_path / "b.npz", Y=np.array(["a", "b"]))
    message = error_of("build", tmp_path / "b.npz", "-o", path)
    assert "b.npz: no columns of numbers for vectors, only Y" in message
    np.savez(tmp_path / "c.npz", X=np.zeros((2, 2)), ids=np.array(["a", 1], object))
    assert "ids.astype(str)" in error_of("build", tmp_path / "c.npz", "-o", path)
    np.savez(tmp_path / "d.npz", X=np.zeros((2, 2)), ids=np.array(["a"]))
    assert "ids has 1 entry for 2 points" in error_of("build", tmp_path / "d.npz", "-o", path)
    np.save(tmp_path / "e.npy", np.zeros(3))
    assert "the array has shape (3,)" in error_of("build", tmp_path / "e.npy", "-o", path)
    np.save(tmp_path / "f.npy", np.array([["a", "b"]]))
    assert "dtype <U1" in error_of("build", tmp_path / "f.npy", "-o", path)
    assert not path.exists()


def test_parquet_files(tmp_path):
    path = tmp_path / "s"
    (tmp_path / "a.parquet").write_bytes(b"no table")
    assert "a.parquet: cannot be read as a Parquet file" in error_of(
        "build", tmp_path / "a.parquet", "-o", path
    )
    for columns, message in (
        ({"x": [1.0, None]}, "row 1 of column x has no value"),
        ({"x": [1.0, 2.0], "y": [0.5, float("nan")]}, "row 1: y is nan"),
        ({"name": ["a", "b"]}, "no columns of numbers for vectors, only name"),
        ({"id": [1, 2]}, "no columns of numbers for vectors"),
        ({"v": [[1.0, None], [3.0, 1.0]]}, "v has lists with missing values"),
        ({"vector": [[1.0, 2.0], [3.0]]}, "one length"),
    ):
        pq.write_table(pa.table(columns), tmp_path / "b.parquet")
        assert message in error_of("build", tmp_path / "b.parquet", "-o", path)


def test_paths(tmp_path, store):
    assert "nowhere.npy: no such file" in error_of("build", "nowhere.npy", "-o", tmp_path / "s")
    assert "cannot read .xyz" in error_of("build", "a.xyz", "-o", tmp_path / "s")
    (tmp_path / "folder.csv").mkdir()
    assert "folder.csv" in error_of("build", tmp_path / "folder.csv", "-o", tmp_path / "s")
    assert "is a store" in error_of("build", "-", "-o", store, input=CSV)
    (tmp_path / "a.csv").write_text(CSV)
    message = error_of("build", tmp_path / "a.csv", "-o", tmp_path / "a.csv")
    assert "exists already and is something else" in message
    assert "does not exist" in error_of("build", "-", "-o", tmp_path / "no" / "s", input=CSV)
    (tmp_path / "empty").mkdir()
    ok("build", "-", "-o", tmp_path / "empty", input=CSV)
    assert number(tmp_path / "empty") == 1


@pytest.mark.parametrize("command", ["labels", "tree", "stats", "verify", "changes"])
def test_missing_store(tmp_path, command):
    options = ["--theta", 0.5] if command == "labels" else []
    message = error_of(command, tmp_path / "no.store", *options)
    assert message.startswith(f"there is no store at {tmp_path / 'no.store'}")
    assert "dynhac build" in message
    assert "is not a store" in error_of(command, tmp_path, *options)
    (tmp_path / "file").touch()
    assert "is not a store" in error_of(command, tmp_path / "file", *options)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-e -1", "--epsilon is -1.0; it must be a finite number >= 0"),
        ("-t nan", "--threshold is nan"),
        ("-k 0", "--neighbors is 0"),
        ("-s cosine", "cosine"),
        ("-s nonsense", "--similarity is 'nonsense'"),
        ("-s gaussian:x", "--similarity is 'gaussian:x'"),
        ("-s gaussian:-1", "-1"),
        ("--max-points 0", "--max-points is 0"),
        ("--max-age soon", "--max-age is 'soon'"),
        ("--max-age 5", "timestamps"),
        ("--threads 0", "--threads is 0"),
        ("--batch-size 0", "--batch-size is 0"),
        ("--kind graph", "standard input holds vectors; a graph needs columns u, v and w"),
    ],
)
def test_parameters(tmp_path, options, message):
    assert message in error_of("build", "-", "-o", tmp_path / "s", *options.split(), input=CSV)
    assert not list(tmp_path.iterdir())


def test_parameters_of_points_for_a_graph(tmp_path):
    for given, option in (
        ("-k 5", "--neighbors"),
        ("-m cosine", "--metric"),
        ("--max-points 5", "--max-points"),
        ("--no-repair", "--repair"),
        ("--backend exact", "--backend"),
    ):
        args = ("build", "-", "-o", tmp_path / "s", *given.split())
        message = error_of(*args, input="u,v,w\n1,2,3\n")
        assert message == f"{option} is for points; DATA is a graph"


def test_wrong_usage(store):
    usage("build")
    usage("build", "a.npy")
    usage("build", "a.npy", "-o", "s", "--metric", "manhattan")
    usage("build", "a.npy", "-o", "s", "-k", "many")
    for given in (("--theta", 0.5, "-n", 3), ("-n", 3, "--conductance", 0.5)):
        assert "give only one of --theta, --clusters and --conductance" in usage(
            "labels", store, *given
        )
    usage("labels", store, "--noise", "far")
    usage("delete", store)
    usage("tree", store, "--depth", -1)
    usage("labels", store, "--nonsense")


def test_rejected_updates_change_nothing(tmp_path, store):
    rows = {
        "id,x,y\na,1,2\n": "standard input: id 'a' is already in the store; to replace it use",
        "id,x\nd,1\n": "no column 'y', only id, x; the vectors of the store have the columns x, y",
        "id,x,z\nd,1,2\n": "have the columns x, y",
        "1,2,3\n": "X has 3 dimensions, but the vectors of this model have 2",
        "x,y\n1,2\n": "id",
        "u,v,w\na,b,1\n": "no column 'x', only u, v, w",
        "timestamp,id,x,y\n1,d,1,2\n": "timestamp",
    }
    for text, message in rows.items():
        assert message in error_of("insert", store, "-", input=text), text
    assert "'z'" in error_of("delete", store, "--id", "z")
    assert "no column id, only x, y" in error_of("delete", store, "-", input="x,y\n1,2\n")
    assert "has no ids" in error_of("update", store, "-", input="x,y\n1,2\n")
    assert number(store) == 1


@pytest.mark.parametrize("text", ["", "5", "[1, 2]", '{"x": 1}', "\xff"])
def test_damaged_column_names(store, text):
    (store / "columns.json").write_bytes(text.encode("latin-1"))
    assert "columns.json is damaged" in error_of("insert", store, "-", input="id,x,y\nd,1,2\n")
    assert number(store) == 1


def test_rejected_updates_of_graphs(graph):
    assert "holds vectors" in error_of("insert", graph, "-", input="x,y\n1,2\n")
    message = error_of("insert", graph, "-", input="u,v,w\na,2,1\n")
    assert "standard input: id 'a' is not an int" in message
    assert "edge (1, 3)" in error_of("delete", graph, "-", input="u,v\n1,3\n")
    assert "id 9" in error_of("delete", graph, "--id", 9)
    assert number(graph) == 1


def test_failed_batch_says_what_was_inserted(tmp_path, store):
    text = "id,x,y\nd,1,1\ne,2,2\nf,3,3\na,4,4\n"
    message = error_of("insert", store, "-", "--batch-size", 2, input=text)
    assert "rows 2 to 3 (the 2 rows before were inserted): id 'a'" in message
    with dynhac.open(store, mode="r") as opened:
        assert opened.ids.tolist() == ["a", "b", "c", "d", "e"]


def test_cuts_and_outputs(tmp_path, store):
    assert "--theta is -0.5" in error_of("labels", store, "--theta", -0.5)
    assert "--theta is nan" in error_of("labels", store, "--theta", "nan")
    assert "--clusters is 9" in error_of("labels", store, "-n", 9)
    assert "--min-size is 0" in error_of("labels", store, "--theta", 0.5, "--min-size", 0)
    labels = ("labels", store, "--theta", 0.5, "-o")
    assert "cannot write .xyz" in error_of(*labels, tmp_path / "a.xyz")
    assert "does not exist" in error_of(*labels, tmp_path / "no" / "a.csv")
    (tmp_path / "a.csv").mkdir()
    assert "is a folder" in error_of(*labels, tmp_path / "a.csv")
    assert "--theta is -1.0" in error_of("tree", store, "--theta", -1)


def test_explain_errors(store, graph):
    assert "'z'" in error_of("explain", store, "a", "z")
    assert "id 'a' is not an int" in error_of("explain", graph, "a", "1")
    assert "9" in error_of("explain", graph, "1", "9")
    assert "is not an int of 64 bits" in error_of("explain", graph, "1", "9" * 5000)
    assert run("explain", graph, "--", "-1", "1").exit_code == 1


def test_locked_store(store):
    with dynhac.open(store):
        message = error_of("delete", store, "--id", "a")
        assert str(os.getpid()) in message
        ok("stats", store)  # the lock does not keep out readers
    ok("delete", store, "--id", "a")


def test_damaged_store(tmp_path, store):
    shutil.copytree(store, tmp_path / "copy")
    (snapshot,) = (tmp_path / "copy").glob("snapshot-*.dynhac")
    snapshot.write_bytes(snapshot.read_bytes()[:-100])
    result = run("verify", tmp_path / "copy")
    assert "warning: " in result.stderr or result.exit_code == 1
    assert "Traceback" not in result.output
    (store / "log.sqlite").write_bytes(b"garbage" * 1000)
    assert "log.sqlite" in error_of("verify", store)


def test_debug_shows_a_traceback(store):
    result = run("explain", store, "a", "z", "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: ")


def test_bugs_are_not_hidden(store, monkeypatch):
    def broken(self, *args):
        raise ZeroDivisionError

    monkeypatch.setattr(dynhac.DynHAC, "explain", broken)
    assert isinstance(run("explain", store, "a", "b").exception, ZeroDivisionError)


def test_full_disk(store):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    with open("/dev/full", "w") as full:
        out = subprocess.run(
            [*COMMAND, "labels", store, "--theta", "0.5"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert out.returncode == 1
    assert out.stderr == "error: No space left on device\n"
