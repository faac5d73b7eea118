"""The rows of a table into a store, for ``build``, ``insert`` and ``update``.

All rows are one batch unless a batch size is given. Then neighbours are searched among the points
of earlier batches and of the same batch, and batches before a failure stay in the store.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynhac.cli.command import errors_in
from dynhac.cli.progress import elapsed_bar, items_bar
from dynhac.cli.report import store_facts
from dynhac.cli.stores import AnyStore, has_str_ids, is_points
from dynhac.cli.table import Table
from dynhac.input.errors import show


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
    apply, unit = (_update_points, "points") if is_points(store) else (_update_edges, "edges")
    result: dict[str, Any] = {}
    if batch_size is None or batch_size >= len(table):
        with elapsed_bar(f"clustering {len(table):,} {unit}"), errors_in(table.source):
            result = apply(store, table, list(delete), replace)
        return result | store_facts(store, start)
    with items_bar(f"inserting {unit}", len(table), unit) as advance:
        for first in range(0, len(table), batch_size):
            part = table.rows(first, first + batch_size)
            last = first + len(part) - 1
            rows = f"rows {first:,} to {last:,} (the {first:,} rows before were inserted)"
            with errors_in(f"{table.source}, {rows}"):
                counts = apply(store, part, [], False)
            for name, value in counts.items():
                result[name] = result[name] + value if name in result else value
            advance(len(part))
    return result | store_facts(store, start)


def _update_points(store: Any, table: Table, delete: list[Any], replace: bool) -> dict[str, Any]:
    ids = table.typed_ids(has_str_ids(store))
    present = [] if ids is None else [id for id in _as_list(ids) if id in store]
    if present and not replace:
        raise ValueError(f"id {show(present[0])} is already in the store; to replace it use: "
                         "dynhac update")  # fmt: skip
    listed = set(delete)
    deleted = delete + [id for id in present if id not in listed]
    change = store.update(
        insert=table.vectors, ids=ids, delete=deleted or None, timestamps=table.timestamps
    )
    result = {
        "inserted": len(change.inserted) - len(present),
        "replaced": len(present),
        "deleted": len(change.deleted) - len(present),
        "expired": len(change.expired),
        "repaired": len(change.repaired),
    }
    return result if ids is not None else result | {"ids": change.inserted.tolist()}


def _update_edges(store: Any, table: Table, delete: list[Any], replace: bool) -> dict[str, Any]:
    if table.w is None:
        raise ValueError("no column w; every edge needs a weight")
    u, v = table.edge_ends(has_str_ids(store))
    deleted = set(delete)
    ends = dict.fromkeys([*_as_list(u), *_as_list(v)])
    new = [id for id in ends if id in deleted or id not in store]
    store.update(add=new or None, edges=(u, v, table.w), remove=delete or None)
    return {"inserted": len(new), "edges_set": len(table), "deleted": len(delete)}


def _as_list(ids: Any) -> list[Any]:
    return ids if isinstance(ids, list) else list(np.atleast_1d(ids).tolist())
