"""Arguments and options that several commands have, and the panels in which help lists commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CHANGE = "Build and change"
INSPECT = "Inspect"
STREAM = "Stream"
EXPORT = "Export and check"

StorePath = Annotated[Path, typer.Argument(metavar="STORE", help="Folder of the store.")]
DataFile = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="File: .npy, .npz, .csv, .tsv or .parquet; - for CSV on standard input.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]
Theta = Annotated[float | None, typer.Option(metavar="SIMILARITY", help="Cut at this similarity.")]
MinSize = Annotated[int, typer.Option(help="Ignore clusters with fewer points.")]
IdColumn = Annotated[str, typer.Option(help="Name of the column of ids, if there is one.")]
TimeColumn = Annotated[str, typer.Option(help="Name of the column of timestamps, if there is one.")]
BatchSize = Annotated[
    int | None,
    typer.Option(
        help="Insert this many rows at a time. By default all rows are one batch: all or none are "
        "inserted, and neighbours are searched among all of them."
    ),
]
