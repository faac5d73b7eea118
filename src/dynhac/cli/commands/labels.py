"""``dynhac labels``: flat clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac.cli.command import command
from dynhac.cli.options import (
    INSPECT,
    ColumnsFile,
    Json,
    MinSize,
    NClusters,
    Show,
    StorePath,
    Theta,
    check_cut,
)
from dynhac.cli.output import payload_cells, print_columns, print_table, print_text, sample_text
from dynhac.cli.stores import open_store, size_text
from dynhac.input.errors import counted

MAX_CLUSTERS = 30
"""Clusters that are listed on a terminal."""


@command(
    INSPECT,
    ("List the largest clusters", "dynhac labels my.store --theta 0.35"),
    ("Write all labels", "dynhac labels my.store --theta 0.35 -o labels.parquet"),
    ("Ten clusters, as CSV", "dynhac labels my.store -n 10 -o - | sort -t, -k2n"),
)
def labels(
    store: StorePath,
    theta: Theta = None,
    n_clusters: NClusters = None,
    min_size: MinSize = 1,
    fields: Show = None,
    out: ColumnsFile = None,
    json: Json = False,
) -> None:
    """Cut the hierarchy into flat clusters and give every point a label.

    Labels are numbered from 0; points in clusters below the minimal size get -1. On a terminal the
    largest clusters are listed; in a pipe or a file every point has a row, in the order of the
    store.
    """
    check_cut(theta, n_clusters)
    with open_store(store) as opened:
        tree = opened.dendrogram()
        found = tree.labels(theta, n_clusters=n_clusters, min_size=min_size)
        columns: dict[str, NDArray[Any]] = {"id": tree.ids, "label": found}
        if fields:
            columns |= payload_cells(opened.payloads(tree.ids), fields)
        size, update = size_text(opened), opened.update_number
    count = int(found.max()) + 1 if len(found) else 0
    summary = f"{size} in {counted(count, 'cluster', 'clusters')}"

    def show() -> None:
        print_text(f"{summary}; in none: {int((found < 0).sum()):,}")
        _print_clusters(tree.ids, found, count)

    print_columns(
        columns,
        out,
        json,
        summary=summary,
        facts={"points": len(found), "clusters": count, "update": update},
        rows=lambda: {"ids": tree.ids, "labels": found},
        show=show,
    )


def _print_clusters(ids: NDArray[Any], labels: NDArray[Any], count: int) -> None:
    """List the largest clusters."""
    sizes = np.bincount(labels[labels >= 0], minlength=count)
    rows = []
    for label in np.argsort(-sizes, kind="stable")[:MAX_CLUSTERS].tolist():
        size = int(sizes[label])
        sample = sample_text(ids[labels == label], size)
        rows.append((str(label), f"{size:,}", f"{size / len(labels):.1%}", sample))
    print_table(("cluster", "size", "share", "ids"), rows, 3)
    if count > len(rows):
        print_text(f"... and {count - len(rows):,} more; -o FILE writes the label of every point")
