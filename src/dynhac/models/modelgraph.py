"""The graph of a model of points: a graph that only its model changes.

Whoever changed it behind the model's back would leave the model with points that are not in its
graph. So updates from outside are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dynhac.input.columns import IdColumn
from dynhac.models.graph import GraphHAC
from dynhac.models.names import UNKNOWN_KEY

if TYPE_CHECKING:
    from dynhac._core import BatchError, ChangeData, Engine, PointTable, PointUpdater, ReentryGuard


class ModelGraph(GraphHAC):
    """A graph to read; `DynHAC` changes it."""

    __slots__ = ()

    def update(self, **batch: Any) -> NoReturn:
        """Refuse: only the model changes its graph."""
        raise TypeError(
            "the graph of a DynHAC is there to be read; use the model's insert, delete and update"
        )

    def keys_of(self, ids: IdColumn) -> NDArray[np.int64]:
        """Return the keys of ids; of those that have none something that is not in use."""
        if not isinstance(ids, list):
            return ids
        names = self._keyed.names
        return np.full(len(ids), UNKNOWN_KEY) if names is None else names.keys(ids)

    def ids_of(self, keys: NDArray[np.int64]) -> IdColumn:
        """Return the ids of keys."""
        names = self._keyed.names
        return keys if names is None or not len(keys) else names.ids(keys).tolist()

    def has_vertices(self, keys: NDArray[np.int64], text: bool) -> bool:
        """Whether these are its vertices, in order of insertion, and their ids of this kind."""
        keyed = self._keyed
        kind = text == (keyed.names is not None) or not len(keys)
        return kind and np.array_equal(keys, keyed.engine.keys())

    @property
    def engine(self) -> Engine:
        """What keeps the hierarchy."""
        return self._keyed.engine

    def claim(self, id: str) -> int:
        """Return the key of an id, a new one if it has none."""
        names = self._keyed.names
        assert names is not None
        return names.claim(id)

    def doubt(self, id: str) -> int:
        """Return the key of an id that may soon be gone; one not in use if it has none."""
        names = self._keyed.names
        assert names is not None
        return names.doubt(id)

    def let_go(self, keys: NDArray[np.int64]) -> list[str]:
        """Return the ids of keys that may soon be gone."""
        names = self._keyed.names
        assert names is not None
        ids: list[str] = names.ids(keys).tolist()
        names.suspect(ids)
        return ids

    # Updates: under the lock of the model, which is that of the graph.

    def finish(self, updater: PointUpdater, table: PointTable, ids: IdColumn) -> ChangeData:
        """Let table and graph take an update, its new points under these ids."""
        data = self._keyed.update_points(updater, table, ids)
        self._cache = None
        return data

    def follow(self, inserted: object) -> None:
        """After an update that an updater has made by itself: of this new id, or a deletion."""
        self._keyed.tidy_up(inserted)

    def forget_view(self) -> None:
        """After such an update: the dendrogram that is kept is an old one."""
        self._cache = None

    @property
    def guard(self) -> ReentryGuard:
        """Held while the model is updated or saved."""
        return self._keyed.guard

    def explained(
        self, error: BatchError, updater: PointUpdater, table: PointTable, ids: IdColumn
    ) -> Exception:
        """Return the exception for an update that the engine rejected."""
        return self._keyed.explained(error, updater, table, ids)
