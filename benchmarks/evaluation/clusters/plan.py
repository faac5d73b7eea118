"""The jobs: every system on every set, whole and on a sample, and the growth of every set.

Kinds of job: *choice* (agreement, number of clusters, time), *changes* (labels changed per update,
ours only) and *growth* (the same figures at 1,000 points, 2,000, 4,000 and so on).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.evaluation.clusters.data import GRAPHS, size_of
from benchmarks.evaluation.plan import Mode

KEY = ("dataset", "system", "part", "kind")
OURS = "dynhac"
# A number is the smallest cluster; 5 is the default of both packages.
OTHERS = ("hdbscan-25", "hdbscan-5", "fishdbc-25", "fishdbc-5")
ANEW = "dynhac-anew"  # built from scratch at every size of a growing set
GROWING = (OURS, ANEW, "hdbscan-25")
UPDATES = 100  # insertions, and as many deletions
GROWN_FROM = 1_000


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what identifies a job, or its result, in a run."""
    return tuple(row.get(k) for k in KEY)


def title(row: dict[str, Any]) -> str:
    """Return a job or result in words."""
    return f"{row['dataset']} ({row['part']}), {row['system']}, {row['kind']}"


def jobs(datasets: list[str], mode: Mode, data: Path | None) -> Iterator[dict[str, Any]]:
    """Yield the jobs of a run, those on many points first: the last ones to end should be short."""
    sizes = {name: min(size_of(name, data), mode.points or 10**9) for name in datasets}
    parts = [(name, "whole", size) for name, size in sizes.items()]
    parts += [(n, "sample", mode.cut_sample) for n, size in sizes.items() if size > mode.cut_sample]
    for name, part, size in sorted(parts, key=lambda p: -p[2]):
        base = {"dataset": name, "part": part, "size": size, "data": data and str(data)}
        yield base | {"system": OURS, "kind": "choice"}
        yield base | {"system": OURS, "kind": "changes", "updates": mode.changes}
        if part == "whole":
            for system in GROWING:
                yield _possible(base | {"system": system, "kind": "growth"})
        for system in OTHERS:
            yield _possible(base | {"system": system, "kind": "choice"})


def _possible(job: dict[str, Any]) -> dict[str, Any]:
    if job["dataset"] in GRAPHS and job["system"] not in (OURS, ANEW):
        return job | {"skipped": "reads points, and this set is a graph"}
    return job


def growth_sizes(n: int) -> list[int]:
    """Return the numbers of points at which a growing set is looked at."""
    sizes = [min(GROWN_FROM, max(n // 4, 1))]
    while 2.5 * sizes[-1] < n:  # the last step is not much smaller than the others
        sizes.append(2 * sizes[-1])
    return [*sizes, n]
