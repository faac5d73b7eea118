"""Measures one job of compare.py with the dynhac of the interpreter that runs this file.

The job is JSON in the only argument; the result is the last line printed, as JSON: CPU
microseconds of every call by kind of call, and a digest of the clusters at the end. Everything
here must run with earlier versions of dynhac too. Hence only its public API is used, and nothing
else of benchmarks/ is imported.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dynhac
from dynhac import DynHAC, GraphHAC
from dynhac.neighbors import ExactIndex, KDBlocksIndex

SEED = 0
EPSILON = 0.1
THETA = 0.1  # similarity of the clusters that the digest is of
NEIGHBOURS = 50  # of a vertex of the graph jobs
BATCH = 100  # points in a batch of a bulk job
FILES = {
    "mnist": ("mnist_umap2.npz", 1e-4),
    "reuters": ("reuters_minilm384.npz", 1e-2),
    "intents": ("intents_minilm384.npz", 1e-2),
}
Vectors = NDArray[np.float32]
Times = dict[str, list[float]]


class OwnExactIndex(ExactIndex):
    """An index of the user: dynhac must call it as it would any other Python class."""


class OwnKDBlocksIndex(KDBlocksIndex):
    """An index of the user: dynhac must call it as it would any other Python class."""


class Clock:
    """CPU microseconds of calls, by kind."""

    def __init__(self) -> None:
        self.times: Times = {}

    def time(self, kind: str, call: Callable[[], Any]) -> None:
        """Run one call."""
        start = time.process_time_ns()
        call()
        spent = time.process_time_ns() - start
        self.times.setdefault(kind, []).append(spent / 1e3)


def load(job: dict[str, Any]) -> tuple[Vectors, float, int]:
    """Return random points of a job's data set, its threshold, and how many points to build from.

    The others, as many as there are updates, are for single insertions.
    """
    file, threshold = FILES[job["set"]]
    with np.load(Path(job["data"]) / file, allow_pickle=False) as arrays:
        X = arrays["X"]
    built = min(job["points"], len(X) - job["updates"])
    if built < 1:
        raise SystemExit(f"--updates is {job['updates']}; {job['set']} has only {len(X)} points")
    chosen = np.random.default_rng(SEED).permutation(len(X))[: built + job["updates"]]
    return X[chosen].astype(np.float32), threshold, built


def random_ids(model: Any, count: int) -> list[Any]:
    """Return distinct ids of a model, as Python objects."""
    ids = np.asarray(model.ids).tolist()
    chosen = np.random.default_rng(SEED).choice(len(ids), min(count, len(ids)), replace=False)
    return [ids[i] for i in chosen]


def str_ids(count: int) -> list[str]:
    """Return ids of text."""
    return [f"point {i}" for i in range(count)]


def digest(model: Any) -> str:
    """Return a short hash of the clusters: equal for two models that have the same ones."""
    labels = np.asarray(model.labels(THETA), dtype=np.int64)
    return hashlib.sha256(labels.tobytes()).hexdigest()[:12]


def points(job: dict[str, Any], folder: str) -> tuple[Times, str]:
    """Build a model, then insert single points and delete random ones."""
    variant = job["variant"]
    X, threshold, built = load(job)
    ids = str_ids(len(X)) if variant == "str_ids" else None
    times = list(range(len(X))) if variant == "max_age" else None
    parameters: dict[str, Any] = {"epsilon": EPSILON, "threshold": threshold}
    if variant == "max_points":
        parameters["max_points"] = built
    elif variant == "max_age":
        parameters["max_age"] = built - 1
    elif variant == "own_index":
        planar = X.shape[1] == 2
        parameters["neighbors"] = OwnKDBlocksIndex(2) if planar else OwnExactIndex()
    if variant == "store":
        # No snapshot may start while calls are timed: its thread would count.
        never = {"snapshot_bytes": 1 << 40, "snapshot_seconds": 1e9}
        model: Any = dynhac.open(folder, "points", durability="normal", **never, **parameters)
    else:
        model = DynHAC(**parameters)
    model.insert(X[:built], ids and ids[:built], times and times[:built])
    clock = Clock()
    for i in range(built, len(X)):
        more = {} if ids is None else {"ids": ids[i]}
        if times is not None:
            more["timestamps"] = times[i]
        clock.time("insert", partial(model.insert, X[i], **more))
    for id in random_ids(model, job["updates"]):
        clock.time("delete", partial(model.delete, id))
    found = digest(model)
    if variant == "store":
        model.close()
    return clock.times, found


def bulk(job: dict[str, Any], folder: str) -> tuple[Times, str]:
    """Build a model from vectors at once, then insert batches."""
    X, threshold, built = load(job)
    ids = str_ids(len(X)) if job["variant"] == "bulk_str_ids" else None
    clock = Clock()
    model = DynHAC(epsilon=EPSILON, threshold=threshold)
    clock.time("build", partial(model.insert, X[:built], ids and ids[:built]))
    for first in range(built, len(X), BATCH):
        part = slice(first, first + BATCH)
        clock.time("batch", partial(model.insert, X[part], ids and ids[part]))
    return clock.times, digest(model)


def graph(job: dict[str, Any], folder: str) -> tuple[Times, str]:
    """Build a graph, then add single vertices with their edges and remove random vertices."""
    X, threshold, built = load(job)
    u, v, w = edges_to_earlier(X)
    ids: Any = np.array(str_ids(len(X))) if job["variant"] == "str_ids" else np.arange(len(X))
    model = GraphHAC(epsilon=EPSILON, threshold=threshold)
    bounds = np.searchsorted(u, np.arange(len(X) + 1))
    first = slice(bounds[built])
    model.update(add=ids[:built], edges=(ids[u[first]], ids[v[first]], w[first]))
    clock = Clock()
    for i in range(built, len(X)):
        part = slice(bounds[i], bounds[i + 1])
        add, edges = ids[i : i + 1], (ids[u[part]], ids[v[part]], w[part])
        clock.time("add", partial(model.update, add=add, edges=edges))
    for id in random_ids(model, job["updates"]):
        clock.time("remove", partial(model.update, remove=[id]))
    return clock.times, digest(model)


def edges_to_earlier(X: Vectors) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Join every point to its nearest earlier ones; edges are sorted by their later end."""
    later, earlier, similarity = [], [], []
    for i in range(1, len(X)):
        distance = np.sqrt(((X[:i] - X[i]) ** 2).sum(axis=1, dtype=np.float64))
        nearest = np.argpartition(distance, min(NEIGHBOURS, i) - 1)[:NEIGHBOURS].copy()
        later.append(np.full(len(nearest), i))
        earlier.append(nearest)
        similarity.append(1 / (1 + distance[nearest]))
    return np.concatenate(later), np.concatenate(earlier), np.concatenate(similarity)


RUNS = {"points": points, "bulk": bulk, "graph": graph}


def main() -> None:
    """Run the job given as the only argument."""
    job = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        times, found = RUNS[job["run"]](job, str(Path(folder) / "store"))
    where = {"version": dynhac.__version__, "folder": str(Path(dynhac.__file__).parent)}
    print(json.dumps({"us": times, "digest": found, "dynhac": where}))


if __name__ == "__main__":
    main()
