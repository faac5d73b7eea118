"""Compares the speed of two versions of dynhac: CPU time per call before and after a change.

    python benchmarks/cost/compare.py --before PYTHON --after PYTHON --data FOLDER
    python benchmarks/cost/compare.py ... --names 'mnist*' graph --rounds 9 --out FILE

PYTHON are the interpreters of two environments with dynhac, for instance .venv/bin/python of two
checkouts that have been built. For every job, processes of the two alternate: before, after,
before, after and so on. All make the same calls (measure_compare.py).

A ratio compares the two processes of a round: the median time of a call after the change, divided
by that before it. Below 1, calls have become faster. The table shows medians over all rounds, and
the smallest and largest ratio. For the last column each call counts as its fastest time in any
round, and the sums are compared: other work of the machine affects this ratio least.

Jobs: single insertions and deletions of points; the same with a window by number or by age, with
str ids, with an index of the user's own, through a durable store; bulk insertion, with and
without str ids; and graphs, with and without str ids.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from statistics import median
from typing import Any

SCRIPT = Path(__file__).with_name("measure_compare.py")
SIDES = ("before", "after")
VARIANTS = ("max_points", "max_age", "str_ids", "own_index", "store")


class Failed(Exception):
    """A process failed; the message says why."""


@dataclass(frozen=True)
class Job:
    """What a process measures: a function of measure_compare.py, a data set and a variant."""

    name: str
    run: str
    set: str
    variant: str = ""


def all_jobs() -> dict[str, Job]:
    """Return the jobs by name."""
    jobs = [Job(name, "points", name) for name in ("mnist", "reuters", "intents")]
    for name in ("mnist", "reuters"):
        jobs += [Job(f"{name}/{variant}", "points", name, variant) for variant in VARIANTS]
        jobs += [Job(f"{name}/{kind}", "bulk", name, kind) for kind in ("bulk", "bulk_str_ids")]
    jobs += [Job("graph", "graph", "mnist"), Job("graph/str_ids", "graph", "mnist", "str_ids")]
    return {job.name: job for job in jobs}


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    jobs = all_jobs()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--before", required=True, metavar="PYTHON", help="interpreter with dynhac before a change")
    add("--after", required=True, metavar="PYTHON", help="interpreter with dynhac after it")
    add("--data", type=Path, default=os.environ.get("DYNHAC_DATA"), help="folder of the data sets")
    add("--rounds", type=int, default=5, help="processes of each side per job (default 5)")
    add("--points", type=int, default=5_000, help="points of a model, at most (default 5,000)")
    add("--updates", type=int, default=500, help="calls of each kind that are timed (default 500)")
    add("--names", nargs="+", metavar="NAME", help=f"some of the jobs, or patterns: {[*jobs]}")
    add("--out", type=Path, help="JSON file for the results")
    options = parser.parse_args(argv)
    if options.data is None:
        parser.error("--data (or DYNHAC_DATA) is needed: the folder of the data sets")
    for name in ("rounds", "points", "updates"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} is {getattr(options, name)}; it must be at least 1")
    options.jobs = list(jobs.values())
    if options.names:
        for pattern in options.names:
            if not any(fnmatch(name, pattern) for name in jobs):
                parser.error(f"no job is named {pattern!r}; there are {', '.join(jobs)}")
        options.jobs = [j for j in options.jobs if any(fnmatch(j.name, p) for p in options.names)]
    return options


def measure(python: str, job: Job, options: argparse.Namespace) -> dict[str, Any]:
    """Measure a job in a process of its own; raises Failed."""
    content = {"run": job.run, "set": job.set, "variant": job.variant}
    content |= {"data": str(Path(options.data).resolve())}
    content |= {"points": options.points, "updates": options.updates}
    # PYTHONPATH would give both sides the same dynhac. Threads of BLAS add noise. The folder of the
    # script must not hide installed modules of the same names.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONSAFEPATH": "1"}
    env |= {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
    command = [python, str(SCRIPT), json.dumps(content)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=env)
    except OSError as error:
        raise Failed(f"{python} cannot be started: {error}") from error
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise Failed(f"{python}: {last[0]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def compare(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    """Measure a job in alternating processes and return its result; raises Failed."""
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for _ in range(options.rounds):
        for side in SIDES:
            runs[side].append(measure(getattr(options, side), job, options))
    digests = {run["digest"] for side in SIDES for run in runs[side]}
    calls = {}
    for kind in runs["before"][0]["us"]:
        times = {side: [run["us"][kind] for run in runs[side]] for side in SIDES}
        medians = {side: [median(us) for us in times[side]] for side in SIDES}
        fastest = {side: sum(map(min, zip(*times[side], strict=True))) for side in SIDES}
        calls[kind] = {
            "calls": len(times["before"][0]),
            "before_us": medians["before"],
            "after_us": medians["after"],
            "ratios": ratios(medians),
            "ratio": median(ratios(medians)),
            "ratio_of_fastest": fastest["after"] / fastest["before"],
        }
    versions = {side: runs[side][0]["dynhac"] for side in SIDES}
    return {"name": job.name, "dynhac": versions, "same": len(digests) == 1, "calls": calls}


def ratios(us: dict[str, list[float]]) -> list[float]:
    """Return after / before of every round."""
    return [after / before for before, after in zip(us["before"], us["after"], strict=True)]


def lines(result: dict[str, Any]) -> list[str]:
    """Return the lines of the table of one job."""
    table = []
    for kind, call in result["calls"].items():
        before, after = median(call["before_us"]), median(call["after_us"])
        low, high = min(call["ratios"]), max(call["ratios"])
        table.append(
            f"{result['name']:22} {kind:7} {before:12,.1f} {after:12,.1f} {call['ratio']:7.3f}"
            f"  {low:.3f} - {high:.3f} {call['ratio_of_fastest']:10.3f}"
        )
    if not result["same"]:
        table.append(f"{result['name']}: the clusters at the end differ between the processes")
    return table


def main(argv: list[str] | None = None) -> None:
    """Compare what the command line asks for; SystemExit if a process failed."""
    options = arguments(argv)
    head = f"{'job':22} {'call':7} {'before us':>12} {'after us':>12} {'ratio':>7}  {'spread':13}"
    results: list[dict[str, Any]] = []
    failed = 0
    for job in options.jobs:
        try:
            result = compare(job, options)
        except Failed as error:
            failed += 1
            print(f"{job.name}: {error}", file=sys.stderr, flush=True)
            continue
        if not results:
            for side in SIDES:
                print("{}: dynhac {version} in {folder}".format(side, **result["dynhac"][side]))
            print(f"{head} {'of fastest':>10}")
        print("\n".join(lines(result)), flush=True)
        results.append(result)
        if options.out:
            keys = ("before", "after", "rounds", "points", "updates")
            content = {key: getattr(options, key) for key in keys} | {"jobs": results}
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(content, indent=1) + "\n")
    if failed:
        raise SystemExit(f"{failed} of {len(options.jobs)} jobs failed; see above")


if __name__ == "__main__":
    main()
