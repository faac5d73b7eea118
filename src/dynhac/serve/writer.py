"""The writer: one thread that makes all updates, in groups that share a commit.

Requests wait in a queue. The thread takes what waits into one group (`Durable.batch`): each request
is an update of its own, which the model accepts or rejects. When the queue is empty, or the group
has lasted long enough, the group is committed; then all its requests are answered at once. So while
the disk is busy with one group, the next one gathers.

- A request that is rejected changes nothing, and does not affect others of its group.
- If a group cannot be written, the model goes back to where it was, and all requests are refused.
- A request with a key that was answered before gets that answer; see `dynhac.store.records`.
- Events are sent when their update is on the disk.
- The queue is bounded; beyond that a request is refused with 429.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any

from dynhac.serve.problems import Problem
from dynhac.store.errors import StoreError
from dynhac.store.records import Records, StoredEvent
from dynhac.store.writer import Writer as StoreWriter

if TYPE_CHECKING:
    from dynhac.serve.service import Service

GROUP_SECONDS = 0.02
"""How long a group takes in requests, if there always is one."""

log = logging.getLogger("dynhac.serve")


@dataclass(eq=False)
class Request:
    """A request for an update.

    Attributes
    ----------
    update : callable
        Makes the update and returns its answer, for JSON.
    key, digest
        The key that the client gave, if any, and the digest of the request.
    """

    update: Callable[[], dict[str, Any]]
    key: str | None
    digest: bytes
    answer: asyncio.Future[str]
    arrived: float = field(default_factory=time.monotonic)


class Writer:
    """The queue and the thread."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.model = service.model
        self.most = service.settings.max_queue
        self._queue: deque[Request] = deque()
        self._change = Condition()
        self._stopped = False
        self.records: Records | None = None
        self._thread = Thread(target=self._run, name="dynhac-writer", daemon=True)

    def start(self) -> None:
        """Begin to write: record what was not recorded, make the watch, start the thread."""
        model, service = self.model, self.service
        with model._engine.lock:
            store = model._store
            assert isinstance(store, StoreWriter)
            self.records = Records(store)
            service.recorder.note()
            before = model.update_number
            with model.batch():
                service.watch = model.watch(**service.settings.watch)
                service.recorder.catch_up(self.records, before)
        self._thread.start()

    def stop(self) -> None:
        """Finish what waits, and end the thread."""
        with self._change:
            self._stopped = True
            self._change.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._queue)

    async def submit(
        self, update: Callable[[], dict[str, Any]], key: str | None, digest: bytes
    ) -> str:
        """Let an update wait for its turn; return its answer as JSON when it is on the disk."""
        answer = asyncio.get_running_loop().create_future()
        request = Request(update, key, digest, answer)
        with self._change:
            if self._stopped:
                raise Problem(503, "the service is ending", {"Retry-After": "5"})
            if len(self._queue) >= self.most:
                raise Problem(429, f"{self.most} updates wait already", {"Retry-After": "1"})
            self._queue.append(request)
            self._change.notify()
        return await request.answer

    def _run(self) -> None:
        while True:
            with self._change:
                while not self._queue:
                    if self._stopped:
                        return
                    self._change.wait()
            self.service.turns.let_pass()
            try:
                self._write_group()
            except Exception:
                log.exception("a group of updates could not be answered")

    def _next(self) -> Request | None:
        try:
            return self._queue.popleft()
        except IndexError:
            return None

    def _write_group(self) -> None:
        """Make the updates of a group, commit it, and answer."""
        group: list[tuple[Request, str | Exception]] = []
        events: list[StoredEvent] = []
        model, recorder = self.model, self.service.recorder
        assert self.records is not None
        start = time.monotonic()
        end = start + GROUP_SECONDS
        try:
            model._store.prepare()  # lets a snapshot pass
            with model.batch():
                while (request := self._next()) is not None:
                    group.append((request, StoreError("the group failed")))
                    answer: str | Exception
                    try:
                        answer = self._perform(request, events)
                    except StoreError as error:
                        group[-1] = (request, error)
                        raise
                    except Exception as error:
                        answer = error
                    group[-1] = (request, answer)
                    if time.monotonic() > end:
                        break
                self.records.record(model.update_number)
        except Exception as error:
            if not isinstance(error, StoreError):
                log.exception("a group of updates failed")
            failed = error if isinstance(error, StoreError) else StoreError(str(error))
            if not group:  # the store takes no updates at all
                while (request := self._next()) is not None:
                    group.append((request, failed))
            group = [(request, answer if _refused(answer) else failed) for request, answer in group]
            events.clear()
            recorder.note()
        self.service.written(start)
        self._answer(group, events)

    def _perform(self, request: Request, events: list[StoredEvent]) -> str:
        """Make an update; return its answer."""
        records, model = self.records, self.model
        assert records is not None
        if request.key is not None:
            known = records.answer(request.key)
            if known is not None:
                if known.request != request.digest:
                    raise Problem(
                        422,
                        f"the Idempotency-Key {request.key[:80]!r} belongs to another request; "
                        "a new request needs a new key",
                    )
                return known.answer
        before = model.version
        answer = json.dumps(
            {**request.update(), "update_number": model.update_number, "version": model.version}
        )
        if model.version != before:
            events += self.service.recorder.record(records)
        if request.key is not None:
            records.remember(request.key, request.digest, answer)
        return answer

    def _answer(
        self, group: list[tuple[Request, str | Exception]], events: list[StoredEvent]
    ) -> None:
        """Answer the requests of a group, and send its events, in the thread of the event loop."""
        now = time.monotonic()
        done = [now - request.arrived for request, answer in group if isinstance(answer, str)]
        self.service.measured(done)

        def tell() -> None:
            for request, answer in group:
                if request.answer.done():  # nobody waits any more
                    continue
                if isinstance(answer, str):
                    request.answer.set_result(answer)
                else:
                    request.answer.set_exception(answer)
            if done:
                self.service.hub.send(events)

        self.service.hub.run_in_loop(tell)


def _refused(answer: str | Exception) -> bool:
    """Whether a request was refused for what it asks, not for the state of the store."""
    return isinstance(answer, Exception) and not isinstance(answer, StoreError)
