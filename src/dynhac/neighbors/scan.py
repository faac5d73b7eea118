"""Nearest neighbours by looking at every vector: exact, for any metric.

A scan has two steps. Quick float32 keys with bounds of their errors (see `metrics`) leave few
candidates: with t the k-th smallest upper bound, k vectors are certainly within t, so that one
whose lower bound exceeds t is not among the k nearest, nor tied with the last of them. The
candidates' distances in float64 then decide, and slots among equals. So the answer depends on the
vectors held and on nothing else: not on their order, nor on how many queries are asked at once.
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
    """Vectors under slots, in the form that the metric has prepared."""

    __slots__ = ("_additions_left", "_centre", "_metric", "_rows")

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._rows = Rows("norms", "spans")
        # Where the vectors lie around: their mean, taken anew after as many additions as there were
        # vectors. Answers do not depend on it.
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
        """Return the distance of ``queries[rows[i]]`` from the vector of ``slots[i]``, each i."""
        columns = self._rows.row_of[slots]
        return self._metric.distances_at(queries, rows, self._rows.vectors, columns)

    def remove(self, slots: NDArray[np.int64]) -> None:
        """Forget slots that are held."""
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
        """Return pairs (query, slot): the ``k`` nearest of every query, ties with them, and more.

        Takes memory for every query and vector.
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
            # Not "<=": where float32 overflowed there is nan, and nothing may be ruled out.
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
    """Write the nearest of the candidates of every row, ascending by (distance, slot).

    ``rows`` tells for which row of ``slots`` and ``distances`` a candidate is; ``found`` and
    ``exact`` are its slot and distance.
    """
    if len(rows) == 0:
        return
    m, k = slots.shape
    counts = np.bincount(rows, minlength=m)
    width = int(counts.max())
    if m * width > 2 * len(rows) or m == 1:  # rows of very different lengths, or nothing to gain
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
