"""How a row of the log becomes an update: the same batch, applied through the same call.

The answers of cells and of usearch depend on their history. Being built again after a failed update
is a part of it; for usearch, so is saving. So a row has flags that say what happened to the index
before its update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynhac.input.batches import PointBatch, read_point_batch
from dynhac.models.points import DynHAC
from dynhac.store.codec import WATCH_OPS, decode, decode_graph_batch, decode_watch_order

if TYPE_CHECKING:
    from dynhac._core import Meter
    from dynhac.store.log import Row
    from dynhac.store.snapshots import Model

SAVED = 1
"""Flag of a row: before this update the neighbour index was saved, and continues as if loaded."""

REBUILT = 2
"""Flag of a row: before this update the neighbour index was dropped, and is built again."""


HISTORIC = ("cells", "usearch")
"""Indexes whose answers depend on their history."""

LARGE = 2**20
"""Bytes of an update that may take longer than a second."""


def index_flags(model: Model, op: str) -> int:
    """Return the flags for the row of the next update of a model; watches do not use the index."""
    if op in WATCH_OPS or not isinstance(model, DynHAC) or model._points.backend not in HISTORIC:
        return 0
    if model._points.index_lost:
        return REBUILT
    saved = model._points.backend == "usearch" and model._points.index_saved
    return SAVED if saved else 0


def forget_index_history(model: Model) -> None:
    """After a failed update: drop an index that it changed, so that the next one builds it again.

    The changes were undone, but they are part of the history, and the log has no row of them.
    """
    if isinstance(model, DynHAC):
        points = model._points
        if points.backend in HISTORIC and points.index_changed:
            points.lose_index()


def replay(model: Model, row: Row, meter: Meter, left: int) -> None:
    """Apply the update of a row to a model that is where its writer was.

    The phase of the meter is "replaying", and the row is one of its updates; ``left`` are to come.
    A large update reports its own phases instead.
    """
    large = len(row.payload) >= LARGE
    _apply(model, row, meter if large else None)
    if large:
        meter.begin("replaying", "updates", left)
    else:
        meter.advance(1)


def _apply(model: Model, row: Row, meter: Meter | None) -> None:
    if row.op in WATCH_OPS:
        with model._engine.lock:
            order = decode_watch_order(row.op, row.payload, model.threshold)
            model._engine.apply_order(order)
        return
    if not isinstance(model, DynHAC):
        with model._engine.lock:
            model._apply(decode_graph_batch(row.op, row.payload), meter)
        return
    with model._engine.lock:
        points = model._points
        if row.flags & REBUILT:
            points.lose_index()
        elif row.flags & SAVED and points.backend == "usearch":
            points.index.object.save()
        model._apply(_point_batch(model, row), meter)


def _point_batch(model: DynHAC, row: Row) -> PointBatch:
    columns: dict[str, Any] = decode(row.payload)
    if row.op == "expire":
        return PointBatch(clock=columns["clock"].tolist()[0], version=model._points.version)
    if row.op != "points":
        raise ValueError(f"its kind is {row.op!r}, which is not known here")
    given = (columns.get(name) for name in ("X", "ids", "delete", "times"))
    return read_point_batch(model._points, model._parameters, *given)
