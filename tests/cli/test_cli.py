"""The commands give the results of the library, with files in every format."""

import csv
import io
import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_runs import COMMAND, environment, ok, ok_json, run, usage

import dynhac
from dynhac import DynHAC, GraphHAC, VerifyReport

CHANGING = ["demo", "build", "insert", "update", "delete", "tail"]
READING = [
    "labels",
    "clusters",
    "suggest",
    "find",
    "predict",
    "tree",
    "explain",
    "changes",
    "export",
    "stats",
    "verify",
]
COMMANDS = [*CHANGING, *READING, "verify"]


@pytest.fixture
def points():
    rng = np.random.default_rng(5)
    centres = rng.normal(scale=8, size=(4, 3))
    return (centres[rng.integers(0, 4, 60)] + rng.normal(size=(60, 3))).astype(np.float32)


@pytest.fixture
def store(tmp_path, points):
    np.savez(tmp_path / "built.npz", X=points)
    ok("build", tmp_path / "built.npz", "-o", tmp_path / "store", "-k", 8)
    return tmp_path / "store"


@pytest.fixture
def model(points):
    made = DynHAC(n_neighbors=8)
    made.insert(points)
    return made


def opened(path):
    return dynhac.open(path, mode="r")


def names(points):
    return [f"p{i}" for i in range(len(points))]


