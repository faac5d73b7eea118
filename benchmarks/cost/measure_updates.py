"""Measures a job of updates.py in a process of its own: builds a graph, updates and checks it.

Only what a user of the library would load is in memory until the peak has been read: scikit-learn
is imported afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.common.datasets import SEED
from benchmarks.common.machine import peak_rss_mb
from benchmarks.common.quality import best_nmi, verification
from benchmarks.common.runner import Job, answer, distribution
from benchmarks.common.streams import SINGLE_UPDATES, load_stream
from benchmarks.cost.shapes import SHAPES, random_pair
from dynhac import Change, GraphHAC

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

    def time(self, update: Callable[[], Change]) -> None:
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
    """Return the size of the hierarchy and what `verify` reports."""
    size = {"points": len(g), "levels": g.n_levels, "engine_mb": g.memory / 1e6}
    return size | verification(g)


def progress(items: Iterable[Any], title: str) -> Iterable[Any]:
    """Show a bar on stderr if that is a terminal; stdout is for the result."""
    return tqdm(items, desc=title, leave=False, disable=None)


def new_graph(job: Job) -> GraphHAC:
    """Return an empty graph with the parameters of a job."""
    return GraphHAC(epsilon=job["epsilon"], threshold=job["threshold"], threads=1)


def run_stream(job: Job) -> dict[str, Any]:
    """Build the first batch (insertion) or all of them (deletion), then 200 single updates."""
    stream, g = load_stream(Path(job["path"])), new_graph(job)
    inserting = job["protocol"] == "insertion"
    built = 1 if inserting else stream.n_batches
    loaded = peak_rss_mb()
    build = cpu_seconds(partial(g.update, **stream.batch(0, built)))
    after_build = peak_rss_mb()
    clock = Clock()
    if inserting:
        for i in progress(range(1, stream.n_batches), job["title"]):
            clock.time(partial(g.update, **stream.batch(i)))
    else:
        last = int(stream.bounds[-1]) - 1
        for point in progress(range(last, last - SINGLE_UPDATES, -1), job["title"]):
            clock.time(partial(g.update, remove=[point]))
    peak = peak_rss_mb()
    return {
        "build_edges": int(stream.edge_bounds[built]),
        "build_s": build,
        "rss_input_mb": loaded,
        "rss_build_mb": after_build,
        "rss_peak_mb": peak,
        **clock.summary(),
        **state(g),
        "nmi": best_nmi(g, stream.labels, job["threshold"]),
    }


def run_batches(job: Job) -> dict[str, Any]:
    """Insert batches of several sizes, then delete them again, the last first."""
    stream, g = load_stream(Path(job["path"])), new_graph(job)
    g.update(**stream.batch(0))
    clocks: dict[tuple[int, str], Clock] = {}
    for i in progress(range(1, stream.n_batches), job["title"]):
        batch = stream.batch(i)
        clock = clocks.setdefault((len(batch["add"]), "insertion"), Clock())
        clock.time(partial(g.update, **batch))
    for i in progress(range(stream.n_batches - 1, 0, -1), job["title"]):
        ids = stream.ids(i)
        clock = clocks.setdefault((len(ids), "deletion"), Clock())
        clock.time(partial(g.update, remove=ids))
    sizes = [
        {"batch": size, "kind": kind, **clock.summary(), "ms_point": np.mean(clock.ms) / size}
        for (size, kind), clock in clocks.items()
    ]
    return {"sizes": sizes, **state(g)}


def run_growth(job: Job) -> dict[str, Any]:
    """Grow a graph one point at a time and compare it with fresh builds at checkpoints."""
    stream, g = load_stream(Path(job["path"])), new_graph(job)
    g.update(**stream.batch(0))
    marks = {min(c * 1_000, int(stream.bounds[-1])) for c in CHECKPOINTS}
    clock, points = Clock(), []
    for i in progress(range(1, stream.n_batches), job["title"]):
        clock.time(partial(g.update, **stream.batch(i)))
        if len(g) not in marks:
            continue
        fresh = new_graph(job)
        build = cpu_seconds(partial(fresh.update, **stream.batch(0, i + 1)))
        row = {"ms": float(np.mean(clock.ms[-WINDOW:])), **state(g)}
        row |= {"nmi": best_nmi(g, stream.labels, job["threshold"]), "fresh_build_s": build}
        row |= {"fresh_levels": fresh.n_levels}
        row |= {"fresh_nmi": best_nmi(fresh, stream.labels, job["threshold"])}
        points.append(row)
    return {"checkpoints": points, **clock.summary(), **state(g)}


def run_shape(job: Job) -> dict[str, Any]:
    """Build a graph of an awkward shape, then remove random vertices and put each back."""
    shape = SHAPES[job["name"]]
    u, v = shape.pairs(job["size"])
    n = int(max(u.max(), v.max())) + 1
    g = new_graph(job | {"threshold": 0})
    weights = shape.weights(len(u))
    build = cpu_seconds(partial(g.update, add=np.arange(n), edges=(u, v, weights)))
    clocks = {"deletion": Clock(), "insertion": Clock()}
    chosen = np.random.default_rng(SEED).choice(np.arange(1, n), job["updates"], replace=False)
    for vertex in progress(chosen, job["title"]):
        at = np.flatnonzero((u == vertex) | (v == vertex))
        edges = (u[at], v[at], weights[at])
        clocks["deletion"].time(partial(g.update, remove=[int(vertex)]))
        clocks["insertion"].time(partial(g.update, add=[int(vertex)], edges=edges))
    peak = peak_rss_mb()
    return {
        "edges": len(u),
        "build_s": build,
        "build_us_edge": build * 1e6 / len(u),
        "rss_peak_mb": peak,
        **{kind: clock.summary() for kind, clock in clocks.items()},
        **state(g),
    }


def run_bridge(job: Job) -> dict[str, Any]:
    """Join two random graphs by an edge, and change its weight back and forth."""
    n = job["size"]
    u, v = random_pair(n)
    g = new_graph(job | {"threshold": 0})
    weights = np.random.default_rng(SEED).uniform(0.3, 0.8, len(u))
    build = cpu_seconds(partial(g.update, add=np.arange(n), edges=(u, v, weights)))
    clock = Clock()
    for i in progress(range(job["updates"]), job["title"]):
        clock.time(partial(g.set_edges, 0, n // 2, 5.0 if i % 2 else 1e-3))
    return {"edges": len(u) + 1, "build_s": build, **clock.summary(), **state(g)}


RUNS = {
    "streams": run_stream,
    "epsilons": run_stream,
    "batches": run_batches,
    "growth": run_growth,
    "shapes": run_shape,
    "bridge": run_bridge,
}


if __name__ == "__main__":
    answer(lambda job: RUNS[job["experiment"]](job))
