"""One job in a process of its own; see plan.py for the kinds.

Started by ``run`` with a job as JSON; the last line printed is the result as JSON. Times are CPU
seconds, one thread. *scratch* is everything from the points to the labels, *labels* only the choice
of clusters by a system that has its tree: ours after an update, so that nothing of an earlier
choice can be used again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import SEED, Ints
from benchmarks.common.runner import Job, answer
from benchmarks.evaluation.clusters.data import GraphSet, PointSet, load
from benchmarks.evaluation.clusters.measures import classes_present, describe, to_ancestors
from benchmarks.evaluation.clusters.plan import ANEW, OURS, growth_sizes
from benchmarks.evaluation.scores import agreement, compact
from benchmarks.systems import SYSTEMS, Settings, Unavailable, points_only
from benchmarks.systems.base import Chooser

THETAS = np.geomspace(1e-5, 1, 40)
CONDUCTANCES = np.geomspace(1e-3, 1, 40)
MOST_WORK = 1e11  # points² x dimensions up to which HDBSCAN is run: two minutes or so
TIMED = 5  # calls of which the median time is reported
ABSENT = -2  # label of a point that the model does not hold

Labelling = Callable[[float], Ints]


def choice(job: Job) -> dict[str, Any]:
    """Return the figures of the clusters that a system chooses; of ours also of the best cut."""
    source = load(job["dataset"], _folder(job)).prefix(job["size"])
    row = {"points": len(source.classes), **classes_present(source.classes)}
    if job["system"] != OURS:
        assert isinstance(source, PointSet)
        return row | {"choices": {job["system"]: of_system(job["system"], source)}}
    model, ids = source.model(), np.arange(len(source.classes))
    scratch = cpu_seconds(lambda: source.insert(model, ids))
    theta = best_of(THETAS, lambda t: model.labels(t), source.classes)

    def afresh(labels: Callable[[], Ints]) -> dict[str, float]:
        """Return the median time of a call after an update, and with the build before it."""
        spent = []
        for last in ids[-min(TIMED, len(ids) - 1) :]:
            source.delete(model, np.array([last]))
            source.insert(model, np.array([last]))
            spent.append(cpu_seconds(labels))
        return {"labels_s": float(np.median(spent)), "scratch_s": scratch + spent[0]}

    def at(name: str, labels: Ints, ancestors: Ints) -> dict[str, Any]:
        times = afresh(model.labels if name == "automatic" else lambda: model.labels(theta))
        return times | describe(source.classes, labels, ancestors)

    cut = model.labels(theta)
    row["choices"] = {
        "automatic": at("automatic", model.labels(), model.labels(noise="nearest")),
        "best-cut": at("best-cut", cut, cut) | {"theta": theta},
    }
    return row


def of_system(name: str, source: PointSet) -> dict[str, Any]:
    """Return the figures of the clusters that another system chooses."""
    package, _, min_size = name.partition("-")
    if package == "hdbscan" and source.work() > MOST_WORK:
        raise Unavailable(
            f"too slow: points² x dimensions is {source.work():.1e}; run up to {MOST_WORK:.0e}"
        )
    system: Any = SYSTEMS[package](Settings(seed=SEED, min_size=int(min_size)))
    chooser: Chooser = system
    arrivals = points_only(np.arange(len(source.points)), source.points)

    def all_of_it() -> None:
        chooser.build(arrivals)
        chooser.settle()

    scratch = cpu_seconds(all_of_it)
    spent = [cpu_seconds(chooser.choose) for _ in range(TIMED)]
    labels, tree = chooser.choose()
    found = describe(source.classes, labels, to_ancestors(labels, tree))
    return {"labels_s": float(np.median(spent)), "scratch_s": scratch} | found


def changes(job: Job) -> dict[str, Any]:
    """Return how many points have another label after an update, by the ids of watches.

    The last points of the set are inserted one at a time, then as many points of a seeded choice
    deleted. The watches are the automatic one, and one at the θ that is best before the updates.
    """
    source = load(job["dataset"], _folder(job)).prefix(job["size"])
    n = len(source.classes)
    count = min(job["updates"], n // 4)
    model = source.model()
    source.insert(model, np.arange(n - count))
    theta = best_of(THETAS, lambda t: model.labels(t), source.classes[: n - count])
    watches = {"automatic": model.watch(), "best-cut": model.watch(theta)}
    row: dict[str, Any] = {"points": n, "theta": theta, "updates": count}
    deleted = np.random.default_rng(SEED).permutation(n)[:count]
    for kind, ids in (("insertion", np.arange(n - count, n)), ("deletion", deleted)):
        update = source.insert if kind == "insertion" else source.delete
        changed: dict[str, list[int]] = {name: [] for name in watches}
        before = {name: _by_id(model, watch, n) for name, watch in watches.items()}
        for point in ids:
            update(model, np.array([point]))
            for name, watch in watches.items():
                after = _by_id(model, watch, n)
                both = (before[name] != ABSENT) & (after != ABSENT)
                changed[name].append(int(np.count_nonzero((before[name] != after) & both)))
                before[name] = after
        row[kind] = {name: _spread(found) for name, found in changed.items()}
    return row


def _by_id(model: Any, watch: Any, n: int) -> Ints:
    labels = np.full(n, ABSENT, np.int64)
    labels[model.ids] = watch.labels()
    return labels


def _spread(changed: list[int]) -> dict[str, Any]:
    return {
        "mean": float(np.mean(changed)),
        "median": float(np.median(changed)),
        "most": max(changed),
        "none": float(np.mean(np.array(changed) == 0)),
        "each": changed,
    }


def growth(job: Job) -> dict[str, Any]:
    """Return the figures while a set grows; a cut stays at the value that was best at first."""
    whole = load(job["dataset"], _folder(job)).prefix(job["size"])
    row: dict[str, Any] = {"points": len(whole.classes)}
    if job["system"] == OURS:
        return row | _grow_ours(whole)
    if job["system"] == ANEW:
        return row | _build_anew(whole)
    return row | _grow_other(job["system"], whole)


def _grow_ours(whole: PointSet | GraphSet) -> dict[str, Any]:
    model, at = whole.model(), []
    cuts: dict[str, float] = {}
    held = 0
    for size in growth_sizes(len(whole.classes)):
        whole.insert(model, np.arange(held, size))
        held, classes = size, whole.classes[:size]
        ways: dict[str, Labelling] = {
            "theta": lambda t: model.labels(t),
            "conductance": lambda c: model.labels(conductance=c),
        }
        if not cuts:
            cuts["theta"] = best_of(THETAS, ways["theta"], classes)
            cuts["conductance"] = best_of(CONDUCTANCES, ways["conductance"], classes)
        found = {"automatic": describe(classes, model.labels(), model.labels(noise="nearest"))}
        for name, value in cuts.items():
            labels = ways[name](value)
            found[name] = describe(classes, labels, labels)
        at.append({"points": size, **classes_present(classes), "choices": found})
    return {"checkpoints": at, **cuts}


def _build_anew(whole: PointSet | GraphSet) -> dict[str, Any]:
    """Return the automatic clusters of a model built from scratch at every size.

    A model that grows has more edges: points keep those to their first neighbours.
    """
    at = []
    for size in growth_sizes(len(whole.classes)):
        part = whole.prefix(size)
        model = part.model()
        part.insert(model, np.arange(size))
        labels, ancestors = model.labels(), model.labels(noise="nearest")
        found = {"automatic-anew": describe(part.classes, labels, ancestors)}
        at.append({"points": size, **classes_present(part.classes), "choices": found})
    return {"checkpoints": at}


def _grow_other(name: str, whole: PointSet | GraphSet) -> dict[str, Any]:
    assert isinstance(whole, PointSet)
    at: list[dict[str, Any]] = []
    for size in growth_sizes(len(whole.classes)):
        part = whole.prefix(size)
        try:
            found = {name: of_system(name, part)}
        except Unavailable as reason:
            if not at:
                raise
            return {"checkpoints": at, "stopped": f"at {size:,} points: {reason}"}
        at.append({"points": size, **classes_present(part.classes), "choices": found})
    return {"checkpoints": at}


def best_of(values: NDArray[np.float64], labels: Labelling, classes: Ints) -> float:
    """Return the value whose clusters agree best with the classes, by NMI; the first of equals."""
    known = classes >= 0
    truth = compact(classes[known])
    nmi = [agreement(truth, compact(labels(float(value))[known]))[0] for value in values]
    return float(values[int(np.argmax(nmi))])


def cpu_seconds(call: Callable[[], object]) -> float:
    """Run a call and return its CPU seconds."""
    start = time.process_time()
    call()
    return time.process_time() - start


def _folder(job: Job) -> Path | None:
    return Path(job["data"]) if job["data"] else None


KINDS = {"choice": choice, "changes": changes, "growth": growth}


def run_job(job: Job) -> dict[str, Any]:
    """Run a job; a result with ``skipped`` says why it could not be run."""
    try:
        return KINDS[job["kind"]](job)
    except Unavailable as reason:
        return {"skipped": str(reason)}
    except MemoryError as reason:
        return {"skipped": f"not enough memory ({reason})"}


if __name__ == "__main__":
    answer(run_job)
