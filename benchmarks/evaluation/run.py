"""Runs the jobs of a plan one at a time, each in a process of its own, and keeps their results.

The results of a data set are one JSON file: the machine, the mode, and a row per job. The whole
file is replaced after every job, so an interrupted run loses one job at most and continues where it
stopped. Rows of another mode, machine or commit are dropped: an evaluation is of one commit.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.common import machine
from benchmarks.common.runner import Job, command, environment, last_line
from benchmarks.evaluation.data import stream_file
from benchmarks.evaluation.plan import AGAIN, Mode, jobs, key, title

Rows = list[dict[str, Any]]


def start(
    job: Job,
    wait: Callable[[float], object] = lambda seconds: None,
    module: str = "benchmarks.evaluation.job",
) -> dict[str, Any]:
    """Run one job and return its result; one that exceeds its CPU time counts as skipped.

    ``wait`` is called now and then with the seconds that the job has taken.
    """
    with subprocess.Popen(
        command(module, job),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as done:
        try:
            stdout, stderr = _output(done, job.get("cpu_s", math.inf), wait)
        except TimeoutError as reason:
            return {"skipped": str(reason)}
        finally:
            done.kill()  # has no effect on a process that has ended
    if done.returncode:
        lines = stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        return {"failed": lines[-1], "trace": lines[-12:]}
    return last_line(stdout)


def _cpu_seconds(pid: int) -> float | None:
    """Return the CPU time of a process, or None if the system does not report it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _output(
    process: subprocess.Popen[str], cpu_s: float, wait: Callable[[float], object]
) -> tuple[str, str]:
    """Return what a process prints; TimeoutError if it takes more CPU time than allowed.

    CPU time, so that a busy machine does not matter. It is read from outside: with a limit set on
    the process itself, the clock that it measures with would advance in steps of 4 ms.
    """
    began = time.monotonic()
    while True:
        try:
            return process.communicate(timeout=0.5)
        except subprocess.TimeoutExpired:
            wait(time.monotonic() - began)
            spent = _cpu_seconds(process.pid)
            if (time.monotonic() - began if spent is None else spent) > cpu_s:
                raise TimeoutError(f"not finished within {cpu_s:g} s of CPU time") from None


def read(file: Path, mode: Mode) -> Rows:
    """Return the rows of an earlier run that this one can continue."""
    if not file.exists():
        return []
    content = json.loads(file.read_text())
    if content["mode"] != mode.name or content["machine"] != machine.describe():
        return []
    commit = machine.commit()
    return [row for row in content["rows"] if row["commit"] == commit]


def write(file: Path, rows: Rows, mode: Mode) -> None:
    """Replace a file of results."""
    content = {"mode": mode.name, "machine": machine.describe(), "rows": rows}
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".part")
    unfinished.write_text(json.dumps(content, indent=1) + "\n")
    unfinished.replace(file)


def run(
    datasets: list[str],
    systems: list[str],
    mode: Mode,
    *,
    data: Path | None,
    cache: Path,
    results: Path,
    again: bool = False,
) -> Rows:
    """Run the jobs without a result yet and return the rows of the jobs that failed."""
    can = start({"probe": systems})
    if "failed" in can:
        raise RuntimeError("the systems cannot be loaded:\n" + "\n".join(can["trace"]))
    plan = list(jobs(datasets, can, mode))
    files = {name: results / f"{name}.json" for name in datasets}
    kept = {name: read(files[name], mode) for name in datasets}
    have = {key(row) for rows in kept.values() for row in rows if "failed" not in row}
    todo = [job for job in plan if again or key(job) not in have]
    print(f"{len(plan)} jobs, {len(plan) - len(todo)} of them done before", flush=True)
    failed: Rows = []
    bar = tqdm(todo, unit="job", smoothing=0.05, disable=None)
    for number, job in enumerate(bar, 1):
        bar.set_description(title(job))
        bar.set_postfix_str("preparing")
        row = one(job, mode, data, cache, lambda s: bar.set_postfix_str(f"running {s:.0f} s"))
        name = job["dataset"]
        kept[name] = [r for r in kept[name] if key(r) != key(row)] + [row]
        write(files[name], kept[name], mode)
        failed += [row] if "failed" in row else []
        bar.write(f"[{number}/{len(todo)}] {title(row)}: {summary(row)}")
    return failed


def one(
    job: Job, mode: Mode, data: Path | None, cache: Path, wait: Callable[[float], object]
) -> dict[str, Any]:
    """Run one job, unless it is skipped, and return its row; ``wait`` as for `start`."""
    row = {k: v for k, v in job.items() if k not in ("limit_s", "size")}
    row["date"] = datetime.date.today().isoformat()
    row["commit"] = machine.commit()
    if "skipped" in job:
        return row
    path, points = stream_file(cache, job["dataset"], job["protocol"], job["size"], data)
    # The process also loads, scores and verifies, which is not time of the system.
    found = start(job | {"path": str(path), "cpu_s": 3 * mode.limit_s + 10}, wait)
    return row | {"points": points} | found


def summary(row: dict[str, Any]) -> str:
    """Return a row in one line."""
    for reason in ("skipped", "failed"):
        if reason in row:
            return f"{reason}: {row[reason]}"
    if row["kind"] == "churn":
        return f"{row['changed_mean']:.3g} labels changed per update"
    if row["kind"] in AGAIN:
        less = [b - a for a, b in zip(row["ours"], row["static"], strict=True)]
        return f"NMI {sum(less) / len(less):.4f} below static on average"
    parts = [f"{row['ms_mean']:.3g} ms/update, NMI {row['nmi']:.3f}"] if "ms_mean" in row else []
    if "stopped" in row:
        parts.append(f"stopped {row['stopped']}")
    if "verify" in row:
        parts.append("verified" if row["verify"]["ok"] else row["verify"]["report"])
    return ", ".join(parts)
