"""What can be read of a `DynHAC` beside its hierarchy: vectors, parameters and figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac._core import BatchError, Cells
from dynhac.input.batches import check_id_kind
from dynhac.input.columns import Ids, id_column
from dynhac.input.errors import unknown_id

if TYPE_CHECKING:
    from dynhac._core import PointModel
    from dynhac.models.engine import IdEngine
    from dynhac.models.graph import GraphHAC
    from dynhac.models.parameters import PointParameters
    from dynhac.models.point_change import PointChange
    from dynhac.neighbors import NeighborIndex


class PointReaders:
    """The readers of a model of points."""

    __slots__ = ()

    graph: GraphHAC
    _engine: IdEngine
    _last_change: PointChange | None
    _parameters: PointParameters
    _points: PointModel

    def vectors(self, ids: Ids | None = None) -> NDArray[np.float32]:
        """Return vectors as they are stored, one row per id; those of all points by default.

        Examples
        --------
        >>> from dynhac import DynHAC
        >>> model = DynHAC()
        >>> _ = model.insert([[0.0, 1.0], [2.0, 3.0]], ids=["a", "b"])
        >>> model.vectors("b").tolist()
        [[2.0, 3.0]]
        """
        column = None if ids is None else id_column(ids, "ids")
        with self._engine.lock:
            points = self._points
            if column is not None:
                check_id_kind(points, column, "ids")
            try:
                return points.vectors(column)
            except BatchError as error:
                raise unknown_id(column[error.args[1]], "ids") from None  # type: ignore[index]

    @property
    def timestamps(self) -> NDArray[Any] | None:
        """The timestamps of all points, aligned with ``ids``; None if they have none.

        Examples
        --------
        >>> from dynhac import DynHAC
        >>> model = DynHAC()
        >>> _ = model.insert([[0.0], [1.0]], timestamps=[100, 130])
        >>> model.timestamps.tolist()
        [100, 130]
        """
        with self._engine.lock:
            if self._points.time_kind is None or self._points.dimension is None:
                return None
            _, arrival, _, times, _, _ = self._points.save()
            dates = self._points.time_kind == "date"
        assert times is not None
        used = np.flatnonzero(arrival >= 0)
        ordered = times[used[np.argsort(arrival[used])]]
        return ordered.astype("M8[ns]") if dates else ordered

    @property
    def last_change(self) -> PointChange | None:
        """What the last update did; None before the first."""
        return self._last_change

    @property
    def dimension(self) -> int | None:
        """The dimension of the vectors; None before the first."""
        return self._points.dimension

    @property
    def n_neighbors(self) -> int:
        """How many nearest neighbours a new point is joined to."""
        return self._parameters.n_neighbors

    @property
    def metric(self) -> str:
        """How distance is measured."""
        return self._parameters.metric.name

    @property
    def similarity(self) -> str | tuple[str, float] | Callable[..., Any]:
        """How a distance becomes the weight of an edge: a name, with its parameter, or a function.

        Examples
        --------
        >>> from dynhac import DynHAC
        >>> DynHAC().similarity, DynHAC(similarity=("gaussian", 2.0)).similarity
        ('inverse', ('gaussian', 2.0))
        """
        similarity = self._parameters.similarity
        if similarity.function is not None:
            return similarity.function
        return similarity.name if similarity.sigma is None else (similarity.name, similarity.sigma)

    @property
    def index(self) -> str | NeighborIndex:
        """The parameter ``neighbors``: a name, or an index of your own."""
        return self._parameters.neighbors

    @property
    def repair(self) -> bool:
        """Whether points that deletions leave with few edges are joined anew."""
        return self._parameters.repair

    @property
    def max_points(self) -> int | None:
        """How many points the model holds at most; None if there is no such bound."""
        return self._parameters.max_points

    @property
    def max_age(self) -> int | float | np.timedelta64 | None:
        """The age at which points expire; None if there is no such bound."""
        return self._parameters.public_max_age

    @property
    def backend(self) -> str | None:
        """The index in use: "exact", "kd", "cells", "usearch", "gpu"; None: none, or your own."""
        with self._engine.lock:
            return self._points.backend

    @property
    def recall(self) -> float | None:
        """The share of the nearest neighbours that searches find; None if it is not known.

        1.0 for an exact index. "cells" measures it, on some of the points, as they change.
        """
        with self._engine.lock:
            index = self._points.index
            if isinstance(index, Cells):
                return index.measured_recall
            return 1.0 if self._points.backend in ("exact", "kd") else None

    @property
    def memory(self) -> int:
        """Bytes held by the engine and by the vectors; the neighbour index has its own."""
        with self._engine.lock:
            return self.graph.memory + (self._points.nbytes or 0)
