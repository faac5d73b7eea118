"""Exact nearest neighbours for any metric, by a scan of all distinct vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynhac.neighbors.vector_index import VectorIndex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dynhac.neighbors.metrics import Metric


class ExactIndex(VectorIndex):
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

    __slots__ = ()

    def __init__(self, metric: str | Metric = "euclidean") -> None:
        super().__init__(metric)

    def save(self) -> dict[str, NDArray[Any]]:
        """See `NeighborIndex.save`."""
        slots, keys = self._keys.held()
        return {"slots": slots, "vectors": self._distinct.vectors_of(keys)}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `NeighborIndex.load`."""
        self._add(arrays["slots"], arrays["vectors"])
