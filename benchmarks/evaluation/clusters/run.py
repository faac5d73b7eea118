"""Runs the jobs, each in a process of its own and several at a time, and keeps their results.

The files are those of ``benchmarks.evaluation.run``: one per data set, replaced after every job.
"""

from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.common import machine
from benchmarks.evaluation.clusters.plan import jobs, key, title
from benchmarks.evaluation.plan import Mode
from benchmarks.evaluation.run import Rows, read, start, write

MODULE = "benchmarks.evaluation.clusters.job"
LONGEST_S = 1_200.0  # CPU seconds of a job


def run(
    datasets: list[str],
    mode: Mode,
    *,
    data: Path | None,
    results: Path,
    processes: int = 1,
    again: bool = False,
) -> Rows:
    """Run the jobs without a result yet and return the rows of the jobs that failed."""
    plan = list(jobs(datasets, mode, data))
    files = {name: results / f"{name}.json" for name in datasets}
    kept = {name: read(files[name], mode) for name in datasets}
    have = {key(row) for rows in kept.values() for row in rows if "failed" not in row}
    todo = [job for job in plan if again or key(job) not in have]
    print(f"{len(plan)} jobs on clusters, {len(plan) - len(todo)} of them done before", flush=True)
    failed: Rows = []
    with ThreadPoolExecutor(processes) as pool:
        waiting = [pool.submit(one, job) for job in todo]
        try:
            bar = tqdm(as_completed(waiting), total=len(todo), unit="job", disable=None)
            for number, done in enumerate(bar, 1):
                row = done.result()
                name = row["dataset"]
                kept[name] = [r for r in kept[name] if key(r) != key(row)] + [row]
                write(files[name], kept[name], mode)
                failed += [row] if "failed" in row else []
                bar.write(f"[{number}/{len(todo)}] {title(row)}: {summary(row)}")
        finally:
            pool.shutdown(cancel_futures=True)
    return failed


def one(job: dict[str, Any]) -> dict[str, Any]:
    """Run one job, unless it is skipped, and return its row."""
    row = {k: v for k, v in job.items() if k not in ("size", "data", "updates")}
    row |= {"date": datetime.date.today().isoformat(), "commit": machine.commit()}
    return row if "skipped" in job else row | start(job | {"cpu_s": LONGEST_S}, module=MODULE)


def summary(row: dict[str, Any]) -> str:
    """Return a row in one line."""
    for reason in ("skipped", "failed"):
        if reason in row:
            return f"{reason}: {row[reason]}"
    if row["kind"] == "changes":
        parts = [
            f"{name} {row['insertion'][name]['mean']:.3g} / {row['deletion'][name]['mean']:.3g}"
            for name in row["insertion"]
        ]
        return "labels changed per insertion / deletion: " + ", ".join(parts)
    if row["kind"] == "growth":
        first = next(iter(row["checkpoints"][0]["choices"]))
        counts = [str(at["choices"][first]["clusters"]) for at in row["checkpoints"]]
        return f"{first}: {', '.join(counts)} clusters"
    return ", ".join(
        f"{name} NMI {found['ancestors']['nmi']:.3f} ARI {found['ancestors']['ari']:.3f} "
        f"({found['clusters']} clusters, {found['labels_s']:.3g} s)"
        for name, found in row["choices"].items()
    )
