"""Windows: which points a model lets go of when new ones come or time goes on.

Points are ordered by (timestamp, arrival); without timestamps by arrival alone. Of this order a
window drops points from the old end: those with timestamp < clock - max_age, then as many as there
are more than max_points. The clock is the latest timestamp seen, or the latest time given to
``expire``. New points stand in the same order: one that is too old, or for which there is no room,
is dropped at once.

Arrival alone is a matter of the table of points. With timestamps, the order is kept as a heap of
(timestamp, arrival, slot). A deletion leaves its entry behind; an
entry is *stale* when its slot has another arrival number by now, and is dropped when it comes up,
or when stale ones have become the majority. An entry may stand there twice, which does no harm: the
second is stale after the first.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dynhac.errors import InvalidTypeError
from dynhac.inputs import FLOAT64, whole_number
from dynhac.points.timestamps import EXACT_INTS, KINDS, Times, are_inexact, read_age

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dynhac.points.store import PointStore, Slots

Time: TypeAlias = "int | float"
Entry: TypeAlias = "tuple[Time, int, int]"

UNITS = ("D", "h", "m", "s", "ms", "us", "ns")

SLACK = 64
"""Stale entries that are never worth a cleaning."""


class Expiry:
    """What a window drops in one batch.

    Attributes
    ----------
    slots : list of int
        Slots of the points of the model that expire, oldest first.
    dropped : list of int
        Positions in the batch of the new points that expire at once, oldest first.
    order : list of bool
        For all that expire, oldest first: whether it is a new point.
    popped : list
        Entries taken from the heap, which go back if the batch fails.
    clock : int, float or None
        The time after the batch.
    """

    __slots__ = ("clock", "dropped", "order", "popped", "slots")

    def __init__(self, clock: Time | None) -> None:
        self.slots: list[int] = []
        self.dropped: list[int] = []
        self.order: list[bool] = []
        self.popped: list[Entry] = []
        self.clock = clock

    def move_on(self, time: Time) -> None:
        """Set the clock, which never goes back."""
        if self.clock is None or time > self.clock:
            self.clock = time


NO_EXPIRY = Expiry(None)
"""For models whose points never expire; nobody writes to it."""


class Window:
    """The bounds of a model, its clock, and its points by age."""

    __slots__ = (
        "_heap",
        "_max_age",
        "_of_dates",
        "bounded",
        "clock",
        "kind",
        "max_points",
        "timed",
    )

    def __init__(self, max_points: object = None, max_age: object = None) -> None:
        self.max_points = None if max_points is None else whole_number(max_points, "max_points", 1)
        self._of_dates: bool | None = None
        self._max_age: Time | None = None
        if max_age is not None:
            self._of_dates, self._max_age = read_age(max_age)
        self.bounded = max_points is not None or max_age is not None  # whether points expire at all
        self.clock: Time | None = None
        self.kind: str | None = None  # of the timestamps; None while there were none
        self.timed: bool | None = None  # whether points have timestamps; None before the first
        self._heap: list[Entry] = []

    @property
    def has_age(self) -> bool:
        """Whether points expire by age."""
        return self._max_age is not None

    @property
    def max_age(self) -> int | float | np.timedelta64 | None:
        """The age at which points expire; None if at none."""
        if not self._of_dates or self._max_age is None:
            return self._max_age
        age = np.timedelta64(int(self._max_age), "ns")
        in_units: list[np.timedelta64] = [age.astype(f"m8[{unit}]") for unit in UNITS]
        return next(whole for whole in in_units if whole == age)

    def admit(self, times: Times | None) -> Times | None:
        """Return timestamps of new points in a form that fits the others, or raise."""
        if times is None:
            if self._max_age is not None:
                raise ValueError("points need timestamps, since the model has a max_age")
            if self.timed:
                raise ValueError(
                    "points need timestamps, since the first points of this model had some"
                )
            return None
        if self.timed is False:
            raise ValueError(
                "points cannot have timestamps, since the first points of this model had none"
            )
        return self.fit(times)

    def fit(self, times: Times) -> Times:
        """Return times of a kind that can be compared with the others, or raise."""
        dates = times.kind == "date"
        if self._of_dates is not None and dates != self._of_dates:
            raise InvalidTypeError(
                f"timestamps are {_told(dates)}, but max_age is "
                f"{'a timedelta64' if self._of_dates else 'a number'}"
            )
        if self.kind is not None and dates != (self.kind == "date"):
            raise InvalidTypeError(
                f"timestamps are {_told(dates)}, but those of this model are {_told(not dates)}"
            )
        if self.kind == "float" and times.kind == "int":
            return times.as_floats()
        return times

    def plan(
        self,
        expiry: Expiry,
        store: PointStore,
        leaving: Slots,
        times: Times | None,
        count: int,
    ) -> None:
        """Write into ``expiry`` what a batch lets expire; ``leaving`` are its deletions.

        If the batch fails, `undo` has to be called.
        """
        total = len(store) - len(leaving) + count
        cutoff = self._cutoff(expiry, times)
        if cutoff is None and (self.max_points is None or total <= self.max_points):
            return
        if cutoff is None and times is None and not self.timed:
            self._plan_by_arrival(expiry, store, leaving, total)
            return
        most = math.inf if self.max_points is None else self.max_points
        gone = set(leaving.tolist())
        new = _by_age(times, count, store.table.next_arrival)
        position = 0
        while True:
            old = self._oldest(store, gone, expiry)
            is_new = position < count and (old is None or new[position] < old)
            if is_new:
                entry = new[position]
            elif old is None:
                return
            else:
                entry = old
            if total <= most and (cutoff is None or entry[0] >= cutoff):
                return
            total -= 1
            expiry.order.append(is_new)
            if is_new:
                expiry.dropped.append(entry[2])
                position += 1
            else:
                expiry.slots.append(entry[2])
                gone.add(entry[2])

    def _plan_by_arrival(
        self, expiry: Expiry, store: PointStore, leaving: Slots, total: int
    ) -> None:
        """Do so for points without timestamps, of which those there are older than new ones."""
        assert self.max_points is not None  # what else would let them expire
        count = total - self.max_points
        expiry.slots = store.table.oldest(count, leaving).tolist()
        expiry.dropped = list(range(count - len(expiry.slots)))
        expiry.order = [False] * len(expiry.slots) + [True] * len(expiry.dropped)

    def undo(self, expiry: Expiry) -> None:
        """Put back what `plan` took out."""
        for entry in expiry.popped:
            heappush(self._heap, entry)

    def commit(
        self, expiry: Expiry, store: PointStore, new: Slots | None, times: Times | None
    ) -> None:
        """Take in new points; the store has them already. Doing it twice does no harm."""
        if new is not None:
            self.timed = times is not None
        if times is not None:
            self.kind = times.kind
        if not self.bounded:
            return
        self.clock = expiry.clock
        if not self.timed:
            return
        if new is not None:
            for entry in self._entries(store, new):
                heappush(self._heap, entry)
        if len(self._heap) > 2 * len(store) + SLACK:
            self.rebuild(store)

    def rebuild(self, store: PointStore) -> None:
        """Make the heap anew from the points there are."""
        heap = self._entries(store, store.table.used())
        heapify(heap)
        self._heap = heap

    def parameters(self) -> dict[str, Any]:
        """Return the bounds in JSON's types, from which `from_parameters` makes the same window."""
        return {
            "max_points": self.max_points,
            "max_age": self._max_age,
            "of_dates": self._of_dates,
        }

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Window:
        """Return a window with these bounds; it has seen no points yet."""
        age = parameters["max_age"]
        if parameters["of_dates"]:
            age = np.timedelta64(age, "ns")
        return cls(parameters["max_points"], age)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return what `load` needs beside the points: the kind of the timestamps and the clock."""
        kind = -1 if self.kind is None else KINDS.index(self.kind)
        timed = -1 if self.timed is None else int(self.timed)
        return {
            "kinds": np.array([kind, timed], np.int64),
            "clock": np.array(
                [] if self.clock is None else [self.clock],
                FLOAT64 if isinstance(self.clock, float) else np.int64,
            ),
        }

    def load(self, arrays: Mapping[str, NDArray[Any]], store: PointStore | None) -> None:
        """Take up a saved `state` and the points that go with it."""
        kind, timed = arrays["kinds"].tolist()
        clock = arrays["clock"]
        if clock.ndim != 1 or len(clock) > 1 or not np.isfinite(clock).all():
            raise ValueError("the clock of the window is not right")
        times = None if store is None else store.timestamps
        if (
            store is not None
            and times is not None
            and not np.isfinite(times[store.table.used()]).all()
        ):
            raise ValueError("a timestamp is not finite")
        self.kind = None if kind < 0 else KINDS[kind]
        self.timed = None if timed < 0 else bool(timed)
        self.clock = clock.tolist()[0] if len(clock) else None
        if store is not None and self.bounded and self.timed:
            self.rebuild(store)

    def _cutoff(self, expiry: Expiry, times: Times | None) -> Time | None:
        """Move the clock on; return the time before which points expire, None if there is none."""
        if times is not None and len(times.values):
            expiry.move_on(times.values.max().item())
        if self._max_age is None or expiry.clock is None:
            return None
        # Between ints an age of 2.5 is one of 2: no rounding, however large they are.
        kind = self.kind if times is None else times.kind
        whole = kind != "float" and isinstance(expiry.clock, int)
        age = math.floor(self._max_age) if whole else self._max_age
        return expiry.clock - age

    def _entries(self, store: PointStore, slots: Slots) -> list[Entry]:
        """Return what the heap has for points."""
        assert store.timestamps is not None
        times, arrivals = store.timestamps[slots], store.table.arrivals_of(slots)
        return list(zip(times.tolist(), arrivals.tolist(), slots.tolist(), strict=True))

    def _oldest(self, store: PointStore, gone: set[int], expiry: Expiry) -> Entry | None:
        """Return the first entry that is not stale and not gone; those before it are taken out."""
        heap = self._heap
        while heap:
            entry = heap[0]
            if store.table.arrival(entry[2]) != entry[1]:
                heappop(heap)
            elif entry[2] in gone:
                expiry.popped.append(entry)
                heappop(heap)
            else:
                return entry
        return None


def check_beside(store: PointStore, times: Times) -> None:
    """Raise if the int timestamps of a store cannot become floats, as new ones make them."""
    if store.timestamps is None or store.timestamps.dtype == times.dtype:
        return
    if are_inexact(store.timestamps[store.table.used()]).any():
        raise ValueError(
            f"timestamps are floats, but this model has int timestamps above {EXACT_INTS}, which "
            "floats cannot tell apart; give ints"
        )


def _by_age(times: Times | None, count: int, next_arrival: int) -> list[Entry]:
    """Return (timestamp, arrival, position) of new points in order."""
    values = [] if times is None else times.values.tolist()
    return sorted(zip(values, range(next_arrival, next_arrival + count), range(count), strict=True))


def _told(dates: bool) -> str:
    return "dates" if dates else "numbers"
