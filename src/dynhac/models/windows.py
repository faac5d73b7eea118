"""Windows: which points a model lets go of when new ones come or time goes on.

Points are ordered by (timestamp, arrival); without timestamps by arrival alone. Of this order a
window drops points from the old end: those with timestamp < clock - max_age, then as many as there
are more than max_points. The clock is the latest timestamp seen, or the latest time given to
``expire``. New points stand in the same order: one that is too old, or for which there is no room,
is dropped at once.

The table of the points knows their order; here is what the bounds mean in times.
"""

from __future__ import annotations

import math
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dynhac.input.columns import FLOAT64, INT64, INT64_MAX, INT64_MIN, whole_number
from dynhac.input.errors import InvalidTypeError
from dynhac.input.timestamps import EXACT_INTS, KINDS, Times, are_inexact, read_age, read_times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dynhac.models.store import PointStore, Slots

Time: TypeAlias = "int | float"
Entry: TypeAlias = "tuple[Time, int, int]"

UNITS = ("D", "h", "m", "s", "ms", "us", "ns")
NO_SLOTS = np.empty(0, INT64)


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
    clock : int, float or None
        The time after the batch.
    """

    __slots__ = ("clock", "dropped", "order", "slots")

    def __init__(self, clock: Time | None) -> None:
        self.slots: list[int] = []
        self.dropped: list[int] = []
        self.order: list[bool] = []
        self.clock = clock

    def move_on(self, time: Time) -> None:
        """Set the clock, which never goes back."""
        if self.clock is None or time > self.clock:
            self.clock = time


NO_EXPIRY = Expiry(None)
"""For models whose points never expire; nobody writes to it."""


class Window:
    """The bounds of a model, and its clock."""

    __slots__ = (
        "_clock",
        "_max_age",
        "_of_dates",
        "bounded",
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
        self._clock: Time | None = None  # the latest time that is not known to be a point's
        self.kind: str | None = None  # of the timestamps; None while there were none
        self.timed: bool | None = None  # whether points have timestamps; None before the first

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

    def clock(self, store: PointStore | None) -> Time | None:
        """Return the latest time seen; None if there was none."""
        latest = None if store is None else store.table.latest
        if latest is None or (self._clock is not None and self._clock > latest):
            return self._clock
        return latest

    def recode(self, store: PointStore, times: Times | None = None) -> None:
        """Let the times of the points be of the kind of new ones; without, of the one they were.

        The clock stays as it is, also if no float stands for it.
        """
        if self.bounded:
            self._clock = self.clock(store)
        store.table.recode((self.kind if times is None else times.kind) == "float")

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

        The times of the points must be of the batch's kind already.
        """
        total = len(store) - len(leaving) + count
        if times is not None and len(times.values):
            expiry.move_on(times.values.max().item())
        kind = self.kind if times is None else times.kind
        cutoff = self._cutoff(expiry.clock, kind)
        most = total if self.max_points is None else self.max_points
        if cutoff is None and total <= most:
            return
        old = self._entries(store, max(0, total - most), cutoff, leaving)
        new = _by_age(times, count, store.table.next_arrival)
        position = place = 0
        while True:
            is_new = position < count and (place == len(old) or new[position] < old[place])
            if is_new:
                entry = new[position]
            elif place == len(old):
                return
            else:
                entry = old[place]
            if total <= most and (cutoff is None or entry[0] >= cutoff):
                return
            total -= 1
            expiry.order.append(is_new)
            if is_new:
                expiry.dropped.append(entry[2])
                position += 1
            else:
                expiry.slots.append(entry[2])
                place += 1

    def moment(self, time: object, store: PointStore) -> tuple[Time, Time | None] | None:
        """Return one timestamp as the points have them, and the time before which they expire.

        None if that is not so simple: it may be wrong, or of another kind than theirs.
        """
        given: Time
        if (type(time) is int and self.kind == "int") or (
            type(time) is float and self.kind == "float"
        ):
            given = time
        elif self.kind == "date" and isinstance(time, (datetime, np.datetime64)):
            given = read_times(time, 1).values.item()
        else:
            return None
        if self._max_age is None:
            return given, None
        clock = self.clock(store)
        cutoff = self._cutoff(given if clock is None or given > clock else clock, self.kind)
        if cutoff is None:
            return given, None
        before = _comparable(cutoff, self.kind == "float")
        return None if before is None else (given, before)

    def commit(self, expiry: Expiry, new: bool, times: Times | None) -> None:
        """Take in a batch, which the store has already. Doing it twice does no harm."""
        if new:
            self.timed = times is not None
        if times is not None:
            self.kind = times.kind
        if self.bounded:
            self._clock = expiry.clock

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

    def state(self, store: PointStore | None) -> dict[str, NDArray[Any]]:
        """Return what `load` needs beside the points: the kind of the timestamps and the clock."""
        clock = self.clock(store) if self.bounded else None
        kind = -1 if self.kind is None else KINDS.index(self.kind)
        timed = -1 if self.timed is None else int(self.timed)
        return {
            "kinds": np.array([kind, timed], np.int64),
            "clock": np.array(
                [] if clock is None else [clock],
                FLOAT64 if isinstance(clock, float) else np.int64,
            ),
        }

    def load(self, arrays: Mapping[str, NDArray[Any]], store: PointStore | None) -> None:
        """Take up a saved `state` and the points that go with it."""
        kind, timed = arrays["kinds"].tolist()
        clock = arrays["clock"]
        if clock.ndim != 1 or len(clock) > 1 or not np.isfinite(clock).all():
            raise ValueError("the clock of the window is not right")
        self.kind = None if kind < 0 else KINDS[kind]
        self.timed = None if timed < 0 else bool(timed)
        self._clock = clock.tolist()[0] if len(clock) else None
        if store is not None:
            times = store.table.times_of(NO_SLOTS)
            told = None if not self.timed else FLOAT64 if self.kind == "float" else INT64
            if told != (None if times is None else times.dtype):
                raise ValueError("the timestamps are of another kind than the window tells")

    def _cutoff(self, clock: Time | None, kind: str | None) -> Time | Fraction | None:
        """Return the time before which points expire, None if there is none.

        Floats are as exact as floats are; where ints take part there is no rounding, however large
        they are.
        """
        if self._max_age is None or clock is None:
            return None
        floats = kind == "float"
        if floats and isinstance(clock, float):
            cutoff = clock - self._max_age
            return None if cutoff == -math.inf else cutoff
        if isinstance(clock, int) and not floats:
            return clock - math.floor(self._max_age)  # of 2.5 it is 2: the same between ints
        return Fraction(clock) - Fraction(self._max_age)

    def _entries(
        self, store: PointStore, count: int, cutoff: Time | Fraction | None, leaving: Slots
    ) -> list[Entry]:
        """Return (timestamp, arrival, slot) of all points that may expire, oldest first."""
        table = store.table
        times = table.times_of(NO_SLOTS)
        before = None
        if cutoff is not None and times is not None:
            before = _comparable(cutoff, times.dtype == FLOAT64)
            if before is None:
                count = len(table)
        slots = table.oldest(count, before, leaving)
        times = table.times_of(slots)
        listed = [0] * len(slots) if times is None else times.tolist()
        arrivals = table.arrivals_of(slots)
        return list(zip(listed, arrivals.tolist(), slots.tolist(), strict=True))


