"""``dynhac predict``: the clusters that the rows of a file would be in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from dynhac.cli.command import command, errors_in
from dynhac.cli.layout import Layout, load_layout
from dynhac.cli.options import (
    INSPECT,
    ColumnsFile,
    DataFile,
    Header,
    IdColumn,
    Ignore,
    Json,
    MinSize,
    NClusters,
    StorePath,
    Theta,
    TimeColumn,
    VectorColumn,
    check_cut,
)
from dynhac.cli.output import print_columns, print_table, print_text
from dynhac.cli.parse import parse_patience
from dynhac.cli.read_table import read_table
from dynhac.cli.stores import is_points, open_store
from dynhac.input.errors import counted
from dynhac.watch.parameters import WatchParameters

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
    n_clusters: NClusters = None,
    min_size: MinSize = 1,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Use the watch of the store at --theta, and its cluster ids."),
    ] = False,
    patience: Annotated[
        str | None,
        typer.Option(
            metavar="UPDATES|TIME", help="That of the watch, if there are several at --theta."
        ),
    ] = None,
    nearest: Annotated[
        int, typer.Option("--nearest", "-k", min=0, help="Neighbours to show for each row.")
    ] = 3,
    out: ColumnsFile = None,
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
    check_cut(theta, n_clusters)
    if watch and theta is None:
        raise typer.BadParameter("--watch needs --theta SIMILARITY")
    if patience is not None and not watch:
        raise typer.BadParameter("--patience needs --watch")
    given = Layout(id_column, time_column, vector_column, tuple(ignore or ()), header=header)
    table = read_table(data, load_layout(store, given))
    with open_store(store) as opened:
        if not is_points(opened):
            raise ValueError(f"{store} holds a graph; predict needs a store of points")
        table.require("points", "predict needs vectors")
        model: Any = opened
        cut: dict[str, Any] = {"theta": theta, "n_clusters": n_clusters, "min_size": min_size}
        if watch:
            wanted = WatchParameters.read(
                model.threshold, theta, min_size, parse_patience(patience)
            )
            cut = {"watch": _watch_like(wanted, model.watches, store)}
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
    if out is not None and out.suffix.lower() == ".npy":
        columns = {"label": labels}
    inside = int((labels >= 0).sum())
    summary = f"{counted(len(labels), 'row', 'rows')}, {inside:,} in clusters"

    def show() -> None:
        _print_rows(columns, len(labels))
        print_text(summary)

    print_columns(
        columns,
        out,
        json,
        summary=summary,
        facts={"rows": len(labels), "in_clusters": inside, "update": update},
        rows=lambda: {
            first[0] + "s": first[1],
            "labels": labels,
            "scores": scores,
            "nearest": neighbors.ids[:, :shown],
            "similarities": neighbors.similarities[:, :shown],
        },
        show=show,
    )


def _watch_like(wanted: WatchParameters, watches: tuple[Watch, ...], store: Path) -> Watch:
    """Return the watch with these parameters; any minimal size or patience fits if it is not given.

    A minimal size of 1, and no patience, are not given.
    """
    for watch in watches:
        if watch._parameters == wanted:
            return watch
    fitting = [watch for watch in watches if _fits(watch._parameters, wanted)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ValueError(
            f"{store} has several such watches: {_listed(fitting)}; give --min-size, --patience"
        )
    raise ValueError(
        f"{store} has no such watch, only {_listed(watches)}" if watches else
        f"{store} has no watch; make one with: dynhac tail {store} --theta {wanted.theta:g}"
    )  # fmt: skip


def _fits(watch: WatchParameters, wanted: WatchParameters) -> bool:
    return (
        watch.theta == wanted.theta
        and wanted.min_size in (1, watch.min_size)
        and (wanted.patience is None or wanted[2:] == watch[2:])
    )


def _listed(watches: Sequence[Watch]) -> str:
    texts = []
    for watch in watches:
        patience = watch._parameters.patience_text
        texts.append(
            ("automatic" if watch.theta is None else f"theta {watch.theta:g}")
            + f" with min_size {watch.min_size}"
            + ("" if patience is None else f" and patience {patience}")
        )
    return "; ".join(texts)


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
