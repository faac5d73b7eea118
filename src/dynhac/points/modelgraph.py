"""The graph of a model of points: a graph that only its model changes.

Whoever changed it behind the model's back would leave the model with points that are not in its
graph. So updates from outside are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dynhac.errors import Batch
from dynhac.graph import GraphHAC
from dynhac.inputs import NO_IDS, IdColumn

if TYPE_CHECKING:
    from dynhac._core import ChangeData


class ModelGraph(GraphHAC):
    """A graph to read; `DynHAC` changes it."""

    __slots__ = ()

    def update(self, **batch: Any) -> NoReturn:
        """Refuse: only the model changes its graph."""
        raise TypeError(
            "the graph of a DynHAC is there to be read; use the model's insert, delete and update"
        )

    def low_degrees_around(
        self, ids: IdColumn, most: int
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the other ends of all edges at some vertices that have few, and how many."""
        keys, degrees = self._keyed.look_up(
            ids, lambda keys: self._engine.low_degrees_around(keys, most)
        )
        return self._keyed.ids_of(keys), degrees

    def update_with_points(
        self,
        remove: IdColumn,
        add: IdColumn,
        edges: tuple[IdColumn, IdColumn, NDArray[np.float64]],
    ) -> ChangeData:
        """Apply a batch that goes with a change of the points."""
        with self._keyed.lock:
            return self._apply(Batch(remove, add, NO_IDS, NO_IDS, *edges))
