"""``dynhac insert``, ``update`` and ``delete``."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from dynhac.cli.batches import apply_table, print_result, store_facts
from dynhac.cli.command import command, errors_in
from dynhac.cli.layout import Layout, load_layout
from dynhac.cli.options import (
    CHANGE,
    BatchSize,
    DataFile,
    Header,
    IdColumn,
    Ignore,
    Json,
    Payload,
    PayloadColumns,
    StorePath,
    TimeColumn,
    VectorColumn,
    payload_names,
)
from dynhac.cli.read_table import read_table
from dynhac.cli.stores import AnyStore, has_str_ids, is_points, open_store
from dynhac.cli.table import Table


@command(
    CHANGE,
    ("Add the rows of a file", "dynhac insert my.store more.npy"),
    ("In several batches", "dynhac insert my.store more.csv --batch-size 1000"),
    ("Add edges to a graph", "dynhac insert graph.store more_edges.csv"),
)
def insert(
    store: StorePath,
    data: DataFile,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    vector_column: VectorColumn = None,
    ignore: Ignore = None,
    payload: Payload = False,
    payload_column: PayloadColumns = None,
    header: Header = None,
    batch_size: BatchSize = None,
    json: Json = False,
) -> None:
    """Insert points, or vertices and edges.

    If an id is in the store already, nothing is inserted; see update. In a graph, an edge that
    exists gets the new weight.
    """
    given = Layout(
        id_column,
        time_column,
        vector_column,
        tuple(ignore or ()),
        header=header,
        payload=payload_names(payload, payload_column),
    )
    table = read_table(data, load_layout(store, given))
    with open_store(store, "w") as opened:
        _require_kind(opened, table)
        result = apply_table(opened, table, batch_size=batch_size)
    print_result(store, result, json)


@command(
    CHANGE,
    ("New vectors for ids in the store", "dynhac update my.store changed.parquet"),
    ("Delete others as well", "dynhac update my.store changed.csv --delete gone.csv"),
)
def update(
    store: StorePath,
    data: DataFile,
    delete: Annotated[
        str | None, typer.Option(metavar="FILE", help="Delete the ids in this file too.")
    ] = None,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    vector_column: VectorColumn = None,
    ignore: Ignore = None,
    payload: Payload = False,
    payload_column: PayloadColumns = None,
    header: Header = None,
    json: Json = False,
) -> None:
    """Replace points whose ids are in the store, and insert the others, in one batch.

    Points need ids. In a graph, set the weights of edges, which may be new.
    """
    given = Layout(
        id_column,
        time_column,
        vector_column,
        tuple(ignore or ()),
        header=header,
        payload=payload_names(payload, payload_column),
    )
    table = read_table(data, load_layout(store, given))
    deletions = Table("--delete", ids=[])
    if delete is not None:
        names = Layout(usual_ids=("id",) if id_column is None else (id_column, "id"))
        deletions = read_table(delete, load_layout(store, names), ids_only=True)
        deletions.require("ids", "--delete needs a file of ids")
    with open_store(store, "w") as opened:
        _require_kind(opened, table)
        if is_points(opened) and table.ids is None:
            raise ValueError(f"{table.source} has no ids (column id) that tell which points to "
                             "replace; to add points use: dynhac insert")  # fmt: skip
        with errors_in(deletions.source):
            ids = deletions.typed(has_str_ids(opened)).ids
        result = apply_table(opened, table, delete=ids, replace=True)
    print_result(store, result, json)


@command(
    CHANGE,
    ("Delete the ids in a file", "dynhac delete my.store gone.csv"),
    ("Delete two points", "dynhac delete my.store --id 17 --id 23"),
)
def delete(
    store: StorePath,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="File with a column id, an array ids, or one id in each line; for edges of a "
            "graph with columns u and v.",
        ),
    ] = None,
    id: Annotated[list[str] | None, typer.Option(help="An id to delete; can be repeated.")] = None,
    id_column: IdColumn = None,
    json: Json = False,
) -> None:
    """Delete points, vertices or edges."""
    if (data is None) == (not id):
        raise typer.BadParameter("give a file of ids, or --id once or more")
    table = Table("--id", ids=id, untyped_ids=True)
    if data is not None:
        table = read_table(data, load_layout(store, Layout(id_column)), ids_only=True)
    with open_store(store, "w") as opened:
        if is_points(opened):
            table.require("ids", f"{store} holds points, which are deleted by their ids")
        start = time.perf_counter()
        with errors_in(table.source):
            table = table.typed(has_str_ids(opened))
            model: Any = opened
            result: dict[str, Any] = {"deleted": len(table)}
            if table.kind == "graph":
                model.remove_edges(table.u, table.v)
                result = {"deleted_edges": len(table)}
            elif is_points(opened):
                result["repaired"] = len(model.delete(table.ids).repaired)
            else:
                model.remove(table.ids)
        result |= store_facts(opened, start)
    print_result(store, result, json)


def _require_kind(store: AnyStore, table: Table) -> None:
    """Raise if a table does not hold what the store does."""
    if is_points(store):
        table.require("points", f"{store.path} holds points, which need vectors")
    else:
        table.require("graph", f"{store.path} holds a graph, which needs columns u, v and w, or "
                      "source, target and weight")  # fmt: skip
