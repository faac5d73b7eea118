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

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dynhac.neighbors import gpu_metrics as gm
from dynhac.neighbors.arrays import parts
from dynhac.neighbors.gpu_table import FEW_ROWS, GROUP, HOST
from dynhac.neighbors.metrics import METRICS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac.neighbors.gpu_arrays import Arrays
    from dynhac.neighbors.gpu_piles import Piles
    from dynhac.neighbors.gpu_table import Table
    from dynhac.neighbors.index import Distances, Ints, Vectors

    Answer: TypeAlias = tuple[Ints, Distances, NDArray[np.bool_]]

MORE = 4
"""By how much the number of candidates grows when an answer is not proven."""

MOST_QUERIES = 4096
MOST_PRODUCTS = 2**31 - 1
"""At once. More queries are not faster; more products need positions of 64 bits, and are slower."""


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
    """Searches in a table, whose slots are those of ``piles``."""

    def __init__(self, table: Table, piles: Piles) -> None:
        self._table = table
        self._piles = piles

    def nearest(self, vectors: Vectors, k: int) -> tuple[Ints, Distances]:
        """Return slots and distances of the ``k`` nearest, as `NeighborIndex.query` does."""
        self._table.require_fit()
        slots = np.full((len(vectors), k), -1, np.int64)
        distances = np.full((len(vectors), k), np.inf)
        todo: Ints | None = None  # all
        wanted = k + k // 2 + 16
        precision, tries = gm.HALF, 0
        while todo is None or len(todo):
            queries = vectors if todo is None else vectors[todo]
            found, far, proven = self._find(queries, k, wanted, precision)
            if todo is None:
                slots[:, : found.shape[1]] = found
                distances[:, : found.shape[1]] = far
                todo = np.flatnonzero(~proven)
            else:
                done = todo[proven]
                slots[done, : found.shape[1]] = found[proven]
                distances[done, : found.shape[1]] = far[proven]
                todo = todo[~proven]
            tries += 1
            if tries >= 2:
                precision = gm.DOUBLE
            if tries != 2:
                wanted *= MORE
        return slots, distances

    def _find(self, vectors: Vectors, k: int, wanted: int, precision: gm.Precision) -> Answer:
        """Return slots and distances of the k nearest candidates, and whether they are proven."""
        if len(vectors) <= FEW_ROWS and precision.half:
            return self._find_few(vectors, k, wanted)
        # The device works on all parts before the host waits for the first.
        started = [
            self._start(vectors[part], k, wanted, precision)
            for part in parts(len(vectors), self._queries_at_once(wanted, precision))
        ]
        found = [self._table.xp.download(*part) for part in started]
        slots, far, proven = (np.concatenate(column) for column in zip(*found, strict=True))
        return slots, far, proven | (wanted >= self._table.count)

    def _start(
        self, vectors: Vectors, k: int, wanted: int, precision: gm.Precision
    ) -> tuple[Any, Any, Any]:
        """Begin a search; the answer is on the device."""
        table, xp = self._table, self._table.xp
        scale = table.scale_of(precision)
        queries = gm.prepare(xp, table.metric, xp.upload(vectors))
        formed = table.form(queries)
        wide, scaling = gm.widen_queries(xp, table.metric, formed, scale, precision)
        products = self._products(wide, precision)
        rows = largest(xp, products, min(wanted, products.shape[1]))
        limit = xp.least(xp.take(products, rows))
        del products
        far = self._distances(queries, rows)
        slots = xp.where(rows < table.count, xp.take_rows(table.slots, rows), -1)
        order = xp.order(slots)
        slots, far = xp.take(slots, order), xp.take(far, order)
        order = xp.order(far)[:, :k]
        slots, far = xp.take(slots, order), xp.take(far, order)
        last = far[:, min(k, table.count) - 1]
        return slots, far, gm.excluded(xp, table.metric, formed, limit, scaling, last, precision)

    def _find_few(self, vectors: Vectors, k: int, wanted: int) -> Answer:
        """Do as `_find`, with as much as possible on the host."""
        table, xp, precision = self._table, self._table.xp, gm.HALF
        queries = table.prepare_here(vectors)
        formed = table.form_here(queries)
        wide, scaling = gm.widen_queries(HOST, table.metric, formed, table.scale, precision)
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
        for part in parts(width, table.vectors_at_once):
            products[:, part] = xp.product(wide, table.widened(part))
        return products

    def _distances(self, queries: Any, rows: Any) -> Any:
        """Return the distances of queries from the vectors in rows; inf for unused rows."""
        table, xp = self._table, self._table.xp
        n, width = rows.shape
        far = xp.empty((n, width), xp.double)
        own = gm.squares(xp, queries) if table.metric == "cosine" else None
        at_once = table.vectors_at_once
        for part in parts(n, at_once // width):
            for across in parts(width, at_once):
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
        number = 2 if precision.half else 8
        width = table.rows_in_products
        each = 2 * number * width + (16 * GROUP + 100) * min(wanted, width) + 64 * table.dimension
        return min(MOST_QUERIES, MOST_PRODUCTS // width, table.memory // each)
