"""One measurement of points in a process of its own; started by points.py with a job as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac import DynHAC, GraphHAC
from machine import peak_rss_mb
from measure import cpu_seconds, progress, state
from quality import best_nmi
from runner import distribution

SEED = 0
UPDATES = 200
LAYER_UPDATES = 2_000
CHECKPOINTS = 12  # of a window in one stream
MOST_REFIT = 12_000  # points: a distance matrix of more does not fit beside everything else


@dataclass(frozen=True)
class Points:
    """Where points come from and how a model takes them."""

    threshold: float
    file: str | None = None
    metric: str = "euclidean"
    backend: str = "auto"
    grinch: bool = False  # small enough for it: its trees grow very deep in many dimensions


@dataclass(frozen=True)
class Window(Points):
    """Streams of ``length`` points each through a window of ``size``.

    They are different random samples of the data, in random order or in that of the file.
    """

    size: int = 0
    length: int = 0
    streams: int = 4
    shuffled: bool = True


@dataclass(frozen=True)
class Scale(Points):
    """Models of several sizes from one data set."""

    sizes: tuple[int, ...] = ()


POINT_SETS = {
    "mnist": Points(1e-4, "mnist_umap2.npz", grinch=True),
    "reuters": Points(1e-2, "reuters_minilm384.npz", grinch=True),
    "intents": Points(1e-2, "intents_minilm384.npz"),
    "digits": Points(1e-4, grinch=True),
    "blobs": Points(1e-4, grinch=True),
}
WINDOWS = {
    "reuters": Window(
        1e-2, "reuters_minilm384.npz", size=3_000, length=9_000, streams=16, shuffled=False
    ),
    "mnist": Window(1e-4, "mnist_umap2.npz", size=10_000, length=30_000),
    "blobs": Window(1e-4, size=1_000, length=4_000),
}
LAYERS = {
    "mnist": Scale(1e-4, "mnist_umap2.npz", sizes=(1_000, 10_000, 65_000)),
    "reuters": Scale(1e-2, "reuters_minilm384.npz", sizes=(1_000, 9_000)),
    "blobs": Scale(1e-4, sizes=(1_000, 10_000)),
}
VARIANTS = ("window", "max_age", "str ids")  # of models, whose single points need more
SCALES = {
    "tycho2": Scale(1e-2, "tycho2_stars.npz", sizes=(10_000, 100_000, 1_000_000, 1_871_011)),
    "uniform": Scale(1e-2, sizes=(1_000, 10_000)),
}


def load(name: str, points: Points, data: str | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return points and classes, in the order of the file."""
    if points.file is None:
        rng = np.random.default_rng(SEED)
        if name == "digits":
            from sklearn.datasets import load_digits

            digits = load_digits()
            return digits.data.astype(np.float32), digits.target
        if name == "uniform":
            return rng.uniform(size=(10_000, 3)).astype(np.float32), np.zeros(10_000, np.int64)
        centres = rng.uniform(-30, 30, size=(30, 2))
        labels = rng.integers(30, size=20_000)
        return (centres[labels] + rng.normal(size=(20_000, 2))).astype(np.float32), labels
    if data is None:
        raise SystemExit(f"{name} needs --data (or DYNHAC_DATA), the folder with {points.file}")
    with np.load(Path(data) / points.file, allow_pickle=False) as arrays:
        X = arrays["X"].astype(np.float32)
        y = arrays["y"].astype(np.int64) if "y" in arrays else np.zeros(len(X), np.int64)
    return X, y


