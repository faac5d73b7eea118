"""``dynhac insert``, ``delete`` and ``update``: what changes a store.

A file is one batch, all of it or nothing, unless a batch size is given.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynhac.cli.command import add_command
from dynhac.cli.options import CHANGE, BatchSize, Data, IdColumn, Json, Store, TimeColumn

if TYPE_CHECKING:
    from dynhac.cli.data import Data as Rows
    from dynhac.cli.stores import AnyStore

SHOWN_IDS = 20
"""New ids that are listed; of more only the first and last."""

DeleteFile = Annotated[
    str | None,
    typer.Option("--delete", metavar="FILE", help="Delete these ids too.", show_default=False),
]


def insert(
    store: Store,
    data: Data,
    id_column: IdColumn = "id",
    time_column: TimeColumn = "timestamp",
    batch_size: BatchSize = None,
    json: Json = False,
) -> None:
    """Insert points, or vertices and edges.

    An id that is in the store already is an error, and nothing is inserted; see update. In a graph
    an edge that is there gets the new weight.
    """
    from dynhac.cli.rows import apply_rows
    from dynhac.cli.stores import writing

    rows = _read(data, id_column, time_column)
    with writing(store) as opened:
        rows = _fitting(opened, rows)
        told = apply_rows(opened, rows, batch_size=batch_size)
    report(told | {"store": str(store)}, json)


def update(
    store: Store,
    data: Data,
    delete: DeleteFile = None,
    id_column: IdColumn = "id",
    time_column: TimeColumn = "timestamp",
    json: Json = False,
) -> None:
    """Replace points that are there, insert those that are not; one batch, all or nothing.

    Points need ids for that. In a graph, set the weights of edges, old and new.
    """
    from dynhac.cli.data import ids_for, read_data
    from dynhac.cli.rows import apply_rows
    from dynhac.cli.stores import has_text_ids, is_points, writing

    rows = _read(data, id_column, time_column)
    gone = None if delete is None else read_data(delete, _columns(id_column), ids_only=True)
    with writing(store) as opened:
        rows = _fitting(opened, rows)
        if is_points(opened) and rows.ids is None:
            raise ValueError(f"{rows.source} has no ids (column {id_column}), so nothing tells "
                             "which points to update; to add points use insert")  # fmt: skip
        leaving: list[Any] = []
        if gone is not None:
            gone.require("ids", "--delete needs a file of ids")
            leaving = list(ids_for(gone.ids, has_text_ids(opened), gone))
        told = apply_rows(opened, rows, delete=leaving, replace=True)
    report(told | {"store": str(store)}, json)


def delete(
    store: Store,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="File with a column id, an array ids, or one id a line; in a graph with columns u "
            "and v: edges.",
            show_default=False,
        ),
    ] = None,
    id: Annotated[
        list[str] | None,
        typer.Option("--id", help="An id to delete; may be given again.", show_default=False),
    ] = None,
    id_column: IdColumn = "id",
    json: Json = False,
) -> None:
    """Delete points, vertices or edges."""
    from dynhac.cli.data import Data as Rows
    from dynhac.cli.data import ids_for, read_data
    from dynhac.cli.rows import state_of
    from dynhac.cli.stores import has_text_ids, is_points, writing

    if (data is None) == (not id):
        raise typer.BadParameter("give a file of ids, or --id once or more")
    rows = Rows("--id", ids=id, untyped=True)
    if data is not None:
        rows = read_data(data, _columns(id_column), ids_only=True)
    with writing(store) as opened:
        start = time.perf_counter()
        text = has_text_ids(opened)
        told: dict[str, Any] = {"deleted": len(rows)}
        model: Any = opened
        if is_points(opened):
            rows.require("ids", "a store of points needs ids")
            change = model.delete(ids_for(rows.ids, text, rows))
            told["repaired"] = len(change.repaired)
        elif rows.kind == "ids":
            model.remove(ids_for(rows.ids, text, rows))
        else:
            model.remove_edges(ids_for(rows.u, text, rows), ids_for(rows.v, text, rows))
            told = {"deleted_edges": len(rows)}
        told |= state_of(opened, start)
    report(told | {"store": str(store)}, json)


def report(told: dict[str, Any], json: bool, text: str | None = None) -> None:
    """Say what happened."""
    from dynhac.cli.output import show, show_json
    from dynhac.input.errors import counted

    if json:
        show_json(told)
        return
    if text is None:
        counts = [
            f"{counted(value, *NOUNS[name])} {word}" if name in NOUNS else f"{value:,} {word}"
            for name, word in WORDS.items()
            if (value := told.get(name, 0)) or (name == "inserted" and name in told)
        ]
        text = f"{told['store']}: {', '.join(counts)}; {told['size']:,} in the store, update " + (
            f"{told['update']}, in {told['seconds']:.2f} s"
        )
    show(text)
    ids = told.get("ids")
    if ids:
        listed = ", ".join(map(str, ids)) if len(ids) <= SHOWN_IDS else f"{ids[0]} to {ids[-1]}"
        show(f"new ids: {listed}")


WORDS = {
    "inserted": "inserted",
    "replaced": "replaced",
    "edges_set": "set",
    "deleted": "deleted",
    "deleted_edges": "deleted",
    "expired": "expired",
    "repaired": "repaired",
}
NOUNS = {"edges_set": ("edge", "edges"), "deleted_edges": ("edge", "edges")}


def _read(path: str, id_column: str, time_column: str) -> Rows:
    from dynhac.cli.data import read_data

    return read_data(path, _columns(id_column, time_column))


def _columns(id_column: str, time_column: str = "timestamp") -> Any:
    from dynhac.cli.data import Columns

    return Columns(id_column, time_column)


def _fitting(store: AnyStore, rows: Rows) -> Rows:
    """Return the rows of a file as the store has its own, or raise if they are of another kind."""
    from dynhac.cli.columns import in_order
    from dynhac.cli.stores import is_points

    if not is_points(store):
        rows.require("graph", f"{store.path} is a store of a graph, which needs columns u, v, w")
        return rows
    rows.require("points", f"{store.path} is a store of points, which needs vectors")
    return in_order(Path(store.path), rows)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    add_command(
        app,
        insert,
        [
            ("Add the rows of a file", "dynhac insert my.store more.npy"),
            ("With a progress bar", "dynhac insert my.store more.csv --batch-size 1000"),
            ("Add edges to a graph", "dynhac insert graph.store more_edges.csv"),
        ],
        CHANGE,
    )
    add_command(
        app,
        update,
        [
            ("New vectors for old ids", "dynhac update my.store changed.parquet"),
            ("Delete others as well", "dynhac update my.store changed.csv --delete gone.csv"),
        ],
        CHANGE,
    )
    add_command(
        app,
        delete,
        [
            ("Delete the ids in a file", "dynhac delete my.store gone.csv"),
            ("Delete two points", "dynhac delete my.store --id 17 --id 23"),
        ],
        CHANGE,
    )
