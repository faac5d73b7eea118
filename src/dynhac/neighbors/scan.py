"""Exact nearest neighbours for any metric, by a scan of all vectors.

A scan has two steps. First, fast float32 keys with error bounds (see `metrics`) select a few
candidates: with t the k-th smallest upper bound, at least k vectors are within t. So a vector whose
lower bound exceeds t is not among the k nearest, nor tied with the last of them. Second, the
candidates are ordered by float64 distance, then by slot. So the answer depends only on the vectors
held: not on their order, nor on how many queries are made at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynhac.neighbors.metrics import Scanned, lengths
from dynhac.neighbors.rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac.neighbors.metrics import Metric


class Scan:
    """Vectors by slot, in the form that `Metric.prepare` gives them."""

    __slots__ = ("_additions_left", "_centre", "_metric", "_rows")

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._rows = Rows("norms", "spans")
        # The mean of the vectors, computed again when the number of vectors added since exceeds
        # their number then. Answers do not depend on it.
        self._centre: NDArray[np.float32] = np.zeros(0, np.float32)
        self._additions_left = 0

    def __len__(self) -> int:
        return self._rows.count

    def vectors_of(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of slots that are held."""
        return self._rows.vectors[self._rows.row_of[slots]]

    def distances_at(
        self, queries: NDArray[np.float32], rows: NDArray[np.int64], slots: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the distances of ``queries[rows[i]]`` from the vector of ``slots[i]``."""
        columns = self._rows.row_of[slots]
        return self._metric.distances_at(queries, rows, self._rows.vectors, columns)

    def remove(self, slots: NDArray[np.int64]) -> None:
        """Remove slots that are held."""
        self._rows.delete(slots)

    def add(self, slots: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors under slots that are not held."""
        if len(slots) == 0:
            return
        norms = lengths(vectors)
        if not self._metric.needs_centre(vectors.shape[1]):
            self._rows.append(slots, vectors=vectors, norms=norms)
            return
        self._additions_left -= len(slots)
        if self._additions_left >= 0 and self._rows.count:
            spans = lengths(vectors, self._centre)
            self._rows.append(slots, vectors=vectors, norms=norms, spans=spans)
        else:
            self._rows.append(slots, vectors=vectors, norms=norms)
            self._centre = self._rows.vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
            self._rows["spans"][:] = lengths(self._rows.vectors, self._centre)
            self._additions_left = self._rows.count

    def candidates(
        self, queries: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return pairs (query, slot) that include the ``k`` nearest of every query and all ties.

        Takes memory proportional to the number of queries times the number of vectors.
        """
        n = self._rows.count
        if k >= n:
            return np.repeat(np.arange(len(queries)), n), np.tile(self._rows.slots, len(queries))
        norms, spans = self._rows["norms"], self._rows["spans"]
        scanned = Scanned(self._rows.vectors, norms, spans, self._centre)
        with np.errstate(all="ignore"):
            keys, error = self._metric.keys(queries, scanned)
            upper = keys + error
            upper.partition(k - 1, axis=1)
            keys -= error
            # Not "<=": float32 overflow gives nan, where no vector may be excluded.
            within = ~(keys > upper[:, k - 1, None])
        rows, columns = np.divmod(np.flatnonzero(within), n)
        return rows, self._rows.slots[columns]


def fill_nearest(
    slots: NDArray[np.int64],
    distances: NDArray[np.float64],
    rows: NDArray[np.int64],
    found: NDArray[np.int64],
    exact: NDArray[np.float64],
) -> None:
    """Write the nearest candidates of every row to ``slots`` and ``distances``.

    They ascend by (distance, slot). Candidate i belongs to row ``rows[i]`` and has slot
    ``found[i]`` and distance ``exact[i]``.
    """
    if len(rows) == 0:
        return
    m, k = slots.shape
    counts = np.bincount(rows, minlength=m)
    width = int(counts.max())
    if m * width > 2 * len(rows) or m == 1:  # one row, or rows of very different lengths
        order = np.lexsort((found, exact, rows))
        rows = rows[order]
        rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
        within = rank < k
        order, rows, rank = order[within], rows[within], rank[within]
        slots[rows, rank] = found[order]
        distances[rows, rank] = exact[order]
        return
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    by_row = np.full((m, width), -1, np.int64)
    far = np.full((m, width), np.inf)
    by_row[rows, rank] = found[order]
    far[rows, rank] = exact[order]
    order = np.argsort(far, axis=1)
    by_row, far = np.take_along_axis(by_row, order, 1), np.take_along_axis(far, order, 1)
    tied = ((far[:, 1:] == far[:, :-1]) & (by_row[:, 1:] >= 0)).any(axis=1)
    order = np.lexsort((by_row[tied], far[tied]), axis=1)
    by_row[tied] = np.take_along_axis(by_row[tied], order, 1)
    width = min(k, width)
    slots[:, :width] = by_row[:, :width]
    distances[:, :width] = far[:, :width]
