"""Files that people have: every format, with text beside the numbers, and odd ones."""

import gzip
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from cli_runs import error_of, ok, ok_json, run

import dynhac

VECTORS = [[0.0, 0.5], [1.0, 0.5], [9.0, 2.0]]
IDS = ["a", "b", "c"]
TITLES = ["Dune", 'with "quotes"\nand a line', "Zürich"]


def built(path):
    with dynhac.open(path, mode="r") as opened:
        return dict(zip(opened.ids.tolist(), opened.vectors().tolist(), strict=True))


def json_rows(**columns):
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def csv_rows(delimiter=",", line="\n", **columns):
    lines = [delimiter.join(columns)]
    for row in zip(*columns.values(), strict=True):
        cells = (str(cell).replace('"', '""') for cell in row)
        lines.append(delimiter.join(f'"{cell}"' for cell in cells))
    return line.join(lines) + line


COLUMNS = {"id": IDS, "title": TITLES, "x": [0.0, 1.0, 9.0], "ok": [True, False, True],
           "y": [0.5, 0.5, 2.0]}  # fmt: skip
LISTS = {"id": IDS, "title": TITLES, "year": [1, 2, 3], "embedding": VECTORS}


def write(path, columns):
    """Write columns in the format of the ending of a path."""
    name = path.name
    if ".csv" in name or ".tsv" in name:
        text = csv_rows("," if ".csv" in name else "\t", "\r\n", **columns)
    elif name.endswith((".parquet", ".arrow", ".feather")):
        table = pa.table(columns)
        if name.endswith(".parquet"):
            pq.write_table(table, path)
        elif name.endswith(".feather"):
            feather.write_feather(table, str(path))
        else:
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as out:
                out.write_table(table)
        return
    elif name.endswith(".npz"):
        np.savez(path, **{key: np.array(column) for key, column in columns.items()})
        return
    elif name.endswith(".npy"):
        np.save(path, np.rec.fromarrays(list(map(np.array, columns.values())), names=list(columns)))
        return
    else:
        text = json_rows(**columns)
    data = ("\ufeff" + text).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


FORMATS = ["csv", "tsv", "csv.gz", "jsonl", "ndjson", "jsonl.gz", "parquet", "arrow", "feather",
           "npz"]  # fmt: skip


@pytest.mark.parametrize("ending", [*FORMATS, "npy"])
def test_columns_of_numbers_beside_text(tmp_path, ending):
    write(tmp_path / f"a.{ending}", COLUMNS)
    result = run("build", tmp_path / f"a.{ending}", "-o", tmp_path / "s")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("note: ") == 1
    assert result.stderr.endswith("ignored columns, which are not part of the vector: title, ok\n")
    assert built(tmp_path / "s") == dict(zip(IDS, VECTORS, strict=True))


