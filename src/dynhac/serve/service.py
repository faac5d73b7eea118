"""What all routes share: the model, its writer or follower, its views and its events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import time
from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

from dynhac.models.points import DynHAC
from dynhac.serve.bodies import Budget
from dynhac.serve.events import PAGE, Hub, Recorder, watch_name
from dynhac.serve.metrics import Metrics
from dynhac.serve.names import Names
from dynhac.serve.problems import Problem
from dynhac.serve.settings import Settings
from dynhac.serve.views import Load, Turns, Views
from dynhac.serve.writer import Writer
from dynhac.store.errors import StoreError
from dynhac.store.models import DurableDynHAC, DurableGraphHAC
from dynhac.store.records import read_events
from dynhac.store.writer import Writer as StoreWriter
from dynhac.watch.watch import Watch

AnyModel: TypeAlias = DurableDynHAC | DurableGraphHAC

RECENT = 2_000
"""Updates whose latency is kept for percentiles."""
RATE_SECONDS = 10.0
SNAPSHOT = re.compile(r"snapshot-(\d+)\.dynhac")

log = logging.getLogger("dynhac.serve")


class Service:
    """A model that is served.

    Attributes
    ----------
    model : DurableDynHAC or DurableGraphHAC
        The model.
    watch : Watch
        The watch whose clusters are shown unless others are asked for.
    writer : Writer or None
        None if the service only reads.
    """

    watch: Watch

    def __init__(self, model: AnyModel, settings: Settings) -> None:
        self.model = model
        self.settings = settings
        self.read_only = model._store.mode == "r"
        self.turns = Turns()
        self.load = Load()
        self.views = Views(model, self.load)
        self.names = Names(self)
        self.recorder = Recorder(self)
        self.hub = Hub(self)
        self.metrics = Metrics(self)
        self.bodies = Budget(settings.max_queue_bytes)
        self.writer = None if self.read_only else Writer(self)
        self.ready = False
        self.started = time.time()
        self._latencies: deque[float] = deque(maxlen=RECENT)
        self._updates: deque[tuple[float, int]] = deque()
        self._measuring = Lock()
        self._follower: asyncio.Task[None] | None = None
        self._lost: str | None = None  # why the writer cannot be followed

    async def start(self) -> None:
        """Begin to serve."""
        if self.writer is not None:
            await asyncio.to_thread(self.writer.start)
        else:
            self.watch = await asyncio.to_thread(self._reader_watch)
            kept, _ = await asyncio.to_thread(read_events, self.model.path, 0, 0)
            self._follower = asyncio.create_task(self._follow(kept.last))
        self.hub.start(asyncio.get_running_loop())
        self.ready = True

    async def stop(self) -> None:
        """Finish the updates that wait, and close the store."""
        self.ready = False
        self.hub.close()
        if self._follower is not None:
            self._follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._follower
        if self.writer is not None:
            await asyncio.to_thread(self.writer.stop)
        await asyncio.to_thread(self.views.close)
        await asyncio.to_thread(self.model.close)

    def _reader_watch(self) -> Watch:
        """Return the watch that was asked for, or else the first of the writer's."""
        watches = self.model.watches
        if not self.settings.watch and watches:
            return watches[0]
        return self.model.watch(**self.settings.watch)

    async def _follow(self, last: int) -> None:
        """Follow the writer of a store, and send the events that it keeps after the last one."""
        while True:
            await asyncio.sleep(self.settings.refresh_seconds)
            try:
                before = time.monotonic()
                moved = await asyncio.to_thread(self._refresh)
                if moved:
                    self.load.worked(before, time.monotonic())
                    self.measured([time.monotonic() - before] * moved)
                last = await self._pass_on(last, bool(moved))
                self._lost = None
            except Exception as error:
                told = f"the writer cannot be followed: {error}"
                if told != self._lost:
                    log.exception("the writer cannot be followed")
                self._lost = told

    async def _pass_on(self, last: int, moved: bool) -> int:
        """Send the events after an id; return the id of the last one that is kept."""
        more = True
        while more:
            kept, events = await self.hub.read(last)
            if last > kept.last or last < kept.first - 1:
                self.hub.drop()  # listeners come again, and are told what is missing
                return kept.last
            more = len(events) == PAGE
            if events:
                last = events[-1].id
            if moved or events:
                self.hub.send(events)
        return last

    def _refresh(self) -> int:
        moved = self.model.refresh()
        if moved and self.watch not in self.model.watches:  # a snapshot was loaded
            self.watch = self._reader_watch()
        return moved

    @property
    def trouble(self) -> str | None:
        """Why the service cannot do its work; None: as far as is known, it can."""
        store = self.model._store
        return store.seen_trouble() if isinstance(store, StoreWriter) else self._lost

    def require_writer(self) -> Writer:
        """Return the writer; Problem 403: the service only reads."""
        if self.writer is None:
            raise Problem(403, "this service only reads; updates go to the writer of the store")
        return self.writer

    def points(self) -> DurableDynHAC:
        """Return the model if it holds points; Problem 409: it is a graph."""
        if not isinstance(self.model, DurableDynHAC):
            raise Problem(409, "the store holds a graph; use /v1/graph/update")
        return self.model

    def graph(self) -> DurableGraphHAC:
        """Return the model if it is a graph; Problem 409: it holds points."""
        if not isinstance(self.model, DurableGraphHAC):
            raise Problem(409, "the store holds points; use /v1/points or /v1/update")
        return self.model

    @property
    def str_ids(self) -> bool:
        """Whether ids are str."""
        return self.model._engine.ids.used

    def find_watch(self, name: str | None) -> Watch:
        """Return the watch of a name, or that of the service; Problem 404: there is none."""
        if name is None:
            return self.watch
        for watch in self.model.watches:
            if watch_name(watch) == name:
                return watch
        names = ", ".join(map(watch_name, self.model.watches))
        raise Problem(404, f"there is no watch {name[:80]!r}; the watches are: {names}")

    def measured(self, seconds: Sequence[float]) -> None:
        """Note how long updates took."""
        if not seconds:
            return
        now = time.monotonic()
        with self._measuring:
            self._latencies.extend(seconds)
            self._updates.append((now, len(seconds)))
            while self._updates and self._updates[0][0] < now - RATE_SECONDS:
                self._updates.popleft()
        self.metrics.updated(seconds)

    def written(self, start: float) -> None:
        """Note that a group was written, from a time of the monotonic clock until now."""
        self.metrics.groups.inc()
        self.load.worked(start, time.monotonic())

    def rates(self) -> dict[str, float | None]:
        """Return updates per second, and percentiles of their latency in milliseconds."""
        now = time.monotonic()
        with self._measuring:
            recent = np.array(self._latencies)
            count = sum(n for at, n in self._updates if at > now - RATE_SECONDS)
        seconds = max(min(RATE_SECONDS, time.time() - self.started), 1e-3)
        p50, p99 = np.percentile(recent, (50, 99)) * 1e3 if len(recent) else (None, None)
        return {
            "updates_per_second": round(count / seconds, 2),
            "latency_p50_ms": None if p50 is None else round(float(p50), 3),
            "latency_p99_ms": None if p99 is None else round(float(p99), 3),
        }

    def disk(self) -> dict[str, Any]:
        """Return the bytes of the log, and the number, age and bytes of the last snapshot."""
        try:
            return self._disk()
        except OSError as error:
            raise StoreError(f"the store {self.model.path} cannot be read: {error}") from error

    def _disk(self) -> dict[str, Any]:
        found: dict[str, Any] = {"log_bytes": 0}
        snapshot: dict[str, Any] | None = None
        with os.scandir(self.model.path) as entries:
            for entry in entries:
                try:
                    about = entry.stat()
                except FileNotFoundError:
                    continue
                if entry.name in ("log.sqlite", "log.sqlite-wal"):
                    found["log_bytes"] += about.st_size
                elif found_number := SNAPSHOT.fullmatch(entry.name):
                    number = int(found_number[1])
                    if snapshot is None or number > snapshot["update_number"]:
                        age = max(time.time() - about.st_mtime, 0.0)
                        snapshot = {
                            "update_number": number,
                            "age_seconds": round(age, 3),
                            "bytes": about.st_size,
                        }
        return found | {"snapshot": snapshot}

    def is_points(self) -> bool:
        """Whether the model holds points."""
        return isinstance(self.model, DynHAC)
