"""``dynhac demo`` and ``dynhac build``: the first steps."""

from __future__ import annotations

import os
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from dynhac.cli.command import add_command
from dynhac.cli.options import CHANGE, BatchSize, Data, IdColumn, Json, TimeColumn


class Kind(str, Enum):
    """What a store holds."""

    auto = "auto"
    points = "points"
    graph = "graph"


class Metric(str, Enum):
    """How distance is measured."""

    euclidean = "euclidean"
    cosine = "cosine"
    inner_product = "inner_product"


class Backend(str, Enum):
    """What finds the nearest neighbours."""

    auto = "auto"
    exact = "exact"
    kd = "kd"
    usearch = "usearch"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo-output"),
    generated: Annotated[
        bool, typer.Option("--generated", help="Use generated pictures, not the digits.")
    ] = False,
) -> None:
    """Watch the library at work on pictures that come and go."""
    from importlib.util import find_spec

    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # no bars in a file
    from dynhac import demo as show

    real = not generated and find_spec("sklearn") is not None
    show.run(show.handwritten_digits() if real else show.generated_glyphs(), out)


def build(
    data: Data,
    store: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="STORE", help="Folder of the new store.", show_default=False
        ),
    ],
    epsilon: Annotated[
        float, typer.Option("-e", "--epsilon", help="How far from the best a merge may be.")
    ] = 0.1,
    threshold: Annotated[
        float | None,
        typer.Option(
            "-t",
            "--threshold",
            help="Similarity below which nothing need be merged (points: 0.01; graph: 0.0001).",
            show_default=False,
        ),
    ] = None,
    neighbors: Annotated[
        int, typer.Option("-k", "--neighbors", help="Nearest neighbours that a point is joined to.")
    ] = 50,
    metric: Annotated[
        Metric,
        typer.Option(
            "-m", "--metric", metavar="NAME", help="Distance: euclidean, cosine or inner_product."
        ),
    ] = Metric.euclidean,
    similarity: Annotated[
        str | None,
        typer.Option(
            "-s",
            "--similarity",
            metavar="NAME",
            help="How a distance becomes a similarity: inverse, gaussian, gaussian:SIGMA, cosine "
            "or dot; by default inverse, or dot for inner products.",
            show_default=False,
        ),
    ] = None,
    max_points: Annotated[
        int | None,
        typer.Option(help="Window: keep this many points, the newest.", show_default=False),
    ] = None,
    max_age: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Window: let points go that are older than this, in units of their timestamps, "
            "or as a time such as 90s, 15m, 12h, 7d.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        Kind,
        typer.Option(
            metavar="NAME",
            help="What DATA is: points, graph, or auto: a graph if there are columns u and v.",
        ),
    ] = Kind.auto,
    backend: Annotated[
        Backend,
        typer.Option(metavar="NAME", help="What finds the neighbours: exact, kd, usearch or auto."),
    ] = Backend.auto,
    repair: Annotated[
        bool, typer.Option(help="Join points anew that deletions leave with few edges.")
    ] = True,
    threads: Annotated[int, typer.Option(help="Threads for a large update.")] = 1,
    id_column: IdColumn = "id",
    time_column: TimeColumn = "timestamp",
    batch_size: BatchSize = None,
    json: Json = False,
) -> None:
    """Cluster a file and keep the result in a new store.

    DATA is vectors, one row each, or the edges of a graph in columns u, v and w. Text files may
    name their columns in the first line; a column "id" has the ids (all int or all str), a column
    "timestamp" the times, and the others are the vector. An .npz file has arrays X, ids and
    timestamps, or u, v and w.
    """
    from dynhac.cli.columns import keep_names
    from dynhac.cli.data import Columns, read_data
    from dynhac.cli.parse import age_of, similarity_of
    from dynhac.cli.rows import apply_rows
    from dynhac.cli.stores import building, named
    from dynhac.cli.update import report
    from dynhac.input.errors import counted

    rows = read_data(data, Columns(id_column, time_column))
    wanted = rows.kind if kind is Kind.auto else kind.value
    needed = {
        "points": "points need columns of numbers, or an array X",
        "graph": "a graph needs columns u, v and w",
    }
    rows.require(wanted, needed[wanted])
    parameters: dict[str, Any] = {"epsilon": epsilon, "threads": threads}
    if threshold is not None:
        parameters["threshold"] = threshold
    of_points = {
        "n_neighbors": neighbors,
        "metric": metric.value,
        "similarity": similarity_of(similarity),
        "max_points": max_points,
        "max_age": age_of(max_age),
        "neighbors": backend.value,
        "repair": repair,
    }
    if wanted == "points":
        parameters |= of_points
    else:
        _refuse_for_graph(of_points)
    with building(store, wanted, parameters) as new:
        keep_names(Path(new.path), rows)
        told = apply_rows(new, rows, batch_size=batch_size)
        told |= {"store": str(store), "kind": wanted}
        edges = new.level_sizes[0][1] if new.level_sizes else 0
        text = f"{store}: {named(new, len(new))}, {counted(edges, 'edge', 'edges')}"
    report(told | {"edges": edges}, json, f"{text}, in {told['seconds']:.2f} s")


def _refuse_for_graph(of_points: dict[str, Any]) -> None:
    """Raise if an option that only points have was given for a graph."""
    usual = {
        "n_neighbors": 50,
        "metric": "euclidean",
        "similarity": None,
        "max_points": None,
        "max_age": None,
        "neighbors": "auto",
        "repair": True,
    }
    flags = {"n_neighbors": "neighbors", "neighbors": "backend", "repair": "no-repair"}
    for name, value in of_points.items():
        if value != usual[name]:
            flag = flags.get(name, name.replace("_", "-"))
            raise ValueError(f"--{flag} is for points; DATA is a graph, which has its edges")


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    add_command(app, demo, [("A minute of clustering", "dynhac demo")], CHANGE)
    add_command(
        app,
        build,
        [
            ("Cluster the rows of an array", "dynhac build points.npy -o my.store"),
            ("Embeddings, by the cosine", "dynhac build e.parquet -o e.store -m cosine -s cosine"),
            ("A graph: columns u, v, w", "dynhac build edges.csv -o graph.store"),
            ("A window of a week", "dynhac build log.csv -o log.store --max-age 7d"),
            ("From another program", "cat points.csv | dynhac build - -o my.store"),
        ],
        CHANGE,
    )