@pytest.mark.parametrize("ending", FORMATS)
def test_column_of_lists(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    write(path, LISTS)
    result = run("build", path, "-o", tmp_path / "s", "--vector-column", "embedding")
    assert (result.exit_code, result.stderr) == (0, "")
    assert built(tmp_path / "s") == dict(zip(IDS, VECTORS, strict=True))
    if "sv" not in ending:  # the type tells that the column has lists
        message = error_of("build", path, "-o", tmp_path / "t")
        assert "columns embedding and year could both be the vector" in message
        ok("build", path, "-o", tmp_path / "t", "--ignore", "year")
        assert built(tmp_path / "t") == built(tmp_path / "s")
    ok("delete", tmp_path / "s", path)  # other columns of a file of ids do not matter
    ok("insert", tmp_path / "s", path)  # the store knows its columns
    ok("update", tmp_path / "s", path)
    assert built(tmp_path / "s") == dict(zip(IDS, VECTORS, strict=True))


def test_store_knows_its_columns(tmp_path):
    store = tmp_path / "s"
    options = ("--id-column", "key", "--time-column", "when", "--ignore", "year")
    ok("build", "-", "-o", store, *options, input="key,when,x,year,y\na,5,1,1999,2\n")
    rows = {"y": [4.0], "other": [7], "key": ["b"], "x": [3.0], "when": [6]}
    result = run("insert", store, "-", input=json_rows(**rows))
    assert result.exit_code == 0, result.output
    assert "not part of the vector: other" in result.stderr
    ok("insert", store, "-", input="id,x,y,timestamp\nc,5,6,7\n")  # the usual names are known too
    assert built(store) == {"a": [1, 2], "b": [3, 4], "c": [5, 6]}
    rows = {"id": ["d"], "vector": [[7.0, 8.0]], "timestamp": [8]}
    ok("insert", store, "-", input=json_rows(**rows))
    (tmp_path / "gone.csv").write_text("key,why\na,old\n")
    gone = ("--delete", tmp_path / "gone.csv")
    ok("update", store, "-", *gone, input="key,when,x,y\nb,9,0,0\n")
    assert built(store) == {"c": [5, 6], "d": [7, 8], "b": [0, 0]}


@pytest.mark.parametrize("names", [("u", "v", "w"), ("source", "target", "weight"),
                                   ("Source", "Target", "Weight")])  # fmt: skip
@pytest.mark.parametrize("ending", FORMATS)
def test_edges(tmp_path, ending, names):
    path = tmp_path / f"a.{ending}"
    columns = (["a", "b"], ["b", "c"], [0.5, 0.25])
    write(path, {"Label": ["x", "y"], **dict(zip(names, columns, strict=True)), "Id": [1, 2]})
    result = run("build", path, "-o", tmp_path / "s")
    assert result.exit_code == 0, result.output
    assert "ignored columns, which are not part of an edge: Label, Id" in result.stderr
    ok("insert", tmp_path / "s", path)
    assert "2 edges deleted" in ok("delete", tmp_path / "s", path)


def test_points_with_names_of_edges(tmp_path):
    text = "u,v\n1,2\n3,4\n"
    ok("build", "-", "-o", tmp_path / "s", "--kind", "points", input=text)
    ok("insert", tmp_path / "s", "-", input=text)
    assert list(built(tmp_path / "s").values()) == [[1, 2], [3, 4]] * 2


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("t,x\nDune,1\n1984,2\n", "", "line 3: '1984' in t is a number, but 'Dune' in line 2 is"),
        ('t,x\n"a\nb",1\nc,\n', "", "line 4: x is empty"),
        ("v\n[1 2]\n", "--vector-column v", "line 2: v is '[1 2]'; it must be a list of numbers"),
        ('v\n"[1,2]"\n[1]\n', "--vector-column v", "line 3: v has 1 entry, but the first one"),
        ('v\n"[1,true]"\n', "--vector-column v", "line 2: entry 1 of v is True"),
        ('v\n"[1,NaN]"\n', "--vector-column v", "line 2: entry 1 of v is nan"),
        ("v\n[]\n", "--vector-column v", "line 2: v has 0 entries"),
        ('v\n"[1,2]"\n', "", "use --vector-column"),
        ("x;y\n1;2\n", "", "separated by commas"),
        (",x\n0,1\n", "", "a column without a name"),
        ("x,y\n1,2\n", "--ignore z", "no column 'z', only x, y; see --ignore"),
        ("x,y\n1,2\n", "--id-column z", "no column 'z', only x, y; see --id-column"),
        ("x,y\n1,2\n", "--vector-column z", "no column 'z', only x, y; see --vector-column"),
        ("0,1,2\n3,4,5\n", "", "Use --header or --no-header"),
        ("id,x\n,1\n", "", "line 2: id is empty"),
        ("source,target\na,b\n", "", "a column weight is needed"),
        ('{"x": 1}\n{"y": 1}\n', "--ignore z", "line 2: y is 1, but the first row has no y"),
        ('{"x": 1}\n{"x": null}\n', "", "line 2: x is empty"),
        ('{"x": 1}\n{"x": "2"}\n', "", "line 2: '2' in x is not a number, but 1 in line 1 is"),
        ('{"x": 1}\n\n[1]\n', "", "line 3: [1] is not an object"),
        ('{"x": 1\n', "", "line 1: not JSON"),
        ('{"v": [1, 2]}\n{"v": [1]}\n', "", "line 2: v has 1 entry, but the first one has 2"),
        ('{"v": [1, "2"]}\n', "", "line 1: entry 1 of v is '2'"),
        ('{"id": true, "x": 1}\n', "", "line 1: id is True"),
        ('{"u": 1, "v": 2, "w": "x"}\n', "", "line 1: 'x' in w is not a number; weights must be"),
    ],
)  # fmt: skip
def test_messages_name_the_line_and_the_column(tmp_path, text, options, message):
    assert message in error_of("build", "-", "-o", tmp_path / "s", *options.split(), input=text)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "options", "vectors"),
    [
        ("0,1\n3,4\n", "--no-header", [[0, 1], [3, 4]]),
        ("0,1\n3,4\n", "--header", [[3, 4]]),
        ("5,1\n3,4\n", "", [[5, 1], [3, 4]]),
        ("5,x\n3,4\n", "", [[3, 4]]),
        ("x,y\r1,2\r3,4", "", [[1, 2], [3, 4]]),
        ("\n\nx, y\n1, 2\n\n 3,4\n\n", "", [[1, 2], [3, 4]]),
        ("word,x\nnan,1\ninf,2\nother,3\n", "", [[1], [2], [3]]),
        ("empty,x\n,1\n,2\n", "", [[1], [2]]),
        ("x,when\n1,2025-01-01\n2,2025-01-02\n", "", [[1], [2]]),
        ("x,y\n", "", []),
        ("v\n1\n2\n", "--vector-column v", [[1], [2]]),
        ('{"x": 1, "t": {"a": [1]}}\n{"t": null, "more": "text", "x": 2}\n', "", [[1], [2]]),
        ('{"insert": [1, 2], "id": 7}\n', "", [[1, 2]]),
    ],
)
def test_odd_text(tmp_path, text, options, vectors):
    ok("build", "-", "-o", tmp_path / "s", *options.split(), input=text)
    assert list(built(tmp_path / "s").values()) == vectors


