"""The nearest vectors of a table on a device: exact, by products in half precision with bounds.

A product of queries and widened vectors has an upper bound of every similarity s (see
`gpu_metrics`). The vectors with the largest bounds, some more than are asked for, are *candidates*.
Their distances are computed in float64, and they are ordered by distance, then by slot. If the
smallest bound among the candidates, which no other vector exceeds, proves that all others are
further away than the k-th nearest, the answer is *proven*. Queries without a proof are searched for
again: with more candidates, then with products in float64, then with ever more candidates, up to
all vectors.

The largest of many numbers in a row are found by groups: with m numbers wanted, these are in the m
groups that have the largest maxima.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.neighbors import gpu_metrics as gm
from dynhac.neighbors.arrays import parts
from dynhac.neighbors.gpu_table import FEW_ROWS, GROUP, HOST
from dynhac.neighbors.metrics import METRICS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac.neighbors.gpu_arrays import Download
    from dynhac.neighbors.gpu_piles import Piles
    from dynhac.neighbors.gpu_table import Table
    from dynhac.neighbors.index import Distances, Ints, Vectors

MORE = 4
"""By how much the number of candidates grows when an answer is not proven."""

MOST_QUERIES = 4096
MOST_PRODUCTS = 2**31 - 1
"""At once. More queries are not faster; more products need positions of 64 bits, and are slower."""

FEW_NUMBERS = 2**24
"""The largest of up to so many numbers are found without groups, which take more calls."""


class Search:
    """Searches in a table, whose slots are those of ``piles``."""

    def __init__(self, table: Table, piles: Piles) -> None:
        self._table = table
        self._piles = piles
        self._members = table.xp.arange(GROUP)  # of a group

    def nearest(self, vectors: Vectors, k: int) -> tuple[Ints, Distances]:
        """Return slots and distances of the ``k`` nearest, as `NeighborIndex.query` does."""
        if self._table.metric != "euclidean" and not vectors.any(axis=1).all():
            return self._nearest_of_zeros(vectors, k)
        self._table.require_fit()
        n, width = len(vectors), min(k, self._table.count)
        slots = np.empty((n, k), np.int64)
        distances = np.empty((n, k))
        slots[:, width:], distances[:, width:] = -1, np.inf
        todo: Ints | None = None  # all
        wanted = k + k // 2 + 16
        precision, tries = gm.HALF, 0
        while todo is None or len(todo):
            queries = vectors if todo is None else vectors[todo]
            find = self._find_few if precision.half and len(queries) <= FEW_ROWS else self._find
            if todo is None:
                proven = find(queries, slots[:, :width], distances[:, :width], wanted, precision)
                todo = np.flatnonzero(~proven)
            else:
                found = np.empty((len(todo), width), np.int64)
                far = np.empty((len(todo), width))
                proven = find(queries, found, far, wanted, precision)
                slots[todo, :width], distances[todo, :width] = found, far
                todo = todo[~proven]
            tries += 1
            if tries >= 2:
                precision = gm.DOUBLE
            if tries != 2:
                wanted *= MORE
        return slots, distances

    def _nearest_of_zeros(self, vectors: Vectors, k: int) -> tuple[Ints, Distances]:
        """Do as `nearest` for vectors some of which are zero: as far from one as from another."""
        zero = ~vectors.any(axis=1)
        first = self._piles.smallest(k)
        slots = np.full((len(vectors), k), -1)
        distances = np.full((len(vectors), k), np.inf)
        slots[zero, : len(first)] = first
        distances[zero, : len(first)] = 1.0 if self._table.metric == "cosine" else 0.0
        if not zero.all():
            slots[~zero], distances[~zero] = self.nearest(vectors[~zero], k)
        return slots, distances

    def _find(
        self,
        vectors: Vectors,
        slots: Ints,
        distances: Distances,
        wanted: int,
        precision: gm.Precision,
    ) -> NDArray[np.bool_]:
        """Write the nearest candidates to ``slots`` and ``distances``; return what is proven.

        They are as many as these have columns.
        """
        proven = np.empty(len(vectors), bool)
        before: tuple[slice, Download] | None = None
        for part in parts(len(vectors), self._queries_at_once(wanted, precision)):
            answer = self._start(vectors[part], slots.shape[1], wanted, precision)
            begun = part, self._table.xp.begin_download(*answer)
            if before is not None:  # the device works on the next part
                slots[before[0]], distances[before[0]], proven[before[0]] = before[1]()
            before = begun
        if before is not None:
            slots[before[0]], distances[before[0]], proven[before[0]] = before[1]()
        return proven | (wanted >= self._table.count)

    def _start(
        self, vectors: Vectors, k: int, wanted: int, precision: gm.Precision
    ) -> tuple[Any, Any, Any]:
        """Begin a search; the answer is on the device."""
        table, xp = self._table, self._table.xp
        scale = table.scale_of(precision)
        queries = gm.prepare(xp, table.metric, xp.upload(vectors))
        formed = table.form(queries)
        wide, scaling = gm.widen_queries(xp, table.metric, formed, scale, precision)
        bounds, rows = self._largest(self._products(wide, precision), wanted)
        limit = xp.least(bounds)
        far = self._distances(queries, rows)
        slots = xp.where(rows < table.count, xp.take_rows(table.slots, rows), -1)
        order = xp.order(slots)
        slots, far = xp.take(slots, order), xp.take(far, order)
        order = xp.order(far)[:, :k]
        slots, far = xp.take(slots, order), xp.take(far, order)
        last = far[:, k - 1]
        return slots, far, gm.excluded(xp, table.metric, formed, limit, scaling, last, precision)

    def _find_few(
        self,
        vectors: Vectors,
        slots: Ints,
        distances: Distances,
        wanted: int,
        precision: gm.Precision,
    ) -> NDArray[np.bool_]:
        """Do as `_find`, with as much as possible on the host."""
        table, xp = self._table, self._table.xp
        k = slots.shape[1]
        queries = table.prepare_here(vectors)
        formed = table.form_here(queries)
        wide, scaling = gm.widen_queries(HOST, table.metric, formed, table.scale, precision)
        bounds, rows = self._largest(self._products(xp.upload(wide), precision), wanted)
        found = xp.take_rows(table.vectors, rows)
        bounds, rows, found = xp.download(bounds, rows, found)
        metric = METRICS[table.metric]
        for i, candidates in enumerate(rows):
            far = metric.pair_distances(np.repeat(queries[i : i + 1], len(candidates), 0), found[i])
            if wanted > table.count:  # there are too few that are in use
                used = candidates < table.count
                candidates, far = candidates[used], far[used]
            own = self._piles.slot_of[candidates]
            order = np.lexsort((own, far))[:k]
            slots[i], distances[i] = own[order], far[order]
        if wanted >= table.count:
            return np.ones(len(rows), bool)
        last, limit = distances[:, k - 1], bounds.min(axis=1)
        proven: NDArray[np.bool_] = gm.excluded(
            HOST, table.metric, formed, limit, scaling, last, precision
        )
        return proven

    def _largest(self, values: Any, count: int) -> tuple[Any, Any]:
        """Return the largest numbers of every row and their positions, in any order."""
        xp = self._table.xp
        n, width = values.shape
        groups = width // GROUP
        if n * width <= FEW_NUMBERS or groups * GROUP != width or groups < 2 * count:
            return xp.largest(values, count)
        maxima = xp.most(values.reshape(n, GROUP, groups), 1)
        best = self._largest(maxima, count)[1]
        members = xp.progressions(best, self._members, groups).reshape(n, -1)
        found, positions = xp.largest(xp.take(values, members), count)
        return found, xp.take(members, positions)

    def _products(self, wide: Any, precision: gm.Precision) -> Any:
        """Return the products of widened queries with all rows, a bound of s each."""
        table, xp = self._table, self._table.xp
        width = table.rows_in_products
        if precision.half:
            return xp.product(wide, table.wide[:width])
        products = xp.empty((len(wide), width), xp.double)
        for part in parts(width, table.vectors_at_once):
            products[:, part] = xp.product(wide, table.widened(part))
        return products

    def _distances(self, queries: Any, rows: Any) -> Any:
        """Return the distances of queries from the vectors in rows; inf for unused rows."""
        table, xp = self._table, self._table.xp
        n, width = rows.shape
        far = xp.empty((n, width), xp.double)
        own = gm.squares(xp, queries)[:, None] if table.metric == "cosine" else None
        queries = xp.cast(queries, xp.double)[:, None]
        at_once = table.vectors_at_once
        for part in parts(n, at_once // width):
            for across in parts(width, at_once):
                chosen = rows[part, across]
                xx = yy = None
                if own is not None:
                    xx, yy = own[part], xp.take_rows(table.squares, chosen)
                y = xp.take_rows(table.vectors, chosen)
                far[part, across] = gm.pair_distances(xp, table.metric, queries[part], y, xx, yy)
        return xp.where(rows < table.count, far, float("inf"))

    def _queries_at_once(self, wanted: int, precision: gm.Precision) -> int:
        """Return how many queries fit into the memory at a time."""
        table = self._table
        number = 2 if precision.half else 8
        width = table.rows_in_products
        each = 2 * number * width + (16 * GROUP + 100) * min(wanted, width) + 64 * table.dimension
        return min(MOST_QUERIES, MOST_PRODUCTS // width, table.memory // each)
