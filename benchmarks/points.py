"""What points cost: inserts and deletes with the search for neighbours, windows, and growth.

    python benchmarks/points.py --data FOLDER                  everything, on the real data sets
    python benchmarks/points.py --experiments windows          on data that everybody has

- points: single inserts and deletes of a model, split into search, graph and engine, beside a refit
  of the static algorithms that users have today, and beside GRINCH, which inserts online;
- windows: how good a model is whose points come and go for long, with and without repair, against
  a model built afresh from the same points;
- layer: what the Python around search and engine takes of single updates;
- scale: the cost of an update at 10^4, 10^5, 10^6 points and at all of a star catalogue.

Every measurement runs in a process of its own (measure_points.py), on one thread. Results go to one
JSON file per experiment.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure_points import LAYERS, POINT_SETS, SCALES, VARIANTS, WINDOWS
from runner import measure_all, results_folder
from tables import number

EXPERIMENTS = ("points", "layer", "windows", "scale")
PARTS = ("search", "python", "engine")  # of the time of an update of ours


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("DYNHAC_DATA"),
        help="folder of the real data sets (default: DYNHAC_DATA; without it, built-in data)",
    )
    parser.add_argument("--experiments", nargs="+", choices=EXPERIMENTS, default=EXPERIMENTS)
    parser.add_argument("--names", nargs="+", help="only these data sets")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each, fastest shown")
    parser.add_argument("--out", type=Path, help="folder for the results, as in updates.py")
    options = parser.parse_args()
    options.data = Path(options.data) if options.data else None
    options.out = results_folder(options.out, options.data)
    return options


def jobs(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield what is to be measured."""
    data = None if options.data is None else str(options.data)

    def wanted(name: str, needs_data: bool) -> bool:
        if options.names is not None:
            return name in options.names
        return needs_data == (data is not None)

    for experiment in options.experiments:
        common = {"experiment": experiment, "data": data}
        if experiment == "points":
            for name, points in POINT_SETS.items():
                if wanted(name, points.file is not None):
                    yield common | {"name": name, "repeats": options.repeats}
                    if points.grinch:
                        yield common | {"name": name, "variant": "GRINCH"}
        elif experiment == "windows":
            for name, window in WINDOWS.items():
                if wanted(name, window.file is not None):
                    for variant in ("repair", "no repair"):
                        yield common | {"name": name, "variant": variant}
        else:
            for name, sizes in (LAYERS if experiment == "layer" else SCALES).items():
                if wanted(name, sizes.file is not None):
                    for size in sizes.sizes:
                        repeats = options.repeats if experiment == "layer" else 1
                        job = common | {"name": name, "size": size, "repeats": repeats}
                        yield job
                        if experiment == "layer" and size == sizes.sizes[1]:
                            for variant in VARIANTS:
                                yield job | {"variant": variant}


def console_line(row: dict[str, Any]) -> str:
    """One measurement in one line."""
    keys = ("experiment", "name", "variant", "size")
    parts = [" ".join(str(row[k]) for k in keys if k in row) + ":"]
    for kind in ("insert", "delete"):
        if kind in row:
            one = row[kind]
            split = ", ".join(f"{k} {number(one[k])}" for k in PARTS if k in one)
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
    measure_all("measure_points.py", jobs(options), options.out, console_line)


if __name__ == "__main__":
    main()
