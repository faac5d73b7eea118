"""When snapshots of a store are taken, and how: in the background, with updates going on.

Updates wait only while the state is held, not while it is written and read back, and rows of the
log that are not needed any more are dropped some at a time. A thread that updates in a loop would
take the model's lock again before anybody else wakes up, so a snapshot announces itself: updates
that have not begun wait until it has the lock.
"""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event, Lock, Thread, current_thread, get_ident
from time import monotonic, sleep
from typing import TYPE_CHECKING

from dynhac.input.errors import FileError
from dynhac.store import snapshots
from dynhac.store.errors import RecoveryWarning, StoreError
from dynhac.store.log import DATABASE_ERRORS

if TYPE_CHECKING:
    from dynhac._core import Meter
    from dynhac.store.snapshots import Model
    from dynhac.store.writer import Writer

MOST_LEFT = 1000  # updates that closing a store may leave to the log
LEAST_PART = 16  # and less than one part in so many of the snapshot's size
LEAST_BYTES = 2**24
MOST_PATIENCE = 60.0  # seconds that an update waits for a snapshot to take the lock
RETRY_SECONDS = 30.0
FAILURES = (OSError, FileError, StoreError, *DATABASE_ERRORS, MemoryError)


class Snapshotter:
    """Takes the snapshots of one store.

    Attributes
    ----------
    number : int or None
        The update after which the last one was taken.
    size : int
        Its bytes.
    grown : int
        The bytes that the log has grown by since.
    failure : str or None
        Why the last one could not be written, until the user has been told.
    """

    def __init__(self, writer: Writer, most_bytes: int | None, most_seconds: float) -> None:
        self.number: int | None = None
        self.size = 0
        self.grown = 0
        self.failure: str | None = None
        self._writer: Writer = weakref.proxy(writer)
        self._most_bytes, self._most_seconds = most_bytes, most_seconds
        self._taken_at = monotonic()
        self._failed_at: float | None = None
        self._one = Lock()
        self._waiting: int | None = None  # the thread that wants the lock for a snapshot
        self._wake = Event()
        self._stop = False
        self._thread: Thread | None = None

    def start(self, model: Model) -> None:
        """Begin to take snapshots of a model."""
        wait = min(self._most_seconds, 5.0)
        arguments = (weakref.ref(model), weakref.ref(self), self._wake, wait)
        self._thread = Thread(target=_in_background, args=arguments, daemon=True)
        self._thread.start()

    def forget_threads(self) -> None:
        """In a forked child, which has no other threads: nobody waits, and none will come."""
        self._stop, self._waiting, self._thread = True, None, None

    def stop(self) -> None:
        """Take no more; one that is being taken is finished first."""
        self._stop = True
        self._wake.set()
        if self._thread is not None and self._thread is not current_thread():
            self._thread.join()

    def let_pass(self) -> None:
        """Before an update: wait if a snapshot wants the lock."""
        if self._is_wanted() and self._writer.group_thread != get_ident():
            patience = monotonic() + MOST_PATIENCE
            while self._is_wanted() and monotonic() < patience:
                sleep(0.001)

    def _is_wanted(self) -> bool:
        """Whether another thread waits for the lock to take a snapshot."""
        return self._waiting not in (None, get_ident())

    def log_grew(self, size: int) -> None:
        """After an update: wake the thread if a snapshot is due; tell what it could not do."""
        self.grown += size
        if self.grown > self._bytes_between():
            self._wake.set()

    def tell(self) -> None:
        """Warn if a snapshot could not be written."""
        if self.failure is not None:
            failure, self.failure = self.failure, None
            warnings.warn(f"{failure}; the log has all updates", RecoveryWarning, stacklevel=5)

    def take(self, model: Model, meter: Meter | None = None) -> int:
        """Write a snapshot; return the number of the update it was taken after."""
        writer = self._writer
        with self._one:
            with self._first(), model._engine.guard:
                writer.require_writable()
                if writer.groups:
                    raise StoreError("a snapshot cannot be taken in the middle of a batch")
                position, grown = writer.position, self.grown
                copy = snapshots.Copy(model)
            with closing(copy):
                size = snapshots.write(copy, writer.directory, writer.identity, position, meter)
            with self._first():
                self.number, self.size = position.number, size
                self._taken_at = monotonic()
                self.grown -= grown
                self._failed_at = None
                if not writer.groups:
                    writer.drop_payloads(model)
            oldest = snapshots.drop_old(writer.directory)
            while oldest is not None:
                with self._first():  # updates may come in between
                    more = writer.prune_some(oldest)
                if not more:
                    break
        return position.number

    def take_in_background(self, model: Model) -> None:
        """Write a snapshot if it is time for one; what goes wrong is told later."""
        if not self._due():
            return
        try:
            self.take(model)
        except FAILURES as error:
            self.failed(error)

    def take_last(self, model: Model, meter: Meter) -> None:
        """Write a snapshot if the last one has too few of the updates.

        A few updates are sooner replayed than a large model is written: one that is opened for
        every small change must not be written for each.
        """
        missing = self._writer.position.number - (self.number or 0)
        many = missing > MOST_LEFT or self.grown * LEAST_PART > self.size
        if missing and many:
            try:
                self.take(model, meter)
            except FAILURES as error:
                self.failed(error)

    def failed(self, error: BaseException) -> None:
        """Note that a snapshot could not be written."""
        self._failed_at = monotonic()
        self.failure = f"a snapshot could not be written: {error}"

    @property
    def stopped(self) -> bool:
        """Whether no more are taken."""
        return self._stop

    def loaded(self, number: int | None, replayed: int) -> None:
        """Begin with a snapshot that was loaded, and as many bytes of the log after it."""
        self.number, self.grown = number, replayed
        if number is not None:
            self.size = os.path.getsize(snapshots.path_of(self._writer.directory, number))

    def _due(self) -> bool:
        now = monotonic()
        if self._failed_at is not None and now - self._failed_at < RETRY_SECONDS:
            return False
        late = now - self._taken_at > self._most_seconds
        return self.grown > 0 and (late or self.grown > self._bytes_between())

    def _bytes_between(self) -> int:
        if self._most_bytes is not None:
            return self._most_bytes
        return max(LEAST_BYTES, self.size // 2)

    @contextmanager
    def _first(self) -> Iterator[None]:
        """Take the model's lock before all updates that have not begun."""
        try:
            self._waiting = get_ident()
            with self._writer.lock:
                self._waiting = None
                yield
        finally:
            self._waiting = None


def _in_background(
    model_of: weakref.ref[Model], own: weakref.ref[Snapshotter], wake: Event, wait: float
) -> None:
    """Take snapshots when they are due, until the store is closed or its model is gone."""
    while True:
        wake.wait(wait)
        model, snapshotter = model_of(), own()
        if model is None or snapshotter is None or snapshotter.stopped:
            return
        wake.clear()
        snapshotter.take_in_background(model)
        del model, snapshotter
