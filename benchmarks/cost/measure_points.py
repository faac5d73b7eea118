"""Measures a job of points.py in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import (
    DATASETS,
    SEED,
    generated_clusters,
    read_points,
    shuffled_points,
)
from benchmarks.common.machine import peak_rss_mb
from benchmarks.common.quality import best_nmi
from benchmarks.common.runner import Job, answer, distribution
from benchmarks.cost.measure_updates import cpu_seconds, progress, state
from dynhac import DynHAC, GraphHAC

UPDATES = 200
LAYER_UPDATES = 2_000
CHECKPOINTS = 12  # of a window in one stream
MOST_REFIT = 12_000  # points: the distance matrix of more does not fit into memory


@dataclass(frozen=True)
class Window:
    """Streams of ``length`` points each through a window of ``size``.

    They are different random samples of the data, in random order or in that of the file.
    """

    size: int
    length: int
    streams: int = 4
    shuffled: bool = True


# Data sets of single updates. In many dimensions the trees of GRINCH grow very deep, so it is run
# on the smaller ones only.
POINT_SETS = ("mnist", "tinyimagenet", "intents", "reuters", "digits", "blobs")
GRINCH_SETS = ("mnist", "reuters", "digits", "blobs")
WINDOWS = {
    "reuters": Window(size=3_000, length=9_000, streams=16, shuffled=False),
    "mnist": Window(size=10_000, length=30_000),
    "blobs": Window(size=1_000, length=4_000),
}
# Sizes of models by data set.
LAYERS = {"mnist": (1_000, 10_000, 65_000), "reuters": (1_000, 9_000), "blobs": (1_000, 10_000)}
LAYER_VARIANTS = ("window", "max_age", "str ids")  # at the second of the sizes
LARGE = {"clusters": (100_000, 1_000_000)}  # too many numbers for a scan
LARGE_DIMENSION, LARGE_THRESHOLD = 384, 1e-2
SCALES = {"tycho2": (10_000, 100_000, 1_000_000, 1_871_011), "uniform": (1_000, 10_000)}


def data_folder(job: Job) -> Path | None:
    """Return the folder of the data sets."""
    return None if job["data"] is None else Path(job["data"])


def points_of(job: Job) -> NDArray[np.float32]:
    """Return the points of a job's data set in random order."""
    return shuffled_points(job["name"], data_folder(job))[0]


def new_model(name: str, **more: Any) -> DynHAC:
    """Return an empty model for a data set, with the parameters of all measurements."""
    return DynHAC(0.1, DATASETS[name].threshold, **{"threads": 1} | more)


