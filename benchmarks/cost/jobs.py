"""Runs the jobs of a script of this folder and keeps their results; the options all scripts have.

A row is a job's key and what was measured. One JSON file per experiment keeps the rows with the
machine; a job measured again replaces its row. All rows of a file are of one machine and of one
commit.

A job is run several times, from the build on, and makes the very same updates every time. Its row
is that of the run with the median time of an update: what a plain run shows.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.common import machine
from benchmarks.common.options import new_parser
from benchmarks.common.runner import Job, run_process

RESULTS = Path(__file__).parent / "results"
KEY = ("experiment", "name", "protocol", "epsilon", "size", "variant")


def cost_parser(doc: str, datasets: Iterable[str], repeats: int) -> argparse.ArgumentParser:
    """Return a parser with the options that all scripts of this folder have."""
    parser = new_parser(doc, datasets)
    parser.add_argument("--repeats", type=int, default=repeats, help=f"runs of a job ({repeats})")
    parser.add_argument(
        "--out",
        type=Path,
        help="folder for the results (default: benchmarks/cost/results with --data, otherwise "
        "build/benchmarks, so that a trial run does not change the published figures)",
    )
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the options of the command line."""
    options = parser.parse_args()
    if options.out is None:
        options.out = RESULTS if options.data else ROOT / "build" / "benchmarks"
    return options


def run_job(module: str, job: Job) -> dict[str, Any]:
    """Run a job as often as its ``repeats`` say, and return the row of the median run."""
    job = job | {"title": " ".join(str(job[k]) for k in KEY if k in job)}
    runs = [run_process(module, job) for _ in range(job.get("repeats", 1))]
    runs.sort(key=lambda run: run.get("ms_mean", 0.0))
    median = runs[len(runs) // 2]
    if len(runs) > 1:
        median["ms_mean_of_runs"] = [run["ms_mean"] for run in runs]
        median["ok"] = all(run["ok"] for run in runs)
    row = {k: job[k] for k in (*KEY, "threshold") if k in job}
    row |= {"date": datetime.date.today().isoformat(), "commit": machine.commit()}
    return row | median


def keep(out: Path, row: dict[str, Any]) -> None:
    """Write a row to the file of its experiment, in place of an earlier row of the same job."""
    file = out / f"{row['experiment']}.json"
    content: dict[str, Any] = {"machine": machine.describe(), "rows": []}
    if file.exists():
        earlier = json.loads(file.read_text())
        # Figures of different machines or commits must not be in one table.
        if earlier["machine"] == content["machine"]:
            content["rows"] = [r for r in earlier["rows"] if r["commit"] == row["commit"]]
    others = [r for r in content["rows"] if any(r.get(k) != row.get(k) for k in KEY)]
    content["rows"] = [*others, row]
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1) + "\n")


def measure_all(
    module: str, jobs: Iterable[Job], out: Path, console_line: Callable[[dict[str, Any]], str]
) -> None:
    """Run jobs one after the other, keep and print their rows; SystemExit if a check failed."""
    failed = 0
    for job in jobs:
        row = run_job(f"benchmarks.cost.{module}", job)
        keep(out, row)
        print(console_line(row), flush=True)
        failed += not row["ok"]
    if failed:
        raise SystemExit(f"verify() found something wrong in {failed} of the runs above")


def title(row: dict[str, Any]) -> str:
    """Return a row's key in words."""
    return " ".join(str(row[k]) for k in KEY if k in row and k != "epsilon")
