"""``dynhac clusters``: what is in the flat clusters."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from dynhac.cli.command import command
from dynhac.cli.options import (
    INSPECT,
    Conductance,
    Json,
    MinSize,
    NClusters,
    Noise,
    StorePath,
    Theta,
    cut_arguments,
    no_clusters_hint,
    output_option,
)
from dynhac.cli.output import TABLE_ENDINGS, print_columns, print_table, print_text, sample_text
from dynhac.cli.stores import open_store, size_text
from dynhac.clusters import Cluster, Clusters
from dynhac.input.columns import NO_IDS, NO_WEIGHTS
from dynhac.input.errors import counted

MAX_CLUSTERS = 30
"""Clusters that are listed on a terminal by default."""


@command(
    INSPECT,
    ("The largest clusters", "dynhac clusters my.store"),
    ("Those of a cut", "dynhac clusters my.store --theta 0.35 --min-size 5"),
    ("Twenty typical points of each, as JSON",
     "dynhac clusters my.store -n 10 --representatives 20 --json"),
    ("Outliers first",
     "dynhac clusters my.store --members -o - | sort -t, -k4gr | head"),
)  # fmt: skip
def clusters(
    store: StorePath,
    theta: Theta = None,
    n_clusters: NClusters = None,
    conductance: Conductance = None,
    min_size: MinSize = None,
    noise: Noise = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Clusters to list, largest first (default: {MAX_CLUSTERS} on a terminal, "
            "otherwise all).",
        ),
    ] = None,
    representatives: Annotated[
        int,
        typer.Option(
            min=0, help="Typical points to list for each cluster; in CSV with ; between them."
        ),
    ] = 5,
    members: Annotated[
        bool,
        typer.Option(
            "--members", help="List every point of these clusters, the most typical first."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        output_option(
            f"Write the table to a file that ends in {TABLE_ENDINGS}; - for CSV on standard output."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show what is in the flat clusters: their sizes, typical points and nearest clusters.

    The clusters are chosen automatically, unless --theta, --clusters or --conductance is given.
    Cohesion is the mean similarity over all pairs of points in a cluster; a missing edge counts as
    0. Cuts up to "together" keep the cluster in one piece. The nearest other cluster is shown with
    its linkage. Typical points are most similar to the others in their cluster. With --members,
    every point has a row with its typicality and an outlier score from 0 to 1.

    Clusters are listed by size. On a terminal this is a table, in a pipe or a file CSV.
    """
    cut = cut_arguments(theta, n_clusters, conductance, min_size, noise)
    if out is not None and out.suffix.lower() == ".npy":
        raise ValueError(f"{out}: a table cannot be a .npy file; it must end in {TABLE_ENDINGS}")
    with open_store(store) as opened:
        found = opened.clusters(**cut)
        size, update = size_text(opened), opened.update_number
    on_terminal = out is None and not json and sys.stdout.isatty()
    listed = found.largest(MAX_CLUSTERS if top is None and on_terminal else top)
    none = int((found.labels < 0).sum())
    summary = f"{size} in {counted(len(found), 'cluster', 'clusters')}; in none: {none:,}"
    columns = _member_columns(listed) if members else _columns(listed, representatives)

    def show() -> None:
        print_text(summary)
        if listed:
            _print_table(found, listed, columns if members else None, representatives)
        elif len(found.ids) and no_clusters_hint(cut):
            print_text(no_clusters_hint(cut))

    print_columns(
        columns,
        out,
        json,
        summary=summary,
        facts={
            "points": len(found.ids), "clusters": len(found), "in_none": none, "update": update
        },
        rows=lambda: {"largest": [_row(each, representatives, members) for each in listed]},
        show=show,
    )  # fmt: skip


def _row(cluster: Cluster, representatives: int, members: bool) -> dict[str, Any]:
    """Return a cluster for JSON."""
    row = cluster.to_dict(representatives)
    if members:
        typicality = [None if np.isnan(value) else value for value in cluster.typicality.tolist()]
        points = zip(
            cluster.members.tolist(), typicality, cluster.outlier_score.tolist(), strict=True
        )
        row["members"] = [
            {"id": id, "typicality": typical, "outlier_score": score}
            for id, typical, score in points
        ]
    return row


def _columns(listed: list[Cluster], representatives: int) -> dict[str, NDArray[Any]]:
    """Return a table of clusters; ``nearest`` is -1 for none."""
    nearest = [cluster.nearest[0] if cluster.nearest else (-1, 0.0) for cluster in listed]
    typical = [
        ";".join(map(str, cluster.representatives(representatives).tolist())) for cluster in listed
    ]
    return {
        "cluster": np.array([cluster.id for cluster in listed], np.int64),
        "size": np.array([cluster.size for cluster in listed], np.int64),
        **{
            name: np.array([getattr(cluster, name) for cluster in listed], np.float64)
            for name in ("cohesion", "density", "similarity")
        },
        "nearest": np.array([id for id, _ in nearest], np.int64),
        "nearest_linkage": np.array([linkage for _, linkage in nearest], np.float64),
        "representatives": np.array(typical, object),
    }


def _member_columns(listed: list[Cluster]) -> dict[str, NDArray[Any]]:
    """Return a table of the points of the clusters."""
    sizes = [cluster.size for cluster in listed]
    return {
        "id": np.concatenate([NO_IDS, *(cluster.members for cluster in listed)]),
        "cluster": np.repeat(np.array([cluster.id for cluster in listed], np.int64), sizes),
        "typicality": np.concatenate([NO_WEIGHTS, *(cluster.typicality for cluster in listed)]),
        "outlier_score": np.concatenate(
            [NO_WEIGHTS, *(cluster.outlier_score for cluster in listed)]
        ),
    }


def _print_table(
    found: Clusters,
    listed: list[Cluster],
    columns: dict[str, NDArray[Any]] | None,
    representatives: int,
) -> None:
    """List clusters, or the points in ``columns``, on a terminal."""
    if columns is None:
        names = ("cluster", "size", "share", "cohesion", "together", "nearest", "ids")
        print_table(names, [_cells(each, len(found.ids), representatives) for each in listed], 6)
    else:
        points = zip(*(column.tolist() for column in columns.values()), strict=True)
        rows = [
            (str(cluster), _number(typicality), f"{score:.2f}", str(id))
            for id, cluster, typicality, score in points
        ]
        print_table(("cluster", "typicality", "outlier score", "ids"), rows, 3)
    if len(found) > len(listed):
        print_text(f"... and {len(found) - len(listed):,} more; see --top")


def _cells(cluster: Cluster, points: int, representatives: int) -> tuple[str, ...]:
    near = [f"{near.id} ({near.linkage:.3g})" for near in cluster.nearest[:1]]
    return (
        str(cluster.id),
        f"{cluster.size:,}",
        f"{cluster.size / points:.1%}",
        _number(cluster.cohesion),
        _number(cluster.similarity),
        near[0] if near else "-",
        sample_text(cluster.representatives(representatives), cluster.size, representatives),
    )


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3g}"
