"""Options for the parameters of a new model, and their names."""

from __future__ import annotations

from enum import Enum

import typer


class Kind(str, Enum):
    """What a store holds."""

    auto = "auto"
    points = "points"
    graph = "graph"


class Metric(str, Enum):
    """Metrics of the distance between vectors."""

    euclidean = "euclidean"
    cosine = "cosine"
    inner_product = "inner_product"


class Backend(str, Enum):
    """Indexes that search the nearest neighbours."""

    auto = "auto"
    exact = "exact"
    kd = "kd"
    cells = "cells"
    usearch = "usearch"
    gpu = "gpu"


EPSILON = typer.Option("-e", "--epsilon", help="Merges are good up to a factor 1 + epsilon.")
THRESHOLD = typer.Option(
    "-t",
    "--threshold",
    help="Similarity below which nothing need be merged (default: 0).",
)
NEIGHBORS = typer.Option(
    "-k", "--neighbors", help="Nearest neighbours to which a point gets edges."
)
METRIC = typer.Option(
    "-m", "--metric", metavar="NAME", help="Distance: euclidean, cosine or inner_product."
)
SIMILARITY = typer.Option(
    "-s",
    "--similarity",
    metavar="NAME",
    help="Similarity of a distance: inverse, gaussian, gaussian:SIGMA, cosine or dot; by "
    "default inverse, or dot for inner products.",
)
MAX_POINTS = typer.Option(help="Window: keep only this many points, the newest.")
MAX_AGE = typer.Option(
    metavar="AGE",
    help="Window: delete points that are older than this, in units of their timestamps, "
    "or as a time span such as 90s, 15m, 12h, 7d.",
)
KIND = typer.Option(
    metavar="NAME",
    help="What DATA holds: points, graph, or auto: a graph if it has columns of edges.",
)
BACKEND = typer.Option(
    "--backend",
    metavar="NAME",
    help="Index that searches the neighbours: exact, kd, cells, usearch, gpu or auto.",
)
REPAIR = typer.Option(help="Give new edges to points that lose theirs by deletions.")
THREADS = typer.Option(help="Threads for a large update; all cores by default.")
