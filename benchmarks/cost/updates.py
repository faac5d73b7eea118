"""What an update of a graph costs: CPU time, memory and quality, on streams and awkward graphs.

    python -m benchmarks.cost.updates --data FOLDER         everything, on the real data sets
    python -m benchmarks.cost.updates --data FOLDER --datasets mnist --experiments streams
    python -m benchmarks.cost.updates                       on built-in data

- streams: single insertions and deletions on graphs of nearest neighbours;
- epsilons: the same with other values of epsilon;
- batches: insertions and deletions of several sizes;
- growth: a graph that grows vertex by vertex, beside fresh builds;
- shapes: graphs of awkward shapes;
- bridge: two random graphs joined by an edge whose weight changes.

Every measurement runs in a fresh process (measure_updates.py), one at a time and on one thread.
Streams are run several times from the build on; the run with the median time of an update counts,
and the means of all runs are kept too. Results go to one JSON file per experiment, which tables.py
turns into tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from typing import Any

from benchmarks.common.datasets import DATASETS
from benchmarks.common.markdown import number
from benchmarks.common.runner import Job
from benchmarks.common.streams import BUILTIN, REAL, prepare
from benchmarks.cost.jobs import cost_parser, measure_all, parsed, title
from benchmarks.cost.shapes import SHAPES

EXPERIMENTS = ("streams", "epsilons", "batches", "growth", "shapes", "bridge")
BRIDGES = (10_000, 100_000)  # vertices
LONG_RUNS = ("mnist", "blobs")  # batches and growth measure the engine: one data set is enough


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = cost_parser(__doc__, (*REAL, *BUILTIN), repeats=5)
    parser.add_argument("--experiments", nargs="+", choices=EXPERIMENTS, default=EXPERIMENTS)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--prepare", action="store_true", help="only prepare the streams")
    options = parsed(parser)
    if options.datasets is None:
        options.datasets = list(REAL if options.data else BUILTIN)
    return options


def jobs(options: argparse.Namespace) -> Iterator[Job]:
    """Yield what is to be measured; a stream is prepared before the job that needs it."""
    for experiment in options.experiments:
        if experiment == "shapes":
            for name, shape in SHAPES.items():
                for size in shape.sizes:
                    job = {"experiment": experiment, "name": name, "size": size, "updates": 100}
                    yield job | {"epsilon": 0.0 if shape.monotone else options.epsilon}
            continue
        if experiment == "bridge":
            for size, epsilon in product(BRIDGES, (options.epsilon, 0.0)):
                job = {"experiment": experiment, "name": experiment, "size": size, "updates": 20}
                yield job | {"epsilon": epsilon}
            continue
        single = experiment in ("streams", "epsilons")
        names = [n for n in options.datasets if single or n in LONG_RUNS]
        for name in names:
            for protocol in ("insertion", "deletion") if single else (experiment,):
                for epsilon in (0.0, 1.0) if experiment == "epsilons" else (options.epsilon,):
                    yield {
                        "experiment": experiment,
                        "name": name,
                        "protocol": protocol,
                        "epsilon": epsilon,
                        "threshold": DATASETS[name].threshold,
                        "repeats": options.repeats if single else 1,
                        "path": str(prepare(options.cache, name, protocol, options.data)),
                    }


def console_line(row: dict[str, Any]) -> str:
    """One measurement in one line."""
    parts = [f"{title(row)} eps={row['epsilon']:g}:"]
    if "ms_mean" in row:
        parts.append(f"{number(row['ms_mean'])} ms/update (max {number(row['ms_max'])}),")
    for kind in ("insertion", "deletion"):
        if kind in row:
            parts.append(f"{kind} {number(row[kind]['ms_mean'])} ms,")
    for size in row.get("sizes", ()):
        parts.append(f"{size['kind']} x{size['batch']} {number(size['ms_point'])} ms/point,")
    for key, unit in (("build_s", "s build"), ("rss_peak_mb", "MB peak"), ("levels", "levels")):
        if key in row:
            parts.append(f"{number(row[key])} {unit},")
    if "nmi" in row:
        parts.append(f"NMI {row['nmi']:.3f},")
    verdict = "" if row["ok"] else f"; {row['report']}"
    return " ".join([*parts, f"{row['bad_merges']} bad merges{verdict}"])


def main() -> None:
    """Measure everything that the command line asks for."""
    options = arguments()
    if options.data is None:
        print("no --data: measuring on built-in data (digits and generated blobs)")
    planned = jobs(options)
    if options.prepare:
        list(planned)  # preparing a job prepares its stream
    else:
        measure_all("measure_updates", planned, options.out, console_line)


if __name__ == "__main__":
    main()
