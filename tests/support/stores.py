"""Random updates that any model can make, durable or not, and what can be seen of a model.

Update number i of a seed depends on the seed, on i and on what the model holds: two models that
have made the same updates make the same next one.
"""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from models import state
from timelines import plain_timeline

import dynhac
from dynhac import DynHAC, GraphHAC

SORTS = {
    "exact": ("points", {"n_neighbors": 4, "neighbors": "exact", "metric": "cosine"}),
    "kd": ("points", {"n_neighbors": 4, "neighbors": "kd"}),
    "usearch": ("points", {"n_neighbors": 4, "neighbors": "usearch"}),
    "names": ("points", {"n_neighbors": 3, "repair": False, "similarity": ("gaussian", 2.0)}),
    "window": ("points", {"n_neighbors": 4, "max_points": 40, "max_age": 30}),
    "dates": ("points", {"n_neighbors": 4, "max_age": np.timedelta64(25, "s")}),
    "graph": ("graph", {"epsilon": 0.2}),
    "named graph": ("graph", {"threshold": 0.01}),
}


def plain(sort):
    """A model without a store."""
    kind, parameters = SORTS[sort]
    return (DynHAC if kind == "points" else GraphHAC)(**parameters)


def step(model, sort, seed, i):
    """Make update ``i``: one of the points or vertices, or make or close a watch."""
    rng = np.random.default_rng([seed, i])
    if rng.random() < 0.1:
        step_watches(model, rng, i)
    elif SORTS[sort][0] == "graph":
        step_graph(model, rng, str if sort == "named graph" else int, i)
    else:
        step_points(model, rng, sort, i)


def step_watches(model, rng, i):
    if len(model.watches) < 3 or rng.random() < 0.3:
        # No two watches have the same parameters: each of these is new.
        if rng.random() < 0.4:
            model.watch(min_size=2 + i // 8, patience=i % 8)
        else:
            model.watch(0.2 + i * 1e-6, int(rng.integers(1, 4)), patience=int(rng.integers(0, 4)))
    else:
        model.watches[int(rng.integers(len(model.watches)))].close()


def step_points(model, rng, sort, i):
    count = int(rng.choice([1, 1, 1, 5, 20]))
    X = rng.normal(size=(count, 3)).round(2) + rng.integers(3, size=(count, 1)) * 4
    times = None
    if sort == "window":
        times = i + rng.integers(-3, 4, count)
        if i > 60:
            times = times + 0.5
    elif sort == "dates":
        times = np.datetime64("2024-01-01") + (i + rng.integers(-3, 4, count)).astype("m8[s]")
    if sort in ("window", "dates") and rng.random() < 0.1:
        now = i + 5
        model.expire(
            now if sort == "window" else np.datetime64("2024-01-01") + np.timedelta64(now, "s")
        )
        return
    ids = None
    if sort == "names":
        ids = [f"point {i}.{j} é" for j in range(count)]
    elif rng.random() < 0.3:
        ids = 1000 * i + np.arange(count)
    held = model.ids
    gone = rng.choice(held, min(len(held), int(rng.integers(0, 8))), replace=False)
    if len(held) > 60:
        gone = rng.choice(held, 30, replace=False)
    choice = rng.random()
    if choice < 0.3 and len(gone):
        model.delete(gone)
    elif choice < 0.6:
        model.update(insert=X, ids=ids, delete=gone, timestamps=times)
    elif count == 1 and choice < 0.8:
        model.insert(X[0], ids=ids, timestamps=times)
    else:
        model.insert(X, ids=ids, timestamps=times)


def step_graph(model, rng, kind, i):
    held = [kind(id) for id in model.ids.tolist()]
    new = [kind(10 * i + j) for j in range(int(rng.integers(2, 5)))]
    gone = rng.choice(len(held), min(len(held), int(rng.integers(0, 4))), replace=False).tolist()
    if len(held) > 50:
        gone = list(range(20))
    remove = [held[place] for place in gone]
    stay = [id for id in held if id not in set(remove)] + new
    pairs = {tuple(sorted(rng.choice(len(stay), 2, replace=False).tolist())) for _ in range(6)}
    pairs = sorted(pairs)
    u, v = ([stay[pair[end]] for pair in pairs] for end in (0, 1))
    w = rng.integers(1, 2**20, len(pairs)) * 2.0**-20
    model.update(add=new, edges=(u, v, w), remove=remove)


def everything(model):
    """All that can be seen of a model."""
    watches = {"watches": [everything_of(watch) for watch in model.watches]}
    if not isinstance(model, DynHAC):
        return state(model) | watches
    return (
        state(model.graph)
        | watches
        | {
            "vectors": model.vectors().tolist(),
            "backend": model.backend,
            "dimension": model.dimension,
        }
    )


def everything_of(watch):
    """All that can be seen of a watch."""
    return {
        "parameters": (watch.theta, watch.min_size, watch.patience),
        "labels": watch.labels().tolist(),
        "clusters": watch.clusters(),
        "events": [(*e[:2], e.points.tolist(), *e[3:]) for e in watch.events],
        "timeline": plain_timeline(watch.timeline()),
    }


def rejected(model):
    """Try an update that the model must reject."""
    if isinstance(model, DynHAC):
        attempts = [
            lambda: model.delete([10**15]),
            lambda: model.insert([[float("nan")] * 3]),
            lambda: model.insert([[1.0]] * 2, ids=[1, 1]),
        ]
    else:
        attempts = [
            lambda: model.remove([10**15]),
            lambda: model.set_edges([10**15], [10**15 + 1], [0.5]),
            lambda: model.add([10**15], edges=([10**15], [10**15], [0.5])),
        ]
    for attempt in attempts:
        try:
            attempt()
        except (ValueError, KeyError):
            continue
        raise AssertionError("it was not rejected")


def new(path, sort, **options):
    kind, parameters = SORTS[sort]
    return dynhac.open(path, kind, **{"durability": "normal"} | options, **parameters)


def overwrite(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


@contextmanager
def small_files(size):
    """No file can grow beyond a size."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def start_writers():
    """Give a function that runs a writer, kills it, and returns its lines."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("crash_writer.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def run(**job):
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        lines = []
        while (line := process.stdout.readline().strip()) != "dead":
            assert line, "the process that starts writers has died"
            lines.append(line)
        return lines

    with process:
        yield run
        process.stdin.close()
    assert process.returncode == 0
