"""Vectors in rows on a device, exact and widened for products.

Rows 0 to ``count`` - 1 are in use, in no particular order: a removal moves rows from the end into
the gaps. The arrays have more rows; they grow by half, one after the other, so that the device
never holds all vectors twice. Rows that are not in use are marked as such in the widened vectors.

Widened vectors lie around a centre and have a scale (see `gpu_metrics`). These *fit* while no new
vector is too long for the scale and the vectors added since are not more than there were. Answers
do not depend on them.

New rows are written behind those in use, and belong to the table only once `count` is raised: until
then nothing has changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.neighbors import gpu_metrics as gm
from dynhac.neighbors.arrays import parts
from dynhac.neighbors.gpu_arrays import Arrays
from dynhac.neighbors.gpu_piles import hash_weights, hashes_of
from dynhac.neighbors.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from dynhac.neighbors.index import Ints, Vectors

GROUP = 32
"""Largest numbers are found among the largest of groups of this size; see `gpu_search`."""

ROWS_TOGETHER = GROUP * GROUP
"""The number of rows in products is a multiple of it."""

LEAST_MEMORY, MOST_MEMORY = 2**26, 2**34
"""Bytes that computing takes beside the vectors: a quarter of those that are free, within these."""

BYTES_OF_NUMBER = 48
"""What an exact distance takes per number of a vector, in float64 and for some copies."""

MOST_NUMBERS = 2**25
"""More numbers at once are not faster."""

FEW_ROWS = 8
"""Up to this many vectors are prepared and widened on the host, with fewer calls of the device."""

HOST = Arrays()


class Table:
    """Vectors by row, in the form that `gpu_metrics.prepare` gives them."""

    def __init__(self, xp: Arrays, metric: str, dimension: int, memory: int | None) -> None:
        self.xp = xp
        self.metric = metric
        self.dimension = dimension
        self.count = 0
        self.scale = 1.0
        self.centre: Any = None  # float64, on the device; None before the first fit
        self._centre_here: NDArray[np.float64] = np.zeros(dimension)  # on the host
        self._additions_left = -1  # until the fit is renewed; -1 if there is none
        self.width = gm.width_of(dimension, gm.HALF)
        self.vectors: Any = None
        self.wide: Any = None
        self.squares: Any = None  # of lengths, for metric "cosine"
        self.slots: Any = None
        self._weights = hash_weights(dimension)
        self._capacity = 0
        self._own_memory = memory
        self.memory = LEAST_MEMORY if memory is None else memory  # for computing, in bytes

    @property
    def rows_in_products(self) -> int:
        """The number of rows that products have: those in use and some that are not."""
        return -(-self.count // ROWS_TOGETHER) * ROWS_TOGETHER

    def scale_of(self, precision: gm.Precision) -> float:
        """Return the scale of widened vectors."""
        return self.scale if precision.half else 1.0

    def reserve(self, count: int) -> None:
        """Make room for this many rows in all."""
        if count <= self._capacity:
            return
        xp = self.xp
        count = max(count, self._capacity + self._capacity // 2)
        capacity = -(-count // ROWS_TOGETHER) * ROWS_TOGETHER
        self.vectors = self._longer(self.vectors, (capacity, self.dimension), xp.single)
        wide = self._longer(self.wide, (capacity, self.width), xp.half)
        self._mark_unused(wide, self.count, capacity)
        self.wide = wide
        self.slots = self._longer(self.slots, (capacity,), xp.integer)
        if self.metric == "cosine":
            self.squares = self._longer(self.squares, (capacity,), xp.double)
        self._capacity = capacity
        if self._own_memory is None:
            self.memory = min(max(xp.free_memory() // 4, LEAST_MEMORY), MOST_MEMORY)

    def write(self, vectors: Vectors, *, prepared: bool = False) -> Ints:
        """Write vectors behind the rows in use; return their hashes.

        Vectors that are ``prepared`` already are written as they are: scaled to length 1 twice,
        some would change in the last bit.
        """
        if len(vectors) <= FEW_ROWS and self._additions_left >= len(vectors) and not prepared:
            return self._write_few(vectors)
        hashes = self._write_many(vectors, prepared)
        self._fit(len(vectors))
        return hashes

    def _write_few(self, vectors: Vectors) -> Ints:
        new = self.prepare_here(vectors)
        rows = slice(self.count, self.count + len(new))
        self.xp.put(self.vectors[rows], new)
        if self.metric == "cosine":
            self.xp.put(self.squares[rows], 0.0 - METRICS["inner_product"].pair_distances(new, new))
        formed = self.form_here(new)
        if gm.lengths_of(HOST, formed).max() * self.scale > gm.LONGEST:
            self._fit(len(new))
        else:
            wide = gm.widen(HOST, self.metric, formed, self.scale, gm.HALF)
            self.xp.put(self.wide[rows], wide)
            self._additions_left -= len(new)
        hashes: Ints = hashes_of(HOST, new, self._weights)
        return hashes

    def _write_many(self, vectors: Vectors, prepared: bool) -> Ints:
        xp, first = self.xp, self.count
        hashes = np.empty(len(vectors), np.int64)
        weights = xp.upload(self._weights)
        for part in self._parts(len(vectors)):
            rows = slice(first + part.start, first + min(part.stop, len(vectors)))
            new = xp.upload(np.ascontiguousarray(vectors[part]))
            if not prepared:
                new = gm.prepare(xp, self.metric, new)
            self.vectors[rows] = new
            if self.metric == "cosine":
                self.squares[rows] = gm.squares(xp, new)
            hashes[part] = xp.download(hashes_of(xp, new, weights))[0]
        return hashes

    def _fit(self, new: int) -> None:
        """Widen new rows that were written, all rows if the fit must be renewed."""
        first, end = self.count, self.count + new
        if self._additions_left >= new and self._widen(first, end):
            self._additions_left -= new
            return
        self._fit_all(end)

    def require_fit(self) -> None:
        """Fit all rows if that failed half-way."""
        if self._additions_left < 0:
            self._fit_all(self.count)

    def _fit_all(self, end: int) -> None:
        self._additions_left = -1  # until it is done
        self._find_centre(end)
        self._find_scale(end)
        self._widen(0, end)
        self._additions_left = end

    def drop_new(self, new: int) -> None:
        """Give up rows that were written behind those in use."""
        self._mark_unused(self.wide, self.count, self.count + new)

    def close_gaps(self, gaps: Ints) -> tuple[Ints, Ints]:
        """Remove rows; return which rows have got the vectors of which other rows."""
        xp = self.xp
        count = self.count - len(gaps)
        stays = np.ones(len(gaps), bool)  # for the rows from count on
        stays[gaps[gaps >= count] - count] = False
        movers, gaps = count + np.flatnonzero(stays), gaps[gaps < count]
        for part in self._parts(len(gaps)):
            source, target = xp.upload(movers[part]), xp.upload(gaps[part])
            for array in (self.vectors, self.wide, self.slots, self.squares):
                if array is not None:
                    array[target] = array[source]
        self._mark_unused(self.wide, count, self.count)
        self.count = count
        return gaps, movers

    def name_new(self, slots: Ints) -> None:
        """Set the slots of new rows behind those in use."""
        self.xp.put(self.slots[self.count : self.count + len(slots)], slots)

    def rename(self, rows: Ints, slots: Ints) -> None:
        """Set the slots of rows."""
        if len(rows):
            self.slots[self.xp.upload(rows)] = self.xp.upload(slots)

    def copy_rows(self, rows: Ints) -> None:
        """Write copies of rows behind the rows in use."""
        for part in self._parts(len(rows)):
            source = self.xp.upload(rows[part])
            target = slice(self.count + part.start, self.count + min(part.stop, len(rows)))
            for array in (self.vectors, self.wide, self.squares):
                if array is not None:
                    array[target] = array[source]

    def vectors_of(self, rows: Ints) -> Vectors:
        """Return vectors on the host."""
        found = np.empty((len(rows), self.dimension), np.float32)
        for part in self._parts(len(rows)):
            (found[part],) = self.xp.download(self.vectors[self.xp.upload(rows[part])])
        return found

    def equal_rows(self, a: Ints, b: Ints) -> NDArray[np.bool_]:
        """Return which rows ``a`` have the same vector as the rows ``b``."""
        xp = self.xp
        equal = np.empty(len(a), bool)
        for part in self._parts(len(a)):
            x, y = (self.vectors[xp.upload(rows[part])] for rows in (a, b))
            (equal[part],) = xp.download(xp.every(x == y))
        return equal

    def widened(self, rows: slice) -> Any:
        """Return rows widened in float64."""
        xp = self.xp
        stop = min(rows.stop, self.rows_in_products)
        wide = xp.empty((stop - rows.start, self.dimension + gm.EXTRA), xp.double)
        wide[:] = 0.0
        wide[:, self.dimension + gm.UNUSED] = 1.0
        used = min(stop, self.count) - rows.start
        if used > 0:
            formed = self.form(self.vectors[rows.start : rows.start + used])
            wide[:used] = gm.widen(xp, self.metric, formed, 1.0, gm.DOUBLE)
        return wide

    def form(self, vectors: Any) -> Any:
        """Return f of prepared vectors."""
        return gm.form(self.xp, self.metric, vectors, self.centre)

    def prepare_here(self, vectors: Vectors) -> Vectors:
        """Return what `gpu_metrics.prepare` returns, on the host."""
        prepared: Vectors = METRICS[self.metric].prepare(vectors) + np.float32(0.0)
        return prepared

    def form_here(self, vectors: Vectors) -> NDArray[np.float64]:
        """Return f of prepared vectors, on the host."""
        formed: NDArray[np.float64] = gm.form(HOST, self.metric, vectors, self._centre_here)
        return formed

    def _widen(self, first: int, end: int) -> bool:
        """Widen rows; return False, with nothing changed in use, if one is too long."""
        xp = self.xp
        for part in self._parts(end - first):
            rows = slice(first + part.start, min(first + part.stop, end))
            formed = self.form(self.vectors[rows])
            if first:  # later than the scale was found
                longest = xp.most(gm.lengths_of(xp, formed)[None], 1)
                if float(xp.download(longest)[0][0]) * self.scale > gm.LONGEST:
                    return False
            self.wide[rows] = gm.widen(xp, self.metric, formed, self.scale, gm.HALF)
        return True

    def _find_centre(self, end: int) -> None:
        xp = self.xp
        total = np.zeros(self.dimension)
        if self.metric == "euclidean":
            for part in self._parts(end):
                rows = xp.cast(self.vectors[part.start : min(part.stop, end)], xp.double)
                total += xp.download(xp.total(rows, 0))[0]
        self._centre_here = total / max(1, end)
        self.centre = xp.upload(self._centre_here)

    def _find_scale(self, end: int) -> None:
        xp = self.xp
        longest = 0.0
        for part in self._parts(end):
            formed = self.form(self.vectors[part.start : min(part.stop, end)])
            found = xp.download(xp.most(gm.lengths_of(xp, formed)[None], 1))[0][0]
            longest = max(longest, float(found))
        assert gm.HALF.length is not None
        self.scale = gm.HALF.length / longest if longest > 0.0 else 1.0

    def _mark_unused(self, wide: Any, first: int, end: int) -> None:
        wide[first:end] = 0.0
        wide[first:end, self.dimension + gm.UNUSED] = 1.0

    def _longer(self, array: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        longer = self.xp.empty(shape, dtype)
        if array is not None:
            longer[: self.count] = array[: self.count]
        longer[self.count :] = 0
        return longer

    @property
    def vectors_at_once(self) -> int:
        """How many vectors are processed in float64 at a time."""
        return min(self.memory // BYTES_OF_NUMBER, MOST_NUMBERS) // self.dimension

    def _parts(self, count: int) -> Iterator[slice]:
        return parts(count, self.vectors_at_once)
