"""``dynhac spark-build``: the hierarchy of a graph of any size, on Spark."""

from __future__ import annotations

import os
import sys
import time
from typing import Annotated, Any

import typer

from dynhac.cli.command import command
from dynhac.cli.options import EXPORT, Json
from dynhac.cli.output import print_json, print_text
from dynhac.cli.parameters import EPSILON, THRESHOLD
from dynhac.extras import optional
from dynhac.input.errors import counted
from dynhac.spark.build import BUCKET_EDGES, LOCAL_EDGES, MAX_ROUNDS, PART_EDGES, build
from dynhac.spark.folder import arrow_only, reason


@command(
    EXPORT,
    ("Edges in Parquet, in a session of its own", "dynhac spark-build edges.parquet tree"),
    ("Edges in CSV, on two cores", "dynhac spark-build edges.csv tree --master 'local[2]'"),
    (
        "On a cluster",
        "spark-submit --master yarn $DYNHAC/cli/__main__.py spark-build s3a://b/edges s3a://b/tree",
    ),
)
def spark_build(
    edges: Annotated[
        str,
        typer.Argument(
            metavar="EDGES",
            help="Parquet, or CSV with a header if the name ends in .csv or .csv.gz: columns u, v "
            "and w, or source, target and weight.",
        ),
    ],
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder of the result.")],
    epsilon: Annotated[float, EPSILON] = 0.1,
    threshold: Annotated[float, THRESHOLD] = 0.0,
    resolution: Annotated[
        float | None,
        typer.Option(help="Round weights to multiples of this (default: the finest that fits)."),
    ] = None,
    part_edges: Annotated[
        int, typer.Option(help="Edges of a part, inside of which one worker merges.")
    ] = PART_EDGES,
    bucket_edges: Annotated[
        int, typer.Option(help="Edges that a worker gets at a time.")
    ] = BUCKET_EDGES,
    local_edges: Annotated[
        int, typer.Option(help="Edges that one worker can hold: with fewer left, one finishes.")
    ] = LOCAL_EDGES,
    max_rounds: Annotated[int, typer.Option(help="Stop after so many rounds.")] = MAX_ROUNDS,
    verify: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", min=0, max=1, help="Check this share of the result, from 0 to 1."
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(help="Master of a session of its own (default: that of spark-submit)."),
    ] = None,
    json: Json = False,
) -> None:
    """Cluster a graph that one machine cannot hold, with Apache Spark.

    OUT gets the merges as Parquet. If it holds a build that was interrupted, that goes on. Needs
    Java 17 and dynhac[spark]; the workers need dynhac[spark] too.
    """
    optional("pyarrow", "spark", "dynhac spark-build")
    with arrow_only():
        session = optional("pyspark.sql", "spark", "dynhac spark-build").SparkSession
        running = session.getActiveSession()
        spark = running or _start(session, master)
    try:
        began = time.monotonic()
        tree = build(
            _read(spark, edges),
            path=out,
            epsilon=epsilon,
            threshold=threshold,
            resolution=resolution,
            part_edges=part_edges,
            bucket_edges=bucket_edges,
            local_edges=local_edges,
            max_rounds=max_rounds,
            progress=True,
        )
        seconds = time.monotonic() - began
        report = None if verify is None else tree.verify(verify)
    finally:
        if running is None:
            spark.stop()
    result = {
        "vertices": tree.n_leaves,
        "merges": tree.n_merges,
        "rounds": tree.rounds,
        "resolution": tree.resolution,
        "seconds": round(seconds, 3),
    }
    if json:
        print_json(result if report is None else result | {"verified": report.ok})
    else:
        print_text(
            f"{out}: {counted(tree.n_leaves, 'vertex', 'vertices')}, "
            f"{counted(tree.n_merges, 'merge', 'merges')} in "
            f"{counted(tree.rounds, 'round', 'rounds')}, weights rounded to multiples of "
            f"{tree.resolution:g}; {seconds:.1f} s"
        )
        if report is not None:
            print_text(str(report))
    if report is not None and not report.ok:
        raise typer.Exit(1)


def _start(session: Any, master: str | None) -> Any:
    """Return a new session; if it is local, its workers are this Python, and Spark is quiet."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    local = not submitted and (master is None or master.startswith("local"))
    if local:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = session.builder.appName("dynhac spark-build")
    builder = builder.config("spark.ui.showConsoleProgress", "false")  # `build` has its own
    try:
        spark = (builder if master is None else builder.master(master)).getOrCreate()
    except Exception as error:  # any of Java
        raise ValueError(f"Spark cannot start: {reason(error)}") from error
    if local:  # it warns, with a stack trace, of every file that is not there yet
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def _read(spark: Any, edges: str) -> Any:
    """Return the edges in a file or folder."""
    try:
        if edges.endswith((".csv", ".csv.gz")):
            return spark.read.csv(edges, header=True, inferSchema=True)
        return spark.read.parquet(edges)
    except Exception as error:  # any of Java
        raise ValueError(f"{edges}: {reason(error)}") from error
