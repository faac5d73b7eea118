"""``dynhac predict``: the clusters that the rows of a file would be in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from dynhac.cli.command import command, errors_in
from dynhac.cli.layout import Layout, load_layout
from dynhac.cli.options import (
    INSPECT,
    DataFile,
    Header,
    IdColumn,
    Ignore,
    Json,
    MinSize,
    StorePath,
    Theta,
    TimeColumn,
    VectorColumn,
)
from dynhac.cli.output import COLUMN_ENDINGS, print_json, print_table, print_text, write_columns
from dynhac.cli.read_table import read_table
from dynhac.cli.stores import is_points, open_store
from dynhac.input.errors import counted

if TYPE_CHECKING:
    from dynhac.watch import Watch

MAX_ROWS = 30
"""Rows that are listed on a terminal."""


@command(
    INSPECT,
    ("Clusters at 0.35", "dynhac predict my.store new.csv --theta 0.35"),
    (
        "With all that is known, to a file",
        "dynhac predict my.store new.npy --theta 0.35 -o all.csv",
    ),
    (
        "Cluster ids of the events of tail",
        "dynhac predict my.store new.csv --theta 0.35 --watch",
    ),
)
def predict(
    store: StorePath,
    data: DataFile,
    theta: Theta = None,
    n_clusters: Annotated[
        int | None, typer.Option("--clusters", "-n", help="Cut into this many clusters.")
    ] = None,
    min_size: MinSize = 1,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Use the watch of the store at --theta, and its cluster ids."),
    ] = False,
    nearest: Annotated[
        int, typer.Option("--nearest", "-k", min=0, help="Neighbours to show for each row.")
    ] = 3,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help=f"Write to a file that ends in {COLUMN_ENDINGS} (of which .npy has only the "
            "labels); - for CSV on standard output.",
        ),
    ] = None,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    vector_column: VectorColumn = None,
    ignore: Ignore = None,
    header: Header = None,
    json: Json = False,
) -> None:
    """Show the clusters that the rows of a file would be in, without inserting them.

    A row gets the label that dynhac labels gives to the cluster that it would join, -1 if it would
    be alone. Its score is the similarity at which it would join: it is in a cluster at every theta
    up to its score. The nearest points of the store come with it.
    """
    if (theta is None) == (n_clusters is None):
        raise typer.BadParameter("give either --theta SIMILARITY or --clusters NUMBER")
    if watch and theta is None:
        raise typer.BadParameter("--watch needs --theta SIMILARITY")
    given = Layout(id_column, time_column, vector_column, tuple(ignore or ()), header=header)
    table = read_table(data, load_layout(store, given))
    with open_store(store) as opened:
        if not is_points(opened):
            raise ValueError(f"{store} holds a graph; predict needs a store of points")
        table.require("points", "predict needs vectors")
        model: Any = opened
        cut: dict[str, Any] = {"theta": theta, "n_clusters": n_clusters, "min_size": min_size}
        if watch:
            cut = {"watch": _watch_at(model.watches, theta, min_size, store)}
        model.predict([], **cut)  # what is wrong with the cut is not an error of the file
        with errors_in(table.source):
            labels, scores, neighbors = model.predict(table.vectors, **cut)
        update = opened.update_number
        shown = min(nearest, model.n_neighbors, len(opened))
    first = ("row", np.arange(len(labels)))
    if table.ids is not None:
        first = ("id", np.array(list(table.ids), object))
    columns: dict[str, NDArray[Any]] = {first[0]: first[1], "label": labels, "score": scores}
    columns |= {f"nearest{i + 1}": neighbors.ids[:, i] for i in range(shown)}
    if out is not None and str(out) != "-":
        only = {"label": labels} if out.suffix.lower() == ".npy" else columns
        write_columns(out, only)
    inside = int((labels >= 0).sum())
    summary = f"{counted(len(labels), 'row', 'rows')}, {inside:,} in clusters"
    if json:
        result: dict[str, Any] = {"rows": len(labels), "in_clusters": inside, "update": update}
        if out is None:
            result |= {
                first[0] + "s": first[1],
                "labels": labels,
                "scores": scores,
                "nearest": neighbors.ids[:, :shown],
                "similarities": neighbors.similarities[:, :shown],
            }
        print_json(result)
    elif out is None and sys.stdout.isatty():
        _print_rows(columns, len(labels))
        print_text(summary)
    elif out is None or str(out) == "-":
        write_columns(Path("-"), columns)
    else:
        print_text(f"{out}: {summary}")


def _watch_at(watches: tuple[Watch, ...], theta: float | None, min_size: int, store: Path) -> Watch:
    """Return the watch of a store with this theta, and this minimal size unless that is 1."""
    for watch in watches:
        if watch.theta == theta and min_size in (1, watch.min_size):
            return watch
    there = ", ".join(f"theta {w.theta:g} with min_size {w.min_size}" for w in watches)
    raise ValueError(
        f"{store} has no such watch, only {there}" if there else
        f"{store} has no watch; make one with: dynhac tail {store} --theta {theta:g}"
    )  # fmt: skip


def _print_rows(columns: dict[str, NDArray[Any]], count: int) -> None:
    """List the first rows."""
    names = [name for name in columns if not name.startswith("nearest")]
    nearest = [column for name, column in columns.items() if name.startswith("nearest")]
    rows = []
    for i in range(min(count, MAX_ROWS)):
        cells = [columns[name][i] for name in names]
        row = [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells]
        rows.append([*row, ", ".join(str(column[i]) for column in nearest)])
    if rows:
        print_table((*names, "ids"), rows, 3)
    if count > len(rows):
        print_text(f"... and {count - len(rows):,} more; -o FILE writes all of them")
