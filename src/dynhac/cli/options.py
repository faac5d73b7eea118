"""Arguments and options that several commands have, and the panels in which help lists commands."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from dynhac.cli.output import COLUMN_ENDINGS
from dynhac.dendrogram.selection import DEFAULT_MIN_SIZE

CHANGE = "Build and change"
INSPECT = "Inspect"
STREAM = "Stream"
EXPORT = "Export and check"


class NoiseRule(str, Enum):
    """What becomes of points that are in no cluster."""

    nearest = "nearest"


StorePath = Annotated[Path, typer.Argument(metavar="STORE", help="Folder of the store.")]
DataFile = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="File: .csv, .tsv, .jsonl (each also with .gz), .parquet, .arrow, .npy or .npz; - for "
        "CSV or lines of JSON on standard input.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]
Theta = Annotated[float | None, typer.Option(metavar="SIMILARITY", help="Cut at this similarity.")]
NClusters = Annotated[
    int | None, typer.Option("--clusters", "-n", help="Cut into this many clusters.")
]
Conductance = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Cut at this conductance, from 0 to 1, the least share of its weight by which the "
        "smaller side of a merge is joined: independent of the scale of the similarities.",
    ),
]
MinSize = Annotated[
    int | None,
    typer.Option(
        help=f"Ignore clusters with fewer points (default: {DEFAULT_MIN_SIZE} for automatic "
        "clusters, otherwise 1)."
    ),
]
Noise = Annotated[
    NoiseRule | None,
    typer.Option(metavar="nearest", help="Put points that are in no cluster into the nearest one."),
]
IdColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column of the ids (default: id, if it is there)."),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Column of the timestamps (default: timestamp, if it is there)."
    ),
]
VectorColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column whose entries are vectors: lists, or JSON text such as [0.1, 0.2] (default: "
        "the only column of lists, or all columns of numbers).",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Column that is not used; can be repeated."),
]
Payload = Annotated[
    bool,
    typer.Option(
        "--payload", help="Keep the columns that are not used otherwise as payload of the points."
    ),
]
PayloadColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--payload-column",
        metavar="NAME",
        help="Column to keep as payload of the points; can be repeated.",
    ),
]
Show = Annotated[
    list[str] | None,
    typer.Option("--show", metavar="FIELD", help="Payload field to show; can be repeated."),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of CSV names the columns (default: if not all are numbers).",
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        help="Insert this many rows at a time. By default all rows are one batch: all or none are "
        "inserted, and neighbours are searched among all of them."
    ),
]


def payload_names(payload: bool, columns: list[str] | None) -> tuple[str, ...] | None:
    """Return the columns of the payload as `Layout` has them, or raise."""
    if payload and columns:
        raise typer.BadParameter("give either --payload or --payload-column NAME")
    return tuple(columns) if columns else () if payload else None


def output_option(help: str) -> Any:
    """Return the option for the file that a command writes."""
    return typer.Option("-o", "--output", metavar="FILE", help=help)


ColumnsFile = Annotated[
    Path | None,
    output_option(
        f"Write the table to a file that ends in {COLUMN_ENDINGS} (of which .npy has only the "
        "labels); - for CSV on standard output."
    ),
]


def cut_arguments(
    theta: float | None,
    n_clusters: int | None,
    conductance: float | None,
    min_size: int | None,
    noise: NoiseRule | None,
) -> dict[str, Any]:
    """Return the arguments of the library's `labels`; raise if a cut is given in several ways."""
    cut = {"theta": theta, "n_clusters": n_clusters, "conductance": conductance}
    if sum(value is not None for value in cut.values()) > 1:
        raise typer.BadParameter("give only one of --theta, --clusters and --conductance")
    return cut | {"min_size": min_size, "noise": None if noise is None else noise.value}


def no_clusters_hint(cut: dict[str, Any]) -> str:
    """Return what to say about an automatic choice without clusters; empty for other cuts."""
    if any(cut[name] is not None for name in ("theta", "n_clusters", "conductance")):
        return ""
    least = DEFAULT_MIN_SIZE if cut["min_size"] is None else cut["min_size"]
    return f"no clusters of at least {least:,} points; try a smaller --min-size, or --theta"
