"""Exact nearest neighbours for any metric, by a scan of all distinct vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynhac.neighbors.metrics import Metric, resolve_metric
from dynhac.neighbors.vector_table import VectorTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray


class ExactIndex:
    """An exact index that scans all its vectors.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "inner_product"}, default "euclidean"
        How distance is measured.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.neighbors import ExactIndex
    >>> index = ExactIndex()
    >>> index.add(np.array([0, 1, 2]), np.array([[0.0], [5.0], [6.0]], np.float32))
    >>> slots, distances = index.query(np.array([[5.25]], np.float32), 2)
    >>> slots.tolist(), distances.tolist()
    ([[1, 2]], [[0.25, 0.75]])
    """

    __slots__ = ("_table",)

    def __init__(self, metric: str | Metric = "euclidean") -> None:
        self._table = VectorTable(resolve_metric(metric))

    @property
    def metric(self) -> str:
        """How distance is measured."""
        return self._table.metric.name

    def __len__(self) -> int:
        return len(self._table)

    def add(self, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """See `NeighborIndex.add`."""
        self._table.add(slots, vectors)

    def remove(self, slots: NDArray[np.int64]) -> None:
        """See `NeighborIndex.remove`."""
        self._table.remove(slots)

    def query(
        self, vectors: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """See `NeighborIndex.query`."""
        return self._table.query(vectors, k)

    def save(self) -> dict[str, NDArray[Any]]:
        """See `NeighborIndex.save`."""
        slots, vectors = self._table.vectors()
        return {"slots": slots, "vectors": vectors}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `NeighborIndex.load`."""
        self._table.add_prepared(arrays["slots"], arrays["vectors"])
