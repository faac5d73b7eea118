"""The evaluation of the DynHAC paper, repeated and extended, in one command.

    python -m benchmarks.evaluation.paper --data FOLDER              everything: many hours
    python -m benchmarks.evaluation.paper --data FOLDER --quick      subsets, a quarter of an hour
    python -m benchmarks.evaluation.paper --quick                    on built-in data
    python -m benchmarks.evaluation.paper --data FOLDER --report     tables and figures only
    python -m benchmarks.evaluation.paper --data FOLDER --part clusters --processes 16
                                                    clusters without a threshold: ten minutes

There are two parts: the paper's experiments ("paper"), and clusters without a threshold
("clusters"), whose jobs may run side by side. Writes results (JSON), tables (index.md, between
marks) and figures (SVG). Every measurement has a process of its own and one thread; an interrupted
run continues when the same command is given again. docs/evaluation/index.md says what is measured.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from benchmarks import ROOT
from benchmarks.common.options import new_parser
from benchmarks.evaluation.clusters.data import SETS as CLUSTER_SETS
from benchmarks.evaluation.clusters.data import available as cluster_sets
from benchmarks.evaluation.clusters.results import FOLDER
from benchmarks.evaluation.clusters.run import run as run_clusters
from benchmarks.evaluation.data import DATASETS, available
from benchmarks.evaluation.plan import FULL, QUICK, Mode
from benchmarks.evaluation.report import write_report
from benchmarks.evaluation.run import Rows, run
from benchmarks.systems import SYSTEMS

PARTS = ("paper", "clusters")
PUBLISHED = ROOT / "docs" / "evaluation"
PUBLISHED_RESULTS = Path(__file__).parent / "results"


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = new_parser(__doc__, {*DATASETS, *CLUSTER_SETS})
    add = parser.add_argument
    add("--part", choices=PARTS, help="only this part (default: both)")
    add(
        "--processes",
        type=int,
        default=1,
        help="jobs of the part clusters that run at a time, each with one thread (default: 1)",
    )
    add(
        "--systems",
        nargs="+",
        choices=sorted(SYSTEMS),
        metavar="NAME",
        help="only these systems, in the part paper",
    )
    add("--quick", action="store_true", help="subsets of the data, a quarter of an hour in total")
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
    if options.processes < 1:
        parser.error(f"--processes is {options.processes}; it must be >= 1")
    if options.limit is not None and not options.limit > 0:
        parser.error(f"--limit is {options.limit}; it must be > 0")
    return options


def run_parts(options: argparse.Namespace, mode: Mode) -> Rows:
    """Run the parts that the command line asks for and return the rows of the jobs that failed."""
    chosen = {"paper": available(options.data), "clusters": cluster_sets(options.data)}
    if options.datasets:
        having = {"paper": DATASETS, "clusters": CLUSTER_SETS}
        chosen = {part: [d for d in options.datasets if d in having[part]] for part in PARTS}
    if options.part:
        chosen = {options.part: chosen[options.part]}
    if not any(chosen.values()):
        raise SystemExit("there is no data set for this part; see --data, --datasets and --part")
    failed: Rows = []
    if chosen.get("clusters"):
        failed += run_clusters(
            chosen["clusters"],
            mode,
            data=options.data,
            results=options.results / FOLDER,
            processes=options.processes,
            again=options.again,
        )
    if chosen.get("paper"):
        failed += run(
            chosen["paper"],
            options.systems or list(SYSTEMS),
            mode,
            data=options.data,
            cache=options.cache,
            results=options.results,
            again=options.again,
        )
    return failed


def main(argv: list[str] | None = None) -> None:
    """Run what the command line asks for, then write the report."""
    options = arguments(argv)
    mode = QUICK if options.quick else FULL
    if options.points is not None:
        mode = replace(mode, points=options.points)
    if options.limit is not None:
        mode = replace(mode, limit_s=options.limit)
    failed = [] if options.report else run_parts(options, mode)
    write_report(options.results, options.out)
    print(f"report: {options.out / 'index.md'}")
    if failed:
        raise SystemExit(f"{len(failed)} jobs failed; their rows in the results say why")


if __name__ == "__main__":
    main()
