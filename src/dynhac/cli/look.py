"""``dynhac explain`` and ``dynhac changes``: why two points are together, and what happened."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any

import typer

from dynhac.cli.command import add_command, tell
from dynhac.cli.options import LOOK, Json, Store


def explain(
    store: Store,
    a: Annotated[str, typer.Argument(metavar="A", help="An id.", show_default=False)],
    b: Annotated[str, typer.Argument(metavar="B", help="Another id.", show_default=False)],
    json: Json = False,
) -> None:
    """Tell how two points come together: up to which similarity, and by which merges.

    Negative ids come after a lone --, which ends the options.
    """
    from dynhac.cli.data import parse_id
    from dynhac.cli.output import show, show_json
    from dynhac.cli.stores import has_text_ids, reading

    with reading(store) as opened:
        text = bool(has_text_ids(opened))
        found = opened.explain(parse_id(a, text), parse_id(b, text))
    if not json:
        show(str(found))
        return
    told = {name: getattr(found, name) for name in ("a", "b", "together", "similarity", "linkage")}
    for name in ("similarity", "linkage"):
        if not isfinite(told[name]):  # a point and itself: at every similarity
            told[name] = None  # JSON has no infinity
    told |= {"node": found.node_id if found.node_id >= 0 else None, "size": found.size}
    for name in ("path_a", "path_b"):
        told[name] = [step._asdict() for step in getattr(found, name)]
    show_json(told)


def changes(
    store: Store,
    since: Annotated[
        int, typer.Option("--since", "-s", min=0, help="Show the updates after this number.")
    ] = 0,
    json: Json = False,
) -> None:
    """List the updates that are still in the log, one line each.

    Updates that a snapshot has made superfluous are not there any more; stats tells which are.
    """
    from dynhac.cli.output import few, show, show_json, show_table
    from dynhac.cli.stores import reading

    with reading(store) as opened:
        found = list(opened.changes(since))
        last = opened.update_number
    first = found[0]["number"] if found else last + 1
    if first > since + 1:
        tell("warning", f"the log does not go back to {since + 1}: it begins with {first}"
             if found else f"the log has nothing left of the updates up to {last}")  # fmt: skip
    if json:
        for entry in found:
            show_json(entry)
        return
    if not found:
        show(f"nothing after update {since}; the store is at {last}")
        return
    rows = []
    for entry in found:
        told: list[Any] = [str(entry["number"]), str(entry["op"])]
        for name in ("inserted", "deleted"):
            ids = entry[name]
            told += [f"{len(ids):,}", few(ids, len(ids), 3)] if len(ids) else ["", ""]
        rows.append(told)
    show_table(("update", "what", "inserted", "ids", "deleted", "ids"), rows, 1)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    add_command(
        app,
        explain,
        [
            ("Two points", "dynhac explain my.store 17 23"),
            ("Negative ids", "dynhac explain my.store -- -1 -2"),
        ],
        LOOK,
    )
    add_command(
        app,
        changes,
        [
            ("All there is", "dynhac changes my.store"),
            ("What came after update 120", "dynhac changes my.store --since 120 --json"),
        ],
        LOOK,
    )