def _comparable(cutoff: Time | Fraction, floats: bool) -> Time | None:
    """Return the least int or float that is not less: what is before it is before the cutoff.

    None if there is no such int64, since all are before the cutoff.
    """
    if not floats:
        least = max(math.ceil(cutoff), INT64_MIN)
        return least if least <= INT64_MAX else None
    nearest = float(cutoff)
    return math.nextafter(nearest, math.inf) if nearest < cutoff else nearest


def check_beside(store: PointStore, times: Times) -> None:
    """Raise if the int timestamps of a store cannot become floats, as new ones make them."""
    kind = store.table.times_of(NO_SLOTS)
    if kind is None or kind.dtype == times.dtype:
        return
    if are_inexact(store.table.times_of(store.table.used())).any():  # type: ignore[arg-type]
        raise ValueError(
            f"timestamps are floats, but this model has int timestamps above {EXACT_INTS}, which "
            "floats cannot tell apart; give ints"
        )


def _by_age(times: Times | None, count: int, next_arrival: int) -> list[Entry]:
    """Return (timestamp, arrival, position) of new points in order."""
    values = [0] * count if times is None else times.values.tolist()
    return sorted(zip(values, range(next_arrival, next_arrival + count), range(count), strict=True))


def _told(dates: bool) -> str:
    return "dates" if dates else "numbers"
