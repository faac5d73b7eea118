"""Cached views of the model for readers, and how readers get their turn beside the writer.

A view is what a reader needs of one state: a dendrogram with labels, or a summary of all clusters.
Making one of a large model takes longer than an update, and there may be hundreds of updates a
second. So a view is used as long as it is of the newest state. One that is costly to make may be
older: a reader gets the last one at once, and the next one is made in the background, but not
before a multiple of its cost has passed. `Settled.age` tells how old a view is. A view that nobody
has asked for in a while is too old for that: its next reader waits.

A view that needs more than one call of the model is made under the lock of the model. The writer
takes that lock again at once after each group; so before a group it lets readers pass that wait.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, Lock, Timer
from typing import Any, Generic, TypeVar

CHEAP = 0.02
"""Seconds; a view that takes less is made anew for every state."""
PART = 3
"""At most about one part in so many of the time is spent on making a costly view."""
OLDEST = 5.0
"""Seconds; the age of a view that is costly to make and not of the newest state."""
MOST_VIEWS = 12
PATIENCE = 0.5
"""Seconds that the writer waits for readers at most."""

View = TypeVar("View")

log = logging.getLogger("dynhac.serve")


@dataclass
class Settled(Generic[View]):
    """A view, and the state it is of."""

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
    due: Timer | None = None


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

    def __init__(self, model: Any) -> None:
        self._model = model
        self._places: OrderedDict[Hashable, _Place] = OrderedDict()
        self._lock = Lock()
        self._closed = False

    def get(self, key: Hashable, make: Callable[[], View], part: int = PART) -> Settled[View]:
        """Return the view of a kind, of the present state or a little older."""
        place = self._place(key)
        view = place.view
        if view is not None:
            if view.state == self._state():
                return view
            if view.cost > CHEAP and view.age < max(OLDEST, 2 * part * view.cost):
                self._make_later(place, make, part * view.cost - view.age)
                return view
        return self._make(place, make)

    def close(self) -> None:
        """Make no more views in the background."""
        with self._lock:
            self._closed = True
            timers = [place.due for place in self._places.values() if place.due is not None]
        for timer in timers:
            timer.cancel()
            timer.join()

    def _make(self, place: _Place, make: Callable[[], View]) -> Settled[View]:
        with place.making:
            view, state = place.view, self._state()
            if view is None or view.state != state:
                start = time.monotonic()
                value = make()
                now = time.monotonic()
                view = place.view = Settled(value, state, now - start, now)
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
                place.due = Timer(max(seconds, 0.0), run)
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
