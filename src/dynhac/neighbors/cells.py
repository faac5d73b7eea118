"""Approximate nearest neighbours among many vectors: cells of near vectors.

The cells are compiled; `core/neighbors/cells.h` describes them. A search examines the cells that
most probably have the nearest vectors, as many as the wanted recall needs: that is learned from
some of the vectors of the index, which are compared with a scan of all as the index changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac._core import Cells
from dynhac.input.columns import real_number
from dynhac.neighbors.metrics import resolve_metric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dynhac.neighbors.index import Distances, Ints, Vectors
    from dynhac.neighbors.metrics import Metric

RECALL = 0.995


class CellsIndex:
    """An approximate index for many vectors.

    Distances are exact, and a vector that is held finds itself. A few of the k nearest may be
    missing, with farther vectors instead.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "inner_product"}
        How distance is measured.
    dimension : int
        The length of the vectors.
    recall : float, default 0.995
        The share of the nearest vectors that searches are to find, > 0 and <= 1. With 1 all are
        found: a cell is left out only if the triangle inequality proves that it has none of them.
    threads : int, default 1
        Threads that a large call may use. Answers do not depend on it.

    Attributes
    ----------
    recall : float
        The parameter.
    measured_recall : float
        The share of the 32 nearest that searches find, of a sample of vectors of the index.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.neighbors import CellsIndex
    >>> index = CellsIndex("euclidean", dimension=1)
    >>> index.add(np.array([0, 1, 2]), np.array([[0.0], [5.0], [6.0]], np.float32))
    >>> slots, distances = index.query(np.array([[5.25]], np.float32), 2)
    >>> slots.tolist(), distances.tolist()
    ([[1, 2]], [[0.25, 0.75]])
    """

    __slots__ = ("_cells", "_metric", "_settings", "recall")

    def __init__(
        self,
        metric: str | Metric,
        dimension: int,
        *,
        recall: float = RECALL,
        threads: int = 1,
    ) -> None:
        self._metric = resolve_metric(metric)
        self.recall = checked_recall(recall)
        self._settings = dimension, threads
        self._cells = self.new_cells()

    @property
    def metric(self) -> str:
        """How distance is measured."""
        return self._metric.name

    @property
    def measured_recall(self) -> float:
        """The share of the nearest that searches find, of a sample of vectors of the index."""
        return self._cells.measured_recall

    def new_cells(self) -> Cells:
        """Return the compiled part of an index like this one, which is empty."""
        dimension, threads = self._settings
        return Cells(self.metric, dimension, self.recall, threads)

    def __len__(self) -> int:
        return len(self._cells)

    def add(self, slots: Ints, vectors: Vectors) -> None:
        """See `NeighborIndex.add`."""
        self._cells.add(np.ascontiguousarray(slots), np.ascontiguousarray(vectors, np.float32))

    def remove(self, slots: Ints) -> None:
        """See `NeighborIndex.remove`."""
        self._cells.remove(np.ascontiguousarray(slots))

    def query(self, vectors: Vectors, k: int) -> tuple[Ints, Distances]:
        """See `NeighborIndex.query`."""
        return self._cells.query(np.ascontiguousarray(vectors, np.float32), k)

    def save(self) -> dict[str, NDArray[Any]]:
        """See `NeighborIndex.save`."""
        arrays = self._cells.save()
        return arrays | {"vectors": self._cells.vectors_of(arrays["slots"])}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `NeighborIndex.load`; ValueError: it is not the state of an index.

        The index must have the metric, the dimension and the recall of the saved one.
        """
        cells = self.new_cells()
        cells.load(dict(arrays), arrays["slots"], arrays["vectors"])
        self._cells = cells

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, (self.metric, *self._settings, self.recall, self.save())


def checked_recall(recall: object) -> float:
    """Return the parameter as a float; raise if it is not right."""
    number = real_number(recall, "recall")
    if not 0 < number <= 1:
        raise ValueError(f"recall is {number}; it must be > 0 and <= 1")
    return number


def _loaded(
    metric: str, dimension: int, threads: int, recall: float, arrays: Mapping[str, NDArray[Any]]
) -> CellsIndex:
    """Return an index with a saved state, for pickle."""
    index = CellsIndex(metric, dimension, recall=recall, threads=threads)
    index.load(arrays)
    return index
