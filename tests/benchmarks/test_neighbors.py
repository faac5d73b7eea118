"""The benchmark of neighbour indexes, on few points."""

import json
import sys

import pytest

from benchmarks import neighbors
from benchmarks.cost import charts, tables


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(neighbors, "QUERIES", 100)
    monkeypatch.setattr(neighbors, "JUDGED", 20)
    monkeypatch.setattr(neighbors, "SINGLE", 5)


def test_every_index(few):
    for name in neighbors.INDEXES[1:]:
        row = neighbors.measure(name, "generated 900 x 12", None)
        if row is None:  # it is not installed
            continue
        assert row["recall"] > 0.9
        assert row["size"] == 900
        assert min(row["build_s"], row["search_s"], row["insert_ms"]) >= 0
        assert ("delete_ms" in row) == (name != "faiss")
    assert neighbors.measure("kd", "generated 900 x 12", None) is None
    assert neighbors.measure("kd", "generated 900 x 3", None)["recall"] == 1
    assert neighbors.measure("exact", "generated 900 x 12", None)["recall"] == 1
    assert neighbors.measured("usearch", "generated 900 x 12", None, 800) is None


def test_results_table_and_chart(few, monkeypatch, tmp_path, capsys):
    class Here:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def apply(self, function, arguments):
            return function(*arguments)

    class Workers:
        Pool = staticmethod(lambda count: Here())

    monkeypatch.setattr(neighbors.multiprocessing, "get_context", lambda kind: Workers)
    options = f"--datasets digits --points 700 --dimension 12 --out {tmp_path}"
    for indexes in ("exact cells", "cells"):  # a row measured again replaces the old one
        arguments = f"neighbors {options} --indexes {indexes}".split()
        monkeypatch.setattr(sys, "argv", arguments)
        neighbors.main()
    results = {"neighbors": json.loads((tmp_path / "neighbors.json").read_text())}
    rows = results["neighbors"]["rows"]
    assert sorted((row["name"], row["variant"]) for row in rows) == [
        ("digits", "cells"),
        ("digits", "exact"),
        ("generated 700 x 12", "cells"),
        ("generated 700 x 12", "exact"),
    ]
    assert "generated 700 x 12, cells: build" in capsys.readouterr().out
    assert "| generated, 700 x 12 | scan, exact |" in tables.neighbors(results)
    charts.neighbors(rows, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").stat().st_size > 1000
