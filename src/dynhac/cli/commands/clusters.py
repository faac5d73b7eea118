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
    Show,
    StorePath,
    Theta,
    cut_arguments,
    no_clusters_hint,
    output_option,
)
from dynhac.cli.output import (
    TABLE_ENDINGS,
    payload_cells,
    print_columns,
    print_table,
    print_text,
    sample_text,
)
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
    names: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Name the clusters by the words of this field of the payload, or of all for ALL.",
        ),
    ] = None,
    fields: Show = None,
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
        if names is not None:
            found = found.named(opened.texts(found.ids, None if names == "ALL" else names))
        on_terminal = out is None and not json and sys.stdout.isatty()
        listed = found.largest(MAX_CLUSTERS if top is None and on_terminal else top)
        points = np.concatenate(
            [NO_IDS, *(c.members if members else c.members[:representatives] for c in listed)]
        )
        shown = payload_cells(opened.payloads(points), fields) if fields else {}
    none = int((found.labels < 0).sum())
    summary = f"{size} in {counted(len(found), 'cluster', 'clusters')}; in none: {none:,}"
    if members:
        columns = _member_columns(listed) | shown
    else:
        columns = _columns(listed, representatives, shown)

    def show() -> None:
        print_text(summary)
        if listed:
            _print_table(found, listed, columns, members, representatives, list(shown))
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


def _columns(
    listed: list[Cluster], representatives: int, shown: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Return a table of clusters; ``nearest`` is -1 for none.

    ``shown`` has fields of the payloads of all representatives.
    """
    ends = np.cumsum([min(cluster.size, representatives) for cluster in listed])[:-1]
    fields = {
        name: np.array([";".join(part) for part in np.split(cells, ends)], object)
        for name, cells in shown.items()
        if listed
    }
    names = [cluster.name for cluster in listed if cluster.name is not None]
    nearest = [cluster.nearest[0] if cluster.nearest else (-1, 0.0) for cluster in listed]
    typical = [
        ";".join(map(str, cluster.representatives(representatives).tolist())) for cluster in listed
    ]
    return {
        "cluster": np.array([cluster.id for cluster in listed], np.int64),
        **({"name": np.array(names, object)} if names else {}),
        "size": np.array([cluster.size for cluster in listed], np.int64),
        **{
            name: np.array([getattr(cluster, name) for cluster in listed], np.float64)
            for name in ("cohesion", "density", "similarity")
        },
        "nearest": np.array([id for id, _ in nearest], np.int64),
        "nearest_linkage": np.array([linkage for _, linkage in nearest], np.float64),
        "representatives": np.array(typical, object),
        **fields,
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
    columns: dict[str, NDArray[Any]],
    members: bool,
    representatives: int,
    fields: list[str],
) -> None:
    """List clusters, or with ``members`` the points in ``columns``, on a terminal."""
    if not members:
        more = [name for name in ("name", *fields) if name in columns]
        texts = zip(*(columns[name].tolist() for name in more), strict=True) if more else None
        rows = [
            (*_cells(each, len(found.ids), representatives), *(next(texts) if texts else ()))
            for each in listed
        ]
        names = ("cluster", "size", "share", "cohesion", "together", "nearest", "ids", *more)
        print_table(names, rows, 6)
    else:
        points = zip(*(column.tolist() for column in columns.values()), strict=True)
        rows = [
            (str(cluster), _number(typicality), f"{score:.2f}", str(id), *texts)
            for id, cluster, typicality, score, *texts in points
        ]
        print_table(("cluster", "typicality", "outlier score", "ids", *fields), rows, 3)
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
