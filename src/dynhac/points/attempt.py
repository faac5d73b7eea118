"""One batch of points on its way through index and graph, all of it or nothing.

An attempt changes the index, searches it, makes edges and hands all of them to the graph in one
update. Until the graph has accepted it, the points are as before, apart from what stands in free
slots; the graph's version tells whether it has. So whatever stops an attempt, be it an interrupt
between two lines: if the graph has moved on, the rest is finished, and otherwise the changes of the
index are taken back. Either may be done twice, and is done again, before the points are next used,
where another interrupt has stopped it (see `PointGraph.settle`).
"""

from __future__ import annotations

from contextlib import suppress
from itertools import compress
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.inputs import INT64, NO_IDS, NO_WEIGHTS, IdColumn
from dynhac.points.batch import PointBatch, id_array
from dynhac.points.change import PointChange
from dynhac.points.found import FoundRows, check_answer, check_held, each_once
from dynhac.points.repair import short_of_edges
from dynhac.points.store import NewPoints, Slots
from dynhac.points.windows import Expiry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dynhac.neighbors import NeighborIndex
    from dynhac.points.pointgraph import PointGraph


class Attempt:
    """One batch on its way: how to go on with it, how to finish it, how to take it back."""

    __slots__ = (
        "backend",
        "batch",
        "expiry",
        "index",
        "leaving",
        "new",
        "points",
        "repaired",
        "reserved",
        "seconds_search",
        "settled",
        "size",
        "steps",
        "store",
        "unsure",
        "version",
    )

    def __init__(self, points: PointGraph, batch: PointBatch) -> None:
        self.points = points
        self.batch = batch
        self.store = batch.store
        self.version = points.graph.version
        self.expiry = Expiry(points.window.clock)
        if batch.clock is not None:
            self.expiry.move_on(batch.clock)
        self.leaving = list(batch.leaving)
        self.reserved: list[int] = []
        self.new: NewPoints | None = None
        self.repaired: Slots = NO_IDS
        self.index: NeighborIndex | None = None
        self.backend: str | None = None
        self.settled = False
        self.size = 0  # of the index before the attempt
        self.steps: list[tuple[bool, Slots]] = []
        self.unsure = False  # whether the last step was made
        self.seconds_search = 0.0

    def run(self) -> PointChange:
        """Apply the batch or raise."""
        start = perf_counter()
        graph = self.points.graph
        text = self.store.text
        inserted = id_array(self.batch.ids, text)
        try:
            self._choose_points()
            leaving_slots = np.array(self.leaving, INT64) if self.leaving else NO_IDS
            leaving = self._ids_of(leaving_slots)
            edges = self._search(leaving, leaving_slots)
            new: IdColumn = NO_IDS
            if self.new is not None:
                new = inserted
                if text or self.expiry.dropped:
                    new = self._ids_of(self.new.slots)  # in the store, though not there yet
            data = graph.update_with_points(leaving, new, edges)
            self._commit()
            self.points.unfinished = None
        except BaseException as error:
            self.finish(error)
            raise
        nothing = id_array((), text)
        return PointChange(
            data,
            inserted,
            id_array(self.batch.deleted, text) if self.batch.leaving else nothing,
            id_array(self._expired_ids(), text) if self.expiry.order else nothing,
            id_array(self._ids_of(self.repaired), text) if len(self.repaired) else nothing,
            self.seconds_search,
            perf_counter() - start,
        )

    def finish(self, error: BaseException) -> None:
        """After an error: follow the graph if it has moved on, take everything back if not."""
        if self.points.graph.version == self.version:
            self._undo(error)
        else:
            self._commit()
        self.points.unfinished = None

    def _choose_points(self) -> None:
        """Decide what expires, and give the new points that stay their slots."""
        batch, store, window = self.batch, self.store, self.points.window
        count = len(batch.ids)
        if window.bounded:
            window.plan(self.expiry, store, batch.leaving, batch.times, count)
            self.leaving += self.expiry.slots
        if not count:
            return
        ids, vectors = batch.ids, batch.vectors
        arrivals: Sequence[int] = range(store.next_arrival, store.next_arrival + count)
        timestamps = None if batch.times is None else batch.times.values
        if self.expiry.dropped:
            stay = np.ones(count, bool)
            stay[self.expiry.dropped] = False
            ids = list(compress(ids, stay.tolist()))
            arrivals = list(compress(arrivals, stay.tolist()))
            vectors = vectors[stay]
            timestamps = None if timestamps is None else timestamps[stay]
        store.reserve(len(ids), self.reserved)
        slots = np.array(self.reserved, INT64)
        self.new = NewPoints(
            slots, ids, vectors, arrivals, timestamps, store.next_arrival + count, batch.next_id
        )
        store.write(self.new)

    def _search(
        self, leaving: IdColumn, leaving_slots: Slots
    ) -> tuple[IdColumn, IdColumn, NDArray[np.float64]]:
        """Change the index; return the edges of the new points and of those to repair."""
        points, store, new = self.points, self.store, self.new
        count = len(self.reserved)
        if not count and not self.leaving:
            return NO_IDS, NO_IDS, NO_WEIGHTS
        n_points = len(store) - len(self.leaving) + count
        self.index, self.backend, self.settled = points.index_for(store, n_points)
        self.size = len(store)
        if self.leaving:
            self._change_index(False, leaving_slots)
        k = points.n_neighbors
        rows: FoundRows | None = None
        if new is not None and count == 1:
            # Searched for before it is there, a point does not find itself.
            if n_points > 1:
                found, distances = self._query(new.vectors, min(k, n_points - 1))
                own_index = not isinstance(points.neighbors, str)
                rows = FoundRows(new.slots, found, distances, not own_index)
            self._change_index(True, new.slots)
        elif new is not None and count:
            self._change_index(True, new.slots)
            rows = self._nearest(new.slots, new.vectors, n_points)
        u, v, weights = self._weighted(rows)
        if points.repair and self.leaving:
            gained = np.concatenate((u, v))
            self.repaired = short_of_edges(
                points.graph, store, leaving, leaving_slots, gained, k, n_points
            )
            if len(self.repaired):
                more = self._nearest(self.repaired, store.vectors[self.repaired], n_points)
                u, v, weights = self._weighted(more if rows is None else rows.and_then(more))
        return self._ids_of(u), self._ids_of(v), weights

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
            new = [slot for add, slots in self.steps if add for slot in slots.tolist()]
            check_held(name, found, self.store.arrival, self.leaving, new)
        return found, distances

    def _weighted(self, rows: FoundRows | None) -> tuple[Slots, Slots, NDArray[np.float64]]:
        """Return the edges, and their similarities, that are not 0 at the graph's resolution."""
        if rows is None:
            return NO_IDS, NO_IDS, NO_WEIGHTS
        u, v, distance = rows.edges(self.points.n_neighbors)
        if not len(u):
            return u, v, distance
        similarity = self.points.similarity
        weights = similarity(distance)
        least = self.points.least_weight
        # In one row of an index of the package's own distances ascend, and its similarities never
        # grow with them.
        own = isinstance(self.points.neighbors, str) and similarity.function is None
        lowest = weights[-1] if own and len(rows.own) == 1 else weights.min()
        if lowest < least:
            some = weights >= least
            return u[some], v[some], weights[some]
        return u, v, weights

    def _change_index(self, add: bool, slots: Slots) -> None:
        assert self.index is not None
        start = perf_counter()
        self.unsure = True
        self.steps.append((add, slots))
        if add:
            assert self.new is not None
            self.index.add(slots, self.new.vectors)
        else:
            self.index.remove(slots)
        self.unsure = False
        self.seconds_search += perf_counter() - start

    def _ids_of(self, slots: Slots) -> IdColumn:
        """Return the ids of slots as the graph takes them."""
        if not len(slots):
            return NO_IDS
        ids: NDArray[Any] = self.store.ids.take(slots)
        return ids.tolist() if self.store.text else ids

    def _expired_ids(self) -> list[Any]:
        expiry, store = self.expiry, self.store
        old = iter(store.ids[expiry.slots].tolist())
        new = iter(expiry.dropped)
        return [self.batch.ids[next(new)] if is_new else next(old) for is_new in expiry.order]

    def _commit(self) -> None:
        """Let the rest follow the graph; doing it twice is the same as once."""
        points, batch = self.points, self.batch
        times = batch.times
        if times is not None and times.kind == "float" and self.store.timestamps is not None:
            self.store.timestamps = self.store.timestamps.astype(np.float64, copy=False)
        self.store.commit(self.leaving, self.new)
        if self.new is not None:
            points.store = self.store
        points.window.commit(self.expiry, self.store, self.new, times)
        if self.index is not None:
            points.index, points.backend, points.settled = self.index, self.backend, self.settled
            points.lost = False

    def _undo(self, error: BaseException) -> None:
        """Take back what has been done; the graph has not moved on."""
        self.store.give_back(self.reserved)
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
                    self.index.add(slots, self.store.vectors[slots])
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