class Clock:
    """CPU time of single updates, and by wall clock: search, engine, and time outside both.

    The key of the time outside search and engine is ``python``, as in all published results.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, float, float]] = []

    def time(self, model: DynHAC, update: Callable[[], Any]) -> None:
        """Run one update."""
        start, began = time.process_time_ns(), time.perf_counter_ns()
        update()
        wall = (time.perf_counter_ns() - began) / 1e6
        spent = (time.process_time_ns() - start) / 1e6
        change = model.last_change
        search, engine = 1e3 * change.seconds_search, 1e3 * change.seconds_engine
        self.rows.append((spent, search, wall - search - engine, engine))

    def summary(self) -> dict[str, float]:
        """Return means in milliseconds, and the tail."""
        rows = np.array(self.rows)
        mean = rows.mean(axis=0)
        return {
            "updates": len(rows),
            **dict(zip(("ms", "search", "python", "engine"), mean.tolist(), strict=True)),
            "python_p50": float(np.percentile(rows[:, 2], 50)),
            "ms_p50": float(np.percentile(rows[:, 0], 50)),
            "ms_p99": float(np.percentile(rows[:, 0], 99)),
            "ms_max": float(rows[:, 0].max()),
        }


def single_updates(
    model: DynHAC,
    more: NDArray[Any],
    job: Job,
    ids: list[str] | None = None,
    times: list[int] | None = None,
) -> dict[str, Any]:
    """Insert points one at a time, then delete random ones."""
    clocks = {"insert": Clock(), "delete": Clock()}
    for i, x in enumerate(progress(more, job["title"])):
        arguments = (x, ids and ids[i], times and times[i])
        clocks["insert"].time(model, partial(model.insert, *arguments))
    gone = np.random.default_rng(SEED).choice(model.ids, len(more), replace=False)
    for point in progress(gone.tolist(), job["title"]):
        clocks["delete"].time(model, partial(model.delete, point))
    summaries = {kind: clock.summary() for kind, clock in clocks.items()}
    return {"ms_mean": summaries["insert"]["ms"], **summaries}


def refits(X: NDArray[Any]) -> dict[str, float]:
    """Return CPU seconds of static algorithms on the same points, if these are few enough."""
    if len(X) > MOST_REFIT:
        return {}
    from sklearn.cluster import AgglomerativeClustering

    sklearn_model = AgglomerativeClustering(n_clusters=10, linkage="average")
    seconds = {"scikit-learn": cpu_seconds(partial(sklearn_model.fit, X))}
    try:
        import fastcluster
    except ImportError:
        return seconds
    seconds["fastcluster"] = cpu_seconds(partial(fastcluster.linkage, X, method="average"))
    return seconds


def run_grinch(X: NDArray[Any], job: Job) -> dict[str, Any]:
    """Make the same updates with GRINCH; its tree is not checked."""
    from benchmarks.systems import Settings, points_only
    from benchmarks.systems.grinch import Grinch

    system = Grinch(Settings())
    n = len(X)
    first = n - UPDATES
    build = points_only(np.arange(first), X[:first])
    result: dict[str, Any] = {"build_s": cpu_seconds(partial(system.build, build))}
    result["rss_peak_mb"] = peak_rss_mb()
    inserts = [
        cpu_seconds(partial(system.insert, points_only(np.array([i]), X[i : i + 1])))
        for i in progress(range(first, n), job["title"])
    ]
    chosen = np.random.default_rng(SEED).choice(n, UPDATES, replace=False)
    deletes = [cpu_seconds(partial(system.delete, chosen[i : i + 1])) for i in range(UPDATES)]
    for kind, seconds in (("insert", inserts), ("delete", deletes)):
        spread = distribution([1e3 * s for s in seconds])
        result[kind] = {"updates": UPDATES, "ms": spread.pop("ms_mean"), **spread}
    return result | {"backend": "GRINCH", "refit_s": {}, "ok": True, "report": "nothing to verify"}


def run_points(job: Job) -> dict[str, Any]:
    """Insert all points but 200 in one batch, then make single updates."""
    X = points_of(job)
    if job.get("variant") == "GRINCH":
        return run_grinch(X, job)
    return build_and_update(new_model(job["name"]), X, job) | {"refit_s": refits(X)}


def run_scale(job: Job) -> dict[str, Any]:
    """The same with the first points of a random order only."""
    return build_and_update(new_model(job["name"], threads=2), points_of(job)[: job["size"]], job)


def run_large(job: Job) -> dict[str, Any]:
    """The same with generated points, on one thread."""
    X = generated_clusters(job["size"], LARGE_DIMENSION)
    model = DynHAC(0.1, LARGE_THRESHOLD, threads=1)
    result = build_and_update(model, X, job)
    return result | {"recall": model.recall}


def build_and_update(model: DynHAC, X: NDArray[np.float32], job: Job) -> dict[str, Any]:
    """Insert all points but 200 in one batch, then make single updates."""
    build = cpu_seconds(partial(model.insert, X[:-UPDATES]))
    rss = peak_rss_mb()
    result = single_updates(model, X[-UPDATES:], job)
    result |= {"dimension": X.shape[1], "backend": model.backend}
    return result | {"build_s": build, "rss_peak_mb": rss, **state(model.graph)}


def run_window(job: Job) -> dict[str, Any]:
    """Slide a window over streams one point at a time; compare with fresh models."""
    name, window = job["name"], WINDOWS[job["name"]]
    points, classes = read_points(name, data_folder(job))
    clock, checkpoints, ends = Clock(), [], []
    for stream in range(window.streams):
        sample = np.random.default_rng(stream).permutation(len(points))[: window.length]
        if not window.shuffled:
            sample.sort()
        model = new_model(name, max_points=window.size, repair=job["variant"] == "repair")
        title = f"{job['title']}, stream {stream + 1} of {window.streams}"
        X, y = points[sample], classes[sample]
        for repaired in slide(model, X, window.size, clock, title):
            compared = against_fresh(model, new_model(name), X, y)
            checkpoints.append({"stream": stream, "repaired": repaired, **compared})
        ends.append(state(model.graph))
    result = {"window": window.size, "insert": clock.summary(), "checkpoints": checkpoints}
    result |= {"backend": model.backend, **ends[-1]}
    bad = sum(end["bad_merges"] for end in ends)
    return result | {"ok": all(end["ok"] for end in ends), "bad_merges": bad}


def slide(model: DynHAC, X: NDArray[Any], size: int, clock: Clock, title: str) -> Iterator[int]:
    """Insert a stream into a model with a window; yield, at checkpoints, the points repaired."""
    model.insert(X[:size])
    marks = np.linspace(size, len(X), CHECKPOINTS + 1).astype(int)[1:].tolist()
    repaired = 0
    for i in progress(range(size, len(X)), title):
        clock.time(model, partial(model.insert, X[i]))
        repaired += len(model.last_change.repaired)
        if i + 1 in marks:
            yield repaired


def against_fresh(
    model: DynHAC, fresh: DynHAC, X: NDArray[Any], y: NDArray[Any]
) -> dict[str, float]:
    """Compare a model with a fresh one of its points, and with a fresh hierarchy of its graph."""
    held, threshold = model.ids, model.threshold
    fresh.insert(X[held], ids=held)
    rebuilt = GraphHAC(model.epsilon, threshold)
    rebuilt.update(add=held, edges=model.graph.edges())
    return {
        "nmi": best_nmi(model.graph, y, threshold),
        "rebuilt_nmi": best_nmi(rebuilt, y, threshold),
        "fresh_nmi": best_nmi(fresh.graph, y, threshold),
        "edges": model.level_sizes[0][1],
        "fresh_edges": fresh.level_sizes[0][1],
        "levels": model.n_levels,
        "fresh_levels": fresh.n_levels,
    }


def run_layer(job: Job) -> dict[str, Any]:
    """Many single updates, for the time outside search and engine."""
    X, size, variant = points_of(job), job["size"], job.get("variant")
    ids = [f"point {i}" for i in range(len(X))] if variant == "str ids" else None
    bounds = {"window": {"max_points": size}, "max_age": {"max_age": size - 1}}
    model = new_model(job["name"], **bounds.get(variant, {}))
    times = list(range(len(X))) if variant == "max_age" else None
    first, more = slice(size), slice(size, size + LAYER_UPDATES)
    model.insert(X[first], ids and ids[first], times and times[first])
    result = single_updates(model, X[more], job, ids and ids[more], times and times[more])
    return result | {"backend": model.backend, "dimension": X.shape[1], **state(model.graph)}


RUNS = {
    "points": run_points,
    "windows": run_window,
    "scale": run_scale,
    "large": run_large,
    "layer": run_layer,
}


if __name__ == "__main__":
    answer(lambda job: RUNS[job["experiment"]](job))
