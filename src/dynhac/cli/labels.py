"""``dynhac labels``: flat clusters."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynhac.cli.command import add_command
from dynhac.cli.options import LOOK, At, Json, MinSize, Store

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_SHOWN = 30
"""Clusters that are listed on a terminal."""


def labels(
    store: Store,
    at: At = None,
    clusters: Annotated[
        int | None,
        typer.Option("--clusters", "-n", help="Cut into this many clusters.", show_default=False),
    ] = None,
    min_size: MinSize = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write ids and labels to a .csv, .tsv, .parquet or .npz file, or the labels alone "
            "to .npy; - for standard output.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Cut the hierarchy into flat clusters and give every point a label.

    Labels count from 0; points in clusters below the minimal size get -1. On a terminal you see
    the largest clusters; in a pipe or a file every point has a row, in the order in which the
    store has them.
    """
    from dynhac.cli import output
    from dynhac.cli.stores import named, reading
    from dynhac.input.errors import counted

    if (at is None) == (clusters is None):
        raise typer.BadParameter("give either --at SIMILARITY or --clusters NUMBER")
    with reading(store) as opened:
        tree = opened.dendrogram()
        found = tree.labels(at, n_clusters=clusters, min_size=min_size)
        columns: dict[str, NDArray[Any]] = {"id": tree.ids, "label": found}
        size, update = named(opened, len(found)), opened.update_number
    count = int(found.max()) + 1 if len(found) else 0
    if out is not None and str(out) != "-":
        output.write_columns(out, columns)
    if json:
        told: dict[str, Any] = {"points": len(found), "clusters": count, "update": update}
        if out is None:
            told |= {"ids": columns["id"], "labels": found}
        output.show_json(told)
    elif out is None and sys.stdout.isatty():
        _show_clusters(columns["id"], found, count, size)
    elif out is None or str(out) == "-":
        output.write_text(output.csv_text(columns))
    else:
        output.show(f"{out}: {size} in {counted(count, 'cluster', 'clusters')}")


def _show_clusters(ids: NDArray[Any], found: NDArray[Any], count: int, size: str) -> None:
    """List the largest clusters."""
    import numpy as np

    from dynhac.cli.output import few, show, show_table
    from dynhac.input.errors import counted

    loose = int((found < 0).sum())
    sizes = np.bincount(found[found >= 0], minlength=count)
    shown = np.argsort(-sizes, kind="stable")[:MOST_SHOWN]
    by_label = np.argsort(found, kind="stable")
    starts = loose + np.concatenate([[0], np.cumsum(sizes)])
    rows = [
        (
            str(label),
            f"{sizes[label]:,}",
            f"{sizes[label] / len(found):.1%}",
            few(ids[by_label[starts[label] : starts[label + 1]][:6]].tolist(), int(sizes[label])),
        )
        for label in shown.tolist()
    ]
    show(f"{size} in {counted(count, 'cluster', 'clusters')}; in none: {loose:,}")
    show_table(("cluster", "size", "share", "ids"), rows, 3)
    if count > len(rows):
        show(f"... and {count - len(rows):,} more; -o FILE writes the label of every point")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    add_command(
        app,
        labels,
        [
            ("See the largest clusters", "dynhac labels my.store --at 0.35"),
            ("Write them all", "dynhac labels my.store --at 0.35 -o labels.parquet"),
            ("Ten clusters, as CSV", "dynhac labels my.store -n 10 -o - | sort -t, -k2n"),
        ],
        LOOK,
    )
