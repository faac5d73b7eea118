"""The log of a store: every update as a row of an SQLite database, in order.

A row has the number of its update, what kind of update it is, flags, the payload and a digest. The
digest covers the row and the digest of the row before, the first one the identity of the store. So
a row can stand only where it was written, and a snapshot that knows the digest of its last update
knows which row comes next. Payloads too large for one field continue in the table ``parts``.

The database is in WAL mode: an update is durable when the ``-wal`` file has it, and readers and the
writer do not wait for each other. Readers open it read-only.

SQLite must not use, and not even close, a connection whose files have been deleted, or that comes
from the parent of a forked process: that can destroy the files of others. Such a connection is
*abandoned*: it is never closed. In that process SQLite must not open the same files again, since it
would take over locks that it does not hold; readers open a copy of them.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple
from urllib.request import pathname2url

from dynhac.input.errors import show
from dynhac.store.errors import StoreError
from dynhac.store.files import LOG
from dynhac.store.forks import is_closed, let_go_when_forked

FORMAT_VERSION = 3
PART = 2**26
MOST_DROPPED = 1000  # rows at a time, which updates wait for
DIGEST_SIZE = 16
DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged database raises; the second when even the message is damaged."""

WAL, SHARED = LOG + "-wal", LOG + "-shm"

ROW = struct.Struct("<QQQ")
TABLES = """
CREATE TABLE about (text TEXT NOT NULL, digest BLOB NOT NULL);
CREATE TABLE log (
    number INTEGER PRIMARY KEY, op TEXT NOT NULL, flags INTEGER NOT NULL, parts INTEGER NOT NULL,
    payload BLOB NOT NULL, digest BLOB NOT NULL
);
CREATE TABLE parts (
    number INTEGER NOT NULL, part INTEGER NOT NULL, payload BLOB NOT NULL,
    PRIMARY KEY (number, part)
);
"""


TRANSACTION = "BEGIN IMMEDIATE", "COMMIT", ("ROLLBACK",)
SAVEPOINT = "SAVEPOINT part", "RELEASE part", ("ROLLBACK TO part", "RELEASE part")

CLOSED = sqlite3.connect(":memory:")
"""A closed connection: whatever is done with it raises an sqlite3.Error."""
CLOSED.close()

_abandoned: set[tuple[int, int]] = set()
"""The files of abandoned connections."""


class Row(NamedTuple):
    """One update as it stands in the log."""

    number: int
    op: str
    flags: int
    payload: bytes
    digest: bytes

    def follows(self, previous: bytes) -> bool:
        """Whether nothing of it has changed, and it was written after the row of that digest."""
        return self.digest == row_digest(previous, *self[:4])


class Extent(NamedTuple):
    """Which rows there are; numbers are 0 if there are none."""

    first: int
    last: int
    rows: int
    bytes: int


def row_digest(previous: bytes, number: int, op: str, flags: int, payload: bytes) -> bytes:
    """Return the digest of a row that comes after the row of the digest ``previous``."""
    digest = hashlib.blake2b(previous, digest_size=DIGEST_SIZE)
    digest.update(ROW.pack(number, flags, len(op)))
    digest.update(op.encode())
    digest.update(payload)
    return digest.digest()


def first_digest(identity: str) -> bytes:
    """Return what stands before the first row of a store."""
    return hashlib.blake2b(identity.encode(), digest_size=DIGEST_SIZE).digest()


