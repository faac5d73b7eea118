"""The engine, addressed by the user's ids.

The engine knows int64 keys. Int ids are their own keys; str ids are translated by a compiled table.
The first update that the engine accepts decides which it is. A rejected batch does not fix the type
of the ids.

Updates and saving run under ``lock`` and ``guard``. A thread can take the lock again; the guard
raises if code that runs during an update, such as a signal handler, starts another one.
Readers need no lock: a key has one id for ever, and its id is in the table before the engine knows
the key. If a vertex is removed while a reader translates its key, the read is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from dynhac._core import BatchError, Engine, IdTable, ReentryGuard
from dynhac.clusters.clusters import Clusters
from dynhac.clusters.summarize import summarize
from dynhac.dendrogram.dendrogram import Dendrogram
from dynhac.input.batches import ID_COLUMNS, GraphBatch, id_array
from dynhac.input.columns import INT64, INT64_MAX, INT64_MIN, are_strings, is_int, plain_id
from dynhac.input.errors import InvalidTypeError, explain_graph, show
from dynhac.watch.parameters import WatchOrder, WatchParameters
from dynhac.watch.watch import Watch

if TYPE_CHECKING:
    from dynhac._core import ChangeData, LazyColumn, Meeting, Meter
    from dynhac.input.columns import IdColumn
    from dynhac.models.parameters import GraphParameters
    from dynhac.watch.history import Time

Read = TypeVar("Read")
WATCH = "watch/"  # begins the names of the columns of watches
IDS = ("ids/text", "ids/lengths", "ids/next_key")
"""Names of the columns of str ids."""

BUSY = "the model is being updated, saved or searched; code called meanwhile cannot do that"


class IdEngine:
    """An engine with ids, the lock of its updates, and its watches.

    Attributes
    ----------
    clock, public_time : callable
        The latest time that a model of points has seen, None without timestamps; and a time as
        users give it.
    exporting : bool
        Whether `verify` reads the whole state. Code that is called meanwhile, in the same thread,
        must not wait for its lock. Changed under the lock of updates.
    watches : list of Watch
        Those that are not closed. Being in this list or not decides whether a watch was made or
        closed when something interrupts that.
    write_watches : callable or None
        What orders to make or close watches are passed to: the store of a durable model.
    """

    __slots__ = (
        "_last_view",
        "clock",
        "engine",
        "exporting",
        "guard",
        "ids",
        "lock",
        "parameters",
        "public_time",
        "watches",
        "write_watches",
    )

    def __init__(
        self,
        parameters: GraphParameters,
        columns: Mapping[str, NDArray[Any]] | None = None,
        progress: Meter | None = None,
    ) -> None:
        """Make an empty engine, or load one; ValueError or KeyError: the columns are not right."""
        self.parameters = parameters
        self.lock: AbstractContextManager[Any] = RLock()
        self.guard = ReentryGuard(BUSY)
        self.exporting = False
        self.ids = IdTable()
        self.clock: Callable[[], int | float | None] = lambda: None
        self.public_time: Callable[[int | float | None], Time] = lambda clock: clock
        self.watches: list[Watch] = []
        self.write_watches: Callable[[WatchOrder], Watch] | None = None
        self._last_view: Dendrogram | None = None
        if columns is None:
            self.engine = Engine(*parameters.engine)
        else:
            self._load(columns, progress)

    @property
    def resolution(self) -> float:
        """What weights are rounded to multiples of."""
        return self.parameters.resolution

    def columns(self) -> Iterator[tuple[str, NDArray[Any] | LazyColumn]]:
        """Give the whole state; for callers that hold lock and guard until all is made."""
        self.finish_update()
        if self.ids.used:
            yield from self.ids.state_columns(self.engine)
            yield "ids/next_key", np.array([self.ids.next_key], INT64)
        yield from self.engine.state_columns()
        for number, watch in enumerate(self.watches):
            for name, column in watch._columns().items():
                yield f"{WATCH}{number}/{name}", column

    def update(self, batch: GraphBatch, progress: Any) -> ChangeData:
        """Apply a batch, or raise with nothing changed; for callers that hold lock and guard."""
        text = self._has_text(batch)
        try:
            if text:
                change = self.engine.update_text(self.ids, batch, progress)
            else:
                change = self.engine.update(batch, progress)
        except BatchError as error:
            raise explain_graph(error, batch, self.resolution) from None
        self.finish_update()
        return change

    def dendrogram(self) -> Dendrogram:
        """Return the hierarchy as it is now; the same object until the next update."""
        view = self.current_view()
        if view is None:
            snapshot, (ids,) = self.read(self.engine.snapshot, lambda s: (s.keys,))
            view = self._last_view = Dendrogram(
                ids,
                snapshot.children,
                snapshot.similarity,
                snapshot.min_similarity,
                snapshot.size,
                snapshot.node_ids,
                self.parameters.epsilon,
                self.parameters.threshold,
                snapshot.version,
                self.resolution,
                ref(self.engine),
            )
        return view

    def clusters(self, labels_of: Callable[[Dendrogram], NDArray[np.int64]]) -> Clusters:
        """Return what is in the clusters that ``labels_of`` gives for the present dendrogram."""

        def read() -> Clusters | None:
            view = self.dendrogram()
            return summarize(self.engine, view.version, view.ids, labels_of(view))

        return self.read_one_state(read)

    def read_one_state(self, call: Callable[[], Read | None]) -> Read:
        """Return what ``call`` reads from one state; it returns None if there was an update."""
        for _ in range(3):
            result = call()
            if result is not None:
                return result
        with self.lock:
            result = call()
        if result is None:
            raise RuntimeError("the model was updated by a thread that does not hold its lock")
        return result

    def current_view(self) -> Dendrogram | None:
        """Return the last dendrogram if there was no update since."""
        view = self._last_view
        return view if view is not None and view.version == self.engine.version else None

    def all_ids(self) -> NDArray[Any]:
        """Return the ids in order of insertion."""
        view = self.current_view()
        if view is not None:
            return view.ids
        _, (ids,) = self.read(self.engine.keys, lambda keys: (keys,))
        ids.setflags(write=False)
        return ids

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
        id = plain_id(id)
        if isinstance(id, str):
            return self.ids.used and self.engine.contains(self.ids.keys([id]).item())
        if not self.ids.used and is_int(id) and INT64_MIN <= id <= INT64_MAX:
            return self.engine.contains(int(id))
        return False

    def key_of(self, id: object) -> int:
        """Return the engine's key of one vertex; KeyError if there is no such vertex."""
        if not self.holds(id):
            raise KeyError(f"id {show(id)} is not in the graph")
        id = plain_id(id)
        if isinstance(id, str):
            return self.ids.keys([id]).item()
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
            if isinstance(ids, list) != self.ids.used and len(ids):
                raise BatchError("unknown", 0, 0)
            return call(self.ids.keys(ids) if isinstance(ids, list) else ids)
        except BatchError as error:
            raise KeyError(f"id {show(ids[error.args[1]])} is not in the graph") from None

    def ids_of(self, keys: NDArray[np.int64]) -> NDArray[Any]:
        """Return the ids of keys; KeyError if one is not in the engine any more."""
        return id_array(self.ids.texts(keys), True) if self.ids.used else keys

    def finish_update(self) -> None:
        """Drop the last view, and let the watches take the steps that the engine has for them.

        The update has been made, and no failure here may look as if it had not. Steps that could
        not be taken wait in the engine for the next time.
        """
        self._last_view = None
        try:
            for watch in tuple(self.watches):  # a signal handler may make or close one
                watch._take_steps()
        except MemoryError:  # suppress() would cost more than all the rest here
            pass

    def watch(self, parameters: WatchParameters) -> Watch:
        """Return the watch with these parameters; make it if there is none. Needs the lock."""
        found = self.find_watch(parameters)
        if found is not None:  # a watch without clusters has length 0, and is false
            return found
        self._require_not_exporting()
        return self._order(WatchOrder(parameters))

    def find_watch(self, parameters: WatchParameters) -> Watch | None:
        """Return the watch with these parameters; that of a store before a private one."""
        found = [watch for watch in self.watches if watch._parameters == parameters]
        return min(found, key=lambda watch: watch._private, default=None)

    def close_watch(self, watch: Watch) -> None:
        """Close a watch."""
        with self.lock:
            self._require_not_exporting()
            if watch._private or watch not in self.watches:
                watch._end()
            else:
                self._order(WatchOrder(watch._parameters, close=True))

    def _order(self, order: WatchOrder) -> Watch:
        return self.apply_order(order) if self.write_watches is None else self.write_watches(order)

    def apply_order(self, order: WatchOrder) -> Watch:
        """Make or close a watch, under the lock; ValueError: there is none to close."""
        if not order.close:
            return Watch(self, order.parameters)
        watch = self.find_watch(order.parameters)
        if watch is None or watch._private:
            raise ValueError(f"there is no watch {order.parameters.where} to close")
        watch._end()
        return watch

    def has_applied(self, order: WatchOrder) -> bool:
        """Whether an order that was not applied before has been applied."""
        return (self.find_watch(order.parameters) is None) == order.close

    def forget(self, watch: Watch) -> None:
        """Drop a watch, and all that the engine follows for no watch; needs the lock."""
        handles = self.engine.watch_handles()  # raises in code that an update calls
        if watch in self.watches:
            self.watches.remove(watch)
        known = {each._handle for each in self.watches}
        for handle in handles:
            if handle not in known:
                self.engine.remove_watch(handle)

    def _require_not_exporting(self) -> None:
        """Raise if code of the user's, called by `verify`, would wait for the readers' lock."""
        if self.exporting:
            raise RuntimeError(
                "the model is being verified; code called meanwhile can make or close no watch"
            )

    def _has_text(self, batch: GraphBatch) -> bool:
        """Whether the ids of a batch are str; raise if they are not of the engine's type."""
        if not self.ids.used and list not in map(type, batch):
            return False
        named = list(zip(ID_COLUMNS, batch[:6], strict=True))
        text = are_strings(named)
        if text is None:
            return self.ids.used
        if text != self.ids.used and self.engine.version > 0:
            name, column = next((name, column) for name, column in named if len(column))
            raise InvalidTypeError(
                f"id {show(column[0])} in {name} is {'a str' if text else 'an int'}, but "
                f"the ids of this graph are {'int' if text else 'str'}"
            )
        return text

    def _load(self, columns: Mapping[str, NDArray[Any]], progress: Meter | None) -> None:
        own = {
            name: column
            for name, column in columns.items()
            if name not in IDS and not name.startswith(WATCH)
        }
        self.engine = Engine.load(*self.parameters.engine, own, progress)
        if any(name in columns for name in IDS):
            text, lengths, next_key = (columns[name] for name in IDS)
            if next_key.shape != (1,) or next_key.dtype != INT64:
                raise ValueError("the next key of ids is not one number")
            self.ids = IdTable.load(self.engine.keys(), text, lengths, int(next_key[0]))
        watches: dict[str, dict[str, NDArray[Any]]] = {}
        for name, column in columns.items():
            if name.startswith(WATCH):
                number, _, part = name.removeprefix(WATCH).partition("/")
                watches.setdefault(number, {})[part] = column
        for place in range(len(watches)):
            own = watches[str(place)]
            parameters = WatchParameters.from_columns(self.parameters.threshold, own)
            if self.find_watch(parameters) is not None:
                raise ValueError("two watches have the same parameters")
            Watch(self, parameters, own)
