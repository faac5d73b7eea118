"""Measures a job of store.py in a process of its own."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dynhac
from benchmarks.common.datasets import DATASETS
from benchmarks.common.machine import peak_rss_mb
from benchmarks.common.runner import Job, answer
from benchmarks.common.streams import load_stream
from benchmarks.cost.measure_points import points_of
from benchmarks.cost.measure_updates import state
from dynhac import DynHAC, GraphHAC

UPDATES = 2_000  # single ones; of batches there are fewer
BATCHES = 60
GROUP = 100
REPLAYED = 1_000


def wall(run: Callable[[], Any]) -> float:
    """Run something and return the seconds it took."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def make(job: Job, path: str) -> Any:
    """Return an empty model, in a store unless the job is about a bare one."""
    kind = job["protocol"]
    parameters = {"epsilon": 0.1, "threshold": DATASETS[job["name"]].threshold}
    if job["variant"] == "bare":
        return (DynHAC if kind == "points" else GraphHAC)(**parameters)
    durability = "normal" if job["variant"] == "normal" else "full"
    return dynhac.open(path, kind, durability=durability, **parameters)


def run_updates(job: Job, path: str) -> dict[str, Any]:
    """Build most of a model, then time updates that each replace some points by as many."""
    size, count = job["size"], UPDATES if job["size"] == 1 else BATCHES
    model = make(job, path)
    replace = replace_points if job["protocol"] == "points" else replace_vertices
    updates = [partial(model.update, **batch) for batch in replace(model, job, size, count)]
    bare = job["variant"] == "bare"
    if not bare:
        model.snapshot()
    before = 0 if bare else model.stats()["log_bytes"]

    def run() -> None:
        if job["variant"] != "group":
            for update in updates:
                update()
            return
        for i in range(0, len(updates), GROUP):
            with model.batch():
                for update in updates[i : i + GROUP]:
                    update()

    seconds = wall(run)
    result = {
        "updates": len(updates),
        "ms_mean": 1e3 * seconds / len(updates),
        "per_second": len(updates) / seconds,
    }
    if not bare:
        result["log_bytes_update"] = (model.stats()["log_bytes"] - before) / len(updates)
    result |= state(model.graph if job["protocol"] == "points" else model)
    if not bare:
        model.close()
    return result


def replace_points(model: Any, job: Job, size: int, count: int) -> list[dict[str, Any]]:
    """Build a model and return batches that insert new points and delete the oldest."""
    X = points_of(job)
    bulk = len(X) - size * count
    model.insert(X[:bulk])
    return [
        {"insert": X[bulk + at : bulk + at + size], "delete": np.arange(at, at + size)}
        for at in range(0, size * count, size)
    ]


def replace_vertices(model: Any, job: Job, size: int, count: int) -> list[dict[str, Any]]:
    """Build a graph and return batches that remove random vertices and add them again."""
    stream = load_stream(Path(job["path"]))
    n = int(stream.bounds[1])
    count = min(count, n // size)
    model.update(**stream.batch(0))
    u, v, w = stream.edges(0)
    order = np.argsort(np.r_[u, v], kind="stable")
    begin = np.searchsorted(np.r_[u, v][order], np.arange(n + 1))
    chosen = np.random.default_rng(0).permutation(n)[: size * count].reshape(count, size)
    batches = []
    for ids in chosen:
        ends = np.concatenate([order[begin[i] : begin[i + 1]] for i in ids.tolist()])
        at = np.unique(ends % len(u))
        batches.append({"remove": ids, "add": ids, "edges": (u[at], v[at], w[at])})
    return batches


def reset_peak() -> None:
    """Reset the largest resident size, if the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def run_snapshot(job: Job, path: str) -> dict[str, Any]:
    """Put all points into a store; snapshot it under updates; open it, with and without a log."""
    X = points_of(job)
    threshold = DATASETS[job["name"]].threshold
    model = dynhac.open(path, epsilon=0.1, threshold=threshold, threads=2)
    model.insert(X[:-REPLAYED])
    reset_peak()
    before = peak_rss_mb()
    plain = wall(model.snapshot)
    after = peak_rss_mb()
    waits: list[float] = []
    done = threading.Event()
    more = iter(X[-REPLAYED:])

    def update() -> None:
        while not done.is_set() and len(waits) < REPLAYED // 2:
            waits.append(wall(lambda: model.insert(next(more))))

    thread = threading.Thread(target=update)
    thread.start()
    busy = wall(model.snapshot)
    done.set()
    thread.join()
    snapshot_number = model.stats()["snapshot_number"]
    for x in more:
        model.insert(x)
    replayed = model.update_number - snapshot_number
    size = model.stats()["snapshot_bytes"] / 1e6
    labels = model.labels(0.1)
    # Closing the store would write a snapshot: a copy of it is as a crash would leave it.
    shutil.copytree(path, f"{path}-copy")
    model.close()
    start = time.perf_counter()
    model = dynhac.open(f"{path}-copy", progress=False)
    replay = time.perf_counter() - start
    same = bool((model.labels(0.1) == labels).all())
    close = wall(model.close)
    start = time.perf_counter()
    model = dynhac.open(f"{path}-copy")
    opened = time.perf_counter() - start
    same = same and bool((model.labels(0.1) == labels).all())
    result = {
        "snapshot_s": plain,
        "snapshot_busy_s": busy,
        "snapshot_mb": size,
        "rss_before_mb": before,
        "rss_snapshot_mb": after,
        "wait_s": max(waits),
        "waited_updates": len(waits),
        "open_s": opened,
        "replay_s": replay,
        "replayed": replayed,
        "close_s": close,
        **state(model.graph),
    }
    model.close()
    return result | {"ok": result["ok"] and same}


def run(job: Job) -> dict[str, Any]:
    """Run a job with its store in a temporary folder."""
    measure = run_snapshot if job["protocol"] == "snapshot" else run_updates
    with tempfile.TemporaryDirectory(dir=job["folder"]) as folder:
        return measure(job, str(Path(folder) / "store"))


if __name__ == "__main__":
    answer(run)
