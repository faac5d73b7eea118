"""What a service keeps in the database of a log: answers to requests, and events of watches.

==========  ========================================================================================
answers     the answer to each request that had a key, and a digest of that request
events      the events of all watches, numbered; ids grow and are never used again
recorded    one row: the number of the last update whose events are in ``events``
==========  ========================================================================================

They are written within a group of updates (`Writer.group`). So an update, its answer and its events
reach the disk together or not at all. Answers are kept for a day, and events as long as the log has
their update, or longer while there are few.

If one of these tables cannot be written, the whole group fails: an update whose answer is lost
would be made twice when its request is repeated.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from dynhac.store.errors import StoreError
from dynhac.store.log import DATABASE_ERRORS, reading

if TYPE_CHECKING:
    from dynhac.store.writer import Writer

TABLES = (
    "CREATE TABLE IF NOT EXISTS answers ("
    "key TEXT PRIMARY KEY, request BLOB NOT NULL, answer TEXT NOT NULL, made REAL NOT NULL)",
    "CREATE INDEX IF NOT EXISTS answers_made ON answers (made)",
    "CREATE TABLE IF NOT EXISTS events ("
    "id INTEGER PRIMARY KEY AUTOINCREMENT, number INTEGER NOT NULL, data TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS recorded (number INTEGER NOT NULL)",
)
ANSWERS_AGE = 86_400.0
MOST_ANSWERS = 100_000
KEPT_EVENTS = 100_000
PRUNED_EVERY = 1_000
"""After how many answers or events the oldest ones are looked for."""


class Answer(NamedTuple):
    """The answer to an earlier request, and the digest of that request."""

    request: bytes
    answer: str


class StoredEvent(NamedTuple):
    """An event, as JSON, and its id."""

    id: int
    data: str


class EventRange(NamedTuple):
    """The ids of the first event that is kept, and of the last one there ever was.

    Without events, ``first`` is ``last + 1``.
    """

    first: int
    last: int


class Records:
    """The records of a store that is open for writing; all calls need the lock of its model."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._written = 0
        with self._connection() as connection:
            for statement in TABLES:
                connection.execute(statement)
            if connection.execute("SELECT number FROM recorded").fetchone() is None:
                connection.execute("INSERT INTO recorded VALUES (0)")

    @property
    def recorded(self) -> int:
        """The number of the last update whose events are kept."""
        with self._connection() as connection:
            number: int = connection.execute("SELECT number FROM recorded").fetchone()[0]
        return number

    def record(self, number: int) -> None:
        """Note that the events of all updates up to a number are kept."""
        with self._connection() as connection:
            connection.execute("UPDATE recorded SET number = ?", (number,))

    def answer(self, key: str) -> Answer | None:
        """Return the answer to the first request with a key."""
        with self._connection() as connection:
            query = "SELECT request, answer FROM answers WHERE key = ?"
            found = connection.execute(query, (key,)).fetchone()
        return None if found is None else Answer(*found)

    def remember(self, key: str, request: bytes, answer: str) -> None:
        """Keep the answer to a request."""
        with self._connection() as connection:
            row = (key, request, answer, time.time())
            connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", row)
            self._prune(connection, 1)

    def append(self, number: int, events: Sequence[str]) -> list[StoredEvent]:
        """Keep the events of an update; return them with their ids."""
        if not events:
            return []
        with self._connection() as connection:
            query = "INSERT INTO events (number, data) VALUES (?, ?)"
            connection.executemany(query, [(number, data) for data in events])
            (last,) = connection.execute("SELECT last_insert_rowid()").fetchone()
            self._prune(connection, len(events))
        return [StoredEvent(id, data) for id, data in enumerate(events, last - len(events) + 1)]

    def _prune(self, connection: sqlite3.Connection, added: int) -> None:
        """Drop what is too old, now and then."""
        self._written += added
        if self._written < PRUNED_EVERY:
            return
        self._written = 0
        connection.execute("DELETE FROM answers WHERE made < ?", (time.time() - ANSWERS_AGE,))
        connection.execute(
            "DELETE FROM answers WHERE made < (SELECT made FROM answers ORDER BY made DESC "
            "LIMIT 1 OFFSET ?)",
            (MOST_ANSWERS,),
        )
        connection.execute(
            "DELETE FROM events WHERE id <= (SELECT MAX(id) FROM events) - ? "
            "AND number < (SELECT COALESCE(MIN(number), 0) FROM log)",
            (KEPT_EVENTS,),
        )

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._writer.log.connection
        except DATABASE_ERRORS as error:
            if self._writer.groups:
                self._writer.log.rollback()  # the group notices, and takes its updates back
            raise StoreError(f"the log cannot be written: {error}") from error


def read_events(directory: str, after: int, most: int) -> tuple[EventRange, list[StoredEvent]]:
    """Return which events there are, and the first of those after an id."""
    try:
        with reading(directory) as log:
            return _read_events(log.connection, after, most)
    except DATABASE_ERRORS as error:
        raise StoreError(f"the events in {directory} cannot be read: {error}") from error


def _read_events(
    connection: sqlite3.Connection, after: int, most: int
) -> tuple[EventRange, list[StoredEvent]]:
    query = "SELECT 1 FROM sqlite_master WHERE name = 'events'"
    if connection.execute(query).fetchone() is None:  # no service has written to this store
        return EventRange(1, 0), []
    connection.execute("BEGIN")
    (first,) = connection.execute("SELECT MIN(id) FROM events").fetchone()
    found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'")
    (last,) = found.fetchone() or (0,)
    query = "SELECT id, data FROM events WHERE id > ? ORDER BY id LIMIT ?"
    rows = connection.execute(query, (after, most)).fetchall()
    kept = EventRange(last + 1 if first is None else first, last)
    return kept, list(map(StoredEvent._make, rows))
