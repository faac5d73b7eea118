"""What threads bring: builds, batches, save and load, with 1, 2, 4, 8 and 16 threads.

    python -m benchmarks.cost.threads                                   on generated data
    python -m benchmarks.cost.threads --edges graph.npz --points 1000000 --many 8000000 10000000

- build: a graph in one update;
- batch: insertions of 1,000 to 1,000,000 vertices, as far as the graph goes, into a model of half
  of its vertices, or of all others where that is fewer; and the deletion of the same;
- save, load: of the model that was built; ``load`` also verifies it;
- points: uniform random points in three dimensions, with the search for neighbours;
- many: the same with more points, once, with the largest number of threads.

Needs NumPy only. ``--edges`` is a .npz file with u, v (integers from 0 on) and w; without it, a
clustered graph is generated. Every number of threads has a process of its own; the median run of
several counts. Results go to one JSON file, which is written anew after every process: with
``--edges`` to benchmarks/cost/results/threads.json, from which ``make figures`` makes a table and a
chart, otherwise to build/benchmarks.

The second command above is meant for a machine of 16 cores and 32 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import ROOT
from benchmarks.common import machine
from benchmarks.common.runner import Job, answer, run_process
from benchmarks.cost.jobs import RESULTS
from dynhac import DynHAC, GraphHAC

BATCHES = (1_000, 10_000, 100_000, 1_000_000)
PARTS = ("build", "batch", "points", "save", "many")
EPSILON, THRESHOLD = 0.1, 1e-4
MODULE = "benchmarks.cost.threads"

Graph = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def clustered_graph(n: int, k: int = 40, size: int = 50) -> Graph:
    """Return a graph of ``n`` vertices in random order, with about ``n * k * 0.6`` edges.

    A vertex has most of its edges inside a cluster of ``size``, and some to clusters near by.
    """
    rng = np.random.default_rng(0)
    u = np.repeat(np.arange(n, dtype=np.int64), k)
    near = rng.random(len(u)) < 0.7
    offset = np.where(near, rng.integers(1, size, len(u)), rng.integers(1, 20 * size, len(u)))
    inside = u - u % size + (u + offset) % size
    v = np.where(near, inside, (u + offset) % n) % n
    key = np.unique(np.minimum(u, v) * n + np.maximum(u, v))
    u, v = key // n, key % n
    u, v = u[u != v], v[u != v]
    same = u // size == v // size
    w = np.where(same, 0.5, 0.2) + 0.3 * rng.random(len(u))
    order = rng.permutation(n)
    return order[u], order[v], w


def read_graph(job: Job) -> Graph:
    """Return the graph of a job."""
    if job["edges"] is None:
        return clustered_graph(job["vertices"])
    file = np.load(job["edges"])
    u, v = (np.ascontiguousarray(file[name], dtype=np.int64) for name in ("u", "v"))
    return u, v, np.ascontiguousarray(file["w"], dtype=np.float64)


def timed(work: Callable[..., Any], *args: Any, **options: Any) -> dict[str, float]:
    """Return the wall and CPU time of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    work(*args, **options)
    return {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def median_run(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the run of the median wall time."""
    return sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]


def measure_build(graph: Graph, n: int, job: Job) -> tuple[GraphHAC, dict[str, float]]:
    """Build the model some times."""
    runs = []
    for _ in range(job["repeats"]):
        model = GraphHAC(EPSILON, THRESHOLD, threads=job["threads"])
        runs.append(timed(model.update, add=np.arange(n), edges=graph))
    return model, median_run(runs)


def measure_batches(graph: Graph, n: int, job: Job) -> list[dict[str, Any]]:
    """Insert batches of growing size into a part of the graph, and delete each again."""
    u, v, w = graph
    last = np.maximum(u, v)
    rows = []
    model, held = GraphHAC(EPSILON, THRESHOLD, threads=job["threads"]), 0
    for size in (size for size in BATCHES if size <= n):
        before = min(n // 2, n - size)
        if held != before:
            model, held = GraphHAC(EPSILON, THRESHOLD, threads=job["threads"]), before
            old = last < before
            model.update(add=np.arange(before), edges=(u[old], v[old], w[old]))
        new = (last >= before) & (last < before + size)
        ids, edges = np.arange(before, before + size), (u[new], v[new], w[new])
        insert, delete = [], []
        for _ in range(job["repeats"]):
            insert.append(timed(model.update, add=ids, edges=edges))
            delete.append(timed(model.update, remove=ids))
        for name, runs in (("insert", insert), ("delete", delete)):
            sizes = {"size": size, "before": before, "edges": int(new.sum())}
            rows.append({"part": f"batch {name}", **sizes, **median_run(runs)})
    return rows


def measure_points(count: int, job: Job) -> dict[str, Any]:
    """Build models of random points."""
    points = np.random.default_rng(0).random((count, 3), dtype=np.float32)
    runs = []
    for _ in range(job["repeats"]):
        model = DynHAC(EPSILON, 0.0, neighbors="kd", threads=job["threads"])
        runs.append(timed(model.insert, points))
    return {"size": count, **median_run(runs), "peak_mb": machine.peak_rss_mb()}


def measure(job: Job) -> dict[str, Any]:
    """Measure everything with one number of threads."""
    rows: list[dict[str, Any]] = []
    parts = job["parts"]
    if {"build", "batch", "save"} & set(parts):
        graph = read_graph(job)
        n = int(max(graph[0].max(), graph[1].max())) + 1
        size = {"vertices": n, "edges": len(graph[0])}
    if "build" in parts or "save" in parts:
        model, build = measure_build(graph, n, job)
        rows.append({"part": "build", **size, **build, "peak_mb": machine.peak_rss_mb()})
        if "save" in parts:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model"
                rows.append({"part": "save", **size, **timed(model.save, path)})
                load = timed(GraphHAC.load, path, threads=job["threads"])
                rows.append({"part": "load", **size, **load})
        del model
    if "batch" in parts:
        rows += measure_batches(graph, n, job)
    if "points" in parts:
        rows.append({"part": "points", **measure_points(job["points"], job)})
    if "many" in parts:
        rows.append({"part": "many points", **measure_points(job["many"], job)})
    return {"rows": [{"threads": job["threads"], **row} for row in rows]}


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cores = os.cpu_count() or 1
    default = [t for t in (1, 2, 4, 8, 16) if t <= cores]
    parser.add_argument("--threads", nargs="+", type=int, default=default)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--many", nargs="*", type=int, default=[], help="numbers of points")
    parser.add_argument("--edges", type=Path, help="a .npz file with u, v and w")
    parser.add_argument("--vertices", type=int, default=100_000, help="of the generated graph")
    parser.add_argument("--points", type=int, default=100_000, help="in three dimensions")
    parser.add_argument("--repeats", type=int, default=3, help="of builds and batches")
    parser.add_argument("--out", type=Path, help="the JSON file")
    options = parser.parse_args()
    if options.out is None:
        folder = RESULTS if options.edges is not None else ROOT / "build" / "benchmarks"
        options.out = folder / "threads.json"
    return options


def jobs(options: argparse.Namespace) -> Iterator[Job]:
    """Yield what is to be measured, each in a process of its own."""
    common: Job = {
        "edges": None if options.edges is None else str(options.edges.resolve()),
        "vertices": options.vertices,
        "points": options.points,
        "repeats": options.repeats,
    }
    parts = [part for part in options.parts if part != "many"]
    if parts:
        for threads in options.threads:
            yield common | {"threads": threads, "parts": parts}
    if "many" in options.parts:
        most = max(options.threads)
        for count in options.many:
            yield common | {"threads": most, "parts": ["many"], "many": count, "repeats": 1}


def main() -> None:
    """Measure, print and write the rows."""
    options = arguments()
    rows: list[dict[str, Any]] = []
    for job in jobs(options):
        for row in run_process(MODULE, job)["rows"]:
            rows.append(row)
            size = row.get("size", row.get("edges"))
            print(
                f"{row['part']:>13} {size:>10,}  {row['threads']:>2} threads  "
                f"{row['seconds']:8.3f} s  {row['cpu']:8.3f} s of CPU",
                flush=True,
            )
        options.out.parent.mkdir(parents=True, exist_ok=True)
        result = {"machine": machine.describe(), "commit": machine.commit(), "rows": rows}
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(options.out)


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        answer(measure)
    else:
        main()
