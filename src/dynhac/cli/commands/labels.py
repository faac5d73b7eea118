"""``dynhac labels``: flat clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac.cli.command import command
from dynhac.cli.options import (
    INSPECT,
    ColumnsFile,
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
)
from dynhac.cli.output import payload_cells, print_columns, print_table, print_text, sample_text
from dynhac.cli.stores import open_store, size_text
from dynhac.input.errors import counted

MAX_CLUSTERS = 30
"""Clusters that are listed on a terminal."""


@command(
    INSPECT,
    ("List the largest clusters", "dynhac labels my.store"),
    ("Write all labels", "dynhac labels my.store -o labels.parquet"),
    ("No point without a cluster", "dynhac labels my.store --noise nearest -o labels.parquet"),
    ("A cut at one similarity", "dynhac labels my.store --theta 0.35"),
    ("Ten clusters, as CSV", "dynhac labels my.store -n 10 -o - | sort -t, -k2n"),
)
def labels(
    store: StorePath,
    theta: Theta = None,
    n_clusters: NClusters = None,
    conductance: Conductance = None,
    min_size: MinSize = None,
    noise: Noise = None,
    fields: Show = None,
    out: ColumnsFile = None,
    json: Json = False,
) -> None:
    """Cut the hierarchy into flat clusters and give every point a label.

    The clusters are chosen automatically, unless --theta, --clusters or --conductance is given.
    Labels are numbered from 0; points in no cluster of the minimal size get -1. On a terminal the
    largest clusters are listed; in a pipe or a file every point has a row, in the order of the
    store.
    """
    cut = cut_arguments(theta, n_clusters, conductance, min_size, noise)
    with open_store(store) as opened:
        tree = opened.dendrogram()
        found = tree.labels(**cut)
        columns: dict[str, NDArray[Any]] = {"id": tree.ids, "label": found}
        if fields:
            columns |= payload_cells(opened.payloads(tree.ids), fields)
        size, update = size_text(opened), opened.update_number
    count = int(found.max()) + 1 if len(found) else 0
    summary = f"{size} in {counted(count, 'cluster', 'clusters')}"

    def show() -> None:
        print_text(f"{summary}; in none: {int((found < 0).sum()):,}")
        if count:
            _print_clusters(tree.ids, found, count)
        elif len(found) and no_clusters_hint(cut):
            print_text(no_clusters_hint(cut))

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
