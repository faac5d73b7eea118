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
from dynhac.neighbors.gpu_table import FEW_ROWS, GROUP, HOST, NUMBERS_AT_ONCE
from dynhac.neighbors.metrics import METRICS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac.neighbors.gpu_arrays import Arrays
    from dynhac.neighbors.gpu_piles import Piles
    from dynhac.neighbors.gpu_table import Table
    from dynhac.neighbors.index import Distances, Ints, Vectors

MORE = 4
"""By how much the number of candidates grows when an answer is not proven."""

MOST_QUERIES = 4096
"""More at once are not faster."""

LEAST_MEMORY, MOST_MEMORY = 2**26, 2**34
"""Bytes that a search takes beside the vectors: a quarter of those that are free, within these."""


def largest(xp: Arrays, values: Any, count: int) -> Any:
    """Return the positions of the largest numbers of every row, in any order."""
    n, width = values.shape
    groups = width // GROUP
    if groups * GROUP != width or groups < 2 * count:
        return xp.largest(values, count)
    maxima = xp.most(values.reshape(n, GROUP, groups), 1)
    best = largest(xp, maxima, count)
    members = (best[:, :, None] + (xp.arange(GROUP) * groups)).reshape(n, -1)
    return xp.take(members, xp.largest(xp.take(values, members), count))


