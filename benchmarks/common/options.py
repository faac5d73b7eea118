"""Options that all benchmarks have."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from benchmarks import CACHE


def new_parser(doc: str, datasets: Iterable[str]) -> argparse.ArgumentParser:
    """Return a parser with the options of all benchmarks; ``datasets`` may be named."""
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    add = parser.add_argument
    add(
        "--data",
        type=Path,
        default=os.environ.get("DYNHAC_DATA") or None,
        help="folder of the real data sets (default: DYNHAC_DATA; without it, built-in data)",
    )
    names = sorted(datasets)
    add("--datasets", nargs="+", choices=names, metavar="NAME", help=f"only some of {names}")
    add("--cache", type=Path, default=CACHE, help="folder of the prepared streams")
    return parser
