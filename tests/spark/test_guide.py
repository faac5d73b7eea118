"""The recipe of the guide makes the graph of nearest neighbours; the command builds from a file."""

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.spatial import cKDTree
from typer.testing import CliRunner

from dynhac.cli.app import app
from dynhac.cli.commands.spark_build import _start
from dynhac.spark import SparkDendrogram, build

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "spark.md"


def recipe():
    """The names that the guide's recipe from vectors defines."""
    code = next(
        block
        for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
        if "def neighbour_edges" in block
    )
    names = {"__name__": "recipe"}
    exec(compile(code, str(GUIDE), "exec"), names)
    return names


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
def test_the_recipe_from_vectors(spark, tmp_path):
    rng = np.random.default_rng(0)
    points = rng.normal(np.repeat(rng.normal(0, 20, (6, 10)), 30, axis=0)).astype(np.float32)
    ids = rng.permutation(1000)[: len(points)]
    table = pa.table({"id": ids, "vector": pa.array(points.tolist(), pa.list_(pa.float32()))})
    frame = spark.createDataFrame(table).repartition(3)
    neighbour_edges = recipe()["neighbour_edges"]
    neighbour_edges(frame, k=5, shard_rows=100).write.parquet(str(tmp_path / "edges"))
    edges = spark.read.parquet(str(tmp_path / "edges"))
    found = {(row["u"], row["v"]): row["w"] for row in edges.collect()}
    distance, other = cKDTree(points).query(points, 6)
    wanted = {
        tuple(sorted((int(ids[i]), int(ids[j])))): 1 / (1 + d)
        for i in range(len(points))
        for j, d in zip(other[i, 1:], distance[i, 1:], strict=True)
    }
    assert found.keys() == wanted.keys()
    assert np.allclose([found[pair] for pair in wanted], list(wanted.values()), rtol=1e-5)
    tree = build(edges, path=tmp_path / "tree")
    labels = tree.labels(min_size=10).toArrow()
    group = dict(zip(ids.tolist(), np.arange(180) // 30, strict=True))
    pairs = {(group[id], label) for id, label in zip(*labels.to_pydict().values(), strict=True)}
    assert len(pairs) == 6


def test_the_command(spark, tmp_path):
    rows = [f"{i},{i + 1},{0.5 + i % 3 / 10}" for i in range(20)]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target,weight", *rows]))
    out = str(tmp_path / "tree")
    command = ["spark-build", str(tmp_path / "edges.csv"), out, "-e", "0.2", "--verify", "1"]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "21 vertices, 20 merges in 1 round" in done.output
    assert "verified: 20 merges" in done.output
    table = pa.table({"u": [1, 2], "v": [2, 3], "w": [0.5, 0.25]})
    parquet.write_table(table, tmp_path / "edges.parquet")
    command = ["spark-build", str(tmp_path / "edges.parquet"), out + "2", "--json"]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert json.loads(done.stdout)["merges"] == 2
    assert SparkDendrogram.load(out + "2", spark).threshold == 0
    missing = CliRunner().invoke(app, ["spark-build", str(tmp_path / "no.parquet"), out])
    assert missing.exit_code == 1
    assert "no.parquet" in missing.output
    other = CliRunner().invoke(app, [*command[:2], out, "-e", "0.2"])
    assert other.exit_code == 1
    assert "is one of other edges" in other.output
    share = CliRunner().invoke(app, [*command, "--verify", "2"])
    assert share.exit_code == 2  # before the build, not after it


@pytest.mark.parametrize(
    ("master", "submitted", "python"),
    [
        (None, False, sys.executable),
        ("local[2]", False, sys.executable),
        ("yarn", False, None),
        (None, True, None),
    ],
)
def test_workers_of_a_local_session_are_this_python(monkeypatch, master, submitted, python):
    """Spark would take the first python3 of PATH, which may not have dynhac."""

    def session():
        name = os.environ.get("PYSPARK_PYTHON")
        return SimpleNamespace(name=name, sparkContext=SimpleNamespace(setLogLevel=print))

    builder = SimpleNamespace(getOrCreate=session)
    builder.appName = builder.master = builder.config = lambda *_: builder
    monkeypatch.setenv("PYSPARK_PYTHON", "")
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    if submitted:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert _start(SimpleNamespace(builder=builder), master).name == python


def test_a_session_that_cannot_start_is_one_line():
    class Builder:
        def appName(self, _):
            return self

        def config(self, *_):
            return self

        def getOrCreate(self):
            raise RuntimeError("An error occurred while calling o1.x.\n: no Java\n\tat y")

    with pytest.raises(ValueError, match=r"^Spark cannot start: no Java$"):
        _start(SimpleNamespace(builder=Builder()), None)
