"""The store of a model that only reads: it follows what a writer, elsewhere, acknowledges."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from dynhac.models.points import DynHAC
from dynhac.store.errors import RecoveryWarning, StoreError
from dynhac.store.files import read_head
from dynhac.store.log import DATABASE_ERRORS, Row, reading
from dynhac.store.payloads import PayloadReader
from dynhac.store.recovery import Recovered, Source, recover, warning_of
from dynhac.store.replay import SAVED, index_flags, replay
from dynhac.store.snapshots import Position
from dynhac.store.writer import write_watches
from dynhac.watch.parameters import WatchOrder

if TYPE_CHECKING:
    from dynhac._core import Meter
    from dynhac.store.snapshots import Model
    from dynhac.watch.watch import Watch

ATTEMPTS = 20
PAUSE = 0.05


class Follower:
    """The store of one model, open for reading; nothing in its directory is ever changed."""

    mode = "r"

    def __init__(self, source: Source, durability: str) -> None:
        self.source = source
        self.directory = source.directory
        self.durability = durability
        self.position = Position(0, b"")
        self.snapshot_number: int | None = None
        self.closed = False
        self.diverged = False  # the model may not be what its position says
        self.lock: AbstractContextManager[Any]

    def start(self, meter: Meter) -> Model:
        """Return a model that follows the writer."""
        model = self._load(meter)
        self.lock = model._engine.lock
        model._writer = self
        write_watches(model)
        return model

    def _load(self, meter: Meter) -> Model:
        """Return the model as the writer last acknowledged it."""
        recovered = read_store(self.source, meter)
        self.position, self.snapshot_number = recovered.position, recovered.snapshot
        return recovered.model

    def refresh(self, model: Model, meter: Meter) -> int:
        """Bring a model up to what is acknowledged now; return how many updates that were."""
        self.require_open()
        with self.lock:
            before = self.position.number
            if self.diverged or not self._advance(model, meter):
                self.diverged = True  # until the model is the one that is loaded
                if isinstance(model, DynHAC) and model._parameters.own_index is not None:
                    raise StoreError(
                        "the log does not go back far enough, and an index of your own cannot be "
                        "loaded twice; open the store again with a new, empty index"
                    )
                model._adopt(self._load(meter))  # type: ignore[arg-type]
                self.diverged = False
            return self.position.number - before

    def _advance(self, model: Model, meter: Meter) -> bool:
        """Apply the rows that follow; whether the log had them all."""
        try:
            last = read_head(self.directory)
            with reading(self.directory) as log:
                if last is None or last < self.position.number:
                    return False
                meter.begin("replaying", "updates", last - self.position.number)
                for row in log.rows(self.position.number):
                    if row.number > last:
                        break
                    right = row.number == self.position.number + 1
                    if not right or not row.follows(self.position.digest):
                        return False
                    if index_flags(model, row.op) & SAVED and not row.flags:
                        return False  # the index was saved here, and not by the writer
                    self.diverged = True
                    replay(model, row, meter, last - row.number)
                    self.position = Position(row.number, row.digest)
                    self.diverged = False
                meter.end()
        except (*DATABASE_ERRORS, StoreError, ValueError, KeyError):
            return False
        return self.position.number == last

    def prepare(self, *arguments: object) -> NoReturn:
        """Raise: readers do not write."""
        self.require_open()
        raise StoreError(f"the store {self.directory} is open for reading; open it with mode='w'")

    snapshot: Callable[..., NoReturn] = prepare
    group: Callable[..., NoReturn] = prepare
    set_payloads: Callable[..., NoReturn] = prepare

    def write(
        self, model: Model, batch: object, progress: object = None, payloads: object = None
    ) -> Watch:
        """Raise: readers do not write. But a reader may have watches of its own."""
        if not isinstance(batch, WatchOrder):
            self.prepare()
        if batch.close:
            raise StoreError(
                f"the watch {batch.parameters.where} belongs to the writer of the store "
                f"{self.directory}; only the writer can close it"
            )
        watch: Watch = model._perform(batch)
        watch._private = True
        return watch

    def require_open(self) -> None:
        """Raise if the store has been closed."""
        if self.closed:
            raise StoreError(f"the store {self.directory} is closed; open it again")

    def rows(self, since: int) -> Iterator[Row]:
        """Give the rows of the log after an update, up to where the model is."""
        with reading(self.directory) as log:
            for row in log.rows(since):
                if row.number <= self.position.number:
                    yield row

    @contextmanager
    def reading_payloads(self) -> Iterator[tuple[PayloadReader, int]]:
        """Give the payloads to read, and the last update of the writer that is acknowledged."""
        self.require_open()
        number = max(self.position.number, read_head(self.directory) or 0)
        with reading(self.directory) as log:
            log.connection.execute("BEGIN")
            yield PayloadReader(log.connection), number

    def close(self, model: Model, meter: Meter) -> None:
        """Follow no more."""
        self.closed = True

    def stats(self) -> dict[str, Any]:
        """Return figures."""
        self.require_open()
        with reading(self.directory) as log:
            extent = log.extent()
        return {
            "log_rows": extent.rows,
            "log_bytes": extent.bytes,
            "snapshot_number": self.snapshot_number,
        }


def read_store(source: Source, meter: Meter) -> Recovered:
    """Return the model of a store that a writer may be changing.

    A snapshot or rows that were there a moment ago may have gone for newer ones, so what seems to
    be wrong is looked at again, as long as something changes.
    """
    for attempt in range(ATTEMPTS):
        before = _stamp(source.directory)
        try:
            with reading(source.directory) as log:
                recovered = recover(source, log, meter, acknowledged_only=True)
            if not recovered.messages:
                return recovered
        except (*DATABASE_ERRORS, StoreError, FileNotFoundError) as error:
            if attempt == ATTEMPTS - 1 or _stamp(source.directory) == before:
                if isinstance(error, StoreError):
                    raise
                raise StoreError(f"{source.directory} cannot be read: {error}") from error
        else:
            if attempt == ATTEMPTS - 1 or _stamp(source.directory) == before:
                message = warning_of(recovered, source.directory)
                warnings.warn(message, RecoveryWarning, stacklevel=5)
                return recovered
        time.sleep(PAUSE)
    raise AssertionError("unreachable")


def _stamp(directory: str) -> list[tuple[str, int, int]]:
    """Return what changes when a writer changes a store."""
    stamps = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith("-shm"):  # readers change it too
                continue
            try:
                found = entry.stat()
            except FileNotFoundError:
                continue
            stamps.append((entry.name, found.st_mtime_ns, found.st_size))
    return sorted(stamps)
