"""The payloads of the points of a store: two tables in the database of its log.

``payloads`` has a row for each payload: its JSON, the id of the point, and the number of the update
that set it. A row is written in the transaction of its update, and nothing else is changed there:
what an update takes away stays until it is known that the model has accepted the update. So a
rejected update is taken back by dropping the rows with its number. What has gone, with its points
or for a newer payload, is *pending*, and dropped in the transaction of the next update, before a
snapshot prunes the log, and when the store is closed. After a crash, opening the store drops it.

The payload of a point is the newest row of its id, up to the last acknowledged update. A point that
is replaced by one without payload gets a row without JSON, so that the older one does not count.

``payload_words`` is a full-text index (FTS5) of all strings in the payloads. It does not store
them; to delete an entry, SQLite must be given the strings again, which come from the JSON. The
tables are made with the first payload. A store without payloads does not have them.

Every row has a checksum, since SQLite does not notice when a byte within a text changes.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from dynhac.input.batches import GraphBatch, PointBatch, PointIds
from dynhac.input.errors import show
from dynhac.input.payloads import NewPayloads
from dynhac.models.point_change import PointChange
from dynhac.store.errors import StoreError
from dynhac.store.payload_search import (
    all_words,
    field_condition,
    has_field,
    index_text,
    index_text_of,
    sqlite_can,
)

if TYPE_CHECKING:
    from dynhac.store.log import Log

PlainId: TypeAlias = "int | str"

TABLE = """CREATE TABLE payloads (
    row INTEGER PRIMARY KEY, id NOT NULL, number INTEGER NOT NULL, text TEXT, checksum INTEGER,
    UNIQUE (id, number)
)"""
WORDS = "CREATE VIRTUAL TABLE payload_words USING fts5(words, content='', tokenize='unicode61')"
NAMED_WORDS = "payload_words"

NO_FTS5 = (
    "the SQLite of this Python has no full-text search (FTS5), so that payloads cannot be searched "
    "by text; search by fields with where, or use a Python whose SQLite has it"
)


def has_fts5() -> bool:
    """Whether there is full-text search."""
    return sqlite_can(WORDS)


class Gone(NamedTuple):
    """Rows that no longer count: those of an id, with numbers below a bound."""

    id: PlainId
    below: int


class PayloadReader:
    """What can be read of the payloads in a database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def has(self, table: str) -> bool:
        """Whether there is a table."""
        query = "SELECT 1 FROM sqlite_master WHERE name = ?"
        return self.connection.execute(query, (table,)).fetchone() is not None

    def get(self, ids: Iterable[Any], upto: int) -> list[dict[str, Any] | None]:
        """Return the payloads of ids after an update; an id may be None, which has none."""
        if not self.has("payloads"):
            return [None for _ in ids]
        query = (
            "SELECT number, text, checksum FROM payloads WHERE id = ? AND number <= ? "
            "ORDER BY number DESC LIMIT 1"
        )
        return [
            _read(id, *(self.connection.execute(query, (id, upto)).fetchone() or (0, None, None)))
            for id in ids
        ]

    def find(
        self, text: str | None, where: Mapping[str, Any], upto: int
    ) -> Iterator[tuple[PlainId, dict[str, Any]]]:
        """Give the payloads after an update that have all words of a text, and these fields.

        They come in order of relevance, then in the order in which they were set.
        """
        if not self.has("payloads"):
            return
        sources, conditions, order = "payloads p", ["p.text IS NOT NULL", "p.number <= ?"], "p.row"
        values: list[Any] = [upto]
        if text is not None:
            if not has_fts5() or not self.has(NAMED_WORDS):
                raise StoreError(NO_FTS5)
            sources = "payload_words w JOIN payloads p ON p.row = w.rowid"
            conditions.append("payload_words MATCH ?")
            values.append(all_words(text))
            order = "w.rank, p.row"
        conditions.append(
            "NOT EXISTS (SELECT 1 FROM payloads q WHERE q.id = p.id AND q.number > p.number AND "
            "q.number <= ?)"
        )
        values.append(upto)
        for name, value in where.items():
            condition = field_condition(name, value)
            if condition is not None:
                conditions.append(condition[0])
                values += condition[1]
        query = (
            f"SELECT p.id, p.number, p.text, p.checksum FROM {sources} WHERE "
            f"{' AND '.join(conditions)} ORDER BY {order}"
        )
        for id, number, found, checksum in self.connection.execute(query, values):
            payload = _read(id, number, found, checksum)
            if payload is not None and all(has_field(payload, *field) for field in where.items()):
                yield id, payload


