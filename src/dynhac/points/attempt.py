"""One batch of points on its way through index and graph, all of it or nothing.

An attempt changes the index, searches it, and makes edges; then points and graph change in one
step, which the version of the table of points tells. Before it, they are as they were, apart from
what stands in free slots. So whatever stops an attempt, be it an interrupt between two lines: if
that step was made, the rest is finished, and otherwise the changes of the index are taken back.
Either may be done twice, and is done again, before the points are next used, where another
interrupt has stopped it (see `PointGraph.settle`).
"""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.inputs import INT64, NO_IDS, IdColumn
from dynhac.points.batch import PointBatch, id_array
from dynhac.points.change import PointChange
from dynhac.points.found import FoundRows, check_answer, check_held, each_once
from dynhac.points.windows import NO_EXPIRY, Expiry

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac._core import WeightedEdges
    from dynhac.neighbors import NeighborIndex
    from dynhac.points.pointgraph import PointGraph
    from dynhac.points.store import Slots


class Attempt:
    """One batch on its way: how to go on with it, how to finish it, how to take it back."""

    # As long as nothing else has come of it.
    expiry = NO_EXPIRY
    expired: IdColumn = NO_IDS
    new: Slots | None = None
    repaired: Slots = NO_IDS
    index: NeighborIndex | None = None
    backend: str | None = None
    settled = False
    unsure = False  # whether the last step was made
    seconds_search = 0.0

    def __init__(self, points: PointGraph, batch: PointBatch) -> None:
        self.points = points
        self.batch = batch
        self.store = batch.store
        self.table = batch.store.table
        self.version = self.table.version
        self.leaving = batch.leaving
        self.ids, self.vectors = batch.ids, batch.vectors  # of the new points that stay
        self.size = len(self.table)  # of the index too, before the attempt
        self.steps: list[tuple[bool, Slots]] = []

    def run(self) -> PointChange:
        """Apply the batch or raise."""
        start = perf_counter()
        points, batch, text = self.points, self.batch, self.store.text
        try:
            if points.window.bounded:
                self._let_expire()
            if len(batch.ids):
                self._reserve()
            edges = self._search()
            data = points.graph.update_with_points(self.table, self.ids, self.leaving, edges)
            self._commit()
            points.unfinished = None
        except BaseException as error:
            self.finish(error)
            raise
        return PointChange(
            data,
            id_array(batch.ids, text),
            id_array(batch.deleted, text),
            id_array(self.expired, text),
            id_array(self._ids_of(self.repaired), text),
            self.seconds_search,
            perf_counter() - start,
        )

    def finish(self, error: BaseException) -> None:
        """After an error: follow the graph if it has moved on, take everything back if not."""
        if self.table.version == self.version:
            self._undo(error)
        else:
            self._commit()
        self.points.unfinished = None

    def _let_expire(self) -> None:
        """Decide what expires, of the points there are and of the new ones."""
        batch, window = self.batch, self.points.window
        expiry = self.expiry = Expiry(window.clock)
        if batch.clock is not None:
            expiry.move_on(batch.clock)
        window.plan(expiry, self.store, batch.leaving, batch.times, len(batch.ids))
        if not expiry.order:
            return
        old = iter(self._ids_of(np.array(expiry.slots, INT64)))
        new = (batch.ids[place] for place in expiry.dropped)
        expired: list[Any] = [next(new) if is_new else next(old) for is_new in expiry.order]
        self.expired = expired if self.store.text else np.array(expired, INT64)
        if expiry.slots:
            self.leaving = np.append(batch.leaving, expiry.slots)

    def _reserve(self) -> None:
        """Give the new points that stay their slots."""
        batch, table = self.batch, self.table
        first, count = table.next_arrival, len(batch.ids)
        arrivals: Slots = NO_IDS
        if self.expiry.dropped:
            stay = self._staying()
            ids = batch.ids
            if not len(stay):
                self.ids = NO_IDS
            else:
                self.ids = [ids[i] for i in stay] if isinstance(ids, list) else ids[stay]
            self.vectors, arrivals = batch.vectors[stay], first + stay
        self.new = self.store.reserve(self.vectors, arrivals, first + count, batch.next_id)

    def _staying(self) -> NDArray[np.int64]:
        """Return the places in the batch of the new points that do not expire at once."""
        return np.delete(np.arange(len(self.batch.ids)), self.expiry.dropped)

    def _search(self) -> WeightedEdges | None:
        """Change the index; return the edges of the new points and of those to repair."""
        points, table, new = self.points, self.table, self.new
        count, leaving = len(self.ids), len(self.leaving)
        if not count and not leaving:
            return None
        n_points = self.size - leaving + count
        self.index, self.backend, self.settled = points.index_for(self.store, n_points)
        if leaving:
            self._change_index(False, self.leaving)
        rows: FoundRows | None = None
        if new is not None and count == 1:
            # Searched for before it is there, a point does not find itself.
            if n_points > 1:
                k = min(points.n_neighbors, n_points - 1)
                rows = FoundRows(new, *self._query(self.vectors, k))
            self._change_index(True, new)
        elif new is not None and count:
            self._change_index(True, new)
            rows = self._nearest(new, self.vectors, n_points)
        edges = None if rows is None else self._edges(rows)
        if points.repair and leaving:
            # A point with fewer edges is joined to its nearest anew.
            enough = min((points.n_neighbors + 1) // 2, n_points - 1)
            self.repaired = points.graph.few_edges(table, self.leaving, edges, enough)
            if len(self.repaired):
                vectors = table.vectors_of(self.repaired)
                more = self._nearest(self.repaired, vectors, n_points)
                edges = self._edges(more if rows is None else rows.and_then(more))
        return edges

    def _nearest(self, own: Slots, vectors: NDArray[np.float32], n_points: int) -> FoundRows:
        """Search for points that are in the index; they find themselves too."""
        return FoundRows(own, *self._query(vectors, min(self.points.n_neighbors + 1, n_points)))

    def _query(self, vectors: NDArray[np.float32], k: int) -> tuple[Slots, NDArray[np.float64]]:
        assert self.index is not None
        start = perf_counter()
        found, distances = self.index.query(vectors, k)
        self.seconds_search += perf_counter() - start
        if not isinstance(self.points.neighbors, str):
            name = type(self.index).__name__
            signed = self.points.metric.name == "inner_product"
            check_answer(name, found, distances, (len(vectors), k), signed)
            # Copies: what is checked is what is used, whatever the index does with its arrays.
            found = each_once(found.astype(INT64))
            distances = distances.astype(np.float64, order="C")
            added = [slots for add, slots in self.steps if add]
            check_held(name, found, self.table, self.leaving, added)
        return found, distances

    def _edges(self, rows: FoundRows) -> WeightedEdges:
        points = self.points
        return rows.edges(points.n_neighbors, points.similarity, points.least_weight)

    def _change_index(self, add: bool, slots: Slots) -> None:
        assert self.index is not None
        start = perf_counter()
        self.unsure = True
        self.steps.append((add, slots))
        if add:
            self.index.add(slots, self.vectors)
        else:
            self.index.remove(slots)
        self.unsure = False
        self.seconds_search += perf_counter() - start

    def _ids_of(self, slots: Slots) -> IdColumn:
        """Return the ids of points that are there."""
        return self.points.graph.ids_of(self.table.keys_of(slots)) if len(slots) else NO_IDS

    def _commit(self) -> None:
        """Let the rest follow the graph; doing it twice is the same as once."""
        points, store, new = self.points, self.store, self.new
        times = self.batch.times
        if new is not None:
            points.store = store
            if times is not None and store.timestamps is not None:
                if times.kind == "float":
                    store.timestamps = store.timestamps.astype(np.float64, copy=False)
                values = times.values[self._staying()] if self.expiry.dropped else times.values
                store.timestamps[new] = values
        points.window.commit(self.expiry, store, new, times)
        if self.index is not None:
            points.index, points.backend, points.settled = self.index, self.backend, self.settled
            points.lost = False

    def _undo(self, error: BaseException) -> None:
        """Take back what has been done; the graph has not moved on."""
        self.table.give_back()
        self.points.window.undo(self.expiry)
        if self.index is None or self.index is not self.points.index or not self.steps:
            return
        if self.points.lost:  # it was to be put back before, which was interrupted
            return
        self.points.lost = True
        # An index that was interrupted, rather than failed by itself, may be anywhere.
        if self.unsure and not (isinstance(error, Exception) and self._resolve_last_step()):
            return
        with suppress(Exception):  # then it is lost, and the error that there was goes on
            while self.steps:
                add, slots = self.steps[-1]
                if add:
                    self.index.remove(slots)
                else:
                    self.index.add(slots, self.table.vectors_of(slots))
                self.steps.pop()
            self.points.lost = False

    def _resolve_last_step(self) -> bool:
        """Find out whether the step in which an index of a user's own failed was made.

        An index of the package's own is made again instead.
        """
        if isinstance(self.points.neighbors, str):
            return False
        assert self.index is not None
        after = self.size + sum(len(slots) * (1 if add else -1) for add, slots in self.steps)
        add, slots = self.steps[-1]
        before = after - len(slots) * (1 if add else -1)
        try:
            size = len(self.index)
        except Exception:
            return False
        if size == before:
            self.steps.pop()
        return size in (before, after)
