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

from dynhac.input.columns import INT64, NO_IDS, IdColumn
from dynhac.models.batch import PointBatch, id_array
from dynhac.models.point_change import Columns, PointChange
from dynhac.models.windows import NO_EXPIRY, Expiry

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac._core import BatchError, OnePoint, PointTable, PointUpdater
    from dynhac.models.pointgraph import PointGraph
    from dynhac.models.store import PointStore, Slots
    from dynhac.neighbors import NeighborIndex


class Attempt:
    """One batch on its way: how to go on with it, how to finish it, how to take it back."""

    # As long as nothing else has come of it.
    expiry = NO_EXPIRY
    expired: IdColumn = NO_IDS
    index: NeighborIndex | None = None
    backend: str | None = None
    settled = False
    updater: PointUpdater | None = None

    def __init__(self, points: PointGraph, batch: PointBatch) -> None:
        self.points = points
        self.batch = batch
        self.store = batch.store
        self.table = batch.store.table
        self.leaving = batch.leaving
        self.ids, self.vectors = batch.ids, batch.vectors  # of the new points that stay
        self.arrivals: Slots = NO_IDS  # theirs, if others do not stay

    def run(self) -> PointChange:
        """Apply the batch or raise."""
        start = perf_counter()
        points, batch, table, text = self.points, self.batch, self.table, self.store.text
        try:
            if batch.times is not None:
                points.window.recode(self.store, batch.times)
            if points.window.bounded:
                self._let_expire()
            updater = self._make_updater()
            count = len(batch.ids)
            vectors = self.vectors if count else None
            after = table.next_arrival + count
            times = self._times()
            updater.search(vectors, times, self.arrivals, after, batch.next_id, self.leaving)
            data = points.graph.finish(updater, table, self.ids)
            self._commit()
            points.unfinished = None
        except BaseException as error:
            self.finish(points, error)
            raise
        columns = (batch.ids, batch.deleted, self.expired, self._ids_of(updater.repaired))
        return PointChange(
            data,
            Columns(*(id_array(ids, text) for ids in columns)),
            (updater.seconds_search, perf_counter() - start),
        )

    def finish(self, points: PointGraph, error: BaseException) -> None:
        """After an error: follow the graph if it has moved on, take everything back if not."""
        if self.updater is not None and self.updater.made:
            self._commit()
        else:
            if self.updater is not None:
                take_back(points, self.table, self.index, self.updater, error)
            points.window.recode(self.store)
        points.unfinished = None

    def _let_expire(self) -> None:
        """Decide what expires, of the points there are and of the new ones."""
        batch, window = self.batch, self.points.window
        expiry = self.expiry = Expiry(window.clock(self.store))
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
        if expiry.dropped:
            stay = self._staying()
            ids = batch.ids
            self.ids = [ids[i] for i in stay] if isinstance(ids, list) else ids[stay]
            self.vectors, self.arrivals = batch.vectors[stay], self.table.next_arrival + stay

    def _staying(self) -> NDArray[np.int64]:
        """Return the places in the batch of the new points that do not expire at once."""
        return np.delete(np.arange(len(self.batch.ids)), self.expiry.dropped)

    def _times(self) -> NDArray[Any] | None:
        """Return the timestamps of the new points that stay."""
        times = self.batch.times
        if times is None or not self.expiry.dropped:
            return None if times is None else times.values
        return times.values[self._staying()]

    def _make_updater(self) -> PointUpdater:
        points = self.points
        if len(self.ids) or len(self.leaving):
            n_points = len(self.table) - len(self.leaving) + len(self.ids)
            self.index, self.backend, self.settled = points.index_for(self.store, n_points)
        self.updater = points.updater(self.store, self.index)
        return self.updater

    def _ids_of(self, slots: Slots) -> IdColumn:
        """Return the ids of points that are there."""
        return self.points.graph.ids_of(self.table.keys_of(slots)) if len(slots) else NO_IDS

    def _commit(self) -> None:
        """Let the rest follow the graph; doing it twice is the same as once."""
        points, store, times = self.points, self.store, self.batch.times
        new = len(self.batch.ids) > 0
        if new:
            points.store = store
        points.window.commit(self.expiry, new, times)
        if self.index is not None:
            points.index, points.backend, points.settled = self.index, self.backend, self.settled
            points.lost = False
            if points.has_short_way():
                if points.short is None or points.short.index is not self.index:
                    points.short = ShortWay(points, store, self.index)
                points.short.updater.most_points = points.most_points()


class ShortWay:
    """The way of single points in a model where little else is to be thought of.

    It is one call of an updater, which goes through the same index, table and graph.
    """

    __slots__ = ("_told", "graph", "index", "store", "updater")

    def __init__(self, points: PointGraph, store: PointStore, index: NeighborIndex) -> None:
        self.graph = points.graph
        self.store = store
        self.index = index
        self.updater = points.updater(store, index)
        self._told: tuple[OnePoint, PointChange] | None = None

    def last_inserted(self) -> PointChange:
        """Return what the last insertion did."""
        one = self.updater.inserted
        told = self._told
        if told is None or told[0] is not one:
            told = self._told = (one, PointChange(one))
        return told[1]

    def explained(self, error: BatchError, id: object) -> Exception:
        """Return the exception for a vector that the graph rejected."""
        table = self.store.table
        ids: Any = [id]
        if not self.store.text:
            ids = np.array([table.next_id if id is None else id], INT64)
        explained = self.graph.explained(error, self.updater, table, ids)
        with self.graph.guard:
            self.graph.follow(None)  # the name of a new one is not needed any more
        return explained

    def finish(self, points: PointGraph, error: BaseException) -> None:
        """After an error: take everything back, unless the graph has moved on."""
        updater = self.updater
        if self.graph.guard.held or not updater.open:
            return
        if not updater.made:
            take_back(points, self.store.table, self.index, updater, error)
        updater.close()


def take_back(
    points: PointGraph,
    table: PointTable,
    index: NeighborIndex | None,
    updater: PointUpdater,
    error: BaseException,
) -> None:
    """Undo what an update has done to table and index before its error."""
    table.give_back()
    if index is None or index is not points.index or not updater.steps:
        return
    if points.lost:  # it was to be put back before, which was interrupted
        return
    points.lost = True
    # An index that was interrupted, rather than failed by itself, may be anywhere.
    if updater.unsure:
        own = not isinstance(points.neighbors, str)
        if not (own and isinstance(error, Exception) and _resolve(index, len(table), updater)):
            return  # one of the package's own is made again
    with suppress(Exception):  # then it is lost, and the error that there was goes on
        for add, slots in reversed(updater.steps):
            if add:
                index.remove(slots)
            else:
                index.add(slots, table.vectors_of(slots))
            updater.pop_step()
        points.lost = False


def _resolve(index: NeighborIndex, size: int, updater: PointUpdater) -> bool:
    """Find out whether the last step, in which an index failed, was made; whether that is clear."""
    steps = updater.steps
    after = size + sum(len(slots) * (1 if add else -1) for add, slots in steps)
    add, slots = steps[-1]
    before = after - len(slots) * (1 if add else -1)
    try:
        size = len(index)
    except Exception:
        return False
    if size == before:
        updater.pop_step()
    return size in (before, after)
