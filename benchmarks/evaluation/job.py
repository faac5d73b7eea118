"""One job in a process of its own: a system follows a protocol on one data set.

Started by ``run`` with a job as JSON; the last line printed is the result as JSON. Times are CPU
times of calls of the system alone; scoring happens between the calls and is not timed. A system
without insertion recomputes: its fit is timed, at some of the updates. A system that postpones work
is timed without that work, whose cost is measured separately. Memory is read before anything is
scored.

The job ``{"probe": [names]}`` returns what the systems can do and which are not installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import SEED
from benchmarks.common.machine import peak_rss_mb
from benchmarks.common.runner import Job, answer, distribution
from benchmarks.evaluation import built
from benchmarks.evaluation.data import PointStream, read_stream, sampled
from benchmarks.evaluation.observed import check, edges_rerun, levels, make
from benchmarks.evaluation.protocols import AVERAGED, PROTOCOLS, checkpoints
from benchmarks.evaluation.scores import best_score, labels_changed
from benchmarks.systems import Arrivals, Settings, System, Unavailable, points_only

RECOMPUTED = 10  # updates at which a system that recomputes is timed
SERIES = 1_000  # single measurements kept of a job
ABSENT = -2  # label of a point that a clustering does not contain


class OutOfTime(Exception):
    """The system has used up the time limit of the job."""


class Run:
    """A system that follows a protocol, with its costs so far."""

    def __init__(self, job: Job, stream: PointStream | None = None) -> None:
        self.job = job
        self.stream = read_stream(Path(job["path"])) if stream is None else stream
        self.protocol = PROTOCOLS[job["protocol"]]
        self.limit_s: float = job["limit_s"]
        self.system = make_system(job["system"], job["epsilon"], job["threshold"])
        self.recomputes = not self.system.abilities.insert
        self.n = int(self.stream.graph.bounds[-1])
        self.planned = min(self.protocol.updates(self.n), job.get("updates") or self.n)
        self.spent_s = 0.0
        self.made = 0

    def timed(self, call: Callable[[], Any]) -> float:
        """Run a call of the system and return its CPU seconds."""
        start = time.process_time()
        call()
        spent = time.process_time() - start
        self.spent_s += spent
        return spent

    def arrivals(self, batch: int, last: int | None = None) -> Arrivals:
        """Return a batch, or all from it up to ``last``, exclusive, as the system gets it."""
        ids = self.stream.graph.ids(batch, last)
        return Arrivals(ids, self.stream.points[ids], *self.stream.graph.edges(batch, last))

    def build(self) -> float:
        """Build what comes before the single updates and return the CPU seconds."""
        last = self.stream.graph.n_batches if self.protocol.deletes else 1
        if getattr(self.system, "one_by_one", False):
            return self.build_one_by_one(int(self.stream.graph.bounds[last]))
        # Batches restrict edges. A system that reads no edges gets all points at once, as it may
        # choose its parameters by the first batch.
        first = last if self.system.needs == "points" else 1
        arrivals = self.arrivals(0, first)
        spent = self.timed(lambda: self.system.build(arrivals))
        for batch in range(first, last):
            if self.spent_s > self.limit_s:
                raise OutOfTime(
                    f"building took longer than {self.limit_s:g} s "
                    f"(batch {batch} of {last} reached)"
                )
            more = self.arrivals(batch)
            spent += self.timed(lambda more=more: self.system.insert(more))
        return spent

    def build_one_by_one(self, points: int) -> float:
        """Build from the state that another job has kept, if there is one; see built.py."""
        shared = min(points, int(PROTOCOLS["insertion"].bounds(self.n)[1]))
        path = built.kept_state(self.job, shared)
        if (found := built.load(path)) is not None:
            self.system, spent = found
        else:
            spent = self.timed(lambda: self.system.build(self.points(0, shared)))
            built.keep(path, self.system, spent)
        if shared < points:
            spent += self.timed(lambda: self.system.insert(self.points(shared, points)))
        return spent

    def points(self, first: int, last: int) -> Arrivals:
        """Return points for a system that reads no edges."""
        return points_only(np.arange(first, last), self.stream.points[first:last])

    def update(self) -> float:
        """Make the next single update and return its CPU seconds."""
        if self.protocol.deletes:
            point = np.array([self.n - 1 - self.made])
            spent = self.timed(lambda: self.system.delete(point))
        else:
            arrivals = self.arrivals(1 + self.made)
            spent = self.timed(lambda: self.system.insert(arrivals))
        self.made += 1
        return spent

    def settle(self) -> float:
        """Let the system do its postponed work, and return the CPU seconds."""
        return self.timed(self.system.settle)

    def score(self) -> dict[str, Any]:
        """Score the present state."""
        truth = self.stream.graph.labels[self.system.ids()]
        best = best_score(self.system.cuts(), truth)
        row = {"updates": self.made, "points": len(truth), "nmi": best.nmi, "ari": best.ari}
        return row | {"cut": best.cut, "clusters": best.clusters, "levels": levels(self.system)}

    def labels(self, cut: float) -> NDArray[np.int64]:
        """Return the label of every point at the cut nearest to ``cut``."""
        wanted = min(self.system.cuts(), key=lambda c: abs(c[0] - cut))[1]
        labels = np.full(self.n, ABSENT, dtype=np.int64)
        labels[self.system.ids()] = wanted
        return labels


def make_system(name: str, epsilon: float | None, threshold: float) -> System:
    """Return a new system; one without epsilon ignores its value."""
    epsilon = Settings().epsilon if epsilon is None else epsilon
    return make(name, Settings(epsilon, threshold, seed=SEED))


def measure(job: Job) -> dict[str, Any]:
    """Follow the protocol; return costs, scores at checkpoints, and the check of the last state."""
    run = Run(job)
    loaded = peak_rss_mb()
    row: dict[str, Any] = {"build_s": run.build()}
    marks = set(checkpoints(run.planned) if job["protocol"] != "growth" else growth_marks(run))
    timed = set(recomputation_marks(run, marks))
    scores: list[dict[str, Any]] = []
    times, edges, at, settle_s = [], [], [], []
    if run.recomputes:
        row["build_s"] += run.settle()
    row |= {"rss_input_mb": loaded, "rss_peak_mb": peak_rss_mb()}
    if 0 in marks:
        scores.append(run.score())
    for number in range(1, run.planned + 1):
        spent = run.update()
        if run.recomputes:
            if number in timed:
                run.system.ids()  # concatenates the points, which is not part of the fit
                times.append(run.settle())
                at.append(number)
        else:
            times.append(spent)
            at.append(number)
            edges.append(edges_rerun(run.system))
        over = run.spent_s > run.limit_s and number < run.planned
        if number in marks or over:
            if not run.recomputes:
                settle_s.append(run.settle())
            scores.append(run.score() | {"ms": float(np.mean(times[-AVERAGED:]) * 1e3)})
        if over:
            row["stopped"] = f"after {number:,} of {run.planned:,} updates ({run.limit_s:g} s)"
            break
    row |= costs(run, np.array(times) * 1e3, edges, np.array(at))
    row |= {"settle_ms": float(np.mean(settle_s) * 1e3) if settle_s else None}
    row |= {"planned": run.planned, "made": run.made, "points": run.n, "checkpoints": scores}
    row |= {k: scores[-1][k] for k in ("nmi", "ari", "levels")}
    row["recomputes"] = run.recomputes
    row["nmi_alone"] = nmi_alone(np.asarray(run.stream.graph.labels, dtype=np.int64))
    if (report := check(run.system)) is not None:
        row["verify"] = report
    return row


def nmi_alone(truth: NDArray[np.int64]) -> float:
    """Return the NMI of the clustering in which every point is alone."""
    return best_score([(1.0, np.arange(len(truth)))], truth).nmi


def growth_marks(run: Run) -> Iterator[int]:
    """Yield the updates at which a growing data set is scored, evenly spaced by logarithm."""
    first = int(run.stream.graph.bounds[1])
    for size in np.geomspace(first, first + run.planned, 12).round().astype(int):
        yield int(size) - first


def recomputation_marks(run: Run, marks: set[int]) -> Iterator[int]:
    """Yield the updates at which a system that recomputes is timed."""
    if run.planned > 10 * AVERAGED:
        yield from marks
        return
    part = run.protocol.averaged(run.planned)
    window = np.arange(1, run.planned + 1)[part]
    yield from window[np.linspace(0, len(window) - 1, RECOMPUTED).round().astype(int)].tolist()


def costs(
    run: Run, ms: NDArray[np.float64], edges: list[int | None], at: NDArray[np.int64]
) -> dict[str, Any]:
    """Return the distribution of the averaged costs, and single costs for the figures."""
    if len(ms) == 0:
        return {}
    part = slice(None) if run.recomputes else run.protocol.averaged(len(ms))
    row: dict[str, Any] = {"averaged": len(ms[part]), **distribution(ms[part])}
    step = -(-len(ms) // SERIES)
    row["series"] = {"update": at[::step].tolist(), "ms": [float(f"{x:.4g}") for x in ms[::step]]}
    if edges and edges[0] is not None:
        row["edges_rerun"] = float(np.mean(np.array(edges[part], dtype=float)))
        row["series"]["edges_rerun"] = edges[::step]
    return row


def churn(job: Job) -> dict[str, Any]:
    """Return how many labels each update changed, at the cut that was best before the updates."""
    run = Run(job)
    run.build()
    cut = run.score()["cut"]
    before, changed = run.labels(cut), []
    start = time.monotonic()
    for _ in range(run.planned):
        run.update()
        after = run.labels(cut)
        common = (before != ABSENT) & (after != ABSENT)
        changed.append(labels_changed(before[common], after[common]))
        before = after
        if time.monotonic() - start > run.limit_s:
            break
    return {
        "cut": cut,
        "points": run.n,
        "planned": run.planned,
        "made": run.made,
        "changed_mean": float(np.mean(changed)),
        "changed_p50": float(np.percentile(changed, 50)),
        "changed_max": int(max(changed)),
        "updates_without_change": float(np.mean(np.array(changed) == 0)),
        "series": {"changed": changed},
        **{k: v for k, v in run.score().items() if k in ("nmi", "ari", "levels")},
    }


def nearby(job: Job) -> dict[str, Any]:
    """Return the final NMI, ours and that of recomputation, for values of ε near the usual one.

    All of these hierarchies are about as good; differences of their NMI are chance.
    """
    stream = read_stream(Path(job["path"]))
    epsilons = job["epsilons"]
    return both_systems(job, [(stream, epsilon) for epsilon in epsilons]) | {"epsilons": epsilons}


def samples(job: Job) -> dict[str, Any]:
    """Return the final NMI, ours and that of recomputation, on random samples of the points."""
    stream = read_stream(Path(job["path"]))
    # At most four fifths, so that the samples of a small set differ.
    size = min(job["sample"], 4 * len(stream.points) // 5)
    each = (
        (sampled(stream, size, job["protocol"], seed), job["epsilon"])
        for seed in range(job["samples"])
    )
    return both_systems(job, each)


def both_systems(job: Job, streams: Iterable[tuple[PointStream, float]]) -> dict[str, Any]:
    """Run our system and recomputation on streams, each with an ε, and score the last states."""
    row: dict[str, Any] = {"ours": [], "static": []}
    spent = 0.0
    for stream, epsilon in streams:
        if spent > job["limit_s"]:
            row["stopped"] = f"after {len(row['ours'])} streams ({job['limit_s']:g} s)"
            break
        for name, system in (("ours", job["system"]), ("static", "static")):
            run = Run(job | {"epsilon": epsilon, "system": system}, stream)
            run.build()
            for _ in range(run.planned):
                run.update()
            row[name].append(run.score()["nmi"])
            spent += run.spent_s
    return row | {"points": run.n, "planned": run.planned, "made": run.made}


def probe(names: list[str]) -> dict[str, Any]:
    """Return what each system can do, or why it is not available."""
    found: dict[str, Any] = {}
    for name in names:
        try:
            system = make_system(name, None, 1e-2)
        except Unavailable as reason:
            found[name] = {"missing": str(reason)}
            continue
        can = system.abilities
        found[name] = {k: getattr(can, k) for k in ("insert", "delete", "hierarchy", "guarantee")}
        found[name]["needs"] = system.needs
    return found


KINDS = {
    "updates": measure,
    "small": measure,
    "churn": churn,
    "nearby": nearby,
    "samples": samples,
}


def run_job(job: Job) -> dict[str, Any]:
    """Run a job; a result with ``skipped`` says why it could not be run."""
    try:
        return probe(job["probe"]) if "probe" in job else KINDS[job["kind"]](job)
    except (OutOfTime, Unavailable) as reason:
        return {"skipped": str(reason)}
    except MemoryError as reason:
        return {"skipped": f"not enough memory ({reason})"}


if __name__ == "__main__":
    answer(run_job)
