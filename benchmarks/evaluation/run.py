"""Runs the jobs of a plan one at a time, each in a process of its own, and keeps what they find.

Results of a data set are one JSON file: the machine, the mode, and a row per job. It is replaced
as a whole after every job, so an interrupted run loses one job at most and goes on where it
stopped. Rows of another mode or another machine are not mixed in: they are dropped.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tqdm import tqdm

import machine
from evaluation.data import stream_file
from evaluation.plan import AGAIN, Mode, jobs, key, results_file, title

BENCHMARKS = Path(__file__).parent.parent
Rows = list[dict[str, Any]]


def start(job: dict[str, Any]) -> dict[str, Any]:
    """Run one job and return what it found; one that used up its CPU time was skipped."""
    single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(filter(None, [str(BENCHMARKS), os.environ.get("PYTHONPATH")]))
    env = os.environ | single | {"PYTHONPATH": path, "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "evaluation.job", json.dumps(job)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as done:
        try:
            stdout, stderr = _output(done, job.get("cpu_s", math.inf))
        except TimeoutError as reason:
            return {"skipped": str(reason)}
        finally:
            done.kill()  # does nothing to one that has ended
    if done.returncode:
        lines = stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        return {"failed": lines[-1], "trace": lines[-12:]}
    found: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    return found


def _cpu_seconds(pid: int) -> float | None:
    """Return the CPU time that a process has used, where the system tells."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _output(process: subprocess.Popen[str], cpu_s: float) -> tuple[str, str]:
    """Return what a process prints; one that takes more CPU time than it may is given up.

    CPU time, so that a busy machine is no reason to give up. It is looked at from outside: a limit
    set on the process itself would make the clock that it measures with advance in steps of 4 ms.
    """
    began = time.monotonic()
    while True:
        try:
            return process.communicate(timeout=0.5)
        except subprocess.TimeoutExpired:
            spent = _cpu_seconds(process.pid)
            if (time.monotonic() - began if spent is None else spent) > cpu_s:
                raise TimeoutError(f"not finished within {cpu_s:g} s of CPU time") from None


def read(file: Path, mode: Mode) -> Rows:
    """Return the rows of an earlier run that this one may go on from."""
    if not file.exists():
        return []
    content = json.loads(file.read_text())
    if content["mode"] != mode.name or content["machine"] != machine.describe():
        return []
    rows: Rows = content["rows"]
    return rows


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
    out: Path,
    again: bool = False,
) -> Rows:
    """Run what is not there yet and return the rows of the jobs that failed."""
    can = start({"probe": systems})
    if "failed" in can:
        raise RuntimeError("the systems cannot be loaded:\n" + "\n".join(can["trace"]))
    plan = list(jobs(datasets, can, mode))
    kept = {name: read(results_file(out, name), mode) for name in datasets}
    have = {key(row) for rows in kept.values() for row in rows if "failed" not in row}
    todo = [job for job in plan if again or key(job) not in have]
    print(f"{len(plan)} jobs, {len(plan) - len(todo)} of them done before", flush=True)
    failed: Rows = []
    bar = tqdm(todo, unit="job", smoothing=0.05, disable=None)
    for number, job in enumerate(bar, 1):
        bar.set_description(title(job))
        row = one(job, mode, data, cache)
        name = job["dataset"]
        kept[name] = [r for r in kept[name] if key(r) != key(row)] + [row]
        write(results_file(out, name), kept[name], mode)
        failed += [row] if "failed" in row else []
        bar.write(f"[{number}/{len(todo)}] {title(row)}: {summary(row)}")
    return failed


def one(job: dict[str, Any], mode: Mode, data: Path | None, cache: Path) -> dict[str, Any]:
    """Run one job, or say why not, and return its row."""
    row = {k: v for k, v in job.items() if k not in ("limit_s", "size")}
    row["date"] = datetime.date.today().isoformat()
    row["commit"] = machine.commit()
    if "skipped" in job:
        return row
    path, points = stream_file(cache, job["dataset"], job["protocol"], job["size"], data)
    # Loading, scoring and the full check are not the system's own time.
    found = start(job | {"path": str(path), "cpu_s": 3 * mode.limit_s + 10})
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
