"""What points cost: insertions and deletions with the search for neighbours, windows, and growth.

    python -m benchmarks.cost.points --data FOLDER             everything, on the real data sets
    python -m benchmarks.cost.points --experiments windows     on built-in data

- points: single insertions and deletions, split into search, engine and the time outside both,
  beside a refit with static algorithms, and beside GRINCH, which inserts online;
- layer: many single updates, for the time outside search and engine;
- windows: quality of a model whose points are replaced many times, with and without repair, against
  a model built afresh from the same points;
- scale: the cost of an update at 10^4, 10^5, 10^6 points and at all of a star catalogue;
- large: the same of generated points of many dimensions, too many for an exact search.

Every measurement runs in a process of its own (measure_points.py), on one thread; of several runs
the one with the median time of an insertion counts. More than 200,000 points are measured once.
Results go to one JSON file per experiment.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from benchmarks.common.datasets import DATASETS
from benchmarks.common.markdown import number
from benchmarks.common.runner import Job
from benchmarks.cost.jobs import cost_parser, measure_all, parsed, title
from benchmarks.cost.measure_points import (
    GRINCH_SETS,
    LARGE,
    LAYER_VARIANTS,
    LAYERS,
    POINT_SETS,
    SCALES,
    WINDOWS,
)

EXPERIMENTS: dict[str, Any] = {
    "points": POINT_SETS,
    "layer": LAYERS,
    "windows": WINDOWS,
    "scale": SCALES,
    "large": LARGE,
}
MOST_REPEATED = 200_000  # points
# Parts of the time of an update by key; the rest is the time outside search and engine.
PARTS = {"search": "search", "python": "rest", "engine": "engine"}


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    datasets = {name for names in EXPERIMENTS.values() for name in names}
    parser = cost_parser(__doc__, datasets, repeats=5)
    parser.add_argument("--experiments", nargs="+", choices=EXPERIMENTS, default=[*EXPERIMENTS])
    return parsed(parser)


def jobs(options: argparse.Namespace) -> Iterator[Job]:
    """Yield what is to be measured."""
    data = None if options.data is None else str(options.data)
    for experiment in options.experiments:
        for name in EXPERIMENTS[experiment]:
            if options.datasets is None:
                wanted = experiment == "large" or (DATASETS[name].file is None) == (data is None)
            else:
                wanted = name in options.datasets
            if wanted:
                job = {"experiment": experiment, "name": name, "data": data}
                yield from jobs_of(job, options.repeats)


def jobs_of(job: Job, repeats: int) -> Iterator[Job]:
    """Yield the jobs of an experiment on one data set."""
    experiment, name = job["experiment"], job["name"]
    if experiment == "points":
        yield job | {"repeats": repeats}
        if name in GRINCH_SETS:
            yield job | {"variant": "GRINCH"}
    elif experiment == "windows":
        for variant in ("repair", "no repair"):
            yield job | {"variant": variant}
    elif experiment in ("scale", "large"):
        for size in EXPERIMENTS[experiment][name]:
            yield job | {"size": size, "repeats": repeats if size <= MOST_REPEATED else 1}
    else:
        for size in LAYERS[name]:
            yield job | {"size": size, "repeats": repeats}
            if size == LAYERS[name][1]:
                for variant in LAYER_VARIANTS:
                    yield job | {"size": size, "repeats": repeats, "variant": variant}


def console_line(row: dict[str, Any]) -> str:
    """One measurement in one line."""
    parts = [f"{title(row)}:"]
    for kind in ("insert", "delete"):
        if kind in row:
            one = row[kind]
            split = ", ".join(f"{part} {number(one[k])}" for k, part in PARTS.items() if k in one)
            parts.append(f"{kind} {number(one['ms'])} ms{f' ({split})' if split else ''};")
    for at in row.get("checkpoints", ())[-1:]:
        parts.append(f"NMI at the end {at['nmi']:.4f}, fresh {at['fresh_nmi']:.4f};")
    if "build_s" in row:
        parts.append(f"build {number(row['build_s'])} s, {number(row['rss_peak_mb'])} MB;")
    for system, seconds in row.get("refit_s", {}).items():
        parts.append(f"{system} {number(seconds)} s;")
    return " ".join(parts) + f" {row['report']}"


def main() -> None:
    """Measure everything that the command line asks for."""
    options = arguments()
    measure_all("measure_points", jobs(options), options.out, console_line)


if __name__ == "__main__":
    main()