def test_blocks_of_rows(tmp_path):
    n = 10_000
    rows = [f"p{i},{i},name {i}\n" for i in range(n)]
    (tmp_path / "a.csv").write_text("id,x,title\n" + "".join(rows))
    ok("build", tmp_path / "a.csv", "-o", tmp_path / "s", "-k", 2)
    assert built(tmp_path / "s")["p9999"] == [9999]
    late = "".join(f"{i},{'' if i < 9000 else i}\n" for i in range(n))
    message = error_of("build", "-", "-o", tmp_path / "t", input="x,y\n" + late)
    assert "line 9002: '9000' in y is a number, but '' in line 2 is not" in message
    for column, wrong in ((1, "abc"), (2, "1984")):
        cells = rows[9000].rstrip().split(",")
        cells[column] = wrong
        text = "id,x,title\n" + "".join([*rows[:9000], ",".join(cells) + "\n", *rows[9001:]])
        message = error_of("build", "-", "-o", tmp_path / "t", input=text)
        assert f"line 9002: '{wrong}' in " in message


def test_arrow_types(tmp_path):
    table = pa.table(
        {
            "id": pa.array(["a", "b"]).dictionary_encode(),
            "timestamp": pa.array(["2025-01-01", "2025-01-02"]),
            "v": pa.array([[1, 2], [3, 4]], pa.list_(pa.float16(), 2)),
            "s": pa.array([{"a": 1}, None]),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    ok("build", tmp_path / "a.parquet", "-o", tmp_path / "s", "--max-age", "2d")
    assert built(tmp_path / "s") == {"a": [1, 2], "b": [3, 4]}
    same = pa.table([[1.0], [2.0]], names=["x", "x"])
    pq.write_table(same, tmp_path / "b.parquet")
    message = error_of("build", tmp_path / "b.parquet", "-o", tmp_path / "t")
    assert "two columns called 'x'" in message


def test_files_that_are_not_what_their_name_says(tmp_path):
    for name, message in (
        ("a.csv.gz", "cannot be read as a gzip file"),
        ("a.jsonl", "line 1: not JSON"),
        ("a.feather", "cannot be read as an Arrow file"),
        ("a.json", "cannot read .json; DATA must end in one of .csv"),
        ("a.npy.gz", "cannot read .npy.gz"),
        ("a", "cannot read a file without an ending"),
    ):
        (tmp_path / name).write_bytes(b"something else")
        assert message in error_of("build", tmp_path / name, "-o", tmp_path / "s")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"x\n" + b"1\n" * 10_000)[:-20])
    message = error_of("build", tmp_path / "b.csv.gz", "-o", tmp_path / "s")
    assert "cannot be read as a gzip file" in message
    (tmp_path / "c.csv").write_bytes("x\n1\n".encode("utf-16"))
    message = error_of("build", tmp_path / "c.csv", "-o", tmp_path / "s")
    assert "iconv -f UTF-16" in message
    np.save(tmp_path / "d.npy", np.zeros((2, 2)))
    damaged = (tmp_path / "d.npy").read_bytes().replace(b"}  ", b"} (")
    (tmp_path / "d.npy").write_bytes(damaged)
    message = error_of("build", tmp_path / "d.npy", "-o", tmp_path / "s")
    assert "cannot be read as a numpy file" in message
    assert not (tmp_path / "s").exists()


