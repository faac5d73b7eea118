"""Exact nearest neighbours in few dimensions: a KD-tree with insertion and deletion.

The tree is compiled; `core/neighbors/kd_tree.h` describes it. Its leaves are blocks of a few dozen
vectors, which are split and rebuilt as vectors are added and removed. It computes the same
distances as `Euclidean`, to the last bit, and breaks ties by slot, so its answers are those of a
scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac._core import KdTree
from dynhac.neighbors.arrays import parts
from dynhac.neighbors.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dynhac.neighbors.index import Distances, Ints, Vectors

MOST_DIMENSIONS = 8
FOUND_AT_ONCE = 2**20
"""Neighbours that one call of the tree searches for; Ctrl-C takes effect between calls."""


class KDBlocksIndex:
    """An exact index for the Euclidean metric in up to 8 dimensions.

    Parameters
    ----------
    dimension : int
        The length of the vectors.
    threads : int, default 1
        Threads that a large query may use. The answers do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.neighbors import KDBlocksIndex
    >>> index = KDBlocksIndex(dimension=1)
    >>> index.add(np.array([0, 1, 2]), np.array([[0.0], [5.0], [6.0]], np.float32))
    >>> slots, distances = index.query(np.array([[5.25]], np.float32), 2)
    >>> slots.tolist(), distances.tolist()
    ([[1, 2]], [[0.25, 0.75]])
    """

    __slots__ = ("_metric", "_tree")

    def __init__(self, dimension: int, *, threads: int = 1) -> None:
        if not 1 <= dimension <= MOST_DIMENSIONS:
            raise ValueError(
                f"neighbors is 'kd', which is for dimensions 1 to {MOST_DIMENSIONS}, and the "
                f"vectors have dimension {dimension}; use 'auto', 'exact' or 'cells'"
            )
        self._metric = METRICS["euclidean"]
        self._tree = KdTree(dimension, threads)

    @property
    def metric(self) -> str:
        """How distance is measured."""
        return self._metric.name

    def __len__(self) -> int:
        return len(self._tree)

    def add(self, slots: Ints, vectors: Vectors) -> None:
        """See `NeighborIndex.add`."""
        self._tree.add(np.ascontiguousarray(slots), self._metric.prepare(vectors))

    def remove(self, slots: Ints) -> None:
        """See `NeighborIndex.remove`."""
        self._tree.remove(np.ascontiguousarray(slots))

    def query(self, vectors: Vectors, k: int) -> tuple[Ints, Distances]:
        """See `NeighborIndex.query`."""
        prepared = self._metric.prepare(vectors)
        if len(prepared) * k <= FOUND_AT_ONCE:
            return self._tree.query(prepared, k)
        slots = np.empty((len(prepared), k), np.int64)
        distances = np.empty((len(prepared), k))
        for part in parts(len(prepared), FOUND_AT_ONCE // k):
            slots[part], distances[part] = self._tree.query(prepared[part], k)
        return slots, distances

    def save(self) -> dict[str, NDArray[Any]]:
        """See `NeighborIndex.save`."""
        slots, vectors = self._tree.points()
        return {"slots": slots, "vectors": vectors}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `NeighborIndex.load`."""
        self.add(arrays["slots"], arrays["vectors"])
