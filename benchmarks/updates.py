"""What an update costs: CPU time, memory and quality, on real streams and on awkward graphs.

    python benchmarks/updates.py --data FOLDER                  everything, on the real data sets
    python benchmarks/updates.py --data FOLDER --datasets mnist --experiments streams
    python benchmarks/updates.py                                on data that everybody has

Every measurement runs in a fresh process (measure.py), one at a time and on one thread. Single
updates take microseconds, and whatever else the machine does can only slow them down: they are
measured several times over, from the build on, and each counts as its fastest time; the means of
the single runs are kept beside that. Results go to one JSON file per experiment; a measurement made
again replaces the earlier one. tables.py turns them into tables.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner import measure_all, results_folder
from shapes import SHAPES
from streams import BUILTIN, DATASETS, REAL, prepare
from tables import console_line

HERE = Path(__file__).parent
EXPERIMENTS = ("streams", "epsilons", "batches", "growth", "shapes")
LONG_RUNS = ("mnist", "blobs")  # batches and growth: about the engine, so one data set is enough


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("DYNHAC_DATA"),
        help="folder of the real data sets (default: DYNHAC_DATA; without it, built-in data)",
    )
    parser.add_argument("--datasets", nargs="+", choices=sorted(DATASETS), metavar="NAME")
    parser.add_argument("--experiments", nargs="+", choices=EXPERIMENTS, default=EXPERIMENTS)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each stream (default 5)")
    parser.add_argument("--cache", type=Path, default=HERE / "cache", help="where streams are kept")
    parser.add_argument(
        "--out",
        type=Path,
        help="folder for the results (default: benchmarks/results with --data, otherwise "
        "build/benchmarks, so that a trial run leaves the published figures alone)",
    )
    parser.add_argument("--prepare", action="store_true", help="only make the streams")
    options = parser.parse_args()
    options.data = Path(options.data) if options.data else None
    options.out = results_folder(options.out, options.data)
    if options.datasets is None:
        options.datasets = list(REAL if options.data else BUILTIN)
    return options


def jobs(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield what is to be measured; the neighbours of a stream are found when its turn comes."""
    for experiment in options.experiments:
        if experiment == "shapes":
            for name, (_, sizes) in SHAPES.items():
                for size in sizes:
                    job = {"experiment": experiment, "name": name, "size": size, "updates": 100}
                    yield job | {"epsilon": options.epsilon}
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


def main() -> None:
    """Measure everything that the command line asks for."""
    options = arguments()
    if options.data is None:
        print("no --data: measuring on built-in data (digits and generated blobs)")
    wanted = jobs(options)
    if options.prepare:
        list(wanted)  # making a job makes its stream
    else:
        measure_all("measure.py", wanted, options.out, console_line)


if __name__ == "__main__":
    main()
