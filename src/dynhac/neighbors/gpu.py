"""Exact nearest neighbours on a GPU.

`GpuIndex` keeps the slots (`gpu_piles`) and the rows of the table on the device (`gpu_table`) in
step. `gpu_search` finds the nearest, with the bounds of `gpu_metrics`; `gpu_arrays` has the
operations on arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.input.columns import whole_number
from dynhac.neighbors.gpu_arrays import arrays_of
from dynhac.neighbors.gpu_piles import Piles
from dynhac.neighbors.gpu_search import Search
from dynhac.neighbors.gpu_table import Table
from dynhac.neighbors.metrics import resolve_metric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dynhac.neighbors.index import Distances, Ints, Vectors
    from dynhac.neighbors.metrics import Metric


class GpuIndex:
    """An exact index on a GPU, of the extra ``dynhac[gpu]``.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "inner_product"}
        How distance is measured.
    dimension : int
        The length of the vectors.
    arrays : {"auto", "torch", "cupy", "torch-cpu", "numpy"}, default "auto"
        What computes: PyTorch or CuPy on a GPU, whichever there is; PyTorch or NumPy on the
        processor, which is slow, to try the index without a GPU.
    memory : int, optional
        The bytes of device memory that a search takes beside the vectors; by default a quarter of
        those that are free, but 64 MiB to 16 GiB. A vector takes about 6 bytes per dimension and
        40 more.

    Attributes
    ----------
    intact : bool
        Whether the index holds what it was told to hold. False during a change, and for good after
        a change that failed half-way.
    rows_at_once : int
        How many vectors a model searches for in one call; between calls it reports progress.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.neighbors import GpuIndex
    >>> index = GpuIndex("euclidean", 1, arrays="numpy")
    >>> index.add(np.array([0, 1, 2]), np.array([[0.0], [5.0], [6.0]], np.float32))
    >>> slots, distances = index.query(np.array([[5.25]], np.float32), 2)
    >>> slots.tolist(), distances.tolist()
    ([[1, 2]], [[0.25, 0.75]])
    """

    rows_at_once = 16_384

    def __init__(
        self,
        metric: str | Metric,
        dimension: int,
        *,
        arrays: str = "auto",
        memory: int | None = None,
    ) -> None:
        self._metric = resolve_metric(metric)
        self._arrays = arrays
        self._memory = None if memory is None else whole_number(memory, "memory", 1)
        self._xp = arrays_of(arrays)
        dimension = whole_number(dimension, "dimension", 1)
        self._table = Table(self._xp, self._metric.name, dimension, self._memory)
        self._piles = Piles()
        with self._xp.memory_errors():
            self._search = Search(self._table, self._piles)
        self.intact = True

    @property
    def metric(self) -> str:
        """How distance is measured."""
        return self._metric.name

    @property
    def device(self) -> str:
        """What computes, and where."""
        return self._xp.name

    def __len__(self) -> int:
        return self._piles.count

    def add(self, slots: Ints, vectors: Vectors) -> None:
        """See `NeighborIndex.add`.

        Raises
        ------
        MemoryError
            The device has too little memory. Nothing has changed then, unless `intact` is False.
        """
        self._add(slots, vectors, prepared=False)

    def _add(self, slots: Ints, vectors: Vectors, *, prepared: bool) -> None:
        self._piles.check_new(slots)
        if not len(slots):
            return
        vectors = np.ascontiguousarray(vectors, np.float32)
        if vectors.shape[1] != self._table.dimension:
            raise ValueError(
                f"the vectors have dimension {vectors.shape[1]}; the index has dimension "
                f"{self._table.dimension}"
            )
        table, piles = self._table, self._piles
        first, new = table.count, len(slots)
        with self._xp.memory_errors():
            table.reserve(first + new)
            try:
                hashes = table.write(vectors, prepared=prepared)
                places, rows = piles.equals(hashes, first)
                equal = table.equal_rows(first + places, rows)
                table.name_new(slots)
            except BaseException:
                table.drop_new(new)
                raise
            self.intact = False
            table.count += new
            self._close_gaps(piles.add(slots, hashes, first, places[equal], places[~equal]))
            self.intact = True

    def remove(self, slots: Ints) -> None:
        """See `NeighborIndex.remove`."""
        self._piles.check_held(slots)
        with self._xp.memory_errors():
            self.intact = False
            gaps, renamed = self._piles.remove(slots)
            self._table.rename(renamed, self._piles.slot_of[renamed])
            self._close_gaps(gaps)
            self.intact = True

    def query(self, vectors: Vectors, k: int) -> tuple[Ints, Distances]:
        """See `NeighborIndex.query`.

        Raises
        ------
        MemoryError
            The device has too little memory.
        """
        vectors = np.ascontiguousarray(vectors, np.float32)
        if not len(self) or not k or not len(vectors):
            return np.full((len(vectors), k), -1, np.int64), np.full((len(vectors), k), np.inf)
        with self._xp.memory_errors():
            if k > self._piles.reach:
                self._extend_reach(k)
            return self._search.nearest(vectors, k)

    def save(self) -> dict[str, NDArray[Any]]:
        """See `NeighborIndex.save`; the vectors are prepared ones, for the metric."""
        slots, rows = self._piles.held()
        return {"slots": slots, "vectors": self._table.vectors_of(rows)}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `NeighborIndex.load`."""
        self._add(arrays["slots"], arrays["vectors"], prepared=True)

    def __reduce__(self) -> tuple[Any, ...]:
        settings = (self.metric, self._table.dimension, self._arrays, self._memory)
        return _loaded, (*settings, self.save())

    def _close_gaps(self, gaps: Ints) -> None:
        if len(gaps):
            self._piles.move(*self._table.close_gaps(gaps))

    def _extend_reach(self, k: int) -> None:
        """Show as many slots of every pile as a search for ``k`` needs."""
        slots, sources = self._piles.surfacing(k)
        table = self._table
        table.reserve(table.count + len(slots))
        table.copy_rows(sources)
        table.name_new(slots)
        self._piles.surface(k, slots, table.count)
        table.count += len(slots)


def _loaded(
    metric: str, dimension: int, arrays: str, memory: int | None, state: dict[str, NDArray[Any]]
) -> GpuIndex:
    """Return an index with a saved state, for pickle."""
    index = GpuIndex(metric, dimension, arrays=arrays, memory=memory)
    index.load(state)
    return index
