"""Which jobs there are: every system on every data set under every protocol that it can follow.

A job is a dictionary; its *key* identifies it among the results. Jobs that cannot be run are in the
plan too, with the reason, which the tables show. The jobs of our own system and of recomputation
come first, so that an interrupted run has the main comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.evaluation.data import DATASETS
from benchmarks.evaluation.protocols import AVERAGED

KEY = ("dataset", "system", "protocol", "epsilon", "kind")
EPSILON = 0.1
EPSILONS = (0.1, 0.0, 1.0)
WITH_EPSILON = {"dynhac": EPSILONS, "static": EPSILONS, "paper": (EPSILON,)}
SMALL = ("dynhac", "static", "paper")  # compared on few points: the paper's algorithm is slow
FIRST = ("dynhac", "static")
NEARBY = (0.06, 0.07, 0.08, 0.09, 0.1, 0.11, 0.12, 0.13, 0.14)  # around EPSILON
AGAIN = ("nearby", "samples")  # kinds that repeat a stream with variations, to estimate chance
CHURN = ("dynhac", "static", "grinch", "onlinescc")
GROWTH = ("mnist", "blobs")  # sets that also grow from 1,000 points


@dataclass(frozen=True)
class Mode:
    """How much is run: points of every data set, and the time limit of a system in a job."""

    points: int | None
    limit_s: float
    small_points: int  # of every data set, for the comparison with the paper's algorithm
    nearby: tuple[float, ...] = NEARBY
    samples: int = 20
    sample: int = 9_000  # points of each
    churn_updates: int = AVERAGED
    cut_sample: int = 10_000  # points of the samples for clusters without a threshold
    changes: int = AVERAGED  # insertions there, and deletions

    @property
    def name(self) -> str:
        """The mode in words, as in the results."""
        return "full" if self.points is None else f"first {self.points:,} points of every set"


FULL = Mode(None, 3_600, 2_000)
QUICK = Mode(
    2_000, 3, 300, nearby=NEARBY[::4], samples=2, churn_updates=20, cut_sample=500, changes=20
)


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what identifies a job, or its result, in a run."""
    return tuple(row.get(k) for k in KEY)


def title(row: dict[str, Any]) -> str:
    """Return a job or result in words."""
    epsilon = "" if row["epsilon"] is None else f" ε={row['epsilon']:g}"
    kind = "" if row["kind"] == "updates" else f", {row['kind']}"
    return f"{row['dataset']} {row['protocol']}, {row['system']}{epsilon}{kind}"


def jobs(
    datasets: list[str], systems: dict[str, dict[str, Any]], mode: Mode
) -> Iterator[dict[str, Any]]:
    """Yield the jobs of a run; ``systems`` says what each system can do (see ``job.probe``)."""
    ordered = [s for s in FIRST if s in systems] + [s for s in systems if s not in FIRST]
    leading = len(set(FIRST) & set(systems))
    for group in (ordered[:leading], ordered[leading:]):
        for dataset in datasets:
            for system in group:
                for job in _of_system(dataset, system):
                    job |= {"threshold": DATASETS[dataset].threshold, "limit_s": mode.limit_s}
                    job["size"] = mode.points
                    if job["kind"] == "nearby":
                        job["epsilons"] = mode.nearby
                    elif job["kind"] == "samples":
                        job |= {"samples": mode.samples, "sample": mode.sample}
                    elif job["kind"] == "churn":
                        job["updates"] = mode.churn_updates
                    elif job["kind"] == "small":
                        job["size"] = min(mode.small_points, mode.points or mode.small_points)
                    reason = why_not(job, systems[system])
                    yield job | ({"skipped": reason} if reason else {})


def _of_system(dataset: str, system: str) -> Iterator[dict[str, Any]]:
    epsilons: tuple[float | None, ...] = WITH_EPSILON.get(system, (None,))
    base = {"dataset": dataset, "system": system, "kind": "updates"}
    if system in SMALL:
        yield base | {"protocol": "insertion", "epsilon": EPSILON, "kind": "small"}
    if system == "paper":
        return
    for epsilon in epsilons:
        for protocol in ("insertion", "deletion"):
            yield base | {"protocol": protocol, "epsilon": epsilon}
    if dataset in GROWTH:
        yield base | {"protocol": "growth", "epsilon": epsilons[0]}
    if system == "dynhac":
        for protocol in ("insertion", "deletion"):
            for kind in AGAIN:
                yield base | {"protocol": protocol, "epsilon": EPSILON, "kind": kind}
    if system in CHURN:
        for protocol in ("insertion", "deletion"):
            yield base | {"protocol": protocol, "epsilon": epsilons[0], "kind": "churn"}


def why_not(job: dict[str, Any], can: dict[str, Any]) -> str:
    """Return why a job is not run, or nothing."""
    if "missing" in can:
        return str(can["missing"])
    # A system without insertion recomputes, so it needs no deletion either.
    if job["protocol"] == "deletion" and can["insert"] and not can["delete"]:
        return "cannot delete"
    if job["protocol"] == "growth" and not can["insert"] and job["system"] not in FIRST:
        return "recomputes; of such systems only static is shown growing"
    return ""
