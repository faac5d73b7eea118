"""The rows of a table into a store, and the report of what was done.

All rows are one batch, applied completely or not at all, unless a batch size is given. Then
neighbours are searched among the points of earlier batches and of the same batch, and batches
before a failure stay in the store.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynhac.cli.command import errors_in
from dynhac.cli.output import print_json, print_text
from dynhac.cli.stores import AnyStore, has_str_ids, is_points
from dynhac.cli.table import Table
from dynhac.input.errors import counted, show
from dynhac.progress import ProgressOption, metered

MAX_IDS = 20
"""New ids that are listed; of more, only the first and the last."""

COUNTS = ("inserted", "replaced", "edges_set", "deleted", "deleted_edges", "expired", "repaired")
"""Numbers in a result that are reported, unless they are 0."""

WORDS = {"edges_set": ("edge set", "edges set"), "deleted_edges": ("edge deleted", "edges deleted")}
"""What counts are called, of one and of several, if not by their name."""


def apply_table(
    store: AnyStore,
    table: Table,
    *,
    batch_size: int | None = None,
    delete: Sequence[Any] = (),
    replace: bool = False,
) -> dict[str, Any]:
    """Insert the rows of a table and return what was done.

    If ``replace`` is set, points replace those with the same ids. The ids in ``delete`` are deleted
    in the same batch. With a ``batch_size``, neither can be given.
    """
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be at least 1")
    start = time.perf_counter()
    apply, unit = (update_points, "points") if is_points(store) else (update_edges, "edges")
    with errors_in(table.source):
        table = table.typed(has_str_ids(store))
        if batch_size is None or batch_size >= len(table):
            result = apply(store, table, list(delete), replace, None)
            return result | store_facts(store, start)
    result = {}
    with metered(None) as meter:
        meter.begin("inserting", unit, len(table))
        for first in range(0, len(table), batch_size):
            part = table.rows(first, first + batch_size)
            last = first + len(part) - 1
            rows = f"rows {first:,} to {last:,} (the {first:,} rows before were inserted)"
            with errors_in(f"{table.source}, {rows}"):
                counts = apply(store, part, [], False, False)
            for name, value in counts.items():
                result[name] = result[name] + value if name in result else value
            meter.advance(len(part))
        meter.end()
    return result | store_facts(store, start)


def store_facts(store: AnyStore, start: float) -> dict[str, Any]:
    """Return the state of a store after a change that began at the time ``start``."""
    seconds = time.perf_counter() - start
    return {"size": len(store), "update": store.update_number, "seconds": seconds}


def print_result(store: Path, result: dict[str, Any], json: bool, text: str | None = None) -> None:
    """Write the result of a change, as JSON or as text; the usual text if none is given."""
    if json:
        print_json(result | {"store": str(store)})
        return
    if text is None:
        counts = ", ".join(
            counted(result[name], *WORDS.get(name, (name, name)))
            for name in COUNTS
            if result.get(name) or (name == "inserted" and name in result)
        )
        text = (
            f"{store}: {counts}; {result['size']:,} in the store, update "
            f"{result['update']}, in {result['seconds']:.2f} s"
        )
    print_text(text)
    ids = result.get("ids")
    if ids:
        listed = ", ".join(map(str, ids)) if len(ids) <= MAX_IDS else f"{ids[0]} to {ids[-1]}"
        print_text(f"new ids: {listed}")


def update_points(
    store: Any, table: Table, delete: list[Any], replace: bool, progress: ProgressOption
) -> dict[str, Any]:
    """Insert points in one update, as `apply_table` does; return what was done."""
    present = [] if table.ids is None else [id for id in _as_list(table.ids) if id in store]
    if present and not replace:
        raise ValueError(f"id {show(present[0])} is already in the store; to replace it use: "
                         "dynhac update")  # fmt: skip
    listed = set(delete)
    deleted = delete + [id for id in present if id not in listed]
    change = store.update(
        insert=table.vectors,
        ids=table.ids,
        delete=deleted or None,
        timestamps=table.timestamps,
        payload=table.payload,
        progress=progress,
    )
    result = {
        "inserted": len(change.inserted) - len(present),
        "replaced": len(present),
        "deleted": len(change.deleted) - len(present),
        "expired": len(change.expired),
        "repaired": len(change.repaired),
    }
    return result if table.ids is not None else result | {"ids": change.inserted.tolist()}


def update_edges(
    store: Any, table: Table, delete: list[Any], replace: bool, progress: ProgressOption
) -> dict[str, Any]:
    """Set edges in one update, which adds their ends; return what was done."""
    if table.w is None:
        raise ValueError("no column w or weight; every edge needs a weight")
    deleted = set(delete)
    ends = dict.fromkeys([*_as_list(table.u), *_as_list(table.v)])
    new = [id for id in ends if id in deleted or id not in store]
    edges = (table.u, table.v, table.w)
    store.update(add=new or None, edges=edges, remove=delete or None, progress=progress)
    return {"inserted": len(new), "edges_set": len(table), "deleted": len(delete)}


def _as_list(ids: Any) -> list[Any]:
    return ids if isinstance(ids, list) else list(np.atleast_1d(ids).tolist())
