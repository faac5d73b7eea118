"""What durability costs: updates through a store beside the bare model, snapshots, reopening.

    python -m benchmarks.cost.store --data FOLDER                      on MNIST
    python -m benchmarks.cost.store --data FOLDER --datasets tycho2    on 1.87 million stars
    python -m benchmarks.cost.store                                    on built-in data

- updates: updates per second, single ones and batches of 100, of a bare model and through a store
  that waits for the disk ("full") or not ("normal"), and in groups of 100 updates ("group");
- snapshot: time, size and memory of a snapshot of all points, how long an update waits for it, and
  how long it takes to open the store again, from the snapshot alone and from the log.

Every measurement runs in a process of its own (measure_store.py), on one thread. Times are wall
times, since they include waiting for the disk.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import ROOT
from benchmarks.common.markdown import number
from benchmarks.common.runner import Job
from benchmarks.common.streams import prepare
from benchmarks.cost.jobs import cost_parser, measure_all, parsed, title

VARIANTS = ("bare", "normal", "full", "group")
DATASETS = ("mnist", "tycho2", "blobs")


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = cost_parser(__doc__, DATASETS, repeats=5)
    parser.add_argument(
        "--folder",
        type=Path,
        default=ROOT / "build" / "stores",
        help="folder for the stores (default: build/stores)",
    )
    options = parsed(parser)
    options.datasets = options.datasets or ["mnist" if options.data else "blobs"]
    return options


def jobs(options: argparse.Namespace) -> Iterator[Job]:
    """Yield what is to be measured."""
    for name in options.datasets:
        common = {
            "experiment": "store",
            "name": name,
            "data": None if options.data is None else str(options.data),
            "folder": str(options.folder),
        }
        if name != "tycho2":
            stream = str(prepare(options.cache, name, "batches", options.data))
            for protocol in ("points", "graph"):
                for size in (1, 100):
                    for variant in VARIANTS:
                        job = {"protocol": protocol, "size": size, "variant": variant}
                        yield common | job | {"path": stream, "repeats": options.repeats}
        yield common | {"protocol": "snapshot"}


def console_line(row: dict[str, Any]) -> str:
    """One measurement in one line."""
    if row["protocol"] != "snapshot":
        log = (
            f", {row['log_bytes_update']:,.0f} bytes of log each"
            if "log_bytes_update" in row
            else ""
        )
        rate = f"{number(row['per_second'])} updates/s ({number(row['ms_mean'])} ms)"
        return f"{title(row)}: {rate}{log}"
    return (
        f"{title(row)}: {row['points']:,} points; snapshot {number(row['snapshot_s'])} s, "
        f"{number(row['snapshot_mb'])} MB, memory {number(row['rss_before_mb'])} -> "
        f"{number(row['rss_snapshot_mb'])} MB, longest wait {number(row['wait_s'])} s; open "
        f"{number(row['open_s'])} s, with {row['replayed']:,} updates {number(row['replay_s'])} s"
    )


def main() -> None:
    """Measure everything that the command line asks for."""
    options = arguments()
    options.folder.mkdir(parents=True, exist_ok=True)
    measure_all("measure_store", jobs(options), options.out, console_line)


if __name__ == "__main__":
    main()
