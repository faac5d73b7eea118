"""The writer of a store: no update is acknowledged before it is on the disk.

The writer sits between reading a batch and applying it. The order of steps in an update, all under
the model's lock: the batch has been read; its row is appended to the log and reaches the disk; the
model applies the batch; the call returns, which acknowledges the update. If the model rejects the
batch, its row is removed from the log. A crash in between leaves one row that was not acknowledged:
recovery may apply it, or find that the model rejects it again; both are right.

Whether a model had applied a batch when something interrupted it follows from the model's count of
updates; for an order to make or close a watch, from its watches. If a row can be neither
acknowledged nor removed, the store is *broken*: memory may differ from the disk, so further updates
are refused until the store is opened again. It is broken too when one of its files has been deleted
or replaced, which every update looks for first.

The payloads of an update are in the transaction of its row, see `dynhac.store.payloads`.

The updates of a group are one transaction of the log. If it fails, the model goes back to where it
was before the group, see `dynhac.store.rollback`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar

from dynhac.models.engine import BUSY
from dynhac.store.codec import encode_batch
from dynhac.store.errors import StoreError
from dynhac.store.files import HEAD, LOCK, LOG, OpenFiles
from dynhac.store.forks import is_closed, let_go_when_forked
from dynhac.store.log import DATABASE_ERRORS, SHARED, WAL, Log, Row, reading, row_digest
from dynhac.store.payloads import PayloadReader, Payloads, gone_after, replaced_ids
from dynhac.store.replay import forget_index_history, index_flags
from dynhac.store.rollback import BatchStart
from dynhac.store.snapshots import Position
from dynhac.store.snapshotter import Snapshotter
from dynhac.watch.parameters import WatchOrder

if TYPE_CHECKING:
    from dynhac._core import Meter, ReentryGuard
    from dynhac.input.batches import GraphBatch, PointBatch
    from dynhac.input.payloads import NewPayloads
    from dynhac.store.files import Head, WriterLock
    from dynhac.store.recovery import Source
    from dynhac.store.snapshots import Model
    from dynhac.watch.watch import Watch

Result = TypeVar("Result")
LOG_FILES = (LOG, WAL, SHARED)
ROW_BYTES = 64
"""About what a row takes beside its payload."""


class Writer:
    """The store of one model, open for writing.

    Attributes
    ----------
    position : Position
        The last update.
    lock, guard
        Those of the model; everything here runs under its lock.
    broken : str or None
        Why there can be no more updates.
    process : int
        The process that has opened the store.
    foreign : bool
        Whether this is another process, forked from that one.
    groups : int
        How many blocks of `group` are open, one in another.
    """

    mode = "w"

    def __init__(
        self,
        source: Source,
        durability: str,
        limits: tuple[int | None, float],
        parts: tuple[WriterLock, Log, Head],
    ) -> None:
        self.source = source
        self.directory, self.identity = source.directory, source.identity
        self.durability = durability
        self.lock_file, self.log, self.head = parts
        self.position = Position(0, b"")
        self.lock: AbstractContextManager[Any]
        self.guard: ReentryGuard
        self.broken: str | None = None
        self.closed = False
        self.process = os.getpid()
        self.foreign = False
        self.groups = 0
        self.group_thread: int | None = None
        self.snapshots = Snapshotter(self, *limits)
        self.payloads = Payloads(self.log)
        self._updating: int | None = None  # the thread that is in the middle of an update
        self._unsettled = False  # an update has begun, and it is not known how it ended
        self._group_start: BatchStart | None = None
        self._files = OpenFiles(self.directory, (LOCK, HEAD, *LOG_FILES))
        let_go_when_forked(self)

    def start(self, model: Model) -> None:
        """Begin to write the updates of a model."""
        self.lock, self.guard = model._engine.lock, model._engine.guard
        model._writer = self
        write_watches(model)
        self.snapshots.start(model)

    def prepare(self) -> None:
        """Before an update reads its arguments: raise if the store is closed, or wait.

        It waits for a snapshot that wants the lock.
        """
        self.require_open()
        if self._updating != get_ident():
            self.snapshots.let_pass()

    def write(
        self,
        model: Model,
        batch: GraphBatch | PointBatch | WatchOrder,
        progress: Any = None,
        payloads: NewPayloads | None = None,
    ) -> Any:
        """Append a batch to the log, apply it, and return what the model returns."""
        if self._updating or self.guard.held:
            raise RuntimeError(BUSY)
        self.require_writable()
        op, payload = encode_batch(batch)
        number, flags = self.position.number + 1, index_flags(model, op)
        row = Row(
            number, op, flags, payload, row_digest(self.position.digest, number, op, flags, payload)
        )
        before = model._update_count
        written = False
        try:
            self._updating, self._unsettled = get_ident(), True
            try:
                self._append(model, row, batch, payloads)
            except DATABASE_ERRORS as error:
                raise StoreError(f"the log cannot be written: {error}; nothing changed") from error
            written = True
            change = model._perform(batch, progress)
            self._acknowledge(row)
            if self.payloads.exist:
                self.payloads.note(gone_after(number, batch, change, payloads))
        except BaseException:
            if self.foreign:
                raise  # forked within the update: all of this belongs to the parent
            if self.position.number == number or model._has_performed(batch, before):
                self._acknowledge(row)
                self.payloads.unknown = self.payloads.exist
            else:
                uses_index = written and not isinstance(batch, WatchOrder)
                self._take_back(row, model if uses_index else None)
            raise
        finally:
            self._updating = None
        self.snapshots.log_grew(len(payload) + ROW_BYTES)
        self.snapshots.tell()
        return change

    def set_payloads(self, model: Model, new: NewPayloads) -> None:
        """Set payloads of points that are in the model, under its lock."""
        if self._updating or self.guard.held:
            raise RuntimeError(BUSY)
        self.require_writable()
        try:
            self.payloads.make()
            with self.log.transaction():
                self.payloads.drop_gone(self.position.number, model._engine.holds)
                self.payloads.replace(self.position.number, new)
        except DATABASE_ERRORS as error:
            raise StoreError(f"payloads cannot be written: {error}; nothing changed") from error
        self.payloads.dropped()

    @contextmanager
    def reading_payloads(self) -> Iterator[tuple[PayloadReader, int]]:
        """Give the payloads to read, and the last update.

        A group sees what it has written; other threads do not wait for it, and see what is on the
        disk.
        """
        self.require_open()
        if get_ident() in (self.group_thread, self._updating):
            yield self.payloads, self.position.number
            return
        number = self.position.number
        with reading(self.directory) as log:
            log.connection.execute("BEGIN")
            yield PayloadReader(log.connection), number

    def drop_payloads(self, model: Model) -> None:
        """Drop the payloads that no longer count, under the lock and outside of groups."""
        if self.payloads.pending:
            with self.log.transaction():
                self.payloads.drop_gone(self.position.number, model._engine.holds)
            self.payloads.dropped()

    @contextmanager
    def group(self, model: Model) -> Iterator[None]:
        """Let the updates made within reach the disk, and be acknowledged, together."""
        self.require_open()
        with self.lock:
            if self._updating or self.guard.held:
                raise RuntimeError(BUSY)
            self.require_writable()
            if not self.groups:
                self._write(self.log.begin)
                self.group_thread = get_ident()
                self.payloads.begin_group()
                self._group_start = BatchStart.of(model, self.position)
            self.groups += 1
            try:
                yield
            finally:
                self.groups -= 1
                if not self.groups:
                    self.group_thread = None
                    self._end_group(model)

    def snapshot(self, model: Model, meter: Meter) -> int:
        """Write a snapshot; return the number of the update it was taken after."""
        self.require_open()
        # A thread with the lock must not wait for another snapshot, which may wait for the lock.
        if self.group_thread == get_ident():
            raise StoreError("a snapshot cannot be taken in the middle of a batch")
        if self._updating == get_ident():
            raise RuntimeError(BUSY)
        return self.snapshots.take(model, meter)

    def prune_some(self, upto: int) -> bool:
        """Drop the first rows of the log up to an update; return whether to go on.

        Within a group nothing is dropped: the next snapshot does it.
        """
        return not self.groups and self._write(lambda: self.log.prune_some(upto))

    def close(self, model: Model, meter: Meter) -> None:
        """Write a last snapshot if there is something new, and close the store."""
        if self.closed or self.foreign:
            return
        with self.lock:
            if self.groups:
                raise StoreError("the store cannot be closed in the middle of a batch")
        self.snapshots.stop()
        with self.lock:
            if self._trouble() is None:
                with suppress(*DATABASE_ERRORS):  # opening the store drops them as well
                    self.drop_payloads(model)
                self.snapshots.take_last(model, meter)
        self.release()
        self.snapshots.tell()

    def release(self) -> None:
        """Close the files as they are."""
        with self.lock:
            self.closed = True
            with ExitStack() as closing:
                closing.callback(self.lock_file.close)
                closing.callback(self.head.close)
                closing.callback(self.log.abandon if self._log_lost() else self.log.close)
                is_closed(self)

    def abandon(self) -> None:
        """Refuse updates in a forked child; the files let go of themselves."""
        self.foreign = True
        self.snapshots.forget_threads()

    def refresh(self, model: Model, meter: Meter) -> int:
        """Return 0: a writer has made all updates itself."""
        self.require_open()
        return 0

    def rows(self, since: int) -> Iterator[Row]:
        """Give the rows of the log after an update."""
        with reading(self.directory) as log:
            yield from log.rows(since)

    def stats(self) -> dict[str, Any]:
        """Return figures."""
        self.require_open()
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
        if self.foreign:
            raise StoreError(
                f"the store {self.directory} was opened by process {self.process}, and this is "
                "another one, forked from it; update the model there"
            )

    def require_writable(self) -> None:
        """Raise if there can be no more updates."""
        self.require_open()
        trouble = self._trouble()
        if trouble is not None and self._files.gone():
            raise StoreError(
                f"{trouble}; nothing changed, and no more updates are possible. What the model "
                "holds can be written to a file with save"
            )
        if trouble is not None:
            raise StoreError(
                f"{trouble}; close the store {self.directory} and open it again, which gives the "
                "last acknowledged state"
            )

    def seen_trouble(self) -> str | None:
        """Why there can be no more updates, as far as a thread without the lock can see."""
        return self.broken or self._lost_file()

    def _lost_file(self) -> str | None:
        gone = self._files.gone()
        return None if gone is None else f"{gone} was deleted or replaced while the store was open"

    def _trouble(self, within_group: bool = False) -> str | None:
        """Why there can be no more updates, for a thread that has the lock."""
        if self.broken is None and self._unsettled and not self._updating:
            self.broken = "an update was stopped half-way"
        if self.broken is None and self.log.gathering != (within_group or self.groups > 0):
            self.broken = "a batch was stopped half-way"
        if self.broken is None:
            self.broken = self._lost_file()
        return self.broken

    def _log_lost(self) -> bool:
        """Whether closing the log would change files that are not its own.

        The log can be closed without its ``-wal`` file: SQLite still has it, and writes what is in
        it to the database.
        """
        log, *others = (self._files.identities[name] for name in LOG_FILES)
        return log.gone or any(file.replaced for file in others)

    def _acknowledge(self, row: Row) -> None:
        self.require_open()
        self.position = Position(row.number, row.digest)
        if not self.groups:
            self.head.write(row.number)
        self._unsettled = False

    def _append(self, model: Model, row: Row, batch: Any, payloads: NewPayloads | None) -> None:
        """Write the row of an update and its payloads to the disk, and drop old ones."""
        kept = self.payloads
        if payloads is not None:
            kept.make()
        replaced = replaced_ids(batch) if kept.exist else set()
        if payloads is None and not replaced and not kept.pending:
            self.log.append(row)
            return
        with self.log.transaction():
            self.log.append(row)
            kept.drop_gone(self.position.number, model._engine.holds)
            kept.put(row.number, payloads, replaced)
        kept.dropped()

    def _take_back(self, row: Row, model: Model | None) -> None:
        """Remove the row of an update that failed, in ``model`` if it got that far."""
        try:
            with self.log.transaction() if self.payloads.has_put(row.number) else nullcontext():
                self.log.retract(row.number - 1)
                self.payloads.retract(row.number)
        except DATABASE_ERRORS as error:
            self.broken = f"an update that failed could not be taken from the log: {error}"
            return
        if self.groups and not self.log.gathering:
            self.broken = "the log could not be written in the middle of a batch"
            return
        if model is not None:
            forget_index_history(model)
        self._unsettled = False

    def _end_group(self, model: Model) -> None:
        """Write what a group has gathered; if that fails, take all of it back."""
        self.require_open()
        start, self._group_start = self._group_start, None
        reason = self._trouble(within_group=True)
        if reason is None:
            self.broken = "a batch could not be written"
            try:
                self.log.commit()
            except DATABASE_ERRORS as error:
                reason = str(error)
            else:
                self.head.write(self.position.number)
                self.broken = None
                return
        assert start is not None
        self._take_back_group(model, start, reason)

    def _take_back_group(self, model: Model, start: BatchStart, reason: str) -> None:
        message = f"the batch could not be written: {reason}"
        self.broken = message
        try:
            self.log.rollback()
            self.payloads.rolled_back()
            start.restore(model, self.source, self.log)
        except Exception as error:
            raise StoreError(
                f"{message}; nor could the model be brought back ({error}): close the store "
                f"{self.directory} and open it again, which gives the state before the batch"
            ) from error
        self.position = start.position
        self.broken, self._unsettled = None, False
        raise StoreError(f"{message}; the model is as it was before the batch")

    def _write(self, call: Callable[[], Result]) -> Result:
        try:
            return call()
        except DATABASE_ERRORS as error:
            raise StoreError(f"the log cannot be written: {error}") from error


def write_watches(model: Model) -> None:
    """Let a model pass orders about watches to its store; its engine must not keep it alive."""
    model_of = weakref.ref(model)

    def write(order: WatchOrder) -> Watch:
        model = model_of()
        if model is None:
            raise StoreError("the model of this watch is gone; open the store again")
        watch: Watch = model._writer.write(model, order)
        return watch

    model._engine.write_watches = write
