"""Neighbour indexes side by side: ``python -m benchmarks.neighbors --data FOLDER``.

Ours, and usearch, hnswlib and faiss (HNSW) if they are installed, on one thread, each in a process
of its own. Measured are, in CPU time:

- build: the addition of all points, and the search for the neighbours of all (of some, if they are
  many, times their share);
- a single insertion, with the search for its neighbours, as a model does it;
- a single deletion;
- recall: the share of the nearest that are found, on points of the set; ties count as found;
- memory: what the process grew by, as a multiple of the vectors, which all of them hold.

Real data sets are read from ``--data``; ``--points`` adds generated ones: clusters in 384
dimensions, of which one point in fifty is equal to another.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.datasets import Floats, Ints, shuffled_points
from benchmarks.common.machine import commit, describe
from benchmarks.common.markdown import machine_line, number, table
from benchmarks.common.options import new_parser
from dynhac.neighbors import CellsIndex, ExactIndex, KDBlocksIndex, UsearchIndex

METRICS = {
    "intents": "cosine",
    "tinyimagenet": "cosine",
    "fruits360": "euclidean",
    "reuters": "cosine",
    "tycho2": "euclidean",
    "digits": "euclidean",
}
TITLES = {
    "kd": "KD-tree, exact",
    "exact": "scan, exact",
    "cells": "cells",
    "usearch": "usearch",
    "hnswlib": "hnswlib",
    "faiss": "faiss HNSW",
}
K = 50
DIMENSION = 384
QUERIES, SINGLE, JUDGED = 20_000, 200, 500
"""Points that are searched for at once, and one by one, and of which the recall is measured."""

RESULTS = Path(__file__).parent / "cost" / "results" / "neighbors.json"


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
        "hnswlib": lambda: Hnswlib(metric, dimension, points + 1),
        "faiss": lambda: Faiss(metric, dimension),
    }
    if name == "kd":
        fits = metric == "euclidean" and dimension <= 8
        return KDBlocksIndex(dimension) if fits else None
    if name in ("usearch", "hnswlib", "faiss") and find_spec(name) is None:
        return None
    return makers[name]()


def points_of(dataset: str, data: Path | None) -> tuple[Floats, str]:
    """Return the points of a set and their metric; a number is that of generated points."""
    if not dataset.isdigit():
        return shuffled_points(dataset, data)[0], METRICS[dataset]
    n, rng = int(dataset), np.random.default_rng(0)
    centres = rng.standard_normal((max(10, n // 200), DIMENSION), np.float32)
    X = centres[rng.integers(len(centres), size=n)]
    for part in np.array_split(np.arange(n), max(1, n // 10_000)):
        X[part] += np.float32(0.7) * rng.standard_normal((len(part), DIMENSION), np.float32)
    X[rng.integers(n, size=n // 50)] = X[rng.integers(n, size=n // 50)]
    return X, "euclidean"


def resident() -> int:
    """Return the bytes of this process that are in memory; 0 where that is not told."""
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
    judged = np.random.default_rng(1).choice(n, min(n, JUDGED), replace=False)
    k = min(K, n)
    expected = ExactIndex(metric)
    expected.add(np.arange(n), X)
    limits = expected.query(X[judged], k)[1][:, -1]
    del expected
    index = new_index(name, metric, n, dimension)
    if index is None:
        return None
    gc.collect()
    before = resident()
    slots = np.arange(n)
    build, _ = timed(lambda: index.add(slots, X))
    memory = (resident() - before) / X.nbytes
    some = X[: min(n, QUERIES)]
    search, _ = timed(lambda: index.query(some, k))
    found = index.query(X[judged], k)[0]
    hits = 0
    for row, slot in enumerate(judged):
        own = ExactIndex(metric)  # distances as they are defined, whatever the index reports
        own.add(found[row], X[found[row]])
        hits += int((own.query(X[slot : slot + 1], k)[1][0] <= limits[row]).sum())
    result: dict[str, Any] = {
        "index": name,
        "dataset": dataset,
        "points": n,
        "dimension": dimension,
        "metric": metric,
        "build_s": build,
        "search_all_s": search * n / len(some),
        "recall": hits / (len(judged) * k),
        "memory": memory,
    }
    single = slots[: min(n // 2, SINGLE)]

    def each(change: Callable[[Ints], None]) -> float:
        return timed(lambda: [change(single[i : i + 1]) for i in range(len(single))])[0]

    if hasattr(index, "remove"):
        result["delete_ms"] = each(index.remove) / len(single) * 1e3
        start = 0 if name != "hnswlib" else n  # hnswlib does not take a marked slot again

        def insert(slot: Ints) -> None:
            index.query(X[slot], k)
            index.add(slot + start, X[slot])

        if start == 0:
            result["insert_ms"] = each(insert) / len(single) * 1e3
    return result


def show(rows: list[dict[str, Any]]) -> str:
    """Return the results as a table."""
    head = ["points", "index", "build and search, s", "insertion, ms", "deletion, ms", "recall"]
    lines = [
        [
            f"{row['dataset'] if not row['dataset'].isdigit() else 'generated'}, "
            f"{row['points']:,} x {row['dimension']}",
            TITLES[row["index"]],
            number(row["build_s"] + row["search_all_s"]),
            number(row["insert_ms"]) if "insert_ms" in row else "",
            number(row["delete_ms"]) if "delete_ms" in row else "",
            f"{row['recall']:.4f}",
            f"{row['memory']:.2f}",
        ]
        for row in rows
    ]
    return table([*head, "memory"], lines)


def main(arguments: list[str] | None = None) -> None:
    """Measure, and write the results."""
    parser = new_parser(__doc__ or "", METRICS)
    parser.add_argument("--points", nargs="*", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--indexes", nargs="+", choices=list(TITLES), default=list(TITLES))
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    real = [name for name in METRICS if name != "digits"] if options.data else ["digits"]
    sets = [*(options.datasets or real), *map(str, options.points)]
    rows: list[dict[str, Any]] = []
    workers = multiprocessing.get_context("spawn")
    for dataset in sets:
        for name in options.indexes:
            with workers.Pool(1) as pool:  # a process for each, so that memory can be told
                row = pool.apply(measure, (name, dataset, options.data))
            if row is None:
                continue
            rows.append(row)
            print(json.dumps(row), flush=True)
            results = {"machine": describe(), "commit": commit(), "rows": rows}
            options.results.parent.mkdir(parents=True, exist_ok=True)
            options.results.write_text(json.dumps(results, indent=1) + "\n")
    print(show(rows))
    print(machine_line(describe()))


if __name__ == "__main__":
    main()
