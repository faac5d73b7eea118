"""The evaluation of the DynHAC paper, repeated and extended, in one command.

    python -m benchmarks.evaluation.paper --data FOLDER              everything: many hours
    python -m benchmarks.evaluation.paper --data FOLDER --quick      subsets, about ten minutes
    python -m benchmarks.evaluation.paper --quick                    on built-in data
    python -m benchmarks.evaluation.paper --data FOLDER --report     tables and figures only

Writes results (JSON), tables (index.md, between marks) and figures (SVG). Every measurement has a
process of its own and one thread; an interrupted run continues when the same command is given
again. docs/evaluation/index.md says what is measured.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from benchmarks import ROOT
from benchmarks.common.options import new_parser
from benchmarks.evaluation.data import DATASETS, available
from benchmarks.evaluation.plan import FULL, QUICK
from benchmarks.evaluation.report import write_report
from benchmarks.evaluation.run import run
from benchmarks.systems import SYSTEMS

PUBLISHED = ROOT / "docs" / "evaluation"
PUBLISHED_RESULTS = Path(__file__).parent / "results"


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = new_parser(__doc__, DATASETS)
    add = parser.add_argument
    add("--systems", nargs="+", choices=sorted(SYSTEMS), metavar="NAME", help="only these systems")
    add("--quick", action="store_true", help="subsets of the data, about ten minutes in total")
    add("--points", type=int, help="use only the first points of every data set")
    add("--limit", type=float, help="seconds that a system may take in one job")
    add(
        "--out",
        type=Path,
        help="folder of the page and its figures, and of results/ (default: build/evaluation; with "
        "--data docs/evaluation, and benchmarks/evaluation/results for the results)",
    )
    add("--again", action="store_true", help="run again what has a result")
    add("--report", action="store_true", help="only write tables and figures")
    options = parser.parse_args(argv)
    if options.out is None:
        options.out = PUBLISHED if options.data else ROOT / "build" / "evaluation"
    published = options.out.resolve() == PUBLISHED.resolve()
    options.results = PUBLISHED_RESULTS if published else options.out / "results"
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
            raise SystemExit(f"{options.data} contains no file of a data set")
        failed = run(
            datasets,
            options.systems or list(SYSTEMS),
            mode,
            data=options.data,
            cache=options.cache,
            results=options.results,
            again=options.again,
        )
    write_report(options.results, options.out)
    print(f"report: {options.out / 'index.md'}")
    if failed:
        raise SystemExit(f"{len(failed)} jobs failed; their rows in the results say why")


if __name__ == "__main__":
    main()