def shuffled(X: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both in one seeded random order."""
    order = np.random.default_rng(SEED).permutation(len(X))
    return X[order], y[order]


def new_model(points: Points, **more: Any) -> DynHAC:
    """Return an empty model with the parameters of all measurements."""
    return DynHAC(0.1, points.threshold, metric=points.metric, neighbors=points.backend, **more)


class Clock:
    """CPU time of single updates, and their parts by wall clock: search, engine, and the rest."""

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
    job: dict[str, Any],
    ids: list[str] | None = None,
    times: list[int] | None = None,
) -> dict[str, Any]:
    """Insert points one at a time, then delete random ones."""
    clocks = {"insert": Clock(), "delete": Clock()}
    for i, x in enumerate(progress(more, job["title"])):
        id, time = ids and ids[i], times and times[i]
        clocks["insert"].time(model, lambda x=x, id=id, time=time: model.insert(x, id, time))
    gone = np.random.default_rng(SEED).choice(model.ids, len(more), replace=False)
    for point in progress(gone.tolist(), job["title"]):
        clocks["delete"].time(model, lambda point=point: model.delete(point))
    summaries = {kind: clock.summary() for kind, clock in clocks.items()}
    return {"ms_mean": summaries["insert"]["ms"], **summaries}


def refits(X: NDArray[Any]) -> dict[str, float]:
    """CPU seconds of the static algorithms on the same points, where these are few enough."""
    if len(X) > MOST_REFIT:
        return {}
    from sklearn.cluster import AgglomerativeClustering

    sklearn_model = AgglomerativeClustering(n_clusters=10, linkage="average")
    seconds = {"scikit-learn": cpu_seconds(lambda: sklearn_model.fit(X))}
    try:
        import fastcluster
    except ImportError:
        return seconds
    seconds["fastcluster"] = cpu_seconds(lambda: fastcluster.linkage(X, method="average"))
    return seconds


def run_grinch(X: NDArray[Any], job: dict[str, Any]) -> dict[str, Any]:
    """Make the same updates with GRINCH; nothing of its tree is checked here."""
    from systems import Arrivals, Settings
    from systems.grinch import Grinch

    system = Grinch(Settings())
    none = np.empty(0, np.int64)

    def arrivals(first: int, last: int) -> Arrivals:
        return Arrivals(np.arange(first, last), X[first:last], none, none, np.empty(0))

    n = len(X)
    first = n - UPDATES
    result: dict[str, Any] = {"build_s": cpu_seconds(lambda: system.build(arrivals(0, first)))}
    result["rss_peak_mb"] = peak_rss_mb()
    inserts = [
        cpu_seconds(lambda i=i: system.insert(arrivals(i, i + 1)))
        for i in progress(range(first, n), job["title"])
    ]
    chosen = np.random.default_rng(SEED).choice(n, UPDATES, replace=False)
    deletes = [cpu_seconds(lambda i=i: system.delete(chosen[i : i + 1])) for i in range(UPDATES)]
    for kind, seconds in (("insert", inserts), ("delete", deletes)):
        spread = distribution([1e3 * s for s in seconds])
        result[kind] = {"updates": UPDATES, "ms": spread.pop("ms_mean"), **spread}
    return result | {"backend": "GRINCH", "refit_s": {}, "ok": True, "report": "nothing to verify"}


def run_points(job: dict[str, Any]) -> dict[str, Any]:
    """All points but 200 in one batch, then single updates."""
    points = POINT_SETS[job["name"]]
    X, _ = shuffled(*load(job["name"], points, job["data"]))
    if job.get("variant") == "GRINCH":
        return run_grinch(X, job)
    model = new_model(points)
    build = cpu_seconds(lambda: model.insert(X[:-UPDATES]))
    rss = peak_rss_mb()
    result = single_updates(model, X[-UPDATES:], job)
    result |= {"dimension": X.shape[1], "backend": model.backend}
    result |= {"build_s": build, "rss_peak_mb": rss, **state(model.graph)}
    return result | {"refit_s": refits(X)}


def run_window(job: dict[str, Any]) -> dict[str, Any]:
    """Slide a window over streams one point at a time; compare with fresh models on the way."""
    window = WINDOWS[job["name"]]
    points, classes = load(job["name"], window, job["data"])
    clock, checkpoints, ends = Clock(), [], []
    for stream in range(window.streams):
        sample = np.random.default_rng(stream).permutation(len(points))[: window.length]
        if not window.shuffled:
            sample.sort()
        model = new_model(window, max_points=window.size, repair=job["variant"] == "repair")
        title = f"{job['title']}, stream {stream + 1} of {window.streams}"
        for at in slide(model, points[sample], classes[sample], window, clock, title):
            checkpoints.append({"stream": stream, **at})
        ends.append(state(model.graph))
    result = {"window": window.size, "insert": clock.summary(), "checkpoints": checkpoints}
    result |= {"backend": model.backend, **ends[-1]}
    bad = sum(end["bad_merges"] for end in ends)
    return result | {"ok": all(end["ok"] for end in ends), "bad_merges": bad}


def slide(
    model: DynHAC, X: NDArray[Any], y: NDArray[Any], window: Window, clock: Clock, title: str
) -> Iterator[dict[str, float]]:
    """Let a stream through a model; yield how it compares at checkpoints."""
    model.insert(X[: window.size])
    marks = np.linspace(window.size, len(X), CHECKPOINTS + 1).astype(int)[1:].tolist()
    repaired = 0
    for i in progress(range(window.size, len(X)), title):
        clock.time(model, lambda i=i: model.insert(X[i]))
        repaired += len(model.last_change.repaired)
        if i + 1 in marks:
            yield {"repaired": repaired, **against_fresh(model, X, y, window)}


def against_fresh(
    model: DynHAC, X: NDArray[Any], y: NDArray[Any], window: Window
) -> dict[str, float]:
    """Compare a model with a fresh one of its points, and with a fresh hierarchy of its graph."""
    held = model.ids
    fresh = new_model(window)
    fresh.insert(X[held], ids=held)
    rebuilt = GraphHAC(model.epsilon, model.threshold)
    rebuilt.update(add=held, edges=model.graph.edges())
    return {
        "nmi": best_nmi(model.graph, y, window.threshold),
        "rebuilt_nmi": best_nmi(rebuilt, y, window.threshold),
        "fresh_nmi": best_nmi(fresh.graph, y, window.threshold),
        "edges": model.level_sizes[0][1],
        "fresh_edges": fresh.level_sizes[0][1],
        "levels": model.n_levels,
        "fresh_levels": fresh.n_levels,
    }


def run_scale(job: dict[str, Any]) -> dict[str, Any]:
    """Build a model of the first points of a random order, then single updates."""
    scale = SCALES[job["name"]]
    X, y = load(job["name"], scale, job["data"])
    X, _ = shuffled(X, y)
    X = X[: job["size"]]
    model = new_model(scale, threads=2)
    build = cpu_seconds(lambda: model.insert(X[:-UPDATES]))
    rss = peak_rss_mb()
    result = single_updates(model, X[-UPDATES:], job)
    result |= {"dimension": X.shape[1], "backend": model.backend}
    return result | {"build_s": build, "rss_peak_mb": rss, **state(model.graph)}


def run_layer(job: dict[str, Any]) -> dict[str, Any]:
    """Many single updates: what the Python around search and engine takes."""
    scale, size, variant = LAYERS[job["name"]], job["size"], job.get("variant")
    X, y = load(job["name"], scale, job["data"])
    X, _ = shuffled(X, y)
    ids = [f"point {i}" for i in range(len(X))] if variant == "str ids" else None
    bounds = {"window": {"max_points": size}, "max_age": {"max_age": size - 1}}
    model = new_model(scale, **bounds.get(variant, {}))
    times = list(range(len(X))) if variant == "max_age" else None
    first, more = slice(size), slice(size, size + LAYER_UPDATES)
    model.insert(X[first], ids and ids[first], times and times[first])
    result = single_updates(model, X[more], job, ids and ids[more], times and times[more])
    return result | {"backend": model.backend, "dimension": X.shape[1], **state(model.graph)}


RUNS = {"points": run_points, "windows": run_window, "scale": run_scale, "layer": run_layer}


def main() -> None:
    """Run the job given as the only argument."""
    job = json.loads(sys.argv[1])
    print(json.dumps(RUNS[job["experiment"]](job)))


if __name__ == "__main__":
    main()