class Search:
    """Searches in a table; ``memory``: the bytes that it may take, None for a part of the free."""

    def __init__(self, table: Table, piles: Piles, memory: int | None) -> None:
        self._table = table
        self._piles = piles
        self._memory = memory

    def nearest(self, vectors: Vectors, k: int) -> tuple[Ints, Distances]:
        """Return slots and distances of the ``k`` nearest, as `NeighborIndex.query` does."""
        slots = np.full((len(vectors), k), -1, np.int64)
        distances = np.full((len(vectors), k), np.inf)
        todo = np.arange(len(vectors))
        wanted = k + k // 2 + 16
        precision, tries = gm.HALF, 0
        while len(todo):
            left = [
                self._search(vectors, todo[part], k, wanted, precision, slots, distances)
                for part in parts(len(todo), self._queries_at_once(wanted, precision))
            ]
            todo = np.concatenate(left)
            tries += 1
            if tries >= 2:
                precision = gm.DOUBLE
            if tries != 2:
                wanted *= MORE
        return slots, distances

    def _search(
        self,
        vectors: Vectors,
        rows: Ints,
        k: int,
        wanted: int,
        precision: gm.Precision,
        slots: Ints,
        distances: Distances,
    ) -> Ints:
        """Search for some queries; write the answers that are proven, return the other queries."""
        few = len(rows) <= FEW_ROWS and precision.half
        find = self._find_few if few else self._find_many
        found, far, proven = find(np.ascontiguousarray(vectors[rows]), k, wanted, precision)
        if proven.all():
            slots[rows, : found.shape[1]] = found
            distances[rows, : found.shape[1]] = far
            return rows[:0]
        done = rows[proven]
        slots[done, : found.shape[1]] = found[proven]
        distances[done, : found.shape[1]] = far[proven]
        return rows[~proven]

    def _find_many(
        self, vectors: Vectors, k: int, wanted: int, precision: gm.Precision
    ) -> tuple[Ints, Distances, NDArray[np.bool_]]:
        """Return slots and distances of the k nearest candidates, and whether they are proven."""
        table, xp = self._table, self._table.xp
        queries = gm.prepare(xp, table.metric, xp.upload(vectors))
        formed = table.form(queries)
        wide, *scaling = gm.widen_queries(xp, table.metric, formed, table.scale_of(precision), precision)
        products = self._products(wide, precision)
        rows = largest(xp, products, min(wanted, products.shape[1]))
        limit = xp.least(xp.take(products, rows))
        far = self._distances(queries, rows)
        slots = xp.where(rows < table.count, xp.take_rows(table.slots, rows), -1)
        order = xp.order(slots)
        slots, far = xp.take(slots, order), xp.take(far, order)
        order = xp.order(far)[:, :k]
        slots, far = xp.take(slots, order), xp.take(far, order)
        last = far[:, min(k, table.count) - 1]
        proven = gm.excluded(xp, table.metric, formed, limit, scaling, last, precision)
        found = xp.download(slots, far, proven)
        if wanted >= table.count:
            found[2] = np.ones(len(vectors), bool)
        return found[0], found[1], found[2]

    def _find_few(
        self, vectors: Vectors, k: int, wanted: int, precision: gm.Precision
    ) -> tuple[Ints, Distances, NDArray[np.bool_]]:
        """Do as `_find_many`, with as much as possible on the host."""
        table, xp = self._table, self._table.xp
        queries = gm.prepare(HOST, table.metric, vectors)
        formed = table.form_here(queries)
        wide, *scaling = gm.widen_queries(HOST, table.metric, formed, table.scale_of(precision), precision)
        products = self._products(xp.upload(wide), precision)
        rows_there = largest(xp, products, min(wanted, products.shape[1]))
        bounds = xp.take(products, rows_there)
        found = xp.take_rows(table.vectors, rows_there)
        rows, bounds, found = xp.download(rows_there, bounds, found)
        n, width = rows.shape
        flat = found.reshape(n * width, -1)
        metric = METRICS[table.metric]
        far = metric.pair_distances(np.repeat(queries, width, axis=0), flat).reshape(n, width)
        used = rows < table.count
        slots = np.where(used, self._piles.slot_of[np.where(used, rows, 0)], -1)
        far[~used] = np.inf
        order = np.lexsort((slots, far), axis=1)[:, :k]
        slots, far = np.take_along_axis(slots, order, 1), np.take_along_axis(far, order, 1)
        proven: NDArray[np.bool_] = np.ones(n, bool)
        if wanted < table.count:
            last = far[:, min(k, table.count) - 1]
            limit = bounds.min(axis=1)
            proven = gm.excluded(HOST, table.metric, formed, limit, scaling, last, precision)
        return slots, far, proven

    def _products(self, wide: Any, precision: gm.Precision) -> Any:
        """Return the products of widened queries with all rows, a bound of s each."""
        table, xp = self._table, self._table.xp
        width = table.rows_in_products
        if precision.half:
            return xp.product(wide, table.wide[:width])
        products = xp.empty((len(wide), width), xp.double)
        for part in parts(width, NUMBERS_AT_ONCE // table.dimension):
            products[:, part] = xp.product(wide, table.widened(part))
        return products

    def _distances(self, queries: Any, rows: Any) -> Any:
        """Return the distances of queries from the vectors in rows; inf for unused rows."""
        table, xp = self._table, self._table.xp
        n, width = rows.shape
        far = xp.empty((n, width), xp.double)
        own = gm.squares(xp, queries) if table.metric == "cosine" else None
        step = max(1, NUMBERS_AT_ONCE // (width * table.dimension))
        columns = max(1, min(width, NUMBERS_AT_ONCE // table.dimension))
        for part in parts(n, step):
            for across in parts(width, columns):
                chosen = rows[part, across]
                m = chosen.shape[0] * chosen.shape[1]
                flat = chosen.reshape(m)
                x = xp.repeat_rows(queries[part], chosen.shape[1])
                xx = yy = None
                if own is not None:
                    xx = xp.repeat_rows(own[part], chosen.shape[1])
                    yy = xp.take_rows(table.squares, flat)
                y = xp.take_rows(table.vectors, flat)
                found = gm.pair_distances(xp, table.metric, x, y, xx, yy)
                far[part, across] = found.reshape(chosen.shape)
        return xp.where(rows < table.count, far, float("inf"))

    def _queries_at_once(self, wanted: int, precision: gm.Precision) -> int:
        """Return how many queries fit into the memory at a time."""
        table = self._table
        memory = self._memory
        if memory is None:
            memory = min(max(table.xp.free_memory() // 4, LEAST_MEMORY), MOST_MEMORY)
        number = 2 if precision.half else 8
        wanted = min(wanted, table.rows_in_products)
        each = 2 * number * table.rows_in_products + 100 * wanted + 16 * GROUP * wanted
        return min(MOST_QUERIES, max(1, memory // (each + 64 * table.dimension)))
