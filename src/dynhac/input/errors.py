"""Exceptions, and the messages for batches that the core rejects.

The core reports what is wrong by a kind and a position in one of the columns of the batch.
`explain_graph` and `explain_points` look up the value at that position and say what would be right.
They return the exception for the caller to raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynhac._core import BatchError
    from dynhac.input.batches import GraphBatch, PointBatch, PointIds


INDEX = "the index of X"
"""What messages call ids that are the index of a table."""

WITHOUT_INDEX = "for ids that count up give X.to_numpy(), for others give ids"
"""How to insert a table whose index cannot be its ids."""


class InvalidTypeError(TypeError, ValueError):
    """Input of a type that cannot be used: a ``TypeError`` that is a ``ValueError`` as well."""


class PresentError(ValueError):
    """A new point or vertex whose id is taken."""


class FileError(ValueError):
    """A file that does not hold what it should: of another kind or version, or damaged."""


def show(value: object) -> str:
    """Return ``repr(value)``, without numpy's type name and cut when very long."""
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "size", 1) == 1:
        value = item()
    text = repr(value)
    return text if len(text) <= 80 else text[:60] + "..." + text[-15:]


def counted(n: int, one: str, many: str) -> str:
    """Return a number and its noun, such as "1 leaf" or "1,024 leaves"."""
    return f"{n:,} {one if n == 1 else many}"


def wrong_type(what: str, value: object, wanted: str) -> InvalidTypeError:
    """Return the exception for a value of a type that cannot be used."""
    return InvalidTypeError(f"{what} is {show(value)} ({type(value).__name__}); {wanted}")


def explain_graph(error: BatchError, batch: GraphBatch, resolution: float) -> Exception:
    """Return the exception for a batch of a graph that was rejected."""
    kind, index, other = error.args
    if kind in ("unknown_edge", "unknown_edge_end"):
        u, v = show(batch.remove_u[index]), show(batch.remove_v[index])
        end = "" if kind == "unknown_edge" else f": id {v if other else u}"
        return KeyError(f"edge ({u}, {v}) in remove_edges{end} is not in the graph")
    if kind == "unknown_remove":
        return KeyError(f"id {show(batch.remove[index])} in remove is not in the graph")
    if kind == "duplicate_remove":
        return _listed_twice(batch.remove, "remove", other, index)
    if kind == "duplicate_add":
        return _listed_twice(batch.add, "add", other, index)
    if kind == "present":
        return PresentError(
            f"id {show(batch.add[index])} in add is already in the graph; to replace it, list it "
            "in remove too; to change its edges, give edges alone"
        )
    if kind == "too_many":
        return ValueError(
            f"cannot add id {show(batch.add[index])}: the graph would have more vertices than "
            "32-bit handles can name"
        )
    u, v, w = show(batch.u[index]), show(batch.v[index]), float(batch.w[index])
    if kind == "unknown_endpoint":
        return KeyError(
            f"edge ({u}, {v}): id {v if other else u} is not in the graph; "
            "list it in add, of this batch or an earlier one"
        )
    if kind == "self_loop":
        return ValueError(f"edge ({u}, {v}) is a self loop; edges must join two different vertices")
    if kind == "weight_conflict":
        return ValueError(
            f"edge ({u}, {v}) has two weights in one batch, {float(batch.w[other])} at position "
            f"{other} and {w} at position {index}; give every pair one weight"
        )
    return _explain_weight(kind, u, v, w, resolution)


def explain_points(error: BatchError, batch: PointBatch, resolution: float) -> Exception:
    """Return the exception for a batch of points that was rejected."""
    kind, index, other, *edge = error.args
    hint = f"; {WITHOUT_INDEX}" if batch.ids_name == INDEX else ""
    if edge:
        (u, v), weight = edge
        return _explain_weight(kind, show(u), show(v), weight, resolution)
    if kind == "unknown_id":
        return unknown_id(batch.deleted[index], "delete")
    if kind == "duplicate_delete":
        return _listed_twice(batch.deleted, "delete", other, index)
    if kind == "duplicate_id":
        return _listed_twice(batch.ids, batch.ids_name, other, index, hint)
    if kind == "present_id":
        return PresentError(
            f"id {show(batch.ids[index])} in {batch.ids_name} is already in the model; to replace "
            f"it, list it in delete too{hint}"
        )
    if kind == "inexact_times":
        return ValueError(
            f"timestamps are floats, but this model has int timestamps above {2**53}, which "
            "floats cannot tell apart; give ints"
        )
    if kind == "too_many":
        return ValueError(
            f"cannot insert id {show(batch.ids[index])}: the model would have more points than "
            "32-bit handles can name"
        )
    return _unknown_reason(kind)


def unknown_id(id: object, name: str) -> KeyError:
    """Return the exception for an id that is not in a model of points."""
    return KeyError(f"id {show(id)} in {name} is not in the model")


def _listed_twice(ids: PointIds, name: str, first: int, second: int, hint: str = "") -> ValueError:
    return ValueError(
        f"id {show(ids[second])} is in {name} twice, at positions {first} and {second}; list it "
        f"once{hint}"
    )


def _explain_weight(kind: str, u: str, v: str, w: float, resolution: float) -> Exception:
    coarser = f"at resolution {resolution:g}; scale the weights down, or take a coarser resolution"
    hint = "; to take an edge away use remove_edges" if w == 0.0 else ""
    messages = {
        "weight_invalid": f"weight of edge ({u}, {v}) is {w}; weights must be finite and > 0{hint}",
        "weight_underflow": (
            f"weight of edge ({u}, {v}) is {w}, which rounds to 0 at resolution {resolution:g}; "
            f"weights must be at least {resolution / 2:g}, or the resolution finer"
        ),
        "weight_overflow": f"weight of edge ({u}, {v}) is {w}, which is too large {coarser}",
        "total_overflow": (
            f"weight {w} of edge ({u}, {v}) makes the sum of all weights too large {coarser}"
        ),
    }
    return ValueError(messages[kind]) if kind in messages else _unknown_reason(kind)


def _unknown_reason(kind: str) -> RuntimeError:
    return RuntimeError(f"the engine rejected the batch for an unknown reason: {kind}")