class LogReader:
    """What can be read of a log."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        # A damaged row may hold text where there should be bytes; the digest will tell.
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        self.connection = connection

    def about(self) -> dict[str, Any] | None:
        """Return what the store says of itself; None if it is empty, without any tables.

        Raises
        ------
        StoreError
            It is damaged, or of a version that is not known here.
        """
        names = {row[0] for row in self.connection.execute("SELECT name FROM sqlite_master")}
        if not names:
            return None
        if not {"about", "log", "parts"} <= names:
            raise StoreError(f"{LOG} is not the log of a store: its tables are {sorted(names)}")
        rows = self.connection.execute("SELECT text, digest FROM about").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], str):
            raise StoreError(f"{LOG} is damaged: it does not say what the store holds")
        text, digest = rows[0]
        if digest != first_digest(text):
            raise StoreError(f"{LOG} is damaged: what it says about the store has changed")
        about: dict[str, Any] = json.loads(text)
        if about.get("format") != FORMAT_VERSION:
            raise StoreError(
                f"the store has format version {show(about.get('format'))}, and this version of "
                f"dynhac reads version {FORMAT_VERSION}; a newer dynhac may have written it"
            )
        return about

    def extent(self, after: int = 0) -> Extent:
        """Return which rows there are after an update."""
        query = (
            "SELECT MIN(number), MAX(number), COUNT(*), SUM(LENGTH(payload)) FROM log "
            "WHERE number > ?"
        )
        first, last, rows, size = self.connection.execute(query, (after,)).fetchone()
        more = "SELECT SUM(LENGTH(payload)) FROM parts WHERE number > ?"
        (size_of_parts,) = self.connection.execute(more, (after,)).fetchone()
        return Extent(first or 0, last or 0, rows, int(size or 0) + int(size_of_parts or 0))

    def rows(self, after: int) -> Iterator[Row]:
        """Give the rows after an update, in order, as they are: damaged ones too."""
        query = (
            "SELECT number, op, flags, parts, payload, digest FROM log WHERE number > ? "
            "ORDER BY number"
        )
        for number, op, flags, parts, payload, digest in self.connection.execute(query, (after,)):
            if not (
                isinstance(op, str)
                and isinstance(flags, int)
                and 0 <= flags < 2**63
                and isinstance(payload, bytes)
                and isinstance(digest, bytes)
            ):
                yield Row(number, "", 0, b"", b"")  # which follows nothing
                continue
            if parts:
                payload = b"".join((payload, *self._parts(number)))
            yield Row(number, op, flags, payload, digest)

    def _parts(self, number: int) -> list[bytes]:
        query = "SELECT payload FROM parts WHERE number = ? ORDER BY part"
        found = self.connection.execute(query, (number,)).fetchall()
        return [part for (part,) in found if isinstance(part, bytes)]

    def close(self) -> None:
        """Close the database."""
        self.connection.close()


class Log(LogReader):
    """A log that its one writer has open.

    Outside of `begin` and `commit` every change is a transaction of its own.
    """

    def __init__(self, directory: str, durability: str) -> None:
        path = os.path.join(directory, LOG)
        if _is_abandoned(path):
            raise StoreError(
                f"{directory} was open when this process was forked, or its files were replaced "
                "while it was open; it cannot be opened for writing in this process any more, but "
                "in another one (to start one from here, use spawn, or close the store before)"
            )
        connection = sqlite3.connect(
            path, timeout=60, isolation_level=None, check_same_thread=False
        )
        super().__init__(connection)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA synchronous={durability.upper()}")
            connection.execute("PRAGMA fullfsync=ON")
            connection.execute(f"PRAGMA journal_size_limit={PART}")
            self._file = _identity(path)
            let_go_when_forked(self)
        except BaseException:
            connection.close()
            raise

    def create(self, about: dict[str, Any]) -> None:
        """Make the tables, all of them or none.

        They are in the database itself before there is any update: without the ``-wal`` file it
        must not look like a store that is only being made.
        """
        text = json.dumps(about | {"format": FORMAT_VERSION}, allow_nan=False)
        with self.transaction():
            for statement in TABLES.split(";"):
                self.connection.execute(statement)
            row = (text, first_digest(text))
            self.connection.execute("INSERT INTO about VALUES (?, ?)", row)
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def check(self) -> None:
        """Raise if the database is not one from end to end."""
        (found,) = self.connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise StoreError(f"{LOG} is damaged: {found}")

    def append(self, row: Row) -> None:
        """Put a row at the end, on the disk."""
        payload = row.payload
        insert = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)"
        if len(payload) <= PART:
            values = (row.number, row.op, row.flags, 0, payload, row.digest)
            self.connection.execute(insert, values)
            return
        starts = range(PART, len(payload), PART)
        with self.transaction():
            values = (row.number, row.op, row.flags, len(starts), payload[:PART], row.digest)
            self.connection.execute(insert, values)
            for part, start in enumerate(starts):
                values_of_part = (row.number, part, payload[start : start + PART])
                self.connection.execute("INSERT INTO parts VALUES (?, ?, ?)", values_of_part)

    def retract(self, after: int) -> None:
        """Take back the rows after an update, if there are any."""
        query = "SELECT 1 FROM log WHERE number > ? LIMIT 1"
        if self.connection.execute(query, (after,)).fetchone() is not None:
            self._delete("number > ?", after)

    def prune(self, upto: int) -> None:
        """Drop the rows up to an update."""
        while self.prune_some(upto):
            pass

    def prune_some(self, upto: int) -> bool:
        """Drop the first rows up to an update; return whether more are left."""
        (found,) = self.connection.execute("SELECT MIN(number) FROM log").fetchone()
        first: int = upto + 1 if found is None else found
        last = min(upto, first + MOST_DROPPED - 1)
        if first > upto:
            return False
        self._delete("number <= ?", last)
        return last < upto

    def _delete(self, which: str, number: int) -> None:
        with self.transaction():
            for table in ("parts", "log"):
                self.connection.execute(f"DELETE FROM {table} WHERE {which}", (number,))

    def begin(self) -> None:
        """Begin to gather changes that reach the disk together."""
        self.connection.execute(TRANSACTION[0])

    def commit(self) -> None:
        """Put what was gathered on the disk."""
        self.connection.execute("COMMIT")

    def rollback(self) -> None:
        """Drop what was gathered, if it is still there: after some failures it is not."""
        if self.gathering:
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the database."""
        super().close()
        is_closed(self)

    def abandon(self) -> None:
        """Never use the connection again, and never close it."""
        _abandoned.add(self._file)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))
        self.connection = CLOSED
        is_closed(self)

    @property
    def gathering(self) -> bool:
        """Whether there are changes that have not reached the disk."""
        return self.connection.in_transaction

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All changes or none; within `begin` and `commit` they are part of what is gathered."""
        within = self.connection.in_transaction
        begin, commit, rollback = SAVEPOINT if within else TRANSACTION
        self.connection.execute(begin)
        try:
            yield
            self.connection.execute(commit)
        except BaseException:
            if self.gathering:  # after some failures there is nothing left to take back
                for statement in rollback:
                    self.connection.execute(statement)
            raise


def _identity(path: str) -> tuple[int, int]:
    """Return what SQLite knows a file by."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _is_abandoned(path: str) -> bool:
    return bool(_abandoned) and os.path.exists(path) and _identity(path) in _abandoned


