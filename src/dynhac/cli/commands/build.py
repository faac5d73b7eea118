"""``dynhac demo`` and ``dynhac build``."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from dynhac.cli.batches import apply_table, print_result
from dynhac.cli.command import command, option_of
from dynhac.cli.layout import Layout, save_layout
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
    TimeColumn,
    VectorColumn,
    payload_names,
)
from dynhac.cli.parameters import (
    BACKEND,
    EPSILON,
    KIND,
    MAX_AGE,
    MAX_POINTS,
    METRIC,
    NEIGHBORS,
    REPAIR,
    SIMILARITY,
    THREADS,
    THRESHOLD,
    Backend,
    Kind,
    Metric,
)
from dynhac.cli.parse import parse_age, parse_similarity
from dynhac.cli.read_table import read_table
from dynhac.cli.stores import create_store, size_text
from dynhac.input.errors import counted

REQUIREMENTS = {
    "points": "points need columns of numbers, or an array X",
    "graph": "a graph needs columns u, v and w, or source, target and weight",
}


@command(CHANGE, ("Takes about a minute", "dynhac demo"))
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo-output"),
    generated: Annotated[
        bool, typer.Option("--generated", help="Use generated images, not handwritten digits.")
    ] = False,
) -> None:
    """Cluster images that are inserted and deleted, and draw the result."""
    from dynhac import demo

    digits = not generated and find_spec("sklearn") is not None
    demo.run(demo.handwritten_digits() if digits else demo.generated_glyphs(), out)


@command(
    CHANGE,
    ("Cluster the rows of an array", "dynhac build points.npy -o my.store"),
    ("Embeddings, by cosine", "dynhac build e.parquet -o e.store -m cosine -s cosine"),
    ("A graph: columns u, v, w", "dynhac build edges.csv -o graph.store"),
    ("A window of a week", "dynhac build log.csv -o log.store --max-age 7d"),
    ("From another program", "cat points.csv | dynhac build - -o my.store"),
)
def build(
    data: DataFile,
    store: Annotated[
        Path, typer.Option("-o", "--output", metavar="STORE", help="Folder of the new store.")
    ],
    epsilon: Annotated[float, EPSILON] = 0.1,
    threshold: Annotated[float | None, THRESHOLD] = None,
    n_neighbors: Annotated[int, NEIGHBORS] = 50,
    metric: Annotated[Metric, METRIC] = Metric.euclidean,
    similarity: Annotated[str | None, SIMILARITY] = None,
    max_points: Annotated[int | None, MAX_POINTS] = None,
    max_age: Annotated[str | None, MAX_AGE] = None,
    kind: Annotated[Kind, KIND] = Kind.auto,
    neighbors: Annotated[Backend, BACKEND] = Backend.auto,
    repair: Annotated[bool, REPAIR] = True,
    threads: Annotated[int | None, THREADS] = None,
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
    """Cluster a file and keep the result in a new store.

    DATA holds vectors, one in each row, or the edges of a graph in columns u, v and w (or source,
    target and weight). The column "id" has the ids (all int or all str), the column "timestamp" the
    timestamps. The vector is a column of lists, or all columns of numbers; text is ignored. An .npz
    file has arrays X, ids and timestamps, or u, v and w. The store remembers the names of the
    columns for later files.
    """
    wanted = None if kind is Kind.auto else kind.value
    columns = Layout(
        id_column,
        time_column,
        vector_column,
        tuple(ignore or ()),
        wanted,
        header,
        payload=payload_names(payload, payload_column),
    )
    table = read_table(data, columns)
    kind_name = table.kind if kind is Kind.auto else kind.value
    table.require(kind_name, REQUIREMENTS[kind_name])
    parameters: dict[str, Any] = {"epsilon": epsilon, "threads": threads}
    if threshold is not None:
        parameters["threshold"] = threshold
    point_parameters = {
        "n_neighbors": n_neighbors,
        "metric": metric.value,
        "similarity": parse_similarity(similarity),
        "max_points": max_points,
        "max_age": parse_age(max_age),
        "neighbors": neighbors.value,
        "repair": repair,
    }
    if kind_name == "points":
        parameters |= point_parameters
    else:
        declared = inspect.signature(build.run).parameters
        for name, value in point_parameters.items():
            if value != declared[name].default:
                raise ValueError(f"{option_of(name)} is for points; DATA is a graph")
    with create_store(store, kind_name, parameters) as new:
        save_layout(Path(new.path), table.roles)
        result = apply_table(new, table, batch_size=batch_size)
        edges = new.level_sizes[0][1] if new.level_sizes else 0
        text = f"{store}: {size_text(new)}, {counted(edges, 'edge', 'edges')}"
    result |= {"kind": kind_name, "edges": edges}
    print_result(store, result, json, f"{text}, in {result['seconds']:.2f} s")
