"""The models that `dynhac.open` returns: those that everybody knows, with a store behind them.

Copies, pickles and files of a durable model are plain models, since a store has one writer.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Any, NoReturn

from numpy.typing import NDArray

from dynhac.models.batch import PointBatch, empty_batch, read_batch
from dynhac.models.graph import GraphHAC
from dynhac.models.points import DynHAC
from dynhac.store.codec import decode, graph_batch, graph_columns, point_columns
from dynhac.store.durable import Durable
from dynhac.store.keeper import REBUILT, SAVED, Keeper

if TYPE_CHECKING:
    from typing_extensions import Self

    from dynhac._core import ChangeData, ReentryGuard
    from dynhac.input.errors import Batch
    from dynhac.models.change import Change
    from dynhac.models.point_change import PointChange
    from dynhac.store.follower import Follower
    from dynhac.store.log import Row


def not_made_so(name: str) -> NoReturn:
    """Raise for a way to make a model that leaves out the store."""
    raise TypeError(f"{name} is made by dynhac.open(path)")


class DurableDynHAC(Durable, DynHAC):
    """A `DynHAC` whose updates are on the disk when they return; made by `dynhac.open`."""

    __slots__ = ("_keeper",)

    _file_kind = "DynHAC"

    def __init__(self, *args: Any, **parameters: Any) -> None:
        not_made_so("DurableDynHAC")

    @classmethod
    def load(cls, path: str | os.PathLike[str], **parameters: Any) -> Any:
        """Return the plain model in a file; see `DynHAC.load`."""
        return DynHAC.load(path, **parameters)

    @classmethod
    def _new(cls, parameters: dict[str, Any]) -> Self:
        model = cls.__new__(cls)
        model._keeper = None
        DynHAC.__init__(model, **parameters)
        return model

    @classmethod
    def _loaded(
        cls, header: Any, arrays: Any, neighbors: Any, similarity: Any, threads: int | None
    ) -> Self:
        model = cls._from_state(header, arrays, neighbors, similarity, threads)
        model._keeper = None
        return model

    def _attach(self, keeper: Keeper | Follower) -> AbstractContextManager[Any]:
        self._keeper = keeper
        return self._lock

    def _adopt(self, other: Self) -> None:
        """Become another model."""
        other.graph._keyed.lock = self._lock
        self.graph, self._points = other.graph, other._points
        self._last_change = other._last_change

    def insert(self, X: Any, ids: Any = None, timestamps: Any = None) -> Any:
        """Insert points; see `DynHAC.insert`."""
        self._kept().let_pass()
        return super().insert(X, ids, timestamps)

    def update(
        self, insert: Any = None, ids: Any = None, delete: Any = None, timestamps: Any = None
    ) -> PointChange:
        """Apply one batch of changes; see `DynHAC.update`."""
        self._kept().let_pass()
        return super().update(insert, ids, delete, timestamps)

    def expire(self, now: Any) -> PointChange:
        """Move the clock on; see `DynHAC.expire`."""
        self._kept().let_pass()
        return super().expire(now)

    def _by_short_way(self, X: object, id: object, time: object, removes: bool) -> None:
        """Every update takes the long way, past the log."""
        return

    def _run(self, batch: PointBatch) -> None:
        if self._keeper is None:
            super()._run(batch)
            return
        op, columns = point_columns(batch)
        run = super()._run
        self._keeper.record(op, columns, lambda: run(batch), self._mark, self._give_index_up)

    def _mark(self) -> tuple[Any, ...]:
        store, window = self._points.store, self._points.window
        counters = () if store is None else (store.table.next_arrival, store.table.next_id)
        return (self.graph.version, counters, window.clock(store), window.kind, window.timed)

    def _give_index_up(self) -> None:
        """After a failed update the index may hold the same in another way; the log has no such.

        Only usearch's answers depend on how it came to hold what it holds.
        """
        points = self._points
        if points.backend == "usearch" and points.index is not None:
            points.lost = True
            assert isinstance(self._keeper, Keeper)
            self._keeper.flags |= REBUILT

    def _replay(self, row: Row) -> None:
        points = self._points
        if row.flags & REBUILT:
            points.lost = points.index is not None
        elif row.flags & SAVED and points.backend == "usearch" and points.index is not None:
            points.index.save()
        columns: dict[str, Any] = decode(row.payload)
        if row.op == "expire":
            batch = empty_batch(points, columns["clock"].tolist()[0])
        elif row.op == "points":
            names = ("X", "ids", "delete", "times")
            given = [columns.get(name) for name in names]
            batch = read_batch(points, *given)
        else:
            raise ValueError(f"its kind is {row.op!r}, which is not known here")
        DynHAC._run(self, batch)

    def _columns(self, index: bool = True) -> Generator[tuple[str, NDArray[Any]], None, None]:
        with closing(super()._columns(index)) as columns:
            for name, column in columns:
                # The graph comes first; then the index has been saved, and goes on as if loaded.
                if index and not name.startswith("graph/"):
                    self._index_was_saved()
                yield name, column

    def _index_was_saved(self) -> None:
        if isinstance(self._keeper, Keeper):
            self._keeper.flags |= SAVED
        elif self._keeper is not None and self._points.backend == "usearch":
            self._keeper.diverged = True  # from the index of the writer, which was not saved

    def _state_columns(self) -> Generator[tuple[str, NDArray[Any]], None, None]:
        return self._columns()

    def _watches(self) -> tuple[object, ...]:
        return self.graph.watches

    def __reduce__(self) -> tuple[Any, ...]:
        _, state = super().__reduce__()
        return DynHAC._from_state, state

    def __repr__(self) -> str:
        return _repr_with_path(super().__repr__(), self.path)


class DurableGraphHAC(Durable, GraphHAC):
    """A `GraphHAC` whose updates are on the disk when they return; made by `dynhac.open`."""

    __slots__ = ("_keeper",)

    _file_kind = "GraphHAC"

    def __init__(self, *args: Any, **parameters: Any) -> None:
        not_made_so("DurableGraphHAC")

    @classmethod
    def load(cls, path: str | os.PathLike[str], **parameters: Any) -> Any:
        """Return the plain model in a file; see `GraphHAC.load`."""
        return GraphHAC.load(path, **parameters)

    @classmethod
    def _new(cls, parameters: dict[str, Any]) -> Self:
        model = cls.__new__(cls)
        model._keeper = None
        GraphHAC.__init__(model, **parameters)
        return model

    @classmethod
    def _loaded(
        cls, header: Any, arrays: Any, neighbors: None, similarity: None, threads: int | None
    ) -> Self:
        model = cls._from_state(header, arrays, threads)
        model._keeper = None
        return model

    def _attach(self, keeper: Keeper | Follower) -> AbstractContextManager[Any]:
        self._keeper = keeper
        return self._keyed.lock

    @property
    def _guard(self) -> ReentryGuard:
        return self._keyed.guard

    def _adopt(self, other: Self) -> None:
        """Become another model."""
        other._keyed.lock = self._keyed.lock
        self._keyed, self._engine, self._cache = other._keyed, other._engine, None

    def update(
        self, *, add: Any = None, edges: Any = None, remove: Any = None, remove_edges: Any = None
    ) -> Change:
        """Apply one batch of changes; see `GraphHAC.update`."""
        self._kept().let_pass()
        return super().update(add=add, edges=edges, remove=remove, remove_edges=remove_edges)

    def _apply(self, batch: Batch) -> ChangeData:
        if self._keeper is None:
            return super()._apply(batch)
        run = super()._apply
        change: ChangeData = self._keeper.record(
            "graph", graph_columns(batch), lambda: run(batch), lambda: (self.version,), lambda: None
        )
        return change

    def _replay(self, row: Row) -> None:
        if row.op != "graph":
            raise ValueError(f"its kind is {row.op!r}, which is not known here")
        with self._keyed.lock:
            GraphHAC._apply(self, graph_batch(decode(row.payload)))
            self._cache = None

    def _state_columns(self) -> Generator[tuple[str, NDArray[Any]], None, None]:
        return self._keyed.columns()

    def _watches(self) -> tuple[object, ...]:
        return self.watches

    def __reduce__(self) -> tuple[Any, ...]:
        return GraphHAC._from_state, self._state()

    def __copy__(self) -> Any:
        return GraphHAC._from_state(*self._state())

    def __deepcopy__(self, memo: object) -> Any:
        return GraphHAC._from_state(*self._state())

    def __repr__(self) -> str:
        return _repr_with_path(super().__repr__(), self.path)


def _repr_with_path(text: str, path: str) -> str:
    return f"{text[:-1]}; in {path!r}>"