@contextmanager
def reading(directory: str) -> Iterator[LogReader]:
    """Open a log to read it, changing nothing; DATABASE_ERRORS: that cannot be done.

    Without a ``-wal`` file there is no writer, and the database is read as it is. With one, SQLite
    needs to share memory with the writer, in a file; where that cannot be made, for want of
    permission, or this process has abandoned the log, both files are copied.
    """
    path = os.path.join(directory, LOG)
    if _is_abandoned(path):
        with _copied(path) as log:
            yield log
        return
    address = f"file:{pathname2url(os.path.abspath(path))}?mode=ro"
    if not os.path.exists(path + "-wal"):
        address += "&immutable=1"
    try:
        connection = sqlite3.connect(address, timeout=60, isolation_level=None, uri=True)
        try:
            connection.execute("SELECT name FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
    except sqlite3.OperationalError:
        if "immutable" in address or os.access(directory, os.W_OK):
            raise
        with _copied(path) as log:
            yield log
        return
    with closing(LogReader(connection)) as log:
        yield log


@contextmanager
def _copied(path: str) -> Iterator[LogReader]:
    """Open a copy of a log to read it."""
    with tempfile.TemporaryDirectory() as folder:
        for end in ("", "-wal"):
            if os.path.exists(path + end):
                shutil.copyfile(path + end, os.path.join(folder, LOG + end))
        with reading(folder) as log:
            yield log
