"""The published evaluation, repeated and extended, in one command.

    python benchmarks/paper.py --data FOLDER              everything: many hours
    python benchmarks/paper.py --data FOLDER --quick      subsets, about ten minutes
    python benchmarks/paper.py --quick                    on data that everybody has
    python benchmarks/paper.py --report                   tables and figures again, nothing is run

Writes results (JSON), tables (index.md, between marks) and figures (SVG and PNG) to a folder. Every
measurement has a process of its own and one thread; a run that is interrupted goes on where it
stopped when the same command is given again. See docs/evaluation/index.md for what is measured.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from evaluation.data import DATASETS, available
from evaluation.plan import FULL, QUICK
from evaluation.report import write_report
from evaluation.run import run
from systems import SYSTEMS

HERE = Path(__file__).parent


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add(
        "--data",
        type=Path,
        default=os.environ.get("DYNHAC_DATA") or None,
        help="folder of npz files (default: DYNHAC_DATA; without it, built-in data)",
    )
    add("--datasets", nargs="+", choices=sorted(DATASETS), metavar="NAME", help="some of the sets")
    add("--systems", nargs="+", choices=sorted(SYSTEMS), metavar="NAME", help="some of the systems")
    add("--quick", action="store_true", help="subsets of the data, about ten minutes in all")
    add("--points", type=int, help="use the first so many points of every set")
    add("--limit", type=float, help="seconds that a system may take in one job")
    add("--cache", type=Path, default=HERE / "cache", help="where neighbours are kept")
    add(
        "--out",
        type=Path,
        help="folder for the results (default: docs/evaluation with --data, otherwise "
        "build/evaluation, so that a trial run leaves the published figures alone)",
    )
    add("--again", action="store_true", help="run also what has been run before")
    add("--report", action="store_true", help="only write tables and figures")
    options = parser.parse_args(argv)
    root = HERE.parent
    if options.out is None:
        options.out = root / ("docs" if options.data else "build") / "evaluation"
    if options.points is not None and options.points < 20:
        parser.error(f"--points is {options.points}; a protocol needs at least 20")
    if options.limit is not None and not options.limit > 0:
        parser.error(f"--limit is {options.limit}; it must be > 0")
    return options


def main(argv: list[str] | None = None) -> None:
    """Run what the command line asks for, then write the report."""
    options = arguments(argv)
    mode = QUICK if options.quick else FULL
    if options.points is not None:
        mode = replace(mode, points=options.points)
    if options.limit is not None:
        mode = replace(mode, limit_s=options.limit)
    failed = []
    if not options.report:
        datasets = options.datasets or available(options.data)
        if not datasets:
            raise SystemExit(f"{options.data} has none of the files of the data sets")
        failed = run(
            datasets,
            options.systems or list(SYSTEMS),
            mode,
            data=options.data,
            cache=options.cache,
            out=options.out,
            again=options.again,
        )
    write_report(options.out)
    print(f"report: {options.out / 'index.md'}")
    if failed:
        raise SystemExit(f"{len(failed)} jobs failed; their rows in the results tell why")


if __name__ == "__main__":
    main()
