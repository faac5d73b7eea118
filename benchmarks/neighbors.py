"""Neighbour indexes side by side: ``python -m benchmarks.neighbors --data FOLDER``.

Ours, and usearch, hnswlib and faiss (HNSW) if they are installed, on one thread, each in a process
of its own; usearch also *tuned*: a graph of half as many edges, and as few candidates in a search
as give the recall that cells have by default. All points of a set but some are added at once, the
rest one by one. Measured are, in CPU time:

- build: that addition, and the search for the neighbours of all (of some, if they are many, times
  their share);
- a single insertion, with the search for its neighbours, as a model does it, and a single deletion:
  the median of some;
- recall: the share of the nearest that are found, on points of the set; ties count as found;
- memory: what the process grew by, as a multiple of the vectors, which all of them hold.

Real data sets are read from ``--data``; ``--points`` adds generated ones: clusters of which one
point in fifty is equal to another. Graphs of very many points take hours: ``--graphs`` says up to
how many they are built. Results go to one file, as those of benchmarks.cost do: a row that is
measured again replaces the old one.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import gc
import multiprocessing
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.datasets import Floats, Ints, generated_clusters, shuffled_points
from benchmarks.common.machine import commit
from benchmarks.common.markdown import number
from benchmarks.cost.jobs import cost_parser, keep, parsed
from dynhac.neighbors import CellsIndex, ExactIndex, KDBlocksIndex, UsearchIndex
from dynhac.neighbors.cells import RECALL

METRICS = {
    "intents": "cosine",
    "tinyimagenet": "cosine",
    "fruits360": "euclidean",
    "reuters": "cosine",
    "tycho2": "euclidean",
    "digits": "euclidean",
}
INDEXES = ("kd", "exact", "cells", "usearch", "usearch-tuned", "hnswlib", "faiss")
GRAPHS = INDEXES[3:]
K = 50
EXPANSIONS = (64, 96, 128, 192, 256, 384, 512)
"""Candidates in a search that tuning tries, until the recall is good enough."""
QUERIES, SINGLE, JUDGED = 10_000, 200, 2_000
"""Points that are searched for at once, and one by one, and of which the recall is measured."""


class Hnswlib:
    """An HNSW graph of hnswlib, with the settings that we give to usearch."""

    def __init__(self, metric: str, dimension: int, points: int) -> None:
        import hnswlib

        self._graph = hnswlib.Index({"euclidean": "l2", "cosine": "cosine"}[metric], dimension)
        self._graph.init_index(points, M=32, ef_construction=128, random_seed=1)
        self._graph.set_ef(192)
        self._graph.set_num_threads(1)

    def add(self, slots: Ints, vectors: Floats) -> None:
        """See `NeighborIndex.add`."""
        self._graph.add_items(vectors, slots, num_threads=1)

    def remove(self, slots: Ints) -> None:
        """See `NeighborIndex.remove`; slots are only marked."""
        for slot in slots:
            self._graph.mark_deleted(slot)

    def query(self, vectors: Floats, k: int) -> tuple[Ints, Any]:
        """See `NeighborIndex.query`."""
        slots, distances = self._graph.knn_query(vectors, k, num_threads=1)
        return slots.astype(np.int64), distances


class Faiss:
    """An HNSW graph of faiss, which cannot remove."""

    def __init__(self, metric: str, dimension: int) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self._cosine = metric == "cosine"
        self._graph = faiss.IndexHNSWFlat(dimension, 32)
        self._graph.hnsw.efConstruction, self._graph.hnsw.efSearch = 128, 192
        self._slots: list[Ints] = []

    def _prepared(self, vectors: Floats) -> Floats:
        if not self._cosine:
            return vectors
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(norms == 0, 1, norms)).astype(np.float32)

    def add(self, slots: Ints, vectors: Floats) -> None:
        """See `NeighborIndex.add`."""
        self._graph.add(self._prepared(vectors))
        self._slots.append(slots)

    def query(self, vectors: Floats, k: int) -> tuple[Ints, Any]:
        """See `NeighborIndex.query`."""
        distances, found = self._graph.search(self._prepared(vectors), k)
        return np.concatenate(self._slots)[found], distances


def new_index(name: str, metric: str, points: int, dimension: int) -> Any:
    """Return an index that is empty; None if it is not for these points, or not installed."""
    makers: dict[str, Callable[[], Any]] = {
        "exact": lambda: ExactIndex(metric),
        "cells": lambda: CellsIndex(metric, dimension),
        "usearch": lambda: UsearchIndex(metric, dimension),
        "usearch-tuned": lambda: UsearchIndex(
            metric, dimension, connectivity=16, expansion_add=128, expansion_search=EXPANSIONS[0]
        ),
        "hnswlib": lambda: Hnswlib(metric, dimension, points),
        "faiss": lambda: Faiss(metric, dimension),
    }
    if name == "kd":
        fits = metric == "euclidean" and dimension <= 8
        return KDBlocksIndex(dimension) if fits else None
    if name in GRAPHS and find_spec(name.partition("-")[0]) is None:
        return None
    return makers[name]()


def points_of(dataset: str, data: Path | None) -> tuple[Floats, str]:
    """Return the points of a set and their metric; "generated 1000 x 64" names generated points."""
    if not dataset.startswith("generated"):
        return shuffled_points(dataset, data)[0], METRICS[dataset]
    n, dimension = (int(size) for size in dataset.removeprefix("generated").split("x"))
    return generated_clusters(n, dimension), "euclidean"


def resident() -> int:
    """Return the bytes of this process that are in memory; 0 where that is not told.

    Memory that was freed before is given back first, so that what comes next cannot use it again.
    """
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * 4096


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU time of a call, in seconds, and what it returned."""
    start = time.process_time()
    answer = work()
    return time.process_time() - start, answer


