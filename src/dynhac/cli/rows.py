"""Rows of a file into a store: the batches that ``build``, ``insert`` and ``update`` make.

All rows are one batch unless a batch size is given: then new points find their neighbours among
those of earlier batches and their own, and what was done before a failure stays.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dynhac.cli.command import message_of
from dynhac.cli.data import Data, ids_for
from dynhac.cli.progress import busy, items_bar
from dynhac.cli.stores import has_text_ids, is_points

if TYPE_CHECKING:
    from dynhac.cli.stores import AnyStore


def apply_rows(
    store: AnyStore,
    rows: Data,
    *,
    batch_size: int | None = None,
    delete: list[Any] | None = None,
    replace: bool = False,
) -> dict[str, Any]:
    """Put rows into a store and return what happened.

    Rows whose ids are there replace the points if ``replace`` is set. ``delete`` lists ids that
    leave in the same batch.
    """
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"--batch-size is {batch_size}; it must be at least 1")
    start = time.perf_counter()
    step = _insert_points if is_points(store) else _set_edges
    if batch_size is None or batch_size >= len(rows):
        with busy(f"clustering {len(rows):,} {'points' if is_points(store) else 'edges'}"):
            told = step(store, rows, delete or [], replace)
        return told | state_of(store, start)
    told = {}
    unit = "points" if is_points(store) else "edges"
    with items_bar(f"inserting {unit}", len(rows), unit) as advance:
        for first in range(0, len(rows), batch_size):
            part = _part(rows, first, first + batch_size)
            try:
                done = step(store, part, [], False)
            except (ValueError, KeyError) as error:
                raise ValueError(
                    f"{message_of(error)} (in rows {first:,} to {first + len(part) - 1:,}; the "
                    f"{first:,} rows before are in)"
                ) from error
            for name, value in done.items():
                told[name] = told[name] + value if name in told else value
            advance(len(part))
    return told | state_of(store, start)


def state_of(store: AnyStore, start: float) -> dict[str, Any]:
    """Return how a store stands after something that began at ``start``."""
    return {
        "size": len(store),
        "update": store.update_number,
        "seconds": time.perf_counter() - start,
    }


def _part(rows: Data, first: int, end: int) -> Data:
    cut: dict[str, Any] = {
        name: None if column is None else column[first:end]
        for name, column in rows._asdict().items()
        if name not in ("source", "untyped", "names")
    }
    return Data(rows.source, **cut, untyped=rows.untyped, names=rows.names)


def _insert_points(store: Any, rows: Data, delete: list[Any], replace: bool) -> dict[str, Any]:
    ids = ids_for(rows.ids, has_text_ids(store), rows)
    old = [id for id in _plain(ids) if id in store] if replace else []
    listed = set(delete)
    leaving = delete + [id for id in old if id not in listed]
    try:
        change = store.update(
            insert=rows.vectors, ids=ids, delete=leaving or None, timestamps=rows.times
        )
    except ValueError as error:
        raise ValueError(_for_files(str(error), rows.source)) from error
    told = {
        "inserted": len(change.inserted) - len(old),
        "replaced": len(old),
        "deleted": len(change.deleted) - len(old),
        "expired": len(change.expired),
        "repaired": len(change.repaired),
    }
    return told if ids is not None else told | {"ids": change.inserted.tolist()}


def _for_files(message: str, source: str) -> str:
    """Return what the library says about a batch, in words for who gave a file."""
    advice = "; to replace it, list it in delete too"
    if message.endswith(advice):
        return message.removesuffix(advice) + "; to replace it use: dynhac update"
    return f"{source}: {message.replace(' of X ', ' ')}" if " of X " in message else message


def _set_edges(store: Any, rows: Data, delete: list[Any], replace: bool) -> dict[str, Any]:
    if rows.w is None:
        raise ValueError(f"{rows.source} has no column w; every edge needs a weight")
    text = has_text_ids(store)
    if text is None and rows.untyped:  # both ends of an edge are of one kind
        text = isinstance(ids_for([*rows.u, *rows.v], None, rows)[0], str)
    u, v = ids_for(rows.u, text, rows), ids_for(rows.v, text, rows)
    gone = set(delete)
    mentioned = dict.fromkeys([*_plain(u), *_plain(v)])
    new = [id for id in mentioned if id in gone or id not in store]
    store.update(add=new or None, edges=(u, v, rows.w), remove=delete or None)
    return {"inserted": len(new), "edges_set": len(rows), "deleted": len(delete)}


def _plain(ids: Any) -> list[Any]:
    return ids if isinstance(ids, list) else list(ids.tolist())
