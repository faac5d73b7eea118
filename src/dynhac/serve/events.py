"""Events of the watches: recorded with their update, and sent to all listeners.

An event has an id, which grows. `Recorder` turns the last step of each watch into events and keeps
them in the store (`dynhac.store.records`) in the transaction of the update; `Hub` sends them when
that is committed. A listener that resumes after an id first gets what is kept after it, then what
is new, in order and each once. Where events are missing it is told so by an event ``gap``.

A listener has a bounded buffer. One that reads too slowly is dropped: it can connect again and
resume. (If it does not read at all, `dynhac.serve.protocol` closes its connection.) A message
``update`` without an id tells a few times a second that the state has changed; it is not kept.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from dynhac.store.records import EventRange, Records, StoredEvent, read_events
from dynhac.watch.events import Event
from dynhac.watch.watch import Watch

if TYPE_CHECKING:
    from dynhac.serve.service import Service

MOST_POINTS = 100
"""Ids of points in an event; it tells how many there are."""
PAGE = 500
"""Events that are read from the store at a time."""
MOST_BYTES = 8 << 20
"""Bytes that wait at most for one listener."""
HEARTBEAT = 15.0
UPDATE_SECONDS = 0.1
"""The least time between two messages ``update``."""


def watch_name(watch: Watch) -> str:
    """Return what the API calls a watch: its theta, and what else sets it apart."""
    parameters = watch._parameters
    parts = ["auto" if watch.theta is None else f"{watch.theta:g}"]
    if watch.min_size != 1:
        parts.append(f"min_size={watch.min_size}")
    if watch.patience is not None:
        parts.append(f"patience={parameters.patience_text}")
    return ",".join(parts)


class Recorder:
    """Turns what watches report into events, and keeps them."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._seen: dict[Watch, int] = {}  # the version of the last events of each watch

    def catch_up(self, records: Records, before: int) -> None:
        """At the start: keep the events of a new watch, and note which updates had no service.

        ``before``: the number of updates before the watch was made.
        """
        number, recorded = self.service.model.update_number, records.recorded
        events = []
        if recorded < before:
            text = f"updates {recorded + 1} to {before} were made without the service"
            events = [_text(kind="gap", message=text, update=number, time=_now())]
        records.append(number, events + self._events())
        records.record(number)

    def note(self) -> None:
        """Take the events that watches have now for known."""
        version = self.service.model.version
        self._seen = dict.fromkeys(self.service.model.watches, version)

    def record(self, records: Records) -> list[StoredEvent]:
        """After an update that changed something: keep its events."""
        events = self._events()
        return records.append(self.service.model.update_number, events) if events else []

    def _events(self) -> list[str]:
        texts, model = [], self.service.model
        number, version, now = model.update_number, model.version, _now()
        for watch in model.watches:
            if self._seen.get(watch) == version:
                continue
            self._seen[watch] = version
            end = f'"update":{number},"time":{now},"watch":{_encode(watch_name(watch))}}}'
            texts += [_event_text(event, end) for event in watch.events]
        return texts


_encode = json.JSONEncoder(separators=(",", ":")).encode


def _text(**values: Any) -> str:
    return _encode(values)


def _event_text(event: Event, end: str) -> str:
    """Return an event as JSON; ``end``: its last fields.

    A large batch has hundreds of events, and a call of the encoder for each would take longer than
    all else that is done for them.
    """
    points = event.points[:MOST_POINTS].tolist()
    ids = _encode(points) if event.points.dtype == object else _numbers(points)
    return (
        f'{{"kind":"{event.kind}","cluster":{event.cluster},"size":{event.size},'
        f'"count":{len(event.points)},"points":{ids},"others":{_numbers([*event.others])},{end}'
    )


def _numbers(ints: list[int]) -> str:
    return str(ints).replace(" ", "")


def _now() -> float:
    return round(time.time(), 3)


def message(event: StoredEvent) -> bytes:
    """Return an event as it is sent."""
    return f"id: {event.id}\nevent: cluster\ndata: {event.data}\n\n".encode()


def gap_message(after: int, kept: EventRange) -> tuple[int, bytes]:
    """Return where a listener goes on that asks for more than is kept, and what it is told."""
    if after > kept.last:
        start, text = kept.last, f"there is no event {after}; the last one is {kept.last}"
    else:
        start = kept.first - 1
        text = f"the events after {after} and before {kept.first} are not kept any more"
    data = _text(kind="gap", message=text)
    return start, f"id: {start}\nevent: cluster\ndata: {data}\n\n".encode()


