"""One measurement in a process of its own: build a graph, update it, check it, tell what it cost.

Started by updates.py with a job as JSON; the last line printed is the result as JSON. Only what a
user of the library would load is in memory until the peak has been read: scikit-learn is imported
afterwards.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from dynhac import GraphHAC
from machine import peak_rss_mb
from quality import best_nmi
from runner import distribution
from shapes import SHAPES
from streams import SEED, SINGLE_UPDATES, load_stream

COUNTERS = (
    "levels",
    "groups_rerun",
    "vertices_rerun",
    "edges_rerun",
    "edges_changed",
    "nodes_created",
)
CHECKPOINTS = (2, 5, 10, 20, 30, 40, 50, 60, 70)  # thousands of points, in a growth run
WINDOW = 1_000  # updates before a checkpoint whose cost is reported there


class Clock:
    """CPU time and counters of a series of updates."""

    def __init__(self) -> None:
        self.ms: list[float] = []
        self._counted = np.zeros(len(COUNTERS))

    def time(self, update: Callable[[], Any]) -> None:
        """Run one update."""
        start = time.process_time_ns()
        change = update()
        self.ms.append((time.process_time_ns() - start) / 1e6)
        self._counted += [getattr(change, name) for name in COUNTERS]

    def summary(self) -> dict[str, Any]:
        """Return the distribution of the cost and the mean of the counters."""
        mean = self._counted / max(len(self.ms), 1)
        return {
            "updates": len(self.ms),
            **distribution(self.ms),
            "counters": dict(zip(COUNTERS, mean.round(1).tolist(), strict=True)),
        }


def cpu_seconds(run: Callable[[], Any]) -> float:
    """Run something and return the CPU seconds it took."""
    start = time.process_time()
    run()
    return time.process_time() - start


def state(g: GraphHAC) -> dict[str, Any]:
    """Return the shape of the hierarchy and what the full check says of it."""
    report = g.verify()
    return {
        "points": len(g),
        "levels": g.n_levels,
        "engine_mb": g.memory / 1e6,
        "ok": bool(report.ok),
        "bad_merges": int(report.bad_merges),
        "worst_goodness": float(report.worst_goodness),
        "report": str(report),
    }


def progress(items: Iterable[Any], title: str, total: int | None = None) -> Iterable[Any]:
    """Show a bar on stderr if that is a terminal; stdout carries the result."""
    return tqdm(items, desc=title, total=total, leave=False, disable=None)


def run_stream(job: dict[str, Any]) -> dict[str, Any]:
    """Build the first batch (insertion) or all of them (deletion), then 200 single updates."""
    stream = load_stream(Path(job["path"]))
    g = GraphHAC(epsilon=job["epsilon"], threshold=job["threshold"])
    inserting = job["protocol"] == "insertion"
    built = 1 if inserting else stream.n_batches
    loaded = peak_rss_mb()
    build = cpu_seconds(lambda: g.update(add=stream.ids(0, built), edges=stream.edges(0, built)))
    after_build = peak_rss_mb()
    clock = Clock()
    if inserting:
        for i in progress(range(1, stream.n_batches), job["title"]):
            ids, edges = stream.ids(i), stream.edges(i)
            clock.time(lambda ids=ids, edges=edges: g.update(add=ids, edges=edges))
    else:
        last = int(stream.bounds[-1]) - 1
        for point in progress(range(last, last - SINGLE_UPDATES, -1), job["title"]):
            clock.time(lambda point=point: g.update(remove=[point]))
    peak = peak_rss_mb()
    return {
        "build_edges": int(stream.edge_bounds[built]),
        "build_s": build,
        "rss_input_mb": loaded,
        "rss_build_mb": after_build,
        "rss_peak_mb": peak,
        "ms": clock.ms,
        **clock.summary(),
        **state(g),
        "nmi": best_nmi(g, stream.labels, job["threshold"]),
    }


def run_batches(job: dict[str, Any]) -> dict[str, Any]:
    """Insert batches of several sizes, then delete them again, the last first."""
    stream = load_stream(Path(job["path"]))
    g = GraphHAC(epsilon=job["epsilon"], threshold=job["threshold"])
    g.update(add=stream.ids(0), edges=stream.edges(0))
    clocks: dict[tuple[int, str], Clock] = {}
    for i in progress(range(1, stream.n_batches), job["title"]):
        ids, edges = stream.ids(i), stream.edges(i)
        clock = clocks.setdefault((len(ids), "insertion"), Clock())
        clock.time(lambda ids=ids, edges=edges: g.update(add=ids, edges=edges))
    for i in progress(range(stream.n_batches - 1, 0, -1), job["title"]):
        ids = stream.ids(i)
        clock = clocks.setdefault((len(ids), "deletion"), Clock())
        clock.time(lambda ids=ids: g.update(remove=ids))
    sizes = [
        {
            "batch": size,
            "kind": kind,
            **clock.summary(),
            "ms_point": clock.summary()["ms_mean"] / size,
        }
        for (size, kind), clock in clocks.items()
    ]
    return {"sizes": sizes, **state(g)}


def run_growth(job: dict[str, Any]) -> dict[str, Any]:
    """Grow a graph one point at a time and compare it with fresh builds on the way."""
    stream = load_stream(Path(job["path"]))
    make = lambda: GraphHAC(epsilon=job["epsilon"], threshold=job["threshold"])  # noqa: E731
    g = make()
    g.update(add=stream.ids(0), edges=stream.edges(0))
    marks = {min(c * 1_000, int(stream.bounds[-1])) for c in CHECKPOINTS}
    clock, points = Clock(), []
    for i in progress(range(1, stream.n_batches), job["title"]):
        ids, edges = stream.ids(i), stream.edges(i)
        clock.time(lambda ids=ids, edges=edges: g.update(add=ids, edges=edges))
        if len(g) not in marks:
            continue
        fresh = make()
        batches = (0, i + 1)
        build = cpu_seconds(
            lambda f=fresh, b=batches: f.update(add=stream.ids(*b), edges=stream.edges(*b))
        )
        row = {"ms": float(np.mean(clock.ms[-WINDOW:])), **state(g)}
        row |= {"nmi": best_nmi(g, stream.labels, job["threshold"]), "fresh_build_s": build}
        row |= {"fresh_levels": fresh.n_levels}
        row |= {"fresh_nmi": best_nmi(fresh, stream.labels, job["threshold"])}
        points.append(row)
    return {"checkpoints": points, **clock.summary(), **state(g)}


def run_shape(job: dict[str, Any]) -> dict[str, Any]:
    """Build a graph of equal weights, then remove random vertices and put each back."""
    make_pairs, _ = SHAPES[job["name"]]
    u, v = make_pairs(job["size"])
    n = int(max(u.max(), v.max())) + 1
    g = GraphHAC(epsilon=job["epsilon"], threshold=0)
    weights = np.ones(len(u))
    build = cpu_seconds(lambda: g.update(add=np.arange(n), edges=(u, v, weights)))
    clocks = {"deletion": Clock(), "insertion": Clock()}
    chosen = np.random.default_rng(SEED).choice(np.arange(1, n), job["updates"], replace=False)
    for vertex in progress(chosen, job["title"]):
        at = np.flatnonzero((u == vertex) | (v == vertex))
        edges = (u[at], v[at], weights[at])
        clocks["deletion"].time(lambda vertex=vertex: g.update(remove=[int(vertex)]))
        clocks["insertion"].time(lambda v=vertex, edges=edges: g.update(add=[int(v)], edges=edges))
    peak = peak_rss_mb()
    return {
        "edges": len(u),
        "build_s": build,
        "build_us_edge": build * 1e6 / len(u),
        "rss_peak_mb": peak,
        **{kind: clock.summary() for kind, clock in clocks.items()},
        **state(g),
    }


RUNS = {
    "streams": run_stream,
    "epsilons": run_stream,
    "batches": run_batches,
    "growth": run_growth,
    "shapes": run_shape,
}


def main() -> None:
    """Run the job given as the only argument."""
    job = json.loads(sys.argv[1])
    print(json.dumps(RUNS[job["experiment"]](job)))


if __name__ == "__main__":
    main()
