"""The points of a model: their ids, vectors, timestamps and order of arrival, by slot.

A slot is a row of every array here, and the name of the point in the neighbour index. New points
take the lowest slots that were free before their batch; so the slots, which break ties between
neighbours at one distance, follow from the batches alone.

Invariants:

- A slot is in use if and only if its arrival number is >= 0. Slots from ``top`` on were never used.
- ``slot_of`` has the id of every slot in use, and no other.
- Every free slot below ``top`` is in the heap of free slots, at least once. The heap may also hold
  slots in use, which are skipped.

A batch reserves slots, writes ids and vectors into them, which nobody sees, and is then committed
or given back. Committing a batch twice is the same as once: whoever was interrupted on the way can
begin again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.errors import InvalidTypeError, show
from dynhac.inputs import INT64, INT64_MAX, IdColumn

Slots = NDArray[np.int64]

FREE = -1
"""The arrival number of a slot that is not in use."""


class NewPoints(NamedTuple):
    """Points in slots reserved for them, and where the counters stand after them."""

    slots: Slots
    ids: Sequence[Any]
    vectors: NDArray[np.float32]
    arrivals: Sequence[int]
    timestamps: NDArray[Any] | None
    next_arrival: int
    next_id: int


class PointStore:
    """The points of a model as arrays by slot, and a table from ids to slots."""

    __slots__ = (
        "_free",
        "arrival",
        "dimension",
        "ids",
        "next_arrival",
        "next_id",
        "slot_of",
        "text",
        "timestamps",
        "top",
        "vectors",
    )

    def __init__(self, dimension: int, text: bool, timestamps: np.dtype[Any] | None) -> None:
        self.dimension = dimension
        self.text = text  # whether ids are str
        self.ids: NDArray[Any] = np.empty(0, object if text else INT64)
        self.vectors: NDArray[np.float32] = np.empty((0, dimension), np.float32)
        self.arrival: Slots = np.empty(0, INT64)
        self.timestamps: NDArray[Any] | None = None
        if timestamps is not None:
            self.timestamps = np.empty(0, timestamps)
        self.slot_of: dict[Any, int] = {}
        self.top = 0
        self.next_arrival = 0
        self.next_id = 0
        self._free: list[int] = []

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays."""
        times = 0 if self.timestamps is None else self.timestamps.nbytes
        return self.vectors.nbytes + self.ids.nbytes + self.arrival.nbytes + times

    def __len__(self) -> int:
        return len(self.slot_of)

    def used(self) -> Slots:
        """Return the slots in use, ascending."""
        return np.flatnonzero(self.arrival[: self.top] >= 0)

    def in_order(self) -> Slots:
        """Return the slots in use, by order of arrival."""
        used = self.used()
        return used[np.argsort(self.arrival[used], kind="stable")]

    def slots(self, ids: Iterable[Any], count: int) -> Slots:
        """Return the slots of points that are there."""
        return np.fromiter(map(self.slot_of.__getitem__, ids), INT64, count)

    def find(self, ids: IdColumn, name: str, repeated: bool = False) -> list[int]:
        """Return the slots of ids that a user gave, all different or ``repeated``, or raise."""
        self.check_kind(ids, name)
        listed = ids if isinstance(ids, list) else ids.tolist()
        found = list(map(self.slot_of.get, listed))
        if None in found:
            raise KeyError(f"id {show(listed[found.index(None)])} in {name} is not in the model")
        if not repeated and len(set(listed)) < len(listed):
            raise _twice(listed, name)
        return found  # type: ignore[return-value]

    def check_kind(self, ids: IdColumn, name: str) -> None:
        """Raise if ids are not of the kind that this model has."""
        if len(ids) and isinstance(ids, list) != self.text:
            raise InvalidTypeError(
                f"id {show(ids[0])} in {name} is {'an int' if self.text else 'a str'}, but the ids "
                f"of this model are {'str' if self.text else 'int'}"
            )

    def check_new(self, ids: list[Any], leaving: Iterable[Any]) -> None:
        """Raise if ids of new points are there already, and not about to leave, or come twice."""
        present = self.slot_of.keys() & ids
        if present and not present.issubset(leaving):
            id = next(id for id in ids if id in present.difference(leaving))
            raise ValueError(
                f"id {show(id)} in ids is already in the model; to replace it, list it in delete "
                "too"
            )
        if len(set(ids)) < len(ids):
            raise _twice(ids, "ids")

    def next_ids(self, count: int) -> list[int]:
        """Return ids for new points that got none: larger than any that was ever used."""
        if self.text:
            raise ValueError("the ids of this model are str, so that new points need ids; give ids")
        if self.next_id + count > INT64_MAX:
            raise ValueError(
                f"no int id above {self.next_id - 1} is left for {count:,} new points; give ids"
            )
        return list(range(self.next_id, self.next_id + count))

    def reserve(self, count: int, slots: list[int]) -> None:
        """Put the lowest free slots into a list, ascending, and make room for points in them."""
        last = -1
        while self._free and len(slots) < count:
            slot = self._free[0]
            if slot != last and self.arrival[slot] < 0:
                slots.append(slot)
                last = slot
            heappop(self._free)
        if len(slots) < count:
            slots.extend(range(self.top, self.top + count - len(slots)))
            if slots[-1] >= len(self.arrival):
                self._grow(slots[-1] + 1)

    def write(self, new: NewPoints) -> None:
        """Put ids and vectors into slots reserved for them; the points are not there yet."""
        if len(new.ids) == 1:
            slot = new.slots.item()
            self.vectors[slot] = new.vectors
            self.ids[slot] = new.ids[0]
        else:
            self.vectors[new.slots] = new.vectors
            self.ids[new.slots] = new.ids

    def give_back(self, slots: Iterable[int]) -> None:
        """Undo a reservation."""
        for slot in slots:
            if slot < self.top:
                heappush(self._free, slot)

    def commit(self, leaving: Iterable[int], new: NewPoints | None) -> None:
        """Let points go and new ones, written into their slots before, be there."""
        for slot in leaving:
            id = self.ids.item(slot)
            if self.slot_of.get(id) == slot:
                del self.slot_of[id]
            self.arrival[slot] = FREE
            heappush(self._free, slot)
        if new is None:
            return
        self.next_arrival = new.next_arrival
        self.next_id = new.next_id
        if not new.ids:
            return
        slots = new.slots.tolist()
        if len(slots) == 1:
            self.arrival[slots[0]] = new.arrivals[0]
            self.slot_of[new.ids[0]] = slots[0]
        else:
            self.arrival[new.slots] = new.arrivals
            self.slot_of.update(zip(new.ids, slots, strict=True))
        if self.timestamps is not None and new.timestamps is not None:
            self.timestamps[new.slots] = new.timestamps
        self.top = max(self.top, slots[-1] + 1)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything as a few arrays, from which `from_state` makes the same store.

        Free slots are zero, so that stores that hold the same have the same arrays.
        """
        top = self.top
        arrays: dict[str, NDArray[Any]] = {
            "vectors": self.vectors[:top].copy(),
            "arrival": self.arrival[:top].copy(),
            "counters": np.array([self.next_arrival, self.next_id], INT64),
        }
        if self.timestamps is not None:
            arrays["timestamps"] = self.timestamps[:top].copy()
        if self.text:
            used = self.used()
            texts = [id.encode("utf-8", "surrogatepass") for id in self.ids[used].tolist()]
            arrays["id_text"] = np.frombuffer(b"".join(texts), np.uint8)
            arrays["id_length"] = np.array([len(text) for text in texts], INT64)
        else:
            arrays["ids"] = self.ids[:top].copy()
        free = np.flatnonzero(self.arrival[:top] < 0)
        for name in ("vectors", "timestamps", "ids"):
            if name in arrays:
                arrays[name][free] = 0
        return arrays

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]]) -> PointStore:
        """Return the store whose `state` the arrays are; ValueError: they are not one's."""
        vectors, arrival, counters = (arrays[n] for n in ("vectors", "arrival", "counters"))
        text = "ids" not in arrays
        timestamps = arrays.get("timestamps")
        top = len(vectors)
        right = (
            vectors.dtype == np.float32
            and vectors.ndim == 2
            and arrival.dtype == INT64
            and arrival.shape == (top,)
            and counters.dtype == INT64
            and counters.shape == (2,)
            and (
                timestamps is None
                or (timestamps.shape == (top,) and timestamps.dtype in (INT64, np.float64))
            )
            and (text or (arrays["ids"].dtype == INT64 and arrays["ids"].shape == (top,)))
        )
        if not right:
            raise ValueError("the arrays of the points do not belong together")
        store = cls(vectors.shape[1], text, None if timestamps is None else timestamps.dtype)
        store.vectors, store.arrival = vectors.copy(), arrival.copy()
        store.top = top
        store.next_arrival, store.next_id = counters.tolist()
        if timestamps is not None:
            store.timestamps = timestamps.copy()
        used = store.used()
        if text:
            raw = arrays["id_text"].tobytes()
            store.ids = np.empty(store.top, object)
            begin = 0
            for slot, length in zip(used.tolist(), arrays["id_length"].tolist(), strict=True):
                store.ids[slot] = raw[begin : begin + length].decode("utf-8", "surrogatepass")
                begin += length
        else:
            store.ids = arrays["ids"].copy()
        store.slot_of = dict(zip(store.ids[used].tolist(), used.tolist(), strict=True))
        store._free = np.flatnonzero(arrival < 0).tolist()
        numbers = np.unique(arrival[used])
        if len(store.slot_of) < len(used) or len(numbers) < len(used):
            raise ValueError("two points have one id or one place in the order of arrival")
        if len(numbers) and numbers[-1] >= store.next_arrival:
            raise ValueError("a point has arrived later than the last one")
        if not text and len(used) and not max(-1, int(store.ids[used].max())) < store.next_id:
            raise ValueError("the next id has been used before")
        return store

    def _grow(self, least: int) -> None:
        # With room to spare also after a large batch: the next point should not have to wait for a
        # copy of everything.
        capacity = max(least + least // 4, 2 * len(self.arrival), 16)

        def longer(array: NDArray[Any]) -> NDArray[Any]:
            bigger = np.empty((capacity, *array.shape[1:]), array.dtype)
            bigger[: self.top] = array[: self.top]
            return bigger

        ids, vectors, arrival = longer(self.ids), longer(self.vectors), longer(self.arrival)
        arrival[self.top :] = FREE
        if self.timestamps is not None:
            self.timestamps = longer(self.timestamps)
        self.ids, self.vectors, self.arrival = ids, vectors, arrival


def _twice(ids: list[Any], name: str) -> ValueError:
    first: dict[Any, int] = {}
    for position, id in enumerate(ids):
        if id in first:
            break
        first[id] = position
    return ValueError(
        f"id {show(id)} is in {name} twice, at positions {first[id]} and {position}; list it once"
    )
