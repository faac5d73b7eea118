"""Cached views of the model for readers, and how readers get their turn beside the writer.

A view is what a reader needs of one state: a dendrogram with labels, or a summary of all clusters.
Making one of a large model takes longer than an update, and there may be hundreds of updates a
second. So a view is used as long as it is the newest state, and one that is costly to make may be
older: it is made again when so many times its cost have passed, by one thread, while others get
the last one. `Settled.age` tells how old a view is.

A view that needs more than one call of the model is made under the lock of the model. The writer
takes that lock again at once after each group; so before a group it lets readers pass that wait.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, Lock
from typing import Any, Generic, TypeVar

CHEAP = 0.02
"""Seconds; a view that takes less is made anew for every state."""
PART = 8
"""At most one part in so many of the time is spent on making a costly view."""
MOST_VIEWS = 8
PATIENCE = 0.5
"""Seconds that the writer waits for readers at most."""

View = TypeVar("View")


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

    def may_be_used(self, state: tuple[object, int]) -> bool:
        """Whether it need not be made again."""
        if self.state == state:
            return True
        return self.cost > CHEAP and self.age < PART * self.cost


@dataclass
class _Place:
    """Where the views of one kind are kept."""

    view: Settled[Any] | None = None
    making: Lock = field(default_factory=Lock)


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

    def get(self, key: Hashable, make: Callable[[], View]) -> Settled[View]:
        """Return the view of a kind, of the present state or a little older."""
        place = self._place(key)
        view = place.view
        if view is not None and view.may_be_used(self._state()):
            return view
        if view is not None and view.cost > CHEAP and place.making.locked():
            return view  # somebody makes the next one
        with place.making:
            view = place.view
            state = self._state()
            if view is None or not view.may_be_used(state):
                start = time.monotonic()
                value = make()
                now = time.monotonic()
                view = place.view = Settled(value, state, now - start, now)
        return view

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