class Payloads(PayloadReader):
    """The payloads of a store, for its writer.

    Attributes
    ----------
    exist : bool
        Whether there are tables.
    unknown : bool
        Whether it is not known what has gone: an update was interrupted.
    """

    def __init__(self, log: Log) -> None:
        super().__init__(log.connection)
        self._log = log
        self._gone: list[Gone] = []
        self._gone_before_group: list[Gone] = []
        self._last: tuple[int, list[PlainId]] = 0, []  # the last update that put some, and whose
        self.unknown = self._unknown_before_group = False
        self._look()

    def _look(self) -> None:
        """Note what tables there are."""
        exist, last = self.has("payloads"), None
        if exist:
            (last,) = self.connection.execute("SELECT MAX(row) FROM payloads").fetchone()
        self._next = (last or 0) + 1
        self._words = exist and has_fts5() and self.has(NAMED_WORDS)
        self.exist = exist

    @property
    def pending(self) -> bool:
        """Whether there is anything to drop."""
        return bool(self._gone) or self.unknown

    def make(self) -> None:
        """Make the tables if there are none."""
        if self.exist:
            return
        if not self.has("payloads"):  # an interrupt may have come before `_look`
            with self._log.transaction():
                self.connection.execute(TABLE)
                if has_fts5():
                    self.connection.execute(WORDS)
        self._look()

    def put(self, number: int, new: NewPayloads | None, replaced: Iterable[PlainId] = ()) -> None:
        """Add the payloads of an update, in its transaction; ``replaced`` ids may have had some."""
        rows: list[tuple[int, PlainId, int, str, int]] = []
        words: list[tuple[int, str]] = []
        for id, payload in zip(*new, strict=True) if new else ():
            if payload is not None:
                text = payload.text
                rows.append((self._next, id, number, text, _checksum(id, number, text)))
                words.append((self._next, index_text(payload.strings)))
                self._next += 1
        self.connection.executemany("INSERT INTO payloads VALUES (?, ?, ?, ?, ?)", rows)
        if self._words:
            insert = "INSERT INTO payload_words (rowid, words) VALUES (?, ?)"
            self.connection.executemany(insert, words)
        empty = set(replaced).difference(row[1] for row in rows)
        self._last = number, [*(row[1] for row in rows), *empty]
        for id in sorted(empty):
            self.connection.execute(
                "INSERT INTO payloads SELECT ?, ?, ?, NULL, NULL "
                "WHERE EXISTS (SELECT 1 FROM payloads WHERE id = ?)",
                (self._next, id, number, id),
            )
            self._next += 1

    def replace(self, number: int, new: NewPayloads) -> None:
        """Set the payloads of ids after an update, or take them away."""
        for id in new.ids:
            self._drop("id = ?", (id,))
        self.put(number, new)
        self._last = 0, []  # there is no update to be taken back

    def has_put(self, number: int) -> bool:
        """Whether an update has put anything, or tried to."""
        return self._last[0] == number and bool(self._last[1])

    def retract(self, number: int) -> None:
        """Take back what an update has put."""
        if self.has_put(number):
            for id in self._last[1]:
                self._drop("id = ? AND number = ?", (id, number))
            self._last = 0, []

    def note(self, gone: Iterable[Gone]) -> None:
        """Note what no longer counts, after an update."""
        self._gone += gone

    def drop_gone(self, upto: int, holds: Callable[[object], bool]) -> None:
        """Drop what no longer counts after an update, in a transaction; see `dropped`."""
        if self.unknown:
            self.sweep(upto, holds)
        for id, below in self._gone:
            self._drop("id = ? AND number < ?", (id, below))

    def dropped(self) -> None:
        """Note that the transaction was successful."""
        self._gone, self.unknown = [], False

    def begin_group(self) -> None:
        """Note what is to be dropped if the transaction of a group fails."""
        self._gone_before_group, self._unknown_before_group = list(self._gone), self.unknown

    def rolled_back(self) -> None:
        """Continue after the transaction of a group has failed."""
        self._gone, self.unknown = self._gone_before_group, self._unknown_before_group
        self._look()

    def sweep(self, upto: int, holds: Callable[[object], bool]) -> list[PlainId]:
        """Drop all that does not count after an update; return the ids of damaged payloads.

        ``holds`` tells whether the model has an id.
        """
        query = "SELECT row, id, number, text, checksum FROM payloads ORDER BY id, number DESC"
        drop, damaged = [], []
        last: object = None
        for row, id, number, text, checksum in self.connection.execute(query):
            counts = isinstance(number, int) and number <= upto and id != last
            if counts:
                last = id
            if not counts or text is None or not holds(id):
                drop.append(row)
            elif checksum != _checksum(id, number, text):
                damaged.append(id)
                drop.append(row)
        for row in drop:
            self._drop("row = ?", (row,))
        return damaged

    def check(self, upto: int, holds: Callable[[object], bool]) -> list[str]:
        """Put the tables in order after opening; return what the user must be told."""
        if not self.exist:
            return []
        messages = []
        with self._log.transaction():
            if self._words and not self._words_are_whole():
                messages.append("the text index of the payloads was damaged, and was made again")
                self._make_words()
            elif has_fts5() and (not self._words or self._words_lack_some()):
                self._make_words()
            damaged = self.sweep(upto, holds)
        if damaged:
            some = ", ".join(map(show, damaged[:5])) + (", ..." if len(damaged) > 5 else "")
            messages.append(f"payloads are damaged, and lost, of these ids: {some}")
        return messages

    def _words_are_whole(self) -> bool:
        try:
            self.connection.execute(
                "INSERT INTO payload_words (payload_words) VALUES ('integrity-check')"
            )
        except sqlite3.DatabaseError:
            return False
        return True

    def _words_lack_some(self) -> bool:
        """Whether payloads were written by a Python whose SQLite has no full-text search."""
        query = (
            "SELECT row FROM payloads WHERE text IS NOT NULL EXCEPT "
            "SELECT id FROM payload_words_docsize LIMIT 1"
        )
        return self.connection.execute(query).fetchone() is not None

    def _make_words(self) -> None:
        """Make the text index anew."""
        self.connection.execute("DROP TABLE IF EXISTS payload_words")
        self.connection.execute(WORDS)
        self._words = True
        for row, text in self.connection.execute("SELECT row, text FROM payloads"):
            if text is not None:
                self.connection.execute(
                    "INSERT INTO payload_words (rowid, words) VALUES (?, ?)",
                    (row, index_text_of(text)),
                )

    def _drop(self, which: str, values: tuple[Any, ...]) -> None:
        """Delete rows, and their entries in the text index."""
        query = f"SELECT row, text FROM payloads WHERE {which}"
        found = self.connection.execute(query, values).fetchall()
        for row, text in found:
            if text is not None and self._words:
                self.connection.execute(
                    "INSERT INTO payload_words (payload_words, rowid, words) "
                    "VALUES ('delete', ?, ?)",
                    (row, index_text_of(text)),
                )
            self.connection.execute("DELETE FROM payloads WHERE row = ?", (row,))