def measure(name: str, dataset: str, data: Path | None) -> dict[str, Any] | None:
    """Measure one index on one data set; None if it is not for it."""
    X, metric = points_of(dataset, data)
    n, dimension = X.shape
    if new_index(name, metric, 1, dimension) is None:  # modules are loaded by now, too
        return None
    first = n - min(n // 2, SINGLE)  # the number of the first point that is added alone
    slots, k = np.arange(n), min(K, first)
    judged = np.random.default_rng(1).choice(first, min(first, JUDGED), replace=False)
    before = resident()
    index = new_index(name, metric, n, dimension)
    build, _ = timed(lambda: index.add(slots[:first], X[:first]))
    memory = (resident() - before) / X[:first].nbytes
    judge = Judge(metric, X[:first], judged, k)
    if name == "usearch-tuned":
        tune(index, judge)
    some = X[: min(first, QUERIES)]
    search, _ = timed(lambda: index.query(some, k))
    found = judge.recall(index)

    def insert(slot: Ints) -> None:
        index.query(X[slot], k)
        index.add(slot, X[slot])

    result: dict[str, Any] = {
        "name": dataset,
        "size": n,
        "variant": name,
        "dimension": dimension,
        "metric": metric,
        "build_s": build,
        "search_s": search * first / len(some),
        "insert_ms": each(insert, slots[first:]),
        "recall": found,
        "memory": memory,
    }
    if hasattr(index, "remove"):
        result["delete_ms"] = each(index.remove, judged[: n - first])
    return result


def tune(index: UsearchIndex, judge: Judge) -> None:
    """Let an index examine as few candidates as give the recall that cells have by default."""
    for index._graph.expansion_search in EXPANSIONS:
        if judge.recall(index) >= RECALL:
            return


def each(change: Callable[[Ints], None], slots: Ints) -> float:
    """Return the median CPU time of a change of one slot, in milliseconds.

    Now and then arrays grow, of some indexes in a change that takes as long as thousands.
    """
    seconds = [timed(lambda i=i: change(slots[i : i + 1]))[0] for i in range(len(slots))]
    return 1e3 * float(np.median(seconds))


class Judge:
    """Tells the recall of an index: the share of the nearest to some points that it finds."""

    def __init__(self, metric: str, X: Floats, judged: Ints, k: int) -> None:
        self._metric, self._points, self._judged, self._k = metric, X, judged, k
        exact = ExactIndex(metric)
        exact.add(np.arange(len(X)), X)
        self._limits = exact.query(X[judged], k)[1][:, -1]

    def recall(self, index: Any) -> float:
        """Return the recall; distances are as they are defined, whatever the index reports."""
        X, hits = self._points, 0
        found = index.query(X[self._judged], self._k)[0]
        for row, slot in enumerate(self._judged):
            own = ExactIndex(self._metric)
            held = found[row][found[row] >= 0]
            own.add(held, X[held])
            near = own.query(X[slot : slot + 1], len(held))[1][0] <= self._limits[row]
            hits += int(near.sum())
        return hits / found.size


def line(row: dict[str, Any]) -> str:
    """One measurement in one line."""
    times = [f"build {number(row['build_s'])} s, search of all {number(row['search_s'])} s"]
    times += [
        f"{change} {number(row[key])} ms"
        for change, key in (("insertion", "insert_ms"), ("deletion", "delete_ms"))
        if key in row
    ]
    return (
        f"{row['name']}, {row['variant']}: {', '.join(times)}; recall {row['recall']:.4f}, "
        f"memory {row['memory']:.2f} of the vectors"
    )


def main() -> None:
    """Measure, and keep the results."""
    parser = cost_parser(__doc__ or "", METRICS, repeats=1)
    add = parser.add_argument
    add("--points", nargs="*", type=int, default=[10_000, 100_000, 1_000_000])
    add("--dimension", type=int, default=384, help="of generated points (384)")
    add("--indexes", nargs="+", choices=INDEXES, default=INDEXES)
    add("--graphs", type=int, default=110_000, help="most points that a graph is built of")
    options = parsed(parser)
    real = [name for name in METRICS if (name == "digits") != bool(options.data)]
    sets = real if options.datasets is None else options.datasets
    sets = [*sets, *(f"generated {n} x {options.dimension}" for n in options.points)]
    workers = multiprocessing.get_context("spawn")
    for dataset in sets:
        for name in options.indexes:
            with workers.Pool(1) as pool:  # a process for each, so that memory can be told
                row = pool.apply(measured, (name, dataset, options.data, options.graphs))
            if row is None:
                continue
            keep(options.out, row)
            print(line(row), flush=True)


def measured(name: str, dataset: str, data: Path | None, graphs: int) -> dict[str, Any] | None:
    """Return the row of a measurement; None if the index is not for these points."""
    if name in GRAPHS and len(points_of(dataset, data)[0]) > graphs:
        return None
    row = measure(name, dataset, data)
    if row is None:
        return None
    date = datetime.date.today().isoformat()
    return {"experiment": "neighbors", "date": date, "commit": commit()} | row


if __name__ == "__main__":
    main()
