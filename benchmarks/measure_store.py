"""One measurement of a store in a process of its own; started by store.py with a job as JSON."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import dynhac
from dynhac import DynHAC, GraphHAC
from machine import peak_rss_mb
from measure import state
from measure_points import POINT_SETS, SCALES, load, shuffled
from streams import load_stream

UPDATES = 2_000  # single ones; of batches there are fewer
BATCHES = 60
GROUP = 100
REPLAYED = 1_000


def wall(run: Callable[[], Any]) -> float:
    """Run something and return the seconds it took."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def make(job: dict[str, Any], path: str, kind: str, **parameters: Any) -> Any:
    """Return an empty model, in a store unless it is to be bare."""
    if job["variant"] == "bare":
        return (DynHAC if kind == "points" else GraphHAC)(**parameters)
    durability = "normal" if job["variant"] == "normal" else "full"
    return dynhac.open(path, kind, durability=durability, **parameters)


def run_updates(job: dict[str, Any], path: str) -> dict[str, Any]:
    """Build most of a model, then time updates that put points in, and others that take them out.

    Every update replaces as many points as it takes out, so that the model keeps its size.
    """
    size, count = job["size"], UPDATES if job["size"] == 1 else BATCHES
    updates: list[Callable[[], Any]] = []
    if job["protocol"] == "points":
        points = POINT_SETS[job["name"]]
        X, _ = shuffled(*load(job["name"], points, job["data"]))
        bulk = len(X) - size * count
        model = make(job, path, "points", epsilon=0.1, threshold=points.threshold)
        model.insert(X[:bulk])
        for i in range(count):
            new = X[bulk + size * i : bulk + size * (i + 1)]
            gone = np.arange(size * i, size * (i + 1))
            updates.append(lambda new=new, gone=gone: model.update(insert=new, delete=gone))
    else:
        stream = load_stream(Path(job["path"]))
        n = int(stream.bounds[1])
        count = min(count, n // size)
        model = make(job, path, "graph", epsilon=0.1, threshold=1e-4)
        u, v, w = stream.edges(0)
        model.update(add=stream.ids(0), edges=(u, v, w))
        order = np.argsort(np.r_[u, v], kind="stable")
        begin = np.searchsorted(np.r_[u, v][order], np.arange(n + 1))
        chosen = np.random.default_rng(0).permutation(n)[: size * count].reshape(count, size)
        for ids in chosen:
            at = np.unique(
                np.concatenate([order[begin[i] : begin[i + 1]] for i in ids.tolist()]) % len(u)
            )
            edges = (u[at], v[at], w[at])
            updates.append(
                lambda ids=ids, edges=edges: model.update(remove=ids, add=ids, edges=edges)
            )
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
        model._keeper.release()
    return result | state(model.graph if job["protocol"] == "points" else model)


def reset_peak() -> None:
    """Forget the largest resident size so far, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def run_snapshot(job: dict[str, Any], path: str) -> dict[str, Any]:
    """Put all points into a store; snapshot it under updates; open it, with and without a log."""
    points = SCALES[job["name"]] if job["name"] in SCALES else POINT_SETS[job["name"]]
    X, _ = shuffled(*load(job["name"], points, job["data"]))
    model = dynhac.open(path, epsilon=0.1, threshold=points.threshold, threads=2)
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
    model._keeper.release()
    start = time.perf_counter()
    model = dynhac.open(path, progress=False)
    replay = time.perf_counter() - start
    same = bool((model.labels(0.1) == labels).all())
    close = wall(model.close)
    start = time.perf_counter()
    model = dynhac.open(path)
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
    model._keeper.release()
    return result | {"ok": result["ok"] and same}


def main() -> None:
    """Run the job given as the only argument."""
    job = json.loads(sys.argv[1])
    run = run_snapshot if job["protocol"] == "snapshot" else run_updates
    with tempfile.TemporaryDirectory(dir=job["folder"]) as folder:
        print(json.dumps(run(job, str(Path(folder) / "store"))))


if __name__ == "__main__":
    main()
