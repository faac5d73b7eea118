"""Measurements in processes of their own, and the files that keep their results.

A *job* is a dictionary that says what to measure; a script of this folder is started with it as
JSON and prints, as its last line, what it measured. A row is the job's key and the measurement. One
JSON file per experiment keeps the rows with the machine; a job measured again replaces its row.

What else a shared machine does can only slow an update down, for moments or for minutes. A job that
is repeated makes the very same updates every time, so each of them counts as its fastest time.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import machine

HERE = Path(__file__).parent
KEY = ("experiment", "name", "protocol", "epsilon", "size", "variant")


def run_job(script: str, job: dict[str, Any], speed: str = "ms_mean") -> dict[str, Any]:
    """Run a job as often as its ``repeats`` say, and return the row of the fastest run.

    Where the runs tell the times of the single updates (``ms``), their summary is over the fastest
    time of each update.
    """
    title = " ".join(str(job[k]) for k in KEY if k in job)
    # BLAS threads would only add stacks and buffers to the memory that is measured.
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / script), json.dumps(job | {"title": title})]
    runs = []
    for _ in range(job.get("repeats", 1)):
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=env, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    best = min(runs, key=lambda run: run.get(speed, 0.0))
    if len(runs) > 1:
        best[f"{speed}_of_runs"] = [run[speed] for run in runs]
        best["ok"] = all(run["ok"] for run in runs)
    if "ms" in best:
        best |= distribution(np.min([run["ms"] for run in runs], axis=0))
        del best["ms"]
    row = {k: job[k] for k in (*KEY, "threshold") if k in job}
    row |= {"date": datetime.date.today().isoformat(), "commit": machine.commit()}
    return row | best


def distribution(ms: Sequence[float] | NDArray[np.float64]) -> dict[str, float]:
    """Return mean, median, 99th percentile and largest of the times of single updates."""
    return {
        "ms_mean": float(np.mean(ms)),
        "ms_p50": float(np.percentile(ms, 50)),
        "ms_p99": float(np.percentile(ms, 99)),
        "ms_max": float(np.max(ms)),
    }


def store(out: Path, row: dict[str, Any]) -> None:
    """Put a row into its experiment's file, in the place of an earlier row of the same job."""
    file = out / f"{row['experiment']}.json"
    content: dict[str, Any] = {"machine": machine.describe(), "rows": []}
    if file.exists():
        earlier = json.loads(file.read_text())
        # Figures of different machines do not go into one table.
        if earlier["machine"] == content["machine"]:
            content["rows"] = earlier["rows"]
    others = [r for r in content["rows"] if any(r.get(k) != row.get(k) for k in KEY)]
    content["rows"] = [*others, row]
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1) + "\n")


def measure_all(
    script: str,
    jobs: Iterable[dict[str, Any]],
    out: Path,
    console_line: Callable[[dict[str, Any]], str],
) -> None:
    """Run jobs one after the other, store and print their rows; SystemExit if one is not right."""
    failed = 0
    for job in jobs:
        row = run_job(script, job)
        store(out, row)
        print(console_line(row), flush=True)
        failed += not row["ok"]
    if failed:
        raise SystemExit(f"verify() found something wrong in {failed} of the runs above")


def results_folder(given: Path | None, data: Path | None) -> Path:
    """Return where results go: a trial run on built-in data leaves the published ones alone."""
    if given is not None:
        return given
    return HERE / "results" if data else HERE.parent / "build" / "benchmarks"
