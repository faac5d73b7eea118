"""``dynhac explain``: why two points are in one cluster."""

from __future__ import annotations

from math import isfinite
from typing import Annotated

import typer

from dynhac.cli.command import command
from dynhac.cli.options import INSPECT, Json, StorePath
from dynhac.cli.output import print_json, print_text
from dynhac.cli.parse import parse_id
from dynhac.cli.stores import has_str_ids, open_store


@command(
    INSPECT,
    ("Two points", "dynhac explain my.store 17 23"),
    ("Negative ids", "dynhac explain my.store -- -1 -2"),
)
def explain(
    store: StorePath,
    id_a: Annotated[str, typer.Argument(metavar="A", help="An id.")],
    id_b: Annotated[str, typer.Argument(metavar="B", help="Another id.")],
    json: Json = False,
) -> None:
    """Show how two points are merged: up to which similarity they are together, by which merges.

    Put -- before negative ids: it ends the options.
    """
    with open_store(store) as opened:
        str_ids = bool(has_str_ids(opened))
        found = opened.explain(parse_id(id_a, str_ids), parse_id(id_b, str_ids))
    if not json:
        print_text(str(found))
        return
    result = found._asdict()
    node_id = result.pop("node_id")
    result["node"] = node_id if node_id >= 0 else None
    for key in ("similarity", "linkage"):
        if not isfinite(result[key]):  # infinite for a point and itself, which JSON cannot hold
            result[key] = None
    for key in ("path_a", "path_b"):
        result[key] = [step._asdict() for step in result[key]]
    print_json(result)
