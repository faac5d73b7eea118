"""The comparison of two versions runs every job, and reports jobs that fail."""

import contextlib
import io
import json
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.cost import compare, measure_compare


@pytest.fixture
def arguments(tmp_path):
    """A command line for small data sets with the file names of the real ones."""
    rng = np.random.default_rng(0)
    for name, (file, _) in measure_compare.FILES.items():
        dimension = 2 if name == "mnist" else 24
        np.savez(tmp_path / file, X=rng.normal(size=(100, dimension)).astype(np.float16))
    sizes = ["--rounds", "2", "--points", "80", "--updates", "10"]
    return ["--before", "old", "--after", "new", "--data", str(tmp_path), *sizes]


def test_all_jobs(arguments, monkeypatch, tmp_path, capsys):
    started = []

    def measure_here(command, **options):
        started.append(command[0])
        monkeypatch.setattr(sys, "argv", command[1:])
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            measure_compare.main()
        return subprocess.CompletedProcess(command, 0, printed.getvalue(), "")

    monkeypatch.setattr(compare.subprocess, "run", measure_here)
    file = tmp_path / "out" / "results.json"
    compare.main([*arguments, "--out", str(file)])
    jobs = json.loads(file.read_text())["jobs"]
    assert [job["name"] for job in jobs] == list(compare.all_jobs())
    assert started == ["old", "new"] * (2 * len(jobs))
    for job in jobs:
        assert job["same"], job["name"]
        for call in job["calls"].values():
            assert len(call["ratios"]) == len(call["before_us"]) == 2
            assert min(call["ratios"]) <= call["ratio"] <= max(call["ratios"])
    assert len(capsys.readouterr().out.splitlines()) == 3 + 2 * len(jobs)


def test_failures_are_reported(arguments, monkeypatch, capsys):
    def fail(command, **options):
        return subprocess.CompletedProcess(command, 1, "", "Traceback\nImportError: no dynhac\n")

    monkeypatch.setattr(compare.subprocess, "run", fail)
    with pytest.raises(SystemExit, match="2 of 2 jobs failed"):
        compare.main([*arguments, "--names", "graph*"])
    assert "graph: old: ImportError: no dynhac" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        compare.main([*arguments, "--names", "iris"])
    assert "no job is named 'iris'" in capsys.readouterr().err