def test_output_formats(tmp_path):
    ok("build", "-", "-o", tmp_path / "s", input="id,x\na,1\nb,2\n")
    help_text = " ".join(ok("labels", "--help").replace("│", " ").split())
    message = error_of("labels", tmp_path / "s", "--theta", 0.3, "-o", tmp_path / "a.xyz")
    for ending in (".csv", ".tsv", ".jsonl", ".parquet", ".npz", ".npy"):
        assert ending in help_text
        assert ending in message
    ok("labels", tmp_path / "s", "--theta", 0.3, "-o", tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_text() == json_rows(id=["a", "b"], label=[0, 0])
    help_text = ok("export", "--help")
    result = run("export", tmp_path / "s", "-o", tmp_path / "a.xyz")
    assert result.exit_code == 2
    for word in ("newick", ".nwk", "parquet", ".pq", "scipy", ".npz"):
        assert word in help_text
        assert word in result.stderr


def test_digits_that_fit_in_no_int_are_text(tmp_path):
    long = ["9" * 19, "-" + "9" * 19, "9" * 5000]
    (tmp_path / "a.csv").write_text("id,x\n" + "".join(f"{id},{i}\n" for i, id in enumerate(long)))
    ok("build", tmp_path / "a.csv", "-o", tmp_path / "s")
    assert ok_json("labels", tmp_path / "s", "--theta", 0.9)["ids"] == long
    extreme = [str(2**63 - 1), str(-(2**63))]
    (tmp_path / "b.csv").write_text("id,x\n" + "".join(f"{id},1\n" for id in extreme))
    ok("build", tmp_path / "b.csv", "-o", tmp_path / "t")
    assert ok_json("labels", tmp_path / "t", "--theta", 0.9)["ids"] == list(map(int, extreme))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_result_never_replaces_what_is_no_file(tmp_path):
    write(tmp_path / "points.csv", COLUMNS)
    ok("build", tmp_path / "points.csv", "-o", tmp_path / "store", "--id-column", "id")
    pipe, tree, link = tmp_path / "pipe.csv", tmp_path / "tree.nwk", tmp_path / "link.nwk"
    os.mkfifo(pipe)
    assert "is not a regular file" in error_of("labels", tmp_path / "store", "-o", pipe)
    assert pipe.is_fifo()
    tree.touch()
    link.symlink_to(tree)
    ok("export", tmp_path / "store", "-o", link)
    assert link.is_symlink()
    assert tree.read_text().endswith(";\n")