def csv_text(points, *columns, delimiter=",", header=True):
    """Return CSV: first the given columns, pairs of a name and values, then the vectors."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter)
    if header:
        writer.writerow([name for name, _ in columns] + [f"x{i}" for i in range(points.shape[1])])
    for i, row in enumerate(points.tolist()):
        writer.writerow([values[i] for _, values in columns] + row)
    return out.getvalue()


def write_points(path, points, kind):
    """Write points with ids in one of the formats."""
    ids = names(points)
    if kind == "npz":
        np.savez(path, X=points, ids=np.array(ids))
    elif kind == "csv":
        path.write_text("\ufeff" + csv_text(points, ("id", ids)), encoding="utf-8")
    elif kind == "tsv":
        path.write_text(csv_text(points, ("id", ids), delimiter="\t"))
    elif kind == "parquet":
        columns = {f"x{i}": points[:, i] for i in range(points.shape[1])}
        pq.write_table(pa.table({"id": ids, **columns}), path)
    elif kind == "pq":  # vectors as lists
        pq.write_table(pa.table({"id": ids, "vector": points.tolist()}), path)


@pytest.mark.parametrize("kind", ["npz", "csv", "tsv", "parquet", "pq"])
def test_build_from_every_format(tmp_path, points, model, kind):
    write_points(tmp_path / f"data.{kind}", points, kind)
    result = ok_json("build", tmp_path / f"data.{kind}", "-o", tmp_path / "s", "-k", 8)
    assert (result["inserted"], result["size"], result["kind"]) == (60, 60, "points")
    with opened(tmp_path / "s") as built:
        assert built.ids.tolist() == names(points)
        np.testing.assert_array_equal(built.vectors(), points)
        np.testing.assert_array_equal(built.labels(0.2), model.labels(0.2))


def test_build_without_ids(tmp_path, points, model):
    np.save(tmp_path / "a.npy", points)
    (tmp_path / "b.csv").write_text(csv_text(points, header=False))
    for name in ("a.npy", "b.csv"):
        out = ok("build", tmp_path / name, "-o", tmp_path / f"{name}.store", "-k", 8)
        assert "60 points" in out
        assert "new ids: 0 to 59" in out
        with opened(tmp_path / f"{name}.store") as built:
            assert built.dendrogram() == model.dendrogram()


def test_build_from_standard_input(tmp_path, points):
    ok("build", "-", "-o", tmp_path / "s", input=csv_text(points))
    with opened(tmp_path / "s") as built:
        np.testing.assert_array_equal(built.vectors(), points)


def test_ids_in_text_are_ints_if_all_can_be(tmp_path, points):
    for ids, expected in (
        (["7", "-3", "0"], [7, -3, 0]),
        (["7", "x", "0"], ["7", "x", "0"]),
        (["7", "08", "0"], ["7", "08", "0"]),
    ):
        path = tmp_path / f"store{len(list(tmp_path.iterdir()))}"
        ok("build", "-", "-o", path, input=csv_text(points[:3], ("id", ids)))
        with opened(path) as built:
            assert built.ids.tolist() == expected


def test_ids_in_text_get_the_type_of_the_store(tmp_path, points):
    ok("build", "-", "-o", tmp_path / "s", input=csv_text(points[:2], ("id", ["a", "b"])))
    ok("insert", tmp_path / "s", "-", input=csv_text(points[2:4], ("id", ["1", "2"])))
    with opened(tmp_path / "s") as built:
        assert built.ids.tolist() == ["a", "b", "1", "2"]


def test_column_name_options(tmp_path, points):
    text = csv_text(points[:3], ("key", ["a", "b", "c"]), ("when", [5, 6, 20]))
    columns = ("--id-column", "key", "--time-column", "when")
    ok("build", "-", "-o", tmp_path / "s", "--max-age", 10, *columns, input=text)
    with opened(tmp_path / "s") as built:
        assert built.ids.tolist() == ["c"]


def test_dates_and_ages(tmp_path, points):
    times = ["2025-03-01T10:00", "2025-03-01T11:30", "2025-03-01T12:15"]
    text = csv_text(points[:3], ("timestamp", times))
    ok("build", "-", "-o", tmp_path / "s", "--max-age", "1h", input=text)
    with opened(tmp_path / "s") as built:
        assert built.ids.tolist() == [1, 2]


def test_parameters_reach_the_model(tmp_path, points):
    np.save(tmp_path / "a.npy", np.abs(points))
    options = "-e 0.3 -t 0.05 -k 5 -m cosine -s gaussian:0.5 --max-points 50 --backend exact"
    ok("build", tmp_path / "a.npy", "-o", tmp_path / "s", *options.split(), "--no-repair")
    with opened(tmp_path / "s") as built:
        expected = DynHAC(
            0.3,
            0.05,
            5,
            "cosine",
            similarity=("gaussian", 0.5),
            max_points=50,
            neighbors="exact",
            repair=False,
        )
        expected.insert(np.abs(points))
        assert built.dendrogram() == expected.dendrogram()
        assert built.backend == "exact"
        assert len(built) == 50


def edges_file(path):
    u, v, w = ["a", "b", "c"], ["b", "c", "d"], [0.9, 0.25, 0.75]
    if path.suffix == ".csv":
        path.write_text(
            "w,u,v\n" + "".join(f"{c},{a},{b}\n" for a, b, c in zip(u, v, w, strict=True))
        )
    elif path.suffix == ".npz":
        np.savez(path, u=np.array(u), v=np.array(v), w=np.array(w))
    else:
        pq.write_table(pa.table({"u": u, "v": v, "w": w}), path)
    return GraphHAC.from_graph((u, v, w), ["a", "b", "c", "d"])


@pytest.mark.parametrize("suffix", ["csv", "npz", "parquet"])
def test_graphs(tmp_path, suffix):
    graph = edges_file(tmp_path / f"g.{suffix}")
    path = tmp_path / "s"
    assert "4 vertices, 3 edges" in ok("build", tmp_path / f"g.{suffix}", "-o", path)
    with opened(path) as built:
        assert built.dendrogram().labels(0.5).tolist() == graph.labels(0.5).tolist()
    result = ok_json("insert", path, "-", input="u,v,w\nd,e,0.5\na,b,0.125\n")
    assert (result["inserted"], result["edges_set"], result["size"]) == (1, 2, 5)
    result = ok_json("delete", path, "-", input="u,v\nb,a\n")
    assert result["deleted_edges"] == 1
    (tmp_path / "gone.csv").write_text("id\ne\nd\n")
    result = ok_json(
        "update", path, "-", "--delete", tmp_path / "gone.csv", input="u,v,w\nd,a,0.5\n"
    )
    assert (result["inserted"], result["deleted"]) == (1, 2)
    with opened(path) as built:
        u, v, w = (column.tolist() for column in built.edges())
        kept = {frozenset(pair): weight for *pair, weight in zip(u, v, w, strict=True)}
        assert kept == {frozenset("ad"): 0.5, frozenset("bc"): 0.25}
    assert ok_json("delete", path, "--id", "a")["size"] == 3


def test_insert_update_delete(tmp_path, store, points, model):
    more = points[:10] + 1
    np.save(tmp_path / "more.npy", more)
    result = ok_json("insert", store, tmp_path / "more.npy")
    assert result["ids"] == list(range(60, 70))
    model.insert(more)

    changed = csv_text(points[:3] + 2, ("id", [5, 6, 100]))
    (tmp_path / "gone.txt").write_text("7\n8\n")
    gone = ("--delete", tmp_path / "gone.txt")
    result = ok_json("update", store, "-", *gone, input=changed)
    assert (result["inserted"], result["replaced"], result["deleted"]) == (1, 2, 2)
    model.update(insert=points[:3] + 2, ids=[5, 6, 100], delete=[7, 8, 5, 6])

    assert "2 deleted" in ok("delete", store, "--id", 9, "--id", 10)
    np.save(tmp_path / "ids.npy", np.array([11, 12]))
    pq.write_table(pa.table({"id": [13], "other": ["x"]}), tmp_path / "ids.parquet")
    ok("delete", store, tmp_path / "ids.npy")
    ok("delete", store, tmp_path / "ids.parquet")
    for ids in ([9, 10], [11, 12], [13]):
        model.delete(ids)
    with opened(store) as changed:
        assert changed.dendrogram() == model.dendrogram()
        assert changed.update_number == 6
    assert ok("verify", store).endswith(" s\n")


def test_vector_columns_in_another_order(tmp_path):
    store = tmp_path / "s"
    ok("build", "-", "-o", store, input="id,x,y\na,0,10\nb,1,10\n")
    ok("insert", store, "-", input="y,id,x\n20,c,2\n")
    ok("insert", store, "-", "--id-column", "name", input="name,y,x\nd,30,3\n")
    pq.write_table(pa.table({"y": [40.0], "x": [4.0], "id": ["a"]}), tmp_path / "a.parquet")
    ok("update", store, tmp_path / "a.parquet")
    with opened(store) as kept:
        rows = dict(zip(kept.ids.tolist(), kept.vectors().tolist(), strict=True))
    assert rows == {"b": [1, 10], "c": [2, 20], "d": [3, 30], "a": [4, 40]}


def test_batches(tmp_path, points):
    np.save(tmp_path / "a.npy", points)
    result = ok_json("build", tmp_path / "a.npy", "-o", tmp_path / "s", "--batch-size", 25)
    assert (result["inserted"], result["update"], result["ids"]) == (60, 3, list(range(60)))
    ids = csv_text(points[:3], ("id", ["1", "2", "x"]))
    ok("build", "-", "-o", tmp_path / "mixed", "--batch-size", 2, input=ids)
    with opened(tmp_path / "mixed") as built:  # all batches have ids of one type
        assert built.ids.tolist() == ["1", "2", "x"]


def test_labels(tmp_path, store, model):
    expected = model.labels(0.15, min_size=3)
    ids = model.ids
    args = ("labels", store, "--theta", 0.15, "--min-size", 3)
    rows = list(csv.reader(io.StringIO(ok(*args))))
    assert rows[0] == ["id", "label"]
    assert [[int(a), int(b)] for a, b in rows[1:]] == list(
        map(list, zip(ids, expected, strict=True))
    )
    assert ok(*args, "-o", "-") == ok(*args)
    for more in ((), ("-o", "-")):
        result = ok_json(*args, *more)
        assert (result["ids"], result["labels"]) == (ids.tolist(), expected.tolist())
    assert result["clusters"] == expected.max() + 1
    for name in ("a.csv", "a.tsv", "a.parquet", "a.npz", "a.npy"):
        assert f"60 points in {expected.max() + 1} clusters" in ok(*args, "-o", tmp_path / name)
    assert (tmp_path / "a.csv").read_text() == ok(*args)
    assert (tmp_path / "a.tsv").read_text() == ok(*args).replace(",", "\t")
    table = pq.read_table(tmp_path / "a.parquet")
    assert table["id"].to_pylist() == ids.tolist()
    assert table["label"].to_pylist() == expected.tolist()
    with np.load(tmp_path / "a.npz") as arrays:
        assert arrays["id"].tolist() == ids.tolist()
        assert arrays["label"].tolist() == expected.tolist()
    assert np.load(tmp_path / "a.npy").tolist() == expected.tolist()
    by_number = ok_json("labels", store, "-n", 7)
    assert by_number["labels"] == model.labels(n_clusters=7).tolist()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_all_commands_number_updates_alike(tmp_path):
    store = tmp_path / "s"
    ok("build", "-", "-o", store, input="id,x\na,0\nb,1\n")
    lines = '{"delete": []}\n{"insert": [9.0], "id": "q"}\n'  # the first one changes nothing
    (event,) = map(json.loads, ok("tail", store, "--theta", 0.3, input=lines).splitlines())
    rows = map(json.loads, ok("changes", store, "--json").splitlines())
    (row,) = (row for row in rows if "q" in row["inserted"])
    assert event["update"] == row["number"] == 4  # the second one made the watch
    assert ok_json("labels", store, "--theta", 0.3)["update"] == 4


def test_tree(store, model):
    result = ok_json("tree", store, "--theta", 0.15, "--min-size", 2, "--depth", 99, "--top", 99)
    labels = model.labels(0.15)
    sizes = sorted(np.bincount(labels).tolist(), reverse=True)
    assert [branch["size"] for branch in result["tree"]] == sizes
    assert result["clusters"] == len(sizes)

    def check(branch, label):
        assert {labels[id] for id in branch["ids"]} <= {label}
        if branch["size"] > 1:
            assert branch["similarity"] >= 0.15
        if branch["parts"]:
            assert branch["size"] == branch["small"] + sum(p["size"] for p in branch["parts"])
        for part in branch["parts"]:
            assert part["similarity"] >= branch["similarity"]
            check(part, label)

    for branch in result["tree"]:
        check(branch, labels[branch["ids"][0]])
    text = ok("tree", store, "--theta", 0.15, "--top", 1)
    assert text.startswith(f"60 points in {len(sizes)} clusters at 0.15\n")
    assert f"{sizes[0]} points at " in text
    assert f"... and {len(sizes) - 1} more with {60 - sizes[0]} points" in text
    whole = ok_json("tree", store, "--depth", 0)
    assert sum(b["size"] for b in whole["tree"]) == 60
    assert not any(b["parts"] for b in whole["tree"])


def test_explain(store, model):
    found = model.explain(0, 1)
    assert ok("explain", store, 0, 1) == f"{found}\n"
    result = ok_json("explain", store, 0, 1)
    assert result["linkage"] == found.linkage
    assert [step["node_id"] for step in result["path_a"]] == [s.node_id for s in found.path_a]
    assert ok_json("explain", store, 3, 3)["similarity"] is None


def test_changes(tmp_path, store, points):
    np.save(tmp_path / "more.npy", points[:5])
    ok("insert", store, tmp_path / "more.npy")
    lines = [json.loads(line) for line in ok("changes", store, "--since", 1, "--json").splitlines()]
    assert [(line["number"], line["inserted"]) for line in lines] == [(2, list(range(60, 65)))]
    assert "60, 61, 62, …" in ok("changes", store)
    assert "nothing after update 2" in ok("changes", store, "--since", 2)
    for id in range(5):
        ok("delete", store, "--id", id)
        with dynhac.open(store) as model:
            model.snapshot()  # updates covered by two snapshots leave the log
    result = run("changes", store)
    assert "warning: the log does not go back to 1" in result.stderr


def test_stats(store, tmp_path):
    result = ok_json("stats", store)
    assert (result["points"], result["n_neighbors"], result["update_number"]) == (60, 8, 1)
    assert (result["dimension"], result["ids"], result["watches"]) == (3, "int", [])
    text = ok("stats", store)
    assert re.search(r"^points +60$", text, re.MULTILINE)
    ok("tail", store, "--theta", 0.25, "--min-size", 2, input="")
    (watch,) = ok_json("stats", store)["watches"]
    assert (watch["theta"], watch["min_size"]) == (0.25, 2)
    assert f"theta 0.25, min_size 2: {watch['clusters']} clusters" in ok("stats", store)
    with dynhac.open(store) as model:
        model.watch(min_size=100, patience=2)
    watch = ok_json("stats", store)["watches"][1]
    assert (watch["theta"], watch["min_size"]) == (None, 100)
    assert "automatic, min_size 100, patience 2 updates: 0 clusters" in ok("stats", store)
    ok("tail", store, "--theta", 0.25, "--min-size", 2, input="")
    assert len(ok_json("stats", store)["watches"]) == 2
    edges_file(tmp_path / "g.csv")
    ok("build", tmp_path / "g.csv", "-o", tmp_path / "g")
    result = ok_json("stats", tmp_path / "g")
    assert (result["kind"], result["vertices"], result["ids"]) == ("graph", 4, "str")


def test_verify(store, monkeypatch):
    assert "verified: " in ok("verify", store)
    assert ok_json("verify", store)["ok"] is True
    wrong = VerifyReport(False, 3, 1, 1.5, 0, 0, (), 0.0)
    monkeypatch.setattr(DynHAC, "verify", lambda self: wrong)
    result = run("verify", store)
    assert result.exit_code == 1
    assert "NOT VERIFIED" in result.stdout
    result = run("verify", store, "--json")
    assert (result.exit_code, json.loads(result.stdout)["bad_merges"]) == (1, 1)


def test_export(tmp_path, store, model):
    tree = model.dendrogram()
    assert "60 leaves" in ok("export", store, "-o", tmp_path / "t.nwk")
    assert (tmp_path / "t.nwk").read_text() == tree.to_newick() + "\n"
    assert ok("export", store, "-f", "newick", "-o", "-") == tree.to_newick() + "\n"
    joined = ok("export", store, "-f", "newick", "--join", "-o", "-")
    assert joined == tree.to_newick(join=True) + "\n"
    ok("export", store, "-o", tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").equals(tree.to_arrow())
    ok("export", store, "-f", "scipy", "-o", tmp_path / "matrix", "--join-distance", 1e6)
    matrix = np.load(tmp_path / "matrix")
    np.testing.assert_array_equal(matrix, tree.linkage(join_distance=1e6))
    ok("export", store, "-o", tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz") as arrays:
        assert arrays["linkage"].shape == (59, 4)
        assert arrays["ids"].tolist() == tree.ids.tolist()
    assert "does not tell the format" in usage("export", store, "-o", tmp_path / "t.what")
    assert "is not text" in usage("export", store, "-f", "scipy", "-o", "-")


def test_demo(tmp_path):
    out = ok("demo", "--generated", "--out", tmp_path / "pictures")
    assert "all good" in out
    assert list((tmp_path / "pictures").iterdir())


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_in_help(command):
    text = ok(command, "--help")
    assert "Examples:" in text
    lines = re.findall(r"dynhac (\w+ [^|│\n]*)", text.split("Examples:")[1].split("╭")[0])
    assert lines
    for line in lines:  # an unknown option is an error even with --help
        words = line.split("||")[0].split("--json |")[0].split()
        words = words[: words.index("--")] if "--" in words else words
        assert run(*words, "--help").exit_code == 0, line


def test_help_names_all_commands():
    text = ok("--help")
    for command in COMMANDS:
        assert f" {command} " in text
    assert "Exit codes" in text
    assert ok("--version").strip() == f"dynhac {dynhac.__version__}"
    assert "No such command" in usage("cluster")


def test_help_imports_no_large_packages():
    heavy = {"pandas", "pyarrow", "scipy", "sklearn", "sqlite3", "matplotlib", "rich.progress"}
    code = f"import sys, dynhac.cli.app; print({heavy!r} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


def test_completion():
    words = environment(_DYNHAC_COMPLETE="complete_bash", COMP_WORDS="dynhac la", COMP_CWORD="1")
    out = subprocess.run(COMMAND, env=words, capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["labels"]


def test_without_typer():
    code = "import sys; sys.modules['typer'] = None; from dynhac.cli import main; main()"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 1
    assert out.stderr.startswith("error: ")
    assert "Traceback" not in out.stderr
