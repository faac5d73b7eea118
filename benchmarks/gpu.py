"""A model whose neighbours a GPU finds: ``python -m benchmarks.gpu --out FILE``.

The vectors are generated: clusters of about 50, scaled to length 1; a part of the vectors are
duplicates of others, and one vector occurs a thousand times. Measured are

- from the vectors to the hierarchy, and of that the search and the engine;
- single insertions, insertions in batches of 100, and single deletions;
- the memory of the device;
- whether the answers of the index are exact: for a sample of vectors, against distances in float64
  that NumPy computes to all vectors.

Without a GPU, ``--arrays numpy --points 5000`` tries the program itself.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.machine import commit, describe, peak_rss_mb
from benchmarks.common.runner import distribution
from dynhac import DynHAC
from dynhac.neighbors import GpuIndex
from dynhac.neighbors.arrays import parts
from dynhac.neighbors.gpu_arrays import BACKENDS
from dynhac.neighbors.metrics import METRICS

BATCH = 100
WARM_UPS = 20
PER_CLUSTER = 50
SPREAD = np.float32(0.6)  # of a cluster, in every dimension; that of the centres is 1
DUPLICATES = 0.03
PILE = 1000
MORE = 50
"""Beyond the neighbours, as many more are compared exactly."""

Vectors = NDArray[np.float32]


def generate(n: int, dimension: int, seed: int) -> Vectors:
    """Return vectors of length 1 in clusters of about 50, with duplicates among them."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(2, n // PER_CLUSTER), dimension), np.float32)
    of = rng.integers(0, len(centres), n)
    vectors = np.empty((n, dimension), np.float32)
    for part in parts(n, 2**14):
        rng.standard_normal(dtype=np.float32, out=vectors[part])
        vectors[part] *= SPREAD
        vectors[part] += centres[of[part]]
        vectors[part] /= np.linalg.norm(vectors[part], axis=1, keepdims=True)
    copies = rng.permutation(n)[: int(DUPLICATES * n)]
    vectors[copies] = vectors[rng.integers(0, n, len(copies))]
    vectors[rng.permutation(n)[: min(PILE, n // 10)]] = vectors[0]
    return vectors


def nearest_of_all(
    metric: str, queries: Vectors, vectors: Vectors, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return rows and distances of the k nearest, by float64 distances to all vectors."""
    rule = METRICS[metric]
    a, b = rule.prepare(queries), rule.prepare(vectors)
    b += np.float32(0.0)
    wide = a.astype(np.float64)
    keys = np.empty((len(a), len(b)))
    for part in parts(len(b), 2**16):
        block = b[part].astype(np.float64)
        keys[:, part] = -(wide @ block.T)
        if metric == "euclidean":
            keys[:, part] += 0.5 * (block * block).sum(axis=1)
    near = np.empty((len(a), k), np.int64)
    far = np.empty((len(a), k))
    for i, row in enumerate(keys):
        few = np.argpartition(row, min(k + MORE, len(row)) - 1)[: k + MORE]
        # All that are as near as the last of them, as far as the errors of the keys tell.
        limit = row[few].max()
        few = np.flatnonzero(row <= limit + 1e-9 * max(1.0, abs(limit)))
        exact = rule.pair_distances(np.repeat(a[i : i + 1], len(few), axis=0), b[few])
        order = np.lexsort((few, exact))[:k]
        near[i], far[i] = few[order], exact[order]
    return near, far


def timed(call: Callable[[], Any]) -> float:
    """Return the milliseconds that a call takes."""
    start = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - start)


def device_memory(index: GpuIndex) -> dict[str, float]:
    """Return the memory of the device that is in use, and the most that was, in MB."""
    module = index._xp.module
    if module.__name__ == "torch" and module.cuda.is_available():
        used, most = module.cuda.memory_allocated(), module.cuda.max_memory_allocated()
    elif module.__name__ == "cupy":
        pool = module.get_default_memory_pool()
        used, most = pool.used_bytes(), pool.total_bytes()
    else:
        return {}
    return {"used_mb": used / 1e6, "peak_mb": most / 1e6}


def index_of(model: DynHAC) -> GpuIndex:
    """Return the index that a model uses."""
    index: Any = model._points.index.object
    return index if isinstance(index, GpuIndex) else index.index


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return all that is measured."""
    machine = describe() | {"commit": commit()}
    n, d, k = options.points, options.dimension, options.neighbors
    more = WARM_UPS + options.singles + BATCH * (options.batches + 1)
    vectors = generate(n + more, d, options.seed)

    def new_model() -> DynHAC:
        own = GpuIndex(options.metric, d, arrays=options.arrays, memory=options.memory)
        named = options.arrays == "auto" and options.memory is None
        return DynHAC(
            n_neighbors=k,
            metric=options.metric,
            neighbors="gpu" if named else own,
            threads=options.threads,
        )

    warm = new_model()
    for part in (vectors[: min(n, 20_000)], vectors[-BATCH:], vectors[-1]):
        warm.insert(part)
    del warm

    model = new_model()
    start = time.perf_counter()
    model.insert(vectors[:n])
    inserted = time.perf_counter()
    model.dendrogram()
    done = time.perf_counter()
    change = model.last_change
    assert change is not None
    results: dict[str, Any] = {
        "machine": machine,
        "points": n,
        "dimension": d,
        "neighbors": k,
        "metric": options.metric,
        "threads": options.threads,
        "device": index_of(model).device,
        "build": {
            "seconds": done - start,
            "seconds_insert": inserted - start,
            "seconds_search": change.seconds_search,
            "seconds_graph": change.seconds_graph,
            "seconds_engine": change.seconds_engine,
        },
        "memory": device_memory(index_of(model)),
    }
    print(json.dumps(results), flush=True)

    rng = np.random.default_rng(options.seed)
    sample = np.sort(rng.permutation(n)[: options.sample])
    slots, far = index_of(model).query(vectors[sample], k + 1)
    wanted, least = nearest_of_all(options.metric, vectors[sample], vectors[:n], k + 1)
    results["exact"] = {
        "rows": len(sample),
        "same_slots": int((slots == wanted).all(axis=1).sum()),
        "same_distances": int((far == least).all(axis=1).sum()),
    }

    new = iter(vectors[n:])
    for _ in range(WARM_UPS):
        model.insert(next(new))
    times, search = [], []
    for _ in range(options.singles):
        one = next(new)
        times.append(timed(lambda one=one: model.insert(one)))
        search.append(1e3 * model.last_change.seconds_search)
    results["single"] = distribution(times) | {"ms_search_p50": float(np.median(search))}
    model.insert(np.array([next(new) for _ in range(BATCH)]))
    times, search = [], []
    for _ in range(options.batches):
        batch = np.array([next(new) for _ in range(BATCH)])
        times.append(timed(lambda batch=batch: model.insert(batch)) / BATCH)
        search.append(1e3 * model.last_change.seconds_search / BATCH)
    results["batches"] = distribution(times) | {"ms_search_p50": float(np.median(search))}
    ids = rng.permutation(n)[: WARM_UPS + options.singles].tolist()
    times = [timed(lambda one=one: model.delete([one])) for one in ids][WARM_UPS:]
    results["deletions"] = distribution(times)
    results["memory_after"] = device_memory(index_of(model)) | {"host_peak_mb": peak_rss_mb()}
    results["ratio_of_batches"] = results["single"]["ms_p50"] / results["batches"]["ms_mean"]
    return results


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--points", type=int, default=1_000_000)
    add("--dimension", type=int, default=384)
    add("--neighbors", type=int, default=50)
    add("--metric", choices=sorted(METRICS), default="cosine")
    add("--arrays", choices=BACKENDS, default="auto")
    add("--memory", type=int, help="bytes of the device for a search")
    add("--threads", type=int, default=os.cpu_count(), help="of the engine")
    add("--singles", type=int, default=300)
    add("--batches", type=int, default=100, help=f"of {BATCH} points")
    add("--sample", type=int, default=200, help="vectors whose neighbours are checked")
    add("--seed", type=int, default=1)
    add("--out", type=Path, help="file for the results, as JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    given = parse()
    found = measure(given)
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))
