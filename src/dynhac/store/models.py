"""The models that `dynhac.open` returns: `DynHAC` and `GraphHAC` with a store.

A store is a writer, or a follower that only reads; the model passes its batches to it. Copies,
pickles and files of a durable model are plain models, since a store has one writer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict

from numpy.typing import NDArray

from dynhac.input.batches import id_array
from dynhac.input.columns import IdColumn, Ids, id_column, scalar, whole_number
from dynhac.input.errors import show, unknown_id, wrong_type
from dynhac.input.payloads import NewPayloads, field_of, read_payloads, strings_in
from dynhac.models.engine import IdEngine
from dynhac.models.graph import GraphHAC
from dynhac.models.parameters import GraphParameters, PointParameters
from dynhac.models.points import DynHAC
from dynhac.progress import ProgressOption, metered
from dynhac.store.codec import decode
from dynhac.store.errors import StoreError
from dynhac.store.log import DATABASE_ERRORS

if TYPE_CHECKING:
    from typing_extensions import Self

    from dynhac.store.follower import Follower
    from dynhac.store.log import Row
    from dynhac.store.payloads import PayloadReader
    from dynhac.store.writer import Writer


class StoredUpdate(TypedDict):
    """An update in the log of a store; see `Durable.changes`."""

    number: int
    op: str
    inserted: NDArray[Any] | list[str]
    deleted: NDArray[Any] | list[str]


class Durable:
    """Methods of a durable model, delegated to its store."""

    __slots__ = ()

    _writer: Any
    _engine: IdEngine

    def close(self, *, progress: ProgressOption = None) -> None:
        """Write a snapshot if there is something new, and close the store.

        The model can still be read. Closing twice does no harm; a ``with`` block closes at its end.

        Parameters
        ----------
        progress : bool or callable, optional
            Whether to show how far the call is, or a function to tell; see `Progress`.
        """
        with metered(progress) as meter:
            self._store.close(self, meter)  # type: ignore[arg-type]

    def __enter__(self) -> Self:
        self._store.require_open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def snapshot(self, *, progress: ProgressOption = None) -> int:
        """Write a snapshot now; return the number of the update it was taken after.

        Updates wait while the state is copied, but not while it is written to the disk.

        Parameters
        ----------
        progress : bool or callable, optional
            Whether to show how far the call is, or a function to tell; see `Progress`.
        """
        with metered(progress) as meter:
            return self._store.snapshot(self, meter)  # type: ignore[arg-type]

    def batch(self) -> AbstractContextManager[None]:
        """Return a block within which updates reach the disk together, which is much quicker.

        They are acknowledged when the block ends: if the process dies within, none of them or the
        whole block may be missing. If they cannot be written, a StoreError is raised at the end of
        the block, and the model is as it was before the block. (With an index of your own it is
        not; the store must be opened again.) An exception of your own in the block does not take
        updates back: those made before it stay. Other threads' updates wait until the end.

        Examples
        --------
        >>> import tempfile, dynhac
        >>> with tempfile.TemporaryDirectory() as folder, dynhac.open(folder) as model:
        ...     with model.batch():
        ...         for x in range(100):
        ...             _ = model.insert([float(x)])
        ...     model.update_number
        100
        """
        return self._store.group(self)  # type: ignore[arg-type]

    def refresh(self, *, progress: ProgressOption = None) -> int:
        """Follow the writer: apply the updates it has acknowledged meanwhile.

        For stores opened with ``mode="r"``. If the log does not go back far enough, a newer
        snapshot is loaded: `watches` has those of the writer, new objects with the same ids, and
        watches that this reader made for itself are gone.

        Parameters
        ----------
        progress : bool or callable, optional
            Whether to show how far the call is, or a function to tell; see `Progress`.

        Returns
        -------
        int
            How many updates the model is further than before.
        """
        with metered(progress) as meter:
            return self._store.refresh(self, meter)  # type: ignore[arg-type]

    def changes(self, since: int = 0) -> Iterator[StoredUpdate]:
        """Give the updates after a number, as far back as the log goes.

        Parameters
        ----------
        since : int, default 0
            The number of an update, >= 0.

        Yields
        ------
        dict
            ``number``; ``op``, one of "points", "expire", "graph", "watch" and "close watch";
            ``inserted`` and ``deleted``, arrays or lists of ids. Points that expired are not
            listed: no batch named them.

        Examples
        --------
        >>> import tempfile, dynhac
        >>> with tempfile.TemporaryDirectory() as folder, dynhac.open(folder) as model:
        ...     _ = model.insert([[0.0], [1.0]], ids=["a", "b"])
        ...     _ = model.delete("a")
        ...     [(c["number"], c["inserted"], c["deleted"]) for c in model.changes()]
        [(1, ['a', 'b'], []), (2, [], ['a'])]
        """
        self._store.require_open()
        return self._changes(whole_number(since, "since", 0))

    def _changes(self, since: int) -> Iterator[StoredUpdate]:
        try:
            yield from map(_stored_update, self._store.rows(since))
        except DATABASE_ERRORS as error:
            raise StoreError(f"the log in {self.path} cannot be read: {error}") from error

    def payloads(self, ids: Ids) -> list[dict[str, Any] | None]:
        """Return the payloads of points; None for those that have none or are not in the model.

        Readers, with ``mode="r"``, see the payloads that the writer has acknowledged, of the points
        that they have themselves.

        Parameters
        ----------
        ids : ids
            An id, or a list, range, array or column of ids.

        Examples
        --------
        >>> import tempfile, dynhac
        >>> with tempfile.TemporaryDirectory() as folder, dynhac.open(folder) as model:
        ...     _ = model.insert([[0.0], [1.0]], payload=[{"title": "Oil prices"}, None])
        ...     model.payloads([0, 1])
        [{'title': 'Oil prices'}, None]
        """
        holds = self._engine.holds
        wanted = [id if holds(id) else None for id in _plain(id_column(ids, "ids"))]
        with self._payloads() as (table, number):
            return table.get(wanted, number)

    def texts(self, ids: Ids, field: str | None = None) -> list[str | None]:
        """Return the texts in the payloads of points, such as `Clusters.named` needs.

        Parameters
        ----------
        ids : ids
            An id, or a list, range, array or column of ids.
        field : str, optional
            The field of the payload; a name with dots leads into objects (default: all fields).

        Returns
        -------
        list of str or None
            All strings in the field, joined; None if there are none.

        Examples
        --------
        >>> import tempfile, dynhac
        >>> with tempfile.TemporaryDirectory() as folder, dynhac.open(folder) as model:
        ...     _ = model.insert([[0.0], [1.0]], payload=[{"title": "Oil", "by": "me"}, None])
        ...     model.texts([0, 1], "title"), model.texts([0, 1])
        (['Oil', None], ['Oil me', None])
        """
        found = self.payloads(ids)
        values = found if field is None else [field_of(payload, field) for payload in found]
        return [" ".join(strings_in(value)) or None for value in values]

    def set_payload(self, ids: Ids, payload: Any) -> None:
        """Set the payloads of points, instead of what they had; None takes them away.

        Parameters
        ----------
        ids : ids
            An id, or a list, range, array or column of ids.
        payload : list of dict, or dict
            A JSON object, or None, for every id; of one id a dict.

        Raises
        ------
        KeyError
            An id that is not in the model; nothing has changed then.

        Examples
        --------
        >>> import tempfile, dynhac
        >>> with tempfile.TemporaryDirectory() as folder, dynhac.open(folder) as model:
        ...     _ = model.insert([[0.0], [1.0]], ids=["a", "b"])
        ...     model.set_payload("a", {"title": "Oil prices", "seen": False})
        ...     model.payloads(["a", "b"])
        [{'title': 'Oil prices', 'seen': False}, None]
        """
        self._store.prepare()
        column = id_column(ids, "ids")
        new = NewPayloads(_plain(column), read_payloads(payload, len(column)))
        with self._engine.lock:
            seen: set[Any] = set()
            for id in new.ids:
                if not self._engine.holds(id):
                    raise unknown_id(id, "ids")
                if id in seen:
                    raise ValueError(f"id {show(id)} is in ids twice; list it once")
                seen.add(id)
            self._store.set_payloads(self, new)  # type: ignore[arg-type]

    def find(
        self,
        text: str | None = None,
        where: Mapping[str, Any] | None = None,
        limit: int | None = 100,
        *,
        within: Ids | None = None,
    ) -> NDArray[Any]:
        """Return the ids of points whose payloads have given words and fields.

        Parameters
        ----------
        text : str, optional
            Words that the strings of a payload must have, all of them, in any order. Capital
            letters and accents make no difference.
        where : dict, optional
            Fields and the values that they must be equal to. A name with dots leads into objects:
            ``{"source.name": "wire"}``.
        limit : int or None, default 100
            How many ids to return at most; None for all.
        within : ids, optional
            Only these points, such as the ``members`` of a cluster.

        Returns
        -------
        ndarray
            The ids; the most relevant first if there is a text, among equals in the order in which
            the payloads were set.

        Raises
        ------
        StoreError
            The SQLite of this Python has no full-text search, and ``text`` is given.

        Examples
        --------
        >>> import tempfile, dynhac
        >>> news = [{"title": "Oil prices fall", "topic": "oil"}, {"title": "Rain", "topic": "oil"}]
        >>> with tempfile.TemporaryDirectory() as folder, dynhac.open(folder) as model:
        ...     _ = model.insert([[0.0], [1.0]], payload=news)
        ...     model.find("oil").tolist(), model.find(where={"topic": "oil"}).tolist()
        ([0, 1], [0, 1])
        >>> with tempfile.TemporaryDirectory() as folder, dynhac.open(folder) as model:
        ...     _ = model.insert([[0.0], [1.0]], payload=news)
        ...     model.find("rain", where={"topic": "oil"}).tolist()
        [1]
        """
        if text is not None and not isinstance(text, str):
            raise wrong_type("text", text, "it must be a str")
        fields: Any = {} if where is None else where
        if not isinstance(fields, Mapping) or not all(isinstance(name, str) for name in fields):
            raise wrong_type("where", where, "it must be a dict of fields and their values")
        most = None if limit is None else whole_number(limit, "limit", 0)
        wanted = {name: scalar(value) for name, value in fields.items()}
        some = None if within is None else set(_plain(id_column(within, "within")))
        holds = self._engine.holds
        with self._payloads() as (table, number):
            matches = (id for id, _ in table.find(text, wanted, number))
            alive = (id for id in matches if (some is None or id in some) and holds(id))
            found: list[Any] = list(islice(alive, most))
        return id_array(found, self._engine.ids.used)

    @contextmanager
    def _payloads(self) -> Iterator[tuple[PayloadReader, int]]:
        """Give the payloads to read, and the number of the last update that counts."""
        try:
            with self._store.reading_payloads() as reading:
                yield reading
        except DATABASE_ERRORS as error:
            raise StoreError(f"the payloads in {self.path} cannot be read: {error}") from error

    def stats(self) -> dict[str, Any]:
        """Return figures about the store: numbers of updates, bytes of log and snapshots."""
        kept = self._store
        return {
            "path": kept.directory,
            "mode": kept.mode,
            "durability": kept.durability,
            "update_number": kept.position.number,
            **kept.stats(),
        }

    @property
    def update_number(self) -> int:
        """How many updates have been made since the store was new.

        Those that changed nothing count too, which they do not for `version`.
        """
        return self._store.position.number

    @property
    def path(self) -> str:
        """The directory of the store."""
        return self._store.directory

    @property
    def durability(self) -> str:
        """When an update counts as written: "full" or "normal"."""
        return self._store.durability

    @property
    def _store(self) -> Writer | Follower:
        store: Writer | Follower = self._writer
        return store

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}; in {self.path!r}>"


class DurableDynHAC(Durable, DynHAC):
    """A `DynHAC` whose updates are on the disk when they return; made by `dynhac.open`."""

    __slots__ = ()

    _copied_as = DynHAC

    def __init__(self, *args: Any, **parameters: Any) -> None:
        _refuse("DurableDynHAC")

    @classmethod
    def load(  # type: ignore[override]
        cls, path: str | os.PathLike[str], **parameters: Any
    ) -> DynHAC:
        """Return the plain model in a file; see `DynHAC.load`."""
        return DynHAC.load(path, **parameters)

    @classmethod
    def _new(cls, parameters: PointParameters) -> Self:
        model = cls.__new__(cls)
        model._create(parameters)
        return model

    def _adopt(self, other: Self) -> None:
        """Take over the state of another model, under the lock."""
        _replace(self._engine, other._engine)
        self._engine = self.graph._engine = other._engine
        self._points = other._points
        self._last_change = None


class DurableGraphHAC(Durable, GraphHAC):
    """A `GraphHAC` whose updates are on the disk when they return; made by `dynhac.open`."""

    __slots__ = ()

    _copied_as = GraphHAC

    def __init__(self, *args: Any, **parameters: Any) -> None:
        _refuse("DurableGraphHAC")

    @classmethod
    def load(  # type: ignore[override]
        cls, path: str | os.PathLike[str], **parameters: Any
    ) -> GraphHAC:
        """Return the plain model in a file; see `GraphHAC.load`."""
        return GraphHAC.load(path, **parameters)

    @classmethod
    def _new(cls, parameters: GraphParameters) -> Self:
        model = cls.__new__(cls)
        model._start(IdEngine(parameters))
        return model

    def _adopt(self, other: Self) -> None:
        """Take over the state of another model, under the lock."""
        _replace(self._engine, other._engine)
        self._engine = other._engine


def _plain(ids: IdColumn) -> list[Any]:
    return ids if isinstance(ids, list) else ids.tolist()


def _stored_update(row: Row) -> StoredUpdate:
    columns = decode(row.payload)
    names = ("add", "remove") if row.op == "graph" else ("ids", "delete")
    inserted, deleted = (columns.get(name, []) for name in names)
    return {"number": row.number, "op": row.op, "inserted": inserted, "deleted": deleted}


def _replace(engine: IdEngine, other: IdEngine) -> None:
    """Give an engine that takes the place of another its lock and guard, and its way to the log."""
    other.lock, other.guard = engine.lock, engine.guard
    other.write_watches = engine.write_watches


def _refuse(name: str) -> NoReturn:
    """Raise for a durable model that is made without its store."""
    raise TypeError(f"{name} is made by dynhac.open(path)")
