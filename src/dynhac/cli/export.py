"""``dynhac export``: the hierarchy for other programs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynhac.cli.command import add_command
from dynhac.cli.options import CARE, Json, Store

if TYPE_CHECKING:
    from dynhac.dendrogram.dendrogram import Dendrogram


class Format(str, Enum):
    """What other programs read."""

    newick = "newick"
    parquet = "parquet"
    scipy = "scipy"


ENDINGS = {
    ".nwk": Format.newick,
    ".newick": Format.newick,
    ".tree": Format.newick,
    ".parquet": Format.parquet,
    ".pq": Format.parquet,
    ".npy": Format.scipy,
    ".npz": Format.scipy,
}


def export(
    store: Store,
    out: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to write; - for standard output (newick).",
            show_default=False,
        ),
    ],
    format: Annotated[
        Format | None,
        typer.Option(
            "-f",
            "--format",
            metavar="NAME",
            help="newick, parquet or scipy; by default what FILE ends in.",
            show_default=False,
        ),
    ] = None,
    join: Annotated[
        bool, typer.Option("--join", help="newick: hang several trees on one root.")
    ] = False,
    join_distance: Annotated[
        float, typer.Option(help="scipy: the distance at which separate trees are joined.")
    ] = float("inf"),
    json: Json = False,
) -> None:
    """Write the whole hierarchy to a file.

    newick: text, for programs that draw trees. parquet: a table with a row for every node. scipy:
    the matrix of scipy.cluster.hierarchy, in an .npy file, or in an .npz file (arrays linkage and
    ids) with the ids.
    """
    from dynhac.cli.output import show, show_json
    from dynhac.cli.stores import reading

    wanted = format or (Format.newick if str(out) == "-" else ENDINGS.get(out.suffix.lower()))
    if wanted is None:
        raise typer.BadParameter(f"{out} does not tell the format; give --format")
    if wanted is not Format.newick and str(out) == "-":
        raise typer.BadParameter(f"{wanted.value} is not text; give a file to write to")
    with reading(store) as opened:
        tree = opened.dendrogram()
    _write(tree, out, wanted, join, join_distance)
    if json and str(out) != "-":
        show_json({"file": str(out), "format": wanted.value, "leaves": tree.n_leaves})
    elif str(out) != "-":
        show(f"{out}: {tree!r}"[:-1].replace(": <Dendrogram", ""))


def _write(tree: Dendrogram, out: Path, wanted: Format, join: bool, join_distance: float) -> None:
    import numpy as np

    from dynhac.cli.output import write_file, write_text

    if wanted is Format.newick:
        text = tree.to_newick(join=join) + "\n"
        if str(out) == "-":
            write_text(text)
        else:
            write_file(out, lambda file: _write_text(file, text))
    elif wanted is Format.parquet:
        write_file(out, tree.to_parquet)
    else:
        matrix = tree.linkage(join_distance=join_distance)
        if out.suffix.lower() == ".npz":
            ids = tree.ids.astype(str) if tree.ids.dtype == object else tree.ids
            write_file(out, lambda file: np.savez(file, linkage=matrix, ids=ids))
        else:
            write_file(out, lambda file: _save(file, matrix))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _save(path: Path, matrix: object) -> None:
    import numpy as np

    with path.open("wb") as file:  # np.save would add an ending to the name
        np.save(file, matrix)  # type: ignore[arg-type]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    add_command(
        app,
        export,
        [
            ("For a program that draws trees", "dynhac export my.store -o tree.nwk"),
            ("A table of all nodes", "dynhac export my.store -o tree.parquet"),
            ("For scipy, with the ids", "dynhac export my.store -f scipy -o tree.npz"),
        ],
        CARE,
    )
