"""The benchmark of neighbour indexes, on few points."""

import json

import pytest

from benchmarks import neighbors


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(neighbors, "DIMENSION", 12)
    monkeypatch.setattr(neighbors, "QUERIES", 100)
    monkeypatch.setattr(neighbors, "JUDGED", 20)
    monkeypatch.setattr(neighbors, "SINGLE", 5)


def test_every_index(few):
    for name in ("exact", "cells", "usearch"):
        row = neighbors.measure(name, "900", None)
        if row is None:  # it is not installed
            continue
        assert row["recall"] > 0.9
        assert row["points"] == 900
        assert min(row["build_s"], row["insert_ms"], row["delete_ms"]) >= 0
    assert neighbors.measure("kd", "900", None) is None
    assert neighbors.measure("exact", "900", None)["recall"] == 1


def test_results_and_table(few, monkeypatch, tmp_path, capsys):
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
    file = tmp_path / "out" / "results.json"
    monkeypatch.setattr(neighbors, "describe", lambda: {"cpu": "a processor"})
    monkeypatch.setattr(neighbors, "machine_line", str)
    options = ["--datasets", "digits", "--points", "700", "--results", str(file)]
    neighbors.main([*options, "--indexes", "exact", "cells"])
    rows = json.loads(file.read_text())["rows"]
    assert [(row["dataset"], row["index"]) for row in rows] == [
        ("digits", "exact"),
        ("digits", "cells"),
        ("700", "exact"),
        ("700", "cells"),
    ]
    assert "| generated, 700 x 12 | cells |" in capsys.readouterr().out
