"""From the files of a store to its model: the newest snapshot that is whole, then the log.

What can be lost is lost loudly. A damaged snapshot is passed over if the log goes back to the one
before. Damaged rows at the end of the log are left out, and so is what the head file knows of and
the log does not: a `RecoveryWarning` names the updates. Rows that are missing or damaged in the
middle are an error, as is a log that does not reach back to a snapshot; nothing is changed then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from dynhac.input.errors import FileError, counted
from dynhac.store import snapshots
from dynhac.store.errors import StoreError
from dynhac.store.files import HEAD, read_head
from dynhac.store.log import LogReader, Row, first_digest
from dynhac.store.replay import replay
from dynhac.store.snapshots import Position

if TYPE_CHECKING:
    from dynhac._core import Meter
    from dynhac.store.snapshots import Model

UNTOLD = "whether the last updates are all there cannot be told"


class Recovered(NamedTuple):
    """A recovered model, and what recovery did.

    Attributes
    ----------
    model, position
        The model, and which moment of the store it is.
    snapshot : int or None
        The number of the snapshot that was loaded.
    replayed : int
        The bytes of the rows that were applied.
    damaged : list of int
        The numbers of the snapshots that were passed over.
    messages : list of str
        What the user must be told.
    """

    model: Model
    position: Position
    snapshot: int | None
    replayed: int
    damaged: list[int]
    messages: list[str]


class Source(NamedTuple):
    """What a store consists of, and how models are made for it."""

    directory: str
    identity: str
    kind: str
    new: Callable[[], Model]
    loaded: Callable[[Any, Any, Any], Model]


def recover(
    source: Source, log: LogReader, meter: Meter, acknowledged_only: bool = False
) -> Recovered:
    """Return the model of a store as of its last update.

    ``meter`` is told of the bytes read and of the updates applied.

    With ``acknowledged_only``, rows that the head file does not count yet are left alone: their
    writer may still take them back.
    """
    messages: list[str] = []
    try:
        head = read_head(source.directory)
    except StoreError as error:
        head = None
        messages.append(f"{error}; {UNTOLD}")
    else:
        if head is None:
            messages.append(f"{os.path.join(source.directory, HEAD)} is missing; {UNTOLD}")
    model, position, snapshot, damaged = _base(source, log, messages, meter)
    extent = log.extent(position.number)
    if extent.rows and extent.first != position.number + 1:
        raise StoreError(
            f"the log begins with update {extent.first}, and the newest snapshot that can be read "
            f"is after update {position.number}: those between are missing"
            + "".join(f"; {message}" for message in messages)
        )
    replayed = 0
    last = head if acknowledged_only and head is not None else None
    meter.begin("replaying", "updates", extent.rows)
    rows = log.rows(position.number)
    for row in rows:
        if last is not None and row.number > last:
            break
        if row.number != position.number + 1:
            raise StoreError(
                f"update {position.number + 1} is missing from the log, whose next row is "
                f"{row.number}"
            )
        if not row.follows(position.digest):
            _require_end(row, rows)
            messages.append(
                f"the log is damaged from update {row.number} on, its last is {extent.last}"
            )
            head = max(head or 0, extent.last)
            break
        if not _applied(model, row, extent.last, head, meter):
            break
        position = Position(row.number, row.digest)
        replayed += len(row.payload)
    meter.end()
    missing = [number for number in damaged if number > position.number]
    if missing:
        raise StoreError(
            f"the log ends with update {position.number}, before the damaged snapshot: "
            + "; ".join(messages)
        )
    if head is not None and head > position.number:
        first = position.number + 1
        which = f"update {first} is" if first == head else f"updates {first} to {head} are"
        messages.append(f"{which} lost; the store is as it was after update {position.number}")
    return Recovered(model, position, snapshot, replayed, damaged, messages)


def _base(
    source: Source, log: LogReader, messages: list[str], meter: Meter
) -> tuple[Model, Position, int | None, list[int]]:
    """Return the model to begin with: the newest snapshot that is whole, or an empty one."""
    damaged: list[int] = []
    for number in snapshots.numbers(source.directory):
        try:
            position, header, arrays = snapshots.read(
                source.directory, number, source.identity, source.kind, meter
            )
            model = source.loaded(header, arrays, meter)
        except FileError as error:
            damaged.append(number)
            messages.append(f"{error}; it was passed over")
            continue
        return model, position, number, damaged
    if damaged and log.extent().first != 1:
        raise StoreError("no snapshot can be read: " + "; ".join(messages))
    return source.new(), Position(0, first_digest(source.identity)), None, damaged


def _require_end(bad: Row, rows: Iterator[Row]) -> None:
    """Raise if there is a row that is right after a damaged one."""
    previous = bad.digest
    for row in rows:
        if row.follows(previous):
            raise StoreError(
                f"update {bad.number} in the log is damaged, and update {row.number} after it is "
                "not: the store cannot be put together; nothing was changed"
            )
        previous = row.digest


def _applied(model: Model, row: Row, last: int, head: int | None, meter: Meter) -> bool:
    """Apply a row; whether the model took it. One that was never acknowledged it may reject."""
    try:
        replay(model, row, meter, last - row.number)
    except (ValueError, KeyError, RuntimeError) as error:
        if row.number == last and (head is None or head < row.number):
            return False
        raise StoreError(
            f"update {row.number} in the log cannot be applied: {error}; it could when it was made"
        ) from error
    return True


def warning_of(recovered: Recovered, directory: str) -> str:
    """Return what the user must be told, in one message."""
    back = ""
    if recovered.damaged:
        base = "an empty model" if recovered.snapshot is None else f"snapshot {recovered.snapshot}"
        updates = counted(
            recovered.position.number - (recovered.snapshot or 0), "update", "updates"
        )
        back = f"; the model was made from {base} and {updates} of the log"
    return f"{os.fspath(directory)}: " + "; ".join(recovered.messages) + back