def ids_of(batch: Any) -> tuple[PointIds, PointIds]:
    """Return the ids that a batch brings, and those that it takes away."""
    if isinstance(batch, GraphBatch):
        return batch.add, batch.remove
    if isinstance(batch, PointBatch):
        return batch.ids, batch.deleted
    return (), ()


def replaced_ids(batch: Any) -> set[PlainId]:
    """Return the ids that a batch both takes away and brings."""
    new, old = ids_of(batch)
    return set(_plain(new)).intersection(_plain(old)) if len(new) and len(old) else set()


def gone_after(number: int, batch: Any, change: Any, new: NewPayloads | None) -> Iterator[Gone]:
    """Give what no longer counts after an update that the model has accepted."""
    old = _plain(ids_of(batch)[1])
    again = {id for id, payload in zip(*new, strict=True) if payload} if new and old else set()
    for id in old:
        yield Gone(id, number if id in again else number + 1)
    if isinstance(change, PointChange):
        for id in change.expired.tolist():
            yield Gone(id, number + 1)


def _plain(ids: Any) -> list[Any]:
    return ids.tolist() if isinstance(ids, np.ndarray) else list(ids)


def _checksum(id: PlainId, number: int, text: str) -> int:
    return zlib.crc32(f"{id!r} {number} {text}".encode("utf-8", "surrogatepass"))


def _read(id: PlainId, number: int, text: str | None, checksum: int | None) -> Any:
    """Return the payload in a row; StoreError: it is damaged."""
    if text is None:
        return None
    if checksum != _checksum(id, number, text):
        raise StoreError(
            f"the payload of id {show(id)} is damaged; opening the store for writing drops it, and "
            "set_payload gives a new one"
        )
    return json.loads(text)
