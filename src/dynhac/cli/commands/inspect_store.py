"""``dynhac stats``, ``changes`` and ``verify``: the state, the log and the check of a store."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from dynhac.cli.command import EXIT_ERROR, command, print_message
from dynhac.cli.options import EXPORT, INSPECT, Json, StorePath
from dynhac.cli.output import print_json, print_table, print_text, sample_text
from dynhac.cli.stores import AnyStore, has_str_ids, is_points, open_store
from dynhac.input.errors import counted

PARAMETERS = ("epsilon", "threshold", "resolution")
POINT_PARAMETERS = ("dimension", "n_neighbors", "metric", "similarity", "backend", "repair",
                    "max_points", "max_age")  # fmt: skip
LOG_FIGURES = ("log_rows", "log_bytes", "snapshot_number")
"""What ``stats`` shows of a model, of a model of points, and of the log of a store."""


@command(
    EXPORT,
    ("As a table", "dynhac stats my.store"),
    ("One number", "dynhac stats my.store --json | jq .points"),
)
def stats(store: StorePath, json: Json = False) -> None:
    """Show what a store holds, its parameters, and its size on disk and in memory."""
    with open_store(store) as opened:
        figures = opened.stats()
        facts = _facts(opened) | {name: figures[name] for name in LOG_FIGURES}
    facts["disk_bytes"] = sum(file.stat().st_size for file in store.iterdir() if file.is_file())
    if json:
        print_json(facts)
    else:
        print_table((), [(name, _fact_text(name, value)) for name, value in facts.items()], 0)


@command(
    INSPECT,
    ("All updates in the log", "dynhac changes my.store"),
    ("Those after update 120", "dynhac changes my.store --since 120 --json"),
)
def changes(
    store: StorePath,
    since: Annotated[
        int, typer.Option("--since", "-s", min=0, help="Show the updates after this number.")
    ] = 0,
    json: Json = False,
) -> None:
    """List the updates that are in the log, one line each.

    The log loses updates that are contained in snapshots.
    """
    with open_store(store) as opened:
        entries = list(opened.changes(since))
        last = opened.update_number
    first = entries[0]["number"] if entries else last + 1
    if first > since + 1:
        begins = f"it begins with {first}" if entries else f"it is empty after update {last}"
        print_message("warning", f"the log does not go back to {since + 1}: {begins}")
    if json:
        for entry in entries:
            print_json(entry)
        return
    if not entries:
        print_text(f"nothing after update {since}; the store is at {last}")
        return
    rows = []
    for entry in entries:
        row = [str(entry["number"]), str(entry["op"])]
        for key in ("inserted", "deleted"):
            ids = entry[key]
            row += [f"{len(ids):,}", sample_text(ids, len(ids), 3)] if len(ids) else ["", ""]
        rows.append(row)
    print_table(("update", "what", "inserted", "ids", "deleted", "ids"), rows, 1)


@command(EXPORT, ("In a script", "dynhac verify my.store || echo 'my.store is damaged'"))
def verify(store: StorePath, json: Json = False) -> None:
    """Check the files of a store, and every merge of its hierarchy against the graph.

    It takes about as long as a build. The exit code is 1 if anything is wrong.
    """
    with open_store(store) as opened:  # reads all files and checks their checksums
        report = opened.verify()
        number = opened.update_number
    if json:
        print_json(asdict(report) | {"update": number})
    else:
        print_text(f"{store} at update {number}: {report}")
    if not report.ok:
        raise typer.Exit(EXIT_ERROR)


def _facts(store: AnyStore) -> dict[str, Any]:
    """Return the size and the parameters of the model."""
    points = is_points(store)
    levels = store.level_sizes
    facts: dict[str, Any] = {
        "path": str(store.path),
        "kind": "points" if points else "graph",
        "update_number": store.update_number,
        "points" if points else "vertices": len(store),
        "edges": levels[0][1] if levels else 0,
        "trees": len(store.dendrogram().roots),
        "levels": len(levels),
        "ids": {True: "str", False: "int", None: None}[has_str_ids(store)],
    }
    shown = PARAMETERS + POINT_PARAMETERS if points else PARAMETERS
    facts |= {name: getattr(store, name) for name in shown}
    if points:
        facts["similarity"] = _similarity_text(facts["similarity"])
        if facts["max_age"] is not None:
            facts["max_age"] = str(facts["max_age"])
    watches = [
        {
            "theta": watch.theta,
            "min_size": watch.min_size,
            "patience": watch._parameters.patience_text,
            "clusters": len(watch),
        }
        for watch in store.watches
    ]
    return facts | {"watches": watches, "memory_bytes": store.memory}


def _similarity_text(similarity: Any) -> str:
    """Return a similarity in the form that ``build`` takes."""
    if isinstance(similarity, tuple):
        return f"{similarity[0]}:{similarity[1]:g}"
    return similarity if isinstance(similarity, str) else "a function"


def _fact_text(name: str, value: Any) -> str:
    if value is None or value == []:
        return "-"
    if name.endswith("bytes"):
        return _bytes_text(int(value))
    if name == "watches":
        return "; ".join(
            ("automatic" if watch["theta"] is None else f"theta {watch['theta']:g}")
            + f", min_size {watch['min_size']}"
            + (f", patience {watch['patience']}: " if watch["patience"] else ": ")
            + counted(watch["clusters"], "cluster", "clusters")
            for watch in value
        )
    if isinstance(value, int) and not isinstance(value, bool) and not name.endswith("number"):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _bytes_text(size: int) -> str:
    if size < 1024:
        return f"{size} bytes"
    power = min((size.bit_length() - 1) // 10, 3)
    return f"{size / 1024**power:.1f} {('KiB', 'MiB', 'GiB')[power - 1]}"
