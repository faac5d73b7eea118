"""What stands between a model and its store: no update is acknowledged that is not on the disk.

The order of things in an update, all under the model's lock: the batch has been parsed; its row is
put into the log and reaches the disk; the model applies it; the call returns, which acknowledges
it. If the model rejects it, the row is taken back. A crash in between leaves one row that nobody
was told about: applying it when the store is opened, or finding it rejected again, are both right.

Whether a model has applied a batch when something stopped it, say an interrupt, is told by a *mark*
of the model, whose first entry is the version of the graph. If the version has grown, it has. If
all of the mark is as before, it has not. Anything else, and any failure to take a row back, leaves
the store *broken*: what is in memory may not be what is on the disk, so further updates are refused
until it is opened again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any

from dynhac.models.keyed import BUSY
from dynhac.store.codec import encode
from dynhac.store.errors import StoreError
from dynhac.store.log import DATABASE_ERRORS, Log, Row, reading, row_digest
from dynhac.store.snapshots import Position
from dynhac.store.snapshotter import Snapshotter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynhac._core import ReentryGuard
    from dynhac.store.codec import Column
    from dynhac.store.files import Head, WriterLock
    from dynhac.store.snapshots import Model

SAVED = 1
"""Flag of a row: before this update the neighbour index was saved, and goes on as when loaded."""

REBUILT = 2
"""Flag of a row: before this update the neighbour index was given up, and is made anew."""

ROW_BYTES = 64
"""About what a row takes beside its payload."""

HALF_WAY = "an update was stopped half-way"


class Keeper:
    """The store of one model, open for writing.

    Attributes
    ----------
    position : Position
        The last update.
    lock, guard
        The model's lock, which everything here is done under, and what tells that it is at work.
    flags : int
        Those of the next row.
    broken : str or None
        Why there can be no more updates.
    groups : int
        How many blocks of `group` are open, one in another.
    """

    mode = "w"

    def __init__(
        self,
        directory: str,
        identity: str,
        durability: str,
        limits: tuple[int | None, float],
        parts: tuple[WriterLock, Log, Head],
    ) -> None:
        self.directory = directory
        self.identity = identity
        self.durability = durability
        self.lock_file, self.log, self.head = parts
        self.position = Position(0, b"")
        self.lock: AbstractContextManager[Any]
        self.guard: ReentryGuard
        self.flags = 0
        self.broken: str | None = None
        self.closed = False
        self.process = os.getpid()
        self.groups = 0
        self.group_thread: int | None = None
        self.snapshots = Snapshotter(self, *limits)
        self._updating: int | None = None  # the thread that is in the middle of an update
        self._unsettled = False  # an update has begun, and it is not known how it ended

    def start(self, model: Model) -> None:
        """Begin to keep a model."""
        self.lock, self.guard = model._attach(self), model._guard
        self.snapshots.start(model)

    def let_pass(self) -> None:
        """Before an update, and before its lock is taken: wait if a snapshot wants it."""
        self.snapshots.let_pass()

    def record(
        self,
        op: str,
        columns: Mapping[str, Column],
        apply: Callable[[], Any],
        mark: Callable[[], tuple[Any, ...]],
        undone: Callable[[], None],
    ) -> Any:
        """Put an update into the log, apply it, and return what ``apply`` returns.

        ``undone`` is called when ``apply`` has failed and the model is as it was.
        """
        if self._updating or self.guard.held:
            raise RuntimeError(BUSY)
        self.require_writable()
        number = self.position.number + 1
        payload = encode(columns)
        digest = row_digest(self.position.digest, number, op, self.flags, payload)
        row = Row(number, op, self.flags, payload, digest)
        before = mark()
        written = False
        try:
            self._updating, self._unsettled = get_ident(), True
            try:
                self.log.append(row)
            except DATABASE_ERRORS as error:
                raise StoreError(f"the log cannot be written: {error}; nothing changed") from error
            written = True
            result = apply()
            self._acknowledge(row)
        except BaseException:
            self._settle(row, before, mark, undone if written else None)
            raise
        finally:
            self._updating = None
        self.snapshots.log_grew(len(payload) + ROW_BYTES)
        self.snapshots.tell()
        return result

    @contextmanager
    def group(self) -> Iterator[None]:
        """Let the updates made within reach the disk, and be acknowledged, together."""
        with self.lock:
            if self._updating or self.guard.held:
                raise RuntimeError(BUSY)
            self.require_writable()
            if not self.groups:
                self._write(self.log.begin)
                self.group_thread = get_ident()
            self.groups += 1
            try:
                yield
            finally:
                self.groups -= 1
                if not self.groups:
                    self.group_thread = None
                    self._end_group()

    def snapshot(self, model: Model) -> int:
        """Write a snapshot; return the number of the update it was taken after."""
        # Somebody who has the lock must not wait for another snapshot, which may wait for the lock.
        if self.group_thread == get_ident():
            raise StoreError("a snapshot cannot be taken in the middle of a batch")
        if self._updating == get_ident():
            raise RuntimeError(BUSY)
        return self.snapshots.take(model)

    def prune(self, upto: int) -> None:
        """Drop the rows of the log up to an update."""
        self._write(lambda: self.log.prune(upto))

    def close(self, model: Model) -> None:
        """Write a last snapshot if there is something new, and let the store go."""
        if self.closed or self.process != os.getpid():
            return
        with self.lock:
            if self.groups:
                raise StoreError("the store cannot be closed in the middle of a batch")
        self.snapshots.stop()
        with self.lock:
            if self._trouble() is None:
                self.snapshots.take_last(model)
        self.release()
        self.snapshots.tell()

    def release(self) -> None:
        """Let the files go, as they are."""
        with self.lock:
            self.closed = True
            with ExitStack() as closing:
                closing.callback(self.lock_file.close)
                closing.callback(self.head.close)
                closing.callback(self.log.close)

    def refresh(self, model: Model) -> int:
        """Return 0: a writer has made all updates itself."""
        self.require_open()
        return 0

    def rows(self, since: int) -> Iterator[Row]:
        """Give the rows of the log after an update."""
        self.require_open()
        with reading(self.directory) as log:
            yield from log.rows(since)

    def stats(self) -> dict[str, Any]:
        """Return figures."""
        with self.lock:
            self.require_open()
            extent = self.log.extent()
        return {
            "log_rows": extent.rows,
            "log_bytes": extent.bytes,
            "log_bytes_since_snapshot": self.snapshots.grown,
            "snapshot_number": self.snapshots.number,
            "snapshot_bytes": self.snapshots.size,
            "broken": self._trouble(),
        }

    def require_open(self) -> None:
        """Raise if the store has been closed, or belongs to another process."""
        if self.closed:
            raise StoreError(f"the store {self.directory} is closed; open it again")
        if self.process != os.getpid():
            raise StoreError(
                f"the store {self.directory} was opened by process {self.process}, and this is "
                "another one; open it there"
            )

    def require_writable(self) -> None:
        """Raise if there can be no more updates."""
        self.require_open()
        trouble = self._trouble()
        if trouble is not None:
            raise StoreError(
                f"{trouble}; close the store {self.directory} and open it again, which gives the "
                "last acknowledged state"
            )

    def _trouble(self) -> str | None:
        """Why there can be no more updates, for a thread that has the lock."""
        if self.broken is None and self._unsettled and not self._updating:
            self.broken = HALF_WAY
        if self.broken is None and self.log.gathering != (self.groups > 0):
            self.broken = "a batch was stopped half-way"
        return self.broken

    def _acknowledge(self, row: Row) -> None:
        self.position = Position(row.number, row.digest)
        self.flags = 0
        if not self.groups:
            self.head.write(row.number)
        self._unsettled = False

    def _settle(
        self,
        row: Row,
        before: tuple[Any, ...],
        mark: Callable[[], tuple[Any, ...]],
        undone: Callable[[], None] | None,
    ) -> None:
        """After an update that raised: let the log hold it if and only if the model does."""
        after = mark()
        if self.position.number == row.number or after[0] != before[0]:
            self._acknowledge(row)
            return
        if after != before:
            self.broken = HALF_WAY
            return
        try:
            self.log.retract(row.number - 1)
        except DATABASE_ERRORS as error:
            self.broken = f"an update that failed could not be taken from the log: {error}"
            return
        if self.groups and not self.log.gathering:
            self.broken = "the log could not be written in the middle of a batch"
            return
        if undone is not None:
            undone()
        self._unsettled = False

    def _end_group(self) -> None:
        if self.broken is not None:
            self.require_writable()
        self.broken = "a batch could not be written"
        self._write(self.log.commit)
        self.head.write(self.position.number)
        self.broken = None

    def _write(self, call: Callable[[], object]) -> None:
        try:
            call()
        except DATABASE_ERRORS as error:
            raise StoreError(f"the log cannot be written: {error}") from error
