"""``dynhac export``: the hierarchy in the formats of other programs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from dynhac import DynHAC
from dynhac.cli.command import command
from dynhac.cli.options import EXPORT, Json, StorePath, output_option
from dynhac.cli.output import (
    print_json,
    print_text,
    to_json,
    utf8,
    write_arrays,
    write_columns,
    write_file,
    write_stdout,
)
from dynhac.cli.printable import printable
from dynhac.cli.stores import AnyStore, open_store
from dynhac.input.errors import counted


class Format(str, Enum):
    """Formats of other programs."""

    newick = "newick"
    parquet = "parquet"
    points = "points"
    scipy = "scipy"


ENDINGS = {
    Format.newick: (".nwk", ".newick", ".tree"),
    Format.parquet: (".parquet", ".pq"),
    Format.points: (".jsonl", ".ndjson"),
    Format.scipy: (".npy", ".npz"),
}
"""Formats, and the endings of their files."""

POINT_ENDINGS = (*ENDINGS[Format.points], *ENDINGS[Format.parquet])

LISTED = "; ".join(f"{format.value} ({', '.join(ends)})" for format, ends in ENDINGS.items())


@command(
    EXPORT,
    ("For a program that draws trees", "dynhac export my.store -o tree.nwk"),
    ("A table of all nodes", "dynhac export my.store -o tree.parquet"),
    ("The points, with their payloads", "dynhac export my.store -o points.jsonl"),
    ("For scipy, with the ids", "dynhac export my.store -f scipy -o tree.npz"),
)
def export(
    store: StorePath,
    out: Annotated[Path, output_option("File to write; - for standard output (newick).")],
    format: Annotated[
        Format | None,
        typer.Option(
            "-f",
            "--format",
            metavar="NAME",
            help=f"By default according to the ending of FILE: {LISTED}.",
        ),
    ] = None,
    join: Annotated[
        bool, typer.Option("--join", help="newick: join separate trees under one root.")
    ] = False,
    join_distance: Annotated[
        float, typer.Option(help="scipy: the distance at which separate trees are joined.")
    ] = float("inf"),
    json: Json = False,
) -> None:
    """Write the whole hierarchy to a file.

    newick: text, for programs that draw trees. parquet: a table with a row for every node. scipy:
    the linkage matrix of scipy.cluster.hierarchy, in an .npy file, or with the ids in an .npz file
    (arrays linkage and ids). points: ids, vectors, timestamps and payloads, as lines of JSON, or
    with --format points in a .parquet file; dynhac build --payload reads them.
    """
    to_stdout = str(out) == "-"
    by_ending = {ending: format for format, endings in ENDINGS.items() for ending in endings}
    chosen = format or (Format.newick if to_stdout else by_ending.get(out.suffix.lower()))
    if chosen is None:
        raise typer.BadParameter(
            f"{printable(str(out))} does not tell the format; give --format, or one of the endings "
            f"of {LISTED}"
        )
    if chosen is not Format.newick and to_stdout:
        raise typer.BadParameter(f"{chosen.value} is not text; give a file to write to")
    if chosen is Format.points and out.suffix.lower() not in POINT_ENDINGS:
        raise ValueError(f"{out}: points are written to {', '.join(POINT_ENDINGS)} files")
    with open_store(store) as opened:
        tree = opened.dendrogram()
        points = _points(opened, out) if chosen is Format.points else {}
    if chosen is Format.points:
        write_columns(out, points)
        text = f"{out}: {counted(len(points['id']), 'row', 'rows')}"
        facts = {"rows": len(points["id"])}
        print_json({"file": str(out), "format": chosen.value} | facts) if json else print_text(text)
        return
    if chosen is Format.newick:
        text = tree.to_newick(join=join) + "\n"
        if to_stdout:
            write_stdout(text)
            return
        write_file(out, lambda file: file.write_bytes(utf8(text)))
    elif chosen is Format.parquet:
        write_file(out, tree.to_parquet)
    else:
        write_arrays(out, {"ids": tree.ids, "linkage": tree.linkage(join_distance=join_distance)})
    if json:
        print_json({"file": str(out), "format": chosen.value, "leaves": tree.n_leaves})
    else:
        leaves, merges = tree.n_leaves, len(tree)
        print_text(
            f"{out}: {counted(leaves, 'leaf', 'leaves')}, {counted(merges, 'merge', 'merges')}, "
            f"{counted(leaves - merges, 'tree', 'trees')}"
        )


def _points(store: AnyStore, out: Path) -> dict[str, NDArray[Any]]:
    """Return the points of a store as columns of a file.

    Payloads are objects in lines of JSON, and JSON text in Parquet, whose columns have one type.
    """
    columns: dict[str, NDArray[Any]] = {"id": store.ids}
    if isinstance(store, DynHAC):
        vectors = np.empty(len(store), object)
        vectors[:] = list(store.vectors().astype(float).tolist())
        columns["vector"] = vectors
        if store.timestamps is not None:
            columns["timestamp"] = store.timestamps
    payloads = store.payloads(columns["id"])
    if any(payloads):
        as_text = out.suffix.lower() in ENDINGS[Format.parquet]
        cells = [to_json(each) if as_text and each is not None else each for each in payloads]
        columns["payload"] = np.array([*cells, None], object)[:-1]
    return columns
