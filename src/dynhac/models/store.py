"""The points of a model: their ids, vectors, timestamps and order of arrival, by slot.

The table of the points is compiled (`core/point_table.h` tells what a slot is). It knows points by
the keys that the graph has for their ids; this class speaks of ids.

An update reserves slots, which nobody sees; they become points together with the graph, or are
given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac._core import PointTable
from dynhac.input.columns import FLOAT64, INT64, INT64_MAX, IdColumn
from dynhac.input.errors import InvalidTypeError, show

if TYPE_CHECKING:
    from dynhac.models.modelgraph import ModelGraph

Slots = NDArray[np.int64]


class PointStore:
    """The points of a model: a table by slot, and what it means in ids."""

    __slots__ = ("graph", "table", "text")

    def __init__(
        self, graph: ModelGraph, dimension: int, text: bool, timestamps: np.dtype[Any] | None
    ) -> None:
        self.graph = graph
        self.table = PointTable(dimension, timestamps is not None, timestamps == FLOAT64)
        self.text = text  # whether ids are str

    @property
    def dimension(self) -> int:
        """The length of the vectors."""
        return self.table.dimension

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays."""
        return self.table.nbytes

    def __len__(self) -> int:
        return len(self.table)

    def find(self, ids: IdColumn, name: str, repeated: bool = False) -> Slots:
        """Return the slots of ids that a user gave, all different or ``repeated``, or raise."""
        self.check_kind(ids, name)
        slots = self.table.find(self.graph.keys_of(ids))
        if len(slots) == 1:
            known = slots.item() >= 0
        else:
            known = not len(slots) or slots.min() >= 0
            if known and not repeated:
                _require_distinct(ids, name)
        if not known:
            raise KeyError(f"id {show(ids[int(np.argmin(slots))])} in {name} is not in the model")
        return slots

    def check_kind(self, ids: IdColumn, name: str) -> None:
        """Raise if ids are not of the kind that this model has."""
        if len(ids) and isinstance(ids, list) != self.text:
            raise InvalidTypeError(
                f"id {show(ids[0])} in {name} is {'an int' if self.text else 'a str'}, but the ids "
                f"of this model are {'str' if self.text else 'int'}"
            )

    def check_new(self, ids: IdColumn, leaving: Slots) -> None:
        """Raise if ids of new points are there already, and not about to leave, or come twice."""
        slots = self.table.find(self.graph.keys_of(ids))
        present = slots >= 0
        if present.any():
            stays = present & ~np.isin(slots, leaving)
            if stays.any():
                raise ValueError(
                    f"id {show(ids[int(np.argmax(stays))])} in ids is already in the model; to "
                    "replace it, list it in delete too"
                )
        _require_distinct(ids, "ids")

    def next_ids(self, count: int) -> NDArray[np.int64]:
        """Return ids for new points that got none: larger than any that was ever used."""
        if self.text:
            raise ValueError("the ids of this model are str, so that new points need ids; give ids")
        first = self.table.next_id
        if first + count > INT64_MAX:
            raise ValueError(
                f"no int id above {first - 1} is left for {count:,} new points; give ids"
            )
        return np.arange(first, first + count, dtype=INT64)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything as a few arrays, from which `from_state` makes the same store.

        Free slots are zero, so that stores that hold the same have the same arrays.
        """
        table = self.table
        keys, arrival, vectors, times = table.save()
        arrays: dict[str, NDArray[Any]] = {
            "keys": keys,
            "arrival": arrival,
            "vectors": vectors,
            "counters": np.array([table.next_arrival, table.next_id, self.text], INT64),
        }
        if times is not None:
            arrays["timestamps"] = times
        return arrays

    @classmethod
    def from_state(cls, graph: ModelGraph, arrays: Mapping[str, NDArray[Any]]) -> PointStore:
        """Return the store whose `state` the arrays are; ValueError: they are not one's."""
        keys, arrival, vectors, counters = (
            arrays[name] for name in ("keys", "arrival", "vectors", "counters")
        )
        timestamps = arrays.get("timestamps")
        right = (
            [a.dtype for a in (keys, arrival, vectors, counters)]
            == [INT64, INT64, np.dtype(np.float32), INT64]
            and vectors.ndim == 2
            and keys.shape == arrival.shape == vectors.shape[:1]
            and counters.shape == (3,)
            and (
                timestamps is None
                or (timestamps.shape == keys.shape and timestamps.dtype in (INT64, np.float64))
            )
        )
        if not right:
            raise ValueError("the arrays of the points do not belong together")
        next_arrival, next_id, text = counters.tolist()
        store = cls(graph, 0, bool(text), None)
        keys, arrival, vectors = map(np.ascontiguousarray, (keys, arrival, vectors))
        times = None if timestamps is None else np.ascontiguousarray(timestamps)
        store.table = PointTable.load(keys, arrival, vectors, times, next_arrival, next_id)
        used = keys[arrival >= 0]
        last = max(-1, int(used.max())) if not text and len(used) else -1
        if not (last < next_id or last == next_id == INT64_MAX):
            raise ValueError("the next id has been used before")
        return store


def _require_distinct(ids: IdColumn, name: str) -> None:
    if len(ids) < 2:
        return
    listed: list[Any] = ids if isinstance(ids, list) else ids.tolist()
    if len(set(listed)) == len(listed):
        return
    first: dict[Any, int] = {}
    for position, id in enumerate(listed):
        if id in first:
            raise ValueError(
                f"id {show(id)} is in {name} twice, at positions {first[id]} and {position}; list "
                "it once"
            )
        first[id] = position
