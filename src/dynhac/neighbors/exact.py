"""Exact nearest neighbours for any metric, by a scan of all distinct vectors.

The scan is compiled; `core/neighbors/scan.h` describes it. It reads one byte per number, computes a
lower bound of every distance from these, and then the distances of the few vectors that the bounds
do not exclude.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac._core import Scan
from dynhac.neighbors.metrics import resolve_metric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dynhac.neighbors.index import Distances, Ints, Vectors
    from dynhac.neighbors.metrics import Metric


class ExactIndex:
    """An exact index that scans small codes of all its vectors.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "inner_product"}, default "euclidean"
        How distance is measured.
    threads : int, default 1
        Threads that a large call may use. Answers do not depend on it.

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

    __slots__ = ("_metric", "_scan", "_threads")

    def __init__(self, metric: str | Metric = "euclidean", *, threads: int = 1) -> None:
        self._metric = resolve_metric(metric)
        self._threads = threads
        self._scan: Scan | None = None  # before the first addition

    @property
    def metric(self) -> str:
        """How distance is measured."""
        return self._metric.name

    def new_scan(self, dimension: int) -> Scan:
        """Return the compiled part of an index like this one, which is empty."""
        return Scan(self.metric, dimension, self._threads)

    def __len__(self) -> int:
        return 0 if self._scan is None else len(self._scan)

    def add(self, slots: Ints, vectors: Vectors) -> None:
        """See `NeighborIndex.add`."""
        rows = np.ascontiguousarray(vectors, np.float32)
        if not self._scan:  # none, or an empty one, which may be of another dimension
            self._scan = self.new_scan(rows.shape[1])
        self._scan.add(np.ascontiguousarray(slots), rows)

    def remove(self, slots: Ints) -> None:
        """See `NeighborIndex.remove`."""
        (self._scan or self.new_scan(1)).remove(np.ascontiguousarray(slots))

    def query(self, vectors: Vectors, k: int) -> tuple[Ints, Distances]:
        """See `NeighborIndex.query`."""
        rows = np.ascontiguousarray(vectors, np.float32)
        return (self._scan or self.new_scan(rows.shape[1])).query(rows, k)

    def save(self) -> dict[str, NDArray[Any]]:
        """See `NeighborIndex.save`."""
        slots, vectors = (self._scan or self.new_scan(1)).points()
        return {"slots": slots, "vectors": vectors}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `NeighborIndex.load`."""
        self.add(arrays["slots"], arrays["vectors"])