class Listener:
    """One client that listens: what waits for it, and how far it is."""

    def __init__(self, hub: Hub, most: int) -> None:
        self._hub = hub
        self._most = most
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self.update: bytes | None = None  # the last message update
        self.dropped = False

    def give(self, messages: Sequence[tuple[int, bytes]]) -> None:
        """Let messages wait; drop the listener if they are too many."""
        self._waiting.extend(messages)
        self._bytes += sum(len(text) for _, text in messages)
        if len(self._waiting) > self._most or self._bytes > MOST_BYTES:
            self.drop()
        self._news.set()

    def drop(self) -> None:
        """End its stream."""
        self._waiting.clear()
        self.dropped = True
        self._news.set()

    def wake(self) -> None:
        """Let it look for news."""
        self._news.set()

    async def messages(self, after: int | None, last: int) -> AsyncIterator[bytes]:
        """Give what is to be sent, until the service ends or the listener is dropped."""
        hub = self._hub
        kept, _ = await hub.read(0, 0)
        yield b"retry: 1000\n\n"
        if after is None and last:
            after = max(kept.last - last, kept.first - 1, 0)
        behind = after is not None
        after = -1 if after is None else after
        while behind and not hub.closed:
            kept, stored = await hub.read(after)
            if after > kept.last or after < kept.first - 1:
                after, told = gap_message(after, kept)
                yield told
            if stored:
                yield b"".join(map(message, stored))
                after = stored[-1].id
            behind = len(stored) == PAGE
        if hub.state is not None:
            yield hub.state
        while not (self.dropped or hub.closed):
            news = []
            while self._waiting:
                id, text = self._waiting.popleft()
                self._bytes -= len(text)
                if id > after:  # it may have been read from the store already
                    news.append(text)
                    after = id
            if self.update is not None:
                news.append(self.update)
                self.update = None
            if news:
                yield b"".join(news)
                continue
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), HEARTBEAT)
            except asyncio.TimeoutError:
                yield b": alive\n\n"


class Hub:
    """Sends events to all listeners; lives in the thread of the event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._listeners: set[Listener] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.state: bytes | None = None
        self.closed = False
        self._next_update = 0.0
        self._update_due = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to send."""
        self._loop = loop
        self._state_changed()

    def close(self) -> None:
        """End all streams."""
        self.closed = True
        for listener in self._listeners:
            listener.wake()

    def drop(self) -> None:
        """Let all listeners connect again, and resume."""
        for listener in self._listeners:
            listener.drop()

    def close_soon(self) -> None:
        """End all streams; from any thread, or a signal handler."""
        if self._loop is not None:
            self.run_in_loop(self.close)

    @property
    def listeners(self) -> int:
        """How many clients listen."""
        return len(self._listeners)

    def run_in_loop(self, call: Callable[[], None]) -> None:
        """Call a function in the thread of the event loop; from any thread."""
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop has been closed: nobody waits any more
            return

    async def read(self, after: int, most: int = PAGE) -> tuple[EventRange, list[StoredEvent]]:
        """Read kept events."""
        return await asyncio.to_thread(read_events, self._service.model.path, after, most)

    async def listen(self, after: int | None, last: int = 0) -> AsyncIterator[bytes]:
        """Give what one client is to be sent.

        ``after``: the id of the last event it has; ``last``: how many it gets if it has none.
        """
        listener = Listener(self, self._service.settings.listener_buffer)
        self._listeners.add(listener)
        try:
            async for text in listener.messages(after, last):
                yield text
        finally:
            self._listeners.discard(listener)

    def send(self, events: Sequence[StoredEvent]) -> None:
        """Send events, and that the state has changed."""
        if events:
            messages = [(event.id, message(event)) for event in events]
            for listener in tuple(self._listeners):
                listener.give(messages)
        self._state_changed()

    def _state_changed(self) -> None:
        """Tell the listeners, a few times a second at most."""
        assert self._loop is not None
        wait = self._next_update - self._loop.time()
        if wait > 0:
            if not self._update_due:
                self._update_due = True
                self._loop.call_later(wait, self._tell_state)
            return
        self._tell_state()

    def _tell_state(self) -> None:
        assert self._loop is not None
        self._update_due = False
        self._next_update = self._loop.time() + UPDATE_SECONDS
        model = self._service.model
        data = _text(
            update_number=model.update_number, version=model.version, points=len(model), time=_now()
        )
        self.state = f"event: update\ndata: {data}\n\n".encode()
        for listener in self._listeners:
            listener.update = self.state
            listener.wake()
