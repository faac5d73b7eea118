"""``dynhac labels``: flat clusters."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from dynhac.cli.command import command
from dynhac.cli.options import INSPECT, Json, MinSize, StorePath, Theta
from dynhac.cli.output import (
    COLUMN_ENDINGS,
    print_json,
    print_table,
    print_text,
    sample_text,
    write_columns,
)
from dynhac.cli.stores import open_store, size_text
from dynhac.input.errors import counted

MAX_CLUSTERS = 30
"""Clusters that are listed on a terminal."""


@command(
    INSPECT,
    ("List the largest clusters", "dynhac labels my.store --theta 0.35"),
    ("Write all labels", "dynhac labels my.store --theta 0.35 -o labels.parquet"),
    ("Ten clusters, as CSV", "dynhac labels my.store -n 10 -o - | sort -t, -k2n"),
)
def labels(
    store: StorePath,
    theta: Theta = None,
    n_clusters: Annotated[
        int | None, typer.Option("--clusters", "-n", help="Cut into this many clusters.")
    ] = None,
    min_size: MinSize = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help=f"Write ids and labels to a file that ends in {COLUMN_ENDINGS} (of which .npy has "
            "only the labels); - for CSV on standard output.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Cut the hierarchy into flat clusters and give every point a label.

    Labels are numbered from 0; points in clusters below the minimal size get -1. On a terminal the
    largest clusters are listed; in a pipe or a file every point has a row, in the order of the
    store.
    """
    if (theta is None) == (n_clusters is None):
        raise typer.BadParameter("give either --theta SIMILARITY or --clusters NUMBER")
    with open_store(store) as opened:
        tree = opened.dendrogram()
        found = tree.labels(theta, n_clusters=n_clusters, min_size=min_size)
        columns: dict[str, NDArray[Any]] = {"id": tree.ids, "label": found}
        size, update = size_text(opened), opened.update_number
    count = int(found.max()) + 1 if len(found) else 0
    if out is not None and str(out) != "-":
        write_columns(out, columns)
    summary = f"{size} in {counted(count, 'cluster', 'clusters')}"
    if json:
        result: dict[str, Any] = {"points": len(found), "clusters": count, "update": update}
        if out is None:
            result |= {"ids": tree.ids, "labels": found}
        print_json(result)
    elif out is None and sys.stdout.isatty():
        print_text(f"{summary}; in none: {int((found < 0).sum()):,}")
        _print_clusters(tree.ids, found, count)
    elif out is None or str(out) == "-":
        write_columns(Path("-"), columns)
    else:
        print_text(f"{out}: {summary}")


def _print_clusters(ids: NDArray[Any], labels: NDArray[Any], count: int) -> None:
    """List the largest clusters."""
    sizes = np.bincount(labels[labels >= 0], minlength=count)
    rows = []
    for label in np.argsort(-sizes, kind="stable")[:MAX_CLUSTERS].tolist():
        size = int(sizes[label])
        sample = sample_text(ids[labels == label], size)
        rows.append((str(label), f"{size:,}", f"{size / len(labels):.1%}", sample))
    print_table(("cluster", "size", "share", "ids"), rows, 3)
    if count > len(rows):
        print_text(f"... and {count - len(rows):,} more; -o FILE writes the label of every point")
