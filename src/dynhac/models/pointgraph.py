"""The parts of a model of points: what changes together, and the rules it changes by.

The points, their neighbour index and their graph always hold the same points; `Attempt` sees to
that. An index that failed in the middle of a change, or could not be put back, is *lost*: it is not
used again, and one of the package's own is made anew from the points when it is next needed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dynhac._core import PointUpdater
from dynhac.input.columns import INT64_MAX
from dynhac.models.attempt import Attempt, ShortWay
from dynhac.models.found import checked
from dynhac.neighbors import choose_backend, make_index
from dynhac.neighbors.choose import MOST_NUMBERS_SCANNED

if TYPE_CHECKING:
    from dynhac.models.batch import PointBatch
    from dynhac.models.modelgraph import ModelGraph
    from dynhac.models.point_change import PointChange
    from dynhac.models.store import PointStore
    from dynhac.models.windows import Window
    from dynhac.neighbors import Metric, NeighborIndex
    from dynhac.neighbors.similarity import Similarity


class PointGraph:
    """The parts of a model that change together, and the rules they change by."""

    __slots__ = (
        "backend",
        "graph",
        "index",
        "least_weight",
        "lost",
        "metric",
        "n_neighbors",
        "neighbors",
        "repair",
        "settled",
        "short",
        "similarity",
        "store",
        "unfinished",
        "window",
    )

    def __init__(
        self,
        graph: ModelGraph,
        metric: Metric,
        similarity: Similarity,
        neighbors: str | NeighborIndex,
        n_neighbors: int,
        repair: bool,
        window: Window,
    ) -> None:
        self.graph = graph
        self.least_weight = 0.5 * graph.resolution  # what does not round to 0
        self.metric = metric
        self.similarity = similarity
        self.neighbors = neighbors
        self.n_neighbors = n_neighbors
        self.repair = repair
        self.window = window
        self.store: PointStore | None = None
        self.index: NeighborIndex | None = None if isinstance(neighbors, str) else neighbors
        self.backend: str | None = None  # the name of the index in use, if it has one
        self.settled = False  # that it stays a scan, however many points there are
        self.lost = False
        self.unfinished: Attempt | None = None  # neither made nor taken back yet
        self.short: ShortWay | None = None  # if there is one; not to be used with a lost index

    @property
    def version(self) -> int:
        """Another one after every update."""
        return 0 if self.store is None else self.store.table.version

    def settle(self) -> None:
        """Finish an attempt that interrupts have kept from it; no other may be on its way."""
        if self.unfinished is not None:
            self.unfinished.finish(self, KeyboardInterrupt())
        elif self.short is not None:
            self.short.finish(self, KeyboardInterrupt())

    def apply(self, batch: PointBatch) -> PointChange:
        """Apply a batch, all of it or, if an error is raised, nothing."""
        if batch.version != self.version:
            raise RuntimeError(
                "the model was updated while an update was read; what is given to one cannot make "
                "another"
            )
        attempt = self.unfinished = Attempt(self, batch)
        return attempt.run()

    def updater(self, store: PointStore, index: NeighborIndex | None) -> PointUpdater:
        """Return what takes updates through an index to the points and to the graph."""
        check = None
        if not isinstance(self.neighbors, str):
            name, signed = type(self.neighbors).__name__, self.metric.name == "inner_product"
            check = partial(checked, name, signed, store.table)
        return PointUpdater(
            store.table,
            self.graph.engine,
            index,
            self.similarity.rule or self.similarity,
            check,
            self.graph if store.text else None,
            self.graph.guard,
            self.graph.follow,
            self.n_neighbors,
            self.least_weight,
            self.repair,
            self.window.max_points or INT64_MAX,
        )

    def has_short_way(self) -> bool:
        """Whether single points can take the short way: nobody is to be called back on it."""
        return isinstance(self.neighbors, str) and self.similarity.function is None

    def most_points(self) -> int:
        """How many points there may be before the index has to be chosen anew."""
        if self.backend == "exact" and self.neighbors == "auto" and not self.settled:
            return MOST_NUMBERS_SCANNED // max(1, self.store.dimension if self.store else 1)
        return INT64_MAX

    def index_for(self, store: PointStore, n_points: int) -> tuple[NeighborIndex, str | None, bool]:
        """Return an index of the points, its name, and whether it will stay a scan.

        It is another one than before when that is lost or the model outgrows it; the index never
        goes back to a simpler one.
        """
        if not isinstance(self.neighbors, str):
            if self.lost:
                raise RuntimeError(
                    f"the index {type(self.neighbors).__name__} failed in the middle of a change "
                    "and may not match the points any more; make a new model from ids and vectors()"
                )
            return self.neighbors, None, False
        backend, settled = self.backend, self.settled
        if backend is None:
            backend = self.neighbors
            if backend == "auto":
                backend = choose_backend(self.metric, store.dimension, n_points)
        elif (
            backend == "exact"
            and self.neighbors == "auto"
            and not settled
            and n_points * store.dimension > MOST_NUMBERS_SCANNED
        ):
            backend = choose_backend(self.metric, store.dimension, n_points)
            settled = backend == "exact"
        if self.index is not None and backend == self.backend and not self.lost:
            return self.index, backend, settled
        index = make_index(backend, self.metric, store.dimension, n_points)
        used = store.table.used()
        if len(used):
            index.add(used, store.table.vectors_of(used))
        return index, backend, settled
