"""``dynhac suggest``: sensible cuts."""

from __future__ import annotations

from typing import Annotated

import typer

from dynhac.cli.command import command
from dynhac.cli.options import INSPECT, Json, StorePath
from dynhac.cli.output import print_json, print_table, print_text
from dynhac.cli.stores import open_store, size_text
from dynhac.dendrogram.selection import DEFAULT_MIN_SIZE


@command(
    INSPECT,
    ("Where to cut", "dynhac suggest my.store"),
    ("Also into small clusters", "dynhac suggest my.store --min-size 5"),
    ("The best similarity", "dynhac suggest my.store --json | jq .cuts[0].theta"),
)
def suggest(
    store: StorePath,
    n: Annotated[int, typer.Option("--most", help="Cuts to list at most.")] = 5,
    min_size: Annotated[
        int, typer.Option(help="Smaller clusters do not count.")
    ] = DEFAULT_MIN_SIZE,
    json: Json = False,
) -> None:
    """List a few sensible cuts: where the clusters stay the same over a wide range of theta.

    For each cut there are the clusters of the minimal size, all clusters, the share of points in
    smaller ones, and the persistence: from 0 to 1, 0.5 if clusters stay the same while theta
    changes by a factor of 2. The last line has the automatic choice of dynhac labels.
    """
    with open_store(store) as opened:
        found = opened.dendrogram().suggest(n, min_size=min_size)
        size, update = size_text(opened), opened.update_number
    if json:
        print_json(
            {
                "points": found.n_points,
                "min_size": found.min_size,
                "cuts": [cut._asdict() for cut in found],
                "automatic": found.automatic._asdict(),
                "update": update,
            }
        )
        return
    print_text(f"{size}; clusters of at least {found.min_size:,} points")
    if found:
        names, *rows = found._rows()
        print_table(names, rows, len(names))
    else:
        print_text(f"no cut has a cluster of {found.min_size:,} points; try a smaller --min-size")
