"""The engine, spoken to in the user's ids.

The engine knows int64 keys. Int ids are their own keys; str ids are translated by a table of names.
The first batch that the engine accepts decides which it is: before that, ``names`` may have been
set by a batch that was then rejected, which binds nobody.

Only the engine decides that a vertex exists, so whatever stops an update, a rejection or an
interrupt, leaves everything as it was.

Updates are made, and states saved, under ``lock`` and ``guard``: the lock lets its thread in again,
and code called there, such as a signal handler, must not begin another one. Readers do without, so
that a busy writer cannot keep them waiting for more than one update: a key has one name for ever,
and the name is there before the engine knows the key. All that can happen is that the name of a
vertex removed meanwhile is gone again; then the read is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dynhac._core import BatchError, Engine, ReentryGuard
from dynhac.dendrogram.cuts import snap
from dynhac.input.columns import (
    INT64_MAX,
    INT64_MIN,
    NO_IDS,
    are_strings,
    is_int,
    scalar,
)
from dynhac.input.errors import ID_COLUMNS, Batch, InvalidTypeError, explain, show
from dynhac.models.names import PARTS, Names
from dynhac.watch.watch import Watch

if TYPE_CHECKING:
    from dynhac._core import ChangeData, Meeting, PointTable, PointUpdater
    from dynhac.input.columns import IdColumn

Read = TypeVar("Read")
WATCH = "watch/"  # begins the names of the columns of watches
BUSY = "the model is being updated or saved; what is called meanwhile can do neither"


class KeyedEngine:
    """An engine, the lock that updates are made under, and the names if its ids are str."""

    __slots__ = ("engine", "guard", "lock", "names", "resolution", "threshold", "watches")

    def __init__(self, epsilon: float, threshold: float, resolution: float, threads: int) -> None:
        self.threshold = float(snap(threshold, resolution))
        self.engine = Engine(epsilon, self.threshold, resolution, threads)
        self.lock: AbstractContextManager[Any] = RLock()
        self.guard = ReentryGuard(BUSY)
        self.names: Names | None = None
        self.resolution = resolution
        self.watches: list[Watch] = []

    @classmethod
    def load(
        cls,
        epsilon: float,
        threshold: float,
        resolution: float,
        threads: int,
        columns: Mapping[str, NDArray[Any]],
    ) -> KeyedEngine:
        """Return what `columns` were taken from; ValueError: they are not right."""
        keyed = cls(epsilon, threshold, resolution, threads)
        own: dict[str, NDArray[Any]] = {}
        names: dict[str, NDArray[Any]] = {}
        watches: dict[str, dict[str, NDArray[Any]]] = {}
        for name, column in columns.items():
            if name.startswith(WATCH):
                number, _, part = name.removeprefix(WATCH).partition("/")
                watches.setdefault(number, {})[part] = column
            else:
                (names if name in PARTS else own)[name] = column
        keyed.engine = Engine.load(epsilon, keyed.threshold, resolution, threads, own)
        if names:
            keyed.names = Names.load(keyed.engine.keys(), names)
        for place in range(len(watches)):
            Watch.restored(keyed, watches[str(place)])
        return keyed

    def columns(self) -> Generator[tuple[str, NDArray[Any]], None, None]:
        """Give the whole state, one array at a time; for callers with ``lock`` and ``guard``."""
        self.tidy_up()
        if self.names is not None:
            yield from self.names.save(self.engine.keys()).items()
        for index, name in enumerate(self.engine.state_columns()):
            yield name, self.engine.save_column(index)
        for number, watch in enumerate(self.watches):
            for name, column in watch.columns().items():
                yield f"{WATCH}{number}/{name}", column

    def update(self, batch: Batch) -> ChangeData:
        """Apply a batch or raise, in the user's words, with nothing changed.

        For callers with ``lock`` and ``guard``.
        """
        try:
            if self.names is None and list not in map(type, batch):
                change = self.engine.update(*batch)  # type: ignore[arg-type]
                self._tell_watches()
                return change
            return self._update_names(batch)
        except BatchError as error:
            raise explain(error, batch, self.resolution) from None

    def update_points(self, updater: PointUpdater, table: PointTable, ids: IdColumn) -> ChangeData:
        """Let the engine and a table take an update of points, the new ones under ``ids``.

        All ids of the table are of one kind.
        """
        if len(ids) and isinstance(ids, list) != (self.names is not None):
            self.names = Names() if isinstance(ids, list) else None  # of the first, or rejected
        names = self.names
        try:
            if names is None:
                return updater.finish(NO_IDS if isinstance(ids, list) else ids)
            names.suspect(names.ids(table.keys_of(updater.leaving)).tolist())
            names.reserve(ids)
            return updater.finish(names.keys(ids))
        except BatchError as error:
            raise self.explained(error, updater, table, ids) from None
        finally:
            if self.watches or names is not None:
                self.tidy_up()

    def explained(
        self, error: BatchError, updater: PointUpdater, table: PointTable, ids: IdColumn
    ) -> Exception:
        """Return the exception for an update of points that the engine rejected."""
        u, v, w = updater.edges()
        gone, u, v = map(self.ids_of, (table.keys_of(updater.leaving), u, v))
        return explain(error, Batch(gone, ids, NO_IDS, NO_IDS, u, v, w), self.resolution)

    def ids(self) -> NDArray[Any]:
        """Return the ids in order of insertion; for callers that have the lock."""
        return self.ids_of(self.engine.keys())

    def read(
        self, call: Callable[[], Read], keys_in: Callable[[Read], Sequence[NDArray[np.int64]]]
    ) -> tuple[Read, list[NDArray[Any]]]:
        """Return what ``call`` reads from the engine, and the ids of the keys in it."""
        for _ in range(3):
            result = call()
            try:
                return result, [self.ids_of(keys) for keys in keys_in(result)]
            except KeyError:
                continue
        with self.lock:
            result = call()
            return result, [self.ids_of(keys) for keys in keys_in(result)]

    def holds(self, id: object) -> bool:
        """Whether ``id``, of whatever type, is a vertex."""
        id = scalar(id)
        if isinstance(id, str):
            names = self.names
            return names is not None and self.engine.contains(names.key(id))
        if self.names is None and is_int(id) and INT64_MIN <= id <= INT64_MAX:
            return self.engine.contains(int(id))
        return False

    def key_of(self, id: object) -> int:
        """Return the engine's key of one vertex; KeyError if there is no such vertex."""
        if not self.holds(id):
            raise KeyError(f"id {show(id)} is not in the graph")
        id = scalar(id)
        if isinstance(id, str):
            return -1 if self.names is None else self.names.key(id)
        return int(id)  # type: ignore[call-overload, no-any-return]

    def meeting(self, a: object, b: object) -> Meeting:
        """Return how two vertices come together."""
        try:
            return self.engine.meeting(self.key_of(a), self.key_of(b))
        except BatchError as error:  # removed meanwhile
            raise KeyError(f"id {show((a, b)[error.args[1]])} is not in the graph") from None

    def look_up(self, ids: IdColumn, call: Callable[[NDArray[np.int64]], Read]) -> Read:
        """Return what ``call`` reads for ids that must all be in the graph."""
        try:
            if isinstance(ids, list) != (self.names is not None) and len(ids):
                raise BatchError("unknown", 0, 0)
            return call(self.names.keys(ids) if self.names is not None else ids)  # type: ignore[arg-type]
        except BatchError as error:
            raise KeyError(f"id {show(ids[error.args[1]])} is not in the graph") from None

    def ids_of(self, keys: NDArray[np.int64]) -> NDArray[Any]:
        """Return the ids of keys; KeyError if one is not in the engine any more."""
        return keys if self.names is None or not len(keys) else self.names.ids(keys)

    def _update_names(self, batch: Batch) -> ChangeData:
        """Update with a batch that holds strings, or in a graph that seems to."""
        columns = batch[:6]
        strings = are_strings(zip(ID_COLUMNS, columns, strict=True))
        if strings is not None and strings != (self.names is not None):
            if self.engine.version > 0:
                name, column = next(
                    (name, c) for name, c in zip(ID_COLUMNS, columns, strict=True) if len(c)
                )
                raise InvalidTypeError(
                    f"id {show(column[0])} in {name} is {'a str' if strings else 'an int'}, but "
                    f"the ids of this graph are {'int' if strings else 'str'}"
                )
            self.names = Names() if strings else None
        names = self.names
        if names is None:
            change = self.engine.update(*batch)  # type: ignore[arg-type]
            self._tell_watches()
            return change
        try:
            names.suspect(batch.remove)
            names.reserve(batch.add)
            remove, add, remove_u, remove_v, u, v = map(names.keys, columns)
            return self.engine.update(remove, add, remove_u, remove_v, u, v, batch.w)
        finally:
            self.tidy_up()

    def tidy_up(self, inserted: object = None) -> None:
        """After an update, perhaps of one id: tell the watches, then forget names of what went."""
        if (not self.watches or self._tell_watches()) and self.names is not None:
            self.names.sweep(self.engine.contains, inserted)

    def _tell_watches(self) -> bool:
        """Let the watches take what the engine has for them; whether they could.

        The update has been made, and nothing must make it look as if it had not: what could not be
        taken waits in the engine for the next time.
        """
        told = True
        try:
            for watch in tuple(self.watches):  # a signal handler may make or close one
                told &= watch.advance()
        except MemoryError:
            return False
        return told

    def forget(self, watch: Watch) -> None:
        """Let a watch go, and what the engine watches for nobody; for callers with ``lock``."""
        if watch in self.watches:
            self.watches.remove(watch)
        known = {each.handle for each in self.watches}
        for handle in self.engine.watch_handles():
            if handle not in known:
                self.engine.remove_watch(handle)
