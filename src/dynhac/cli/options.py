"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

LOOK = "Look"
CHANGE = "Build and change"
STREAM = "Follow"
CARE = "Care"

Store = Annotated[
    Path, typer.Argument(metavar="STORE", help="Folder of the store.", show_default=False)
]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="File: .npy, .npz, .csv, .tsv or .parquet; - for CSV on standard input.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]
At = Annotated[
    float | None,
    typer.Option("--at", metavar="SIMILARITY", help="Cut at this similarity.", show_default=False),
]
MinSize = Annotated[
    int, typer.Option("--min-size", help="Clusters with fewer points do not count.")
]
IdColumn = Annotated[str, typer.Option(help="Column with the ids, if there is one.")]
TimeColumn = Annotated[str, typer.Option(help="Column with the timestamps, if there is one.")]
BatchSize = Annotated[
    int | None,
    typer.Option(
        help="Insert this many rows at a time, with a progress bar. By default all rows are one "
        "batch: all or nothing, and the best neighbours.",
        show_default=False,
    ),
]
