"""What durability costs: updates through a store beside the bare model, snapshots, reopening.

    python benchmarks/store.py --data FOLDER                   on MNIST
    python benchmarks/store.py --data FOLDER --names tycho2    on 1.87 million stars
    python benchmarks/store.py                                 on data that everybody has

- updates: updates per second, single ones and batches of 100, of a bare model and through a store
  that waits for the disk ("full") or not ("normal"), and gathering 100 updates at a time ("group");
- snapshot: time, size and memory of a snapshot of all points, how long an update waits for it, and
  what it takes to open the store again, from the snapshot alone and from the log.

Every measurement runs in a process of its own (measure_store.py), on one thread. Times are by the
wall clock, since waiting for the disk is what they are about.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner import measure_all, results_folder
from streams import prepare
from tables import number

HERE = Path(__file__).parent
VARIANTS = ("bare", "normal", "full", "group")
DATASETS = ("mnist", "tycho2", "blobs")


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("DYNHAC_DATA"),
        help="folder of the real data sets (default: DYNHAC_DATA; without it, built-in data)",
    )
    parser.add_argument("--names", nargs="+", choices=DATASETS, help="only these data sets")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each, fastest shown")
    parser.add_argument("--cache", type=Path, default=HERE / "cache", help="folder for streams")
    parser.add_argument("--folder", type=Path, help="where to put the stores (default: build)")
    parser.add_argument("--out", type=Path, help="folder for the results, as in updates.py")
    options = parser.parse_args()
    options.data = Path(options.data) if options.data else None
    options.names = options.names or ["mnist" if options.data else "blobs"]
    options.folder = options.folder or HERE.parent / "build" / "stores"
    options.out = results_folder(options.out, options.data)
    return options


def jobs(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield what is to be measured."""
    for name in options.names:
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
    keys = ("experiment", "name", "protocol", "size", "variant")
    title = " ".join(str(row[k]) for k in keys if k in row) + ":"
    if row["protocol"] != "snapshot":
        log = (
            f", {row['log_bytes_update']:,.0f} bytes of log each"
            if "log_bytes_update" in row
            else ""
        )
        return f"{title} {number(row['per_second'])} updates/s ({number(row['ms_mean'])} ms){log}"
    return (
        f"{title} {row['points']:,} points; snapshot {number(row['snapshot_s'])} s, "
        f"{number(row['snapshot_mb'])} MB, memory {number(row['rss_before_mb'])} -> "
        f"{number(row['rss_snapshot_mb'])} MB, longest wait {number(row['wait_s'])} s; open "
        f"{number(row['open_s'])} s, with {row['replayed']:,} updates {number(row['replay_s'])} s"
    )


def main() -> None:
    """Measure everything that the command line asks for."""
    options = arguments()
    options.folder.mkdir(parents=True, exist_ok=True)
    measure_all("measure_store.py", jobs(options), options.out, console_line)


if __name__ == "__main__":
    main()
