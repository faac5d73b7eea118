"""Cached views of the model for readers, and how readers get their turn beside the writer.

A view is what a reader needs of one state: a dendrogram with labels, or a summary of all clusters.
Making one of a large model takes longer than an update, and there may be hundreds of updates a
second. So a view is used as long as it is of the newest state. One that is costly to make may be
older: a reader gets the last one at once, and the next one is made in the background. After a view
there is a pause, which is the longer the more it has cost and the busier the writer is. A reader
that needs a version of the model waits for a view of it. `Settled.age` tells how old a view is. A
view that nobody has asked for in a while is too old for that: its next reader waits.

A view that needs more than one call of the model is made under the lock of the model. The writer
takes that lock again at once after each group; so before a group it lets readers pass that wait.
"""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, Lock, Semaphore, Timer
from typing import Any, Generic, TypeVar

CHEAP = 0.02
"""Seconds; a view that takes less is made anew for every state."""
PART = 3
"""While the writer is busy, at most about one part in so many of the time is spent on making a
costly view."""
IDLE = 1 / 8
"""How busy the writer counts as at least."""
OLDEST = 5.0
"""Seconds; the age of a view that is costly to make and not of the newest state."""
LATER = 0.2
"""Seconds until a view is made that nobody waits for: others come first after an update."""
MOST_VIEWS = 12
PATIENCE = 0.5
"""Seconds that the writer waits for readers at most."""
VERSION_SECONDS = 2.0
"""How long a reader waits for a version at most."""
LOOK_SECONDS = 0.05
"""How often it looks whether the model has come to that version."""
MOST_WAITING = 16
"""Readers that wait at the same time, each in a thread; others get the last view."""
LOAD_SECONDS = 1.0
"""The load of the writer is a mean over about this time."""

View = TypeVar("View")

log = logging.getLogger("dynhac.serve")


@dataclass
class Settled(Generic[View]):
    """A view, and the state it is of: the engine and its version, or a later one."""

    value: View
    state: tuple[object, int]
    cost: float
    made: float

    @property
    def age(self) -> float:
        """Seconds since it was made."""
        return time.monotonic() - self.made


@dataclass
class _Place:
    """Where the views of one kind are kept."""

    view: Settled[Any] | None = None
    making: Lock = field(default_factory=Lock)
    made: Condition = field(default_factory=Condition)
    due: Timer | None = None

    def wait_for_other(self, view: Settled[Any], seconds: float) -> None:
        """Wait until there is another view than this one, for so long at most."""
        with self.made:
            self.made.wait_for(lambda: self.view is not view, seconds)


class Load:
    """How busy the writer is: the share of the last second or so in which it worked."""

    def __init__(self) -> None:
        self._share, self._at = 0.0, time.monotonic()

    def worked(self, start: float, end: float) -> None:
        """Note that it worked from one time of the monotonic clock to another."""
        before = self._share * math.exp((self._at - start) / LOAD_SECONDS)
        self._share = 1 - (1 - before) * math.exp((start - end) / LOAD_SECONDS)
        self._at = end

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self._share * math.exp(min(self._at - time.monotonic(), 0.0) / LOAD_SECONDS)


class Turns:
    """Lets readers that wait for the lock of the model have it before the next group."""

    def __init__(self) -> None:
        self._waiting = 0
        self._change = Condition()

    @contextmanager
    def reading(self, lock: Any) -> Iterator[None]:
        """Hold the lock of the model, for a reader."""
        with self._change:
            self._waiting += 1
        try:
            lock.acquire()
        finally:
            with self._change:
                self._waiting -= 1
                self._change.notify_all()
        try:
            yield
        finally:
            lock.release()

    def let_pass(self) -> None:
        """Before a group: wait until readers that wait for the lock have it."""
        if self._waiting:
            with self._change:
                self._change.wait_for(lambda: not self._waiting, PATIENCE)


class Views:
    """The views of one model."""

    def __init__(self, model: Any, load: Load) -> None:
        self._model = model
        self._load = load
        self._places: OrderedDict[Hashable, _Place] = OrderedDict()
        self._lock = Lock()
        self._waiting = Semaphore(MOST_WAITING)
        self._closed = False

    def get(
        self,
        key: Hashable,
        make: Callable[[], View],
        part: int = PART,
        min_version: int | None = None,
    ) -> Settled[View]:
        """Return the view of a kind, of the present state or a little older.

        With a version, wait for a view of it or of a later one; but not for ever.
        """
        place = self._place(key)
        view = self._last(place, make, part, LATER if min_version is None else 0.0)
        if min_version is None or view.state[1] >= min_version:
            return view
        if not self._waiting.acquire(blocking=False):
            return view
        try:
            end = time.monotonic() + VERSION_SECONDS
            while view.state[1] < min_version and time.monotonic() < end and not self._closed:
                place.wait_for_other(view, LOOK_SECONDS)
                view = self._last(place, make, part, 0.0)
        finally:
            self._waiting.release()
        return view

    def close(self) -> None:
        """Make no more views in the background."""
        with self._lock:
            self._closed = True
            timers = [place.due for place in self._places.values() if place.due is not None]
        for timer in timers:
            timer.cancel()
            timer.join()

    def _last(
        self, place: _Place, make: Callable[[], View], part: int, least: float
    ) -> Settled[View]:
        """Return a view at once if there is one, and see to it that there will be a newer one.

        ``least``: the seconds after which that is begun at the earliest.
        """
        view = place.view
        if view is not None:
            if view.state == self._state():
                return view
            if view.cost > CHEAP and view.age < max(OLDEST, 2 * part * view.cost):
                pause = part * view.cost * max(self._load.share, IDLE)
                self._make_later(place, make, max(pause - view.age, least))
                return view
        return self._make(place, make)

    def _make(self, place: _Place, make: Callable[[], View]) -> Settled[View]:
        with place.making:
            view, state = place.view, self._state()
            if view is None or view.state != state:
                start = time.monotonic()
                value = make()
                now = time.monotonic()
                view = place.view = Settled(value, state, now - start, now)
        with place.made:
            place.made.notify_all()
        return view

    def _make_later(self, place: _Place, make: Callable[[], View], seconds: float) -> None:
        """Make a view in the background, unless that is due already."""

        def run() -> None:
            try:
                self._make(place, make)
            except Exception:
                log.exception("a view could not be made")
            finally:
                place.due = None

        with self._lock:
            if place.due is None and not self._closed:
                place.due = Timer(seconds, run)
                place.due.start()

    def _state(self) -> tuple[object, int]:
        engine = self._model._engine.engine
        return engine, engine.version

    def _place(self, key: Hashable) -> _Place:
        with self._lock:
            place = self._places.setdefault(key, _Place())
            self._places.move_to_end(key)
            while len(self._places) > MOST_VIEWS:
                self._places.popitem(last=False)
        return place
