"""What `GraphHAC` and `DynHAC` share: an engine with ids, and everything that can be read of it.

Reading needs no lock. An update is a batch; the model applies it, or passes it to the writer of its
store, which applies it once it is in the log.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac.clusters.clusters import Clusters
from dynhac.dendrogram.dendrogram import Dendrogram
from dynhac.dendrogram.suggest import Suggestions
from dynhac.input.columns import Id, plain_id
from dynhac.input.errors import show
from dynhac.input.payloads import NewPayloads
from dynhac.models.engine import IdEngine
from dynhac.models.explanation import Explanation
from dynhac.models.verification import VerifyReport, verify
from dynhac.progress import ProgressOption, metered
from dynhac.watch.parameters import UPDATES, WatchOrder, WatchParameters
from dynhac.watch.watch import Watch


class BatchWriter(Protocol):
    """What a model passes its batches to: the writer of a store."""

    def prepare(self) -> None:
        """Before an update reads its arguments: raise if there can be none, or wait.

        It waits for a snapshot that wants the lock.
        """

    def write(self, model: Any, batch: Any, progress: Any, payloads: NewPayloads | None) -> Any:
        """Make a batch and its payloads durable, let the model apply it, and return the change."""


class Hierarchy:
    """An engine with ids that can be read, and updated batch by batch."""

    __slots__ = ("_engine", "_writer")

    _engine: IdEngine
    _writer: BatchWriter | None
    _holder = "graph"  # what messages say that ids are in

    def _prepare_update(self) -> AbstractContextManager[Any]:
        """Return the lock for an update; raise if the model cannot be updated.

        Updates call it first, so that a closed store is reported before any wrong argument.
        """
        if self._writer is not None:
            self._writer.prepare()
        return self._engine.lock

    def _write(self, batch: Any, progress: Any, payloads: NewPayloads | None = None) -> Any:
        """Apply a batch, through the writer if there is one; under the lock."""
        if self._writer is None:
            return self._apply(batch, progress)
        return self._writer.write(self, batch, progress, payloads)

    def _require_payloads(self, payload: object) -> None:
        """Raise if a payload is given to a model that cannot keep it."""
        if payload is not None and self._writer is None:
            raise ValueError(
                "payload is given, but a model in memory keeps none; use a store: dynhac.open(path)"
            )

    def _apply(self, batch: Any, progress: Any = None) -> Any:
        """Apply a batch, all or nothing, under the lock; return what it did.

        ``progress`` is what `dynhac.progress.for_update` returns; None: nothing is reported.
        """
        raise NotImplementedError

    @property
    def _update_count(self) -> int:
        """A number that grows with every update that changes the state."""
        raise NotImplementedError

    def dendrogram(self) -> Dendrogram:
        """Return the hierarchy as it is now: a view that later updates do not change."""
        return self._engine.dendrogram()

    def labels(
        self,
        theta: float | None = None,
        *,
        n_clusters: int | None = None,
        conductance: float | None = None,
        min_size: int | None = None,
        noise: str | None = None,
    ) -> NDArray[np.int64]:
        """Return a flat clustering aligned with `ids`; see `Dendrogram.labels`.

        Without arguments the clusters are chosen automatically.
        When other threads update the model, take one `dendrogram` and its ids and labels instead.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.add([1, 2, 3], edges=([1, 2], [2, 3], [0.9, 0.2]))
        >>> g.labels(0.5).tolist(), g.labels(n_clusters=3).tolist()
        ([0, 0, 1], [0, 1, 2])
        >>> g.labels(min_size=2).tolist()
        [0, 0, 0]
        """
        return self.dendrogram().labels(
            theta,
            n_clusters=n_clusters,
            conductance=conductance,
            min_size=min_size,
            noise=noise,
        )

    def cut(self, thetas: ArrayLike, min_size: int = 1) -> NDArray[np.int64]:
        """Return flat clusterings at several similarities, in one pass; see `Dendrogram.cut`."""
        return self.dendrogram().cut(thetas, min_size)

    def clusters(
        self,
        theta: float | None = None,
        *,
        n_clusters: int | None = None,
        conductance: float | None = None,
        min_size: int | None = None,
        noise: str | None = None,
        labels: ArrayLike | None = None,
    ) -> Clusters:
        """Return what is in the clusters of a flat clustering: typical points, outliers and more.

        Parameters
        ----------
        theta, n_clusters, conductance, min_size, noise
            As for `labels`: with none of them, the automatic choice.
        labels : sequence of int
            Any other flat clustering, instead of ``theta``: the cluster of each of `ids`, and -1
            for none. Clusters keep their numbers. When other threads update the model, use
            `Dendrogram.clusters`, which raises if the labels are of another state.

        Returns
        -------
        Clusters
            All of one state, also if other threads update the model meanwhile.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.add(list("abcd"), edges=(list("aab"), list("bcc"), [0.9, 0.8, 0.4]))
        >>> clusters = g.clusters(0.3)
        >>> clusters
        <Clusters: 4 points in 2 clusters>
        cluster  size  cohesion  together up to  nearest  typical
              0     3       0.7             0.6        -  a, b, c
              1     1         -               -        -  d
        >>> clusters[0].medoid, clusters[0].outliers(1).tolist()
        ('a', ['c'])
        """
        return self._engine.clusters(
            lambda view: view._chosen_labels(
                theta, n_clusters, conductance, min_size, noise, labels
            )
        )

    def suggest(self, n: int = 5, *, min_size: int | None = None) -> Suggestions:
        """Return a few sensible cuts, the most persistent first; see `Dendrogram.suggest`.

        Examples
        --------
        >>> import numpy as np
        >>> from dynhac import DynHAC
        >>> model = DynHAC(n_neighbors=50)
        >>> middles = np.repeat([[0, 0], [9, 0]], 100, axis=0)
        >>> _ = model.insert(np.random.default_rng(0).normal(middles))
        >>> best = model.suggest()[0]
        >>> best.n_clusters, int(model.labels(best.theta).max()) + 1
        (2, 2)
        """
        return self.dendrogram().suggest(n, min_size=min_size)

    def verify(self, *, progress: ProgressOption = None) -> VerifyReport:
        """Check every merge against the plain graph, and the engine's caches.

        It takes about as long as a build. Updates wait while it copies the state and checks the
        caches, and not while it checks the merges.

        Parameters
        ----------
        progress : bool or callable, optional
            Whether to show how far the call is, or a function that is called; see `Progress`.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.add([1, 2, 3], edges=([1, 2], [2, 3], [0.9, 0.2]))
        >>> g.verify().ok
        True
        """
        epsilon, threshold, resolution, _ = self._engine.parameters.engine
        with metered(progress) as meter:
            return verify(self._engine, epsilon, threshold, resolution, meter)

    def watch(
        self,
        theta: float | None = None,
        min_size: int | None = None,
        *,
        patience: int | float | timedelta | np.timedelta64 | None = None,
    ) -> Watch:
        """Return flat clusters that are followed through all later updates.

        They are the clusters at ``theta``, or without it the automatic ones: after every update
        those that ``labels`` would give without a theta, but with stable ids.
        If the model has a watch with these parameters, it is returned: after loading a model or
        opening a store, the same call continues with the same cluster ids.

        Parameters
        ----------
        theta : float, optional
            The similarity of the cut, at least the threshold; an int above 1 is an error, as for
            `labels`. By default the clusters are chosen automatically.
        min_size : int, optional
            Points in smaller clusters belong to no cluster. By default 1 at a ``theta``; 25 for
            automatic clusters, which need at least 2.
        patience : int, float or timedelta64, optional
            How long a change of clusters must last before it is reported: a number of updates (an
            int), or a time, for points with timestamps: a timedelta64 or timedelta if they are
            dates, a float if they are numbers. Until then the watch shows the clusters as they
            were; see `docs/guide/watches.md`. By default changes are reported at once.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.add([1, 2, 3, 4], edges=([1, 3], [2, 4], [0.9, 0.8]))
        >>> watch = g.watch(0.5)
        >>> _ = g.remove_edges(1, 2)
        >>> for event in watch.events:
        ...     print(event)
        cluster 0 split off 2: 1 point; size 1
        cluster 2 born with 1 point, from 0; size 1
        >>> g.watch(0.5) is watch
        True
        >>> g.watch(min_size=2)
        <Watch of automatic clusters: 1 cluster of at least 2, 2 points, largest 2>
        """
        parameters = WatchParameters.read(self.threshold, theta, min_size, patience)
        self._check_watch(parameters)
        with self._engine.lock:
            return self._engine.watch(parameters)

    def _check_watch(self, parameters: WatchParameters) -> None:
        """Raise if a watch cannot have these parameters."""
        if parameters.unit != UPDATES:
            raise ValueError(
                f"patience is {parameters.public_patience!r}, a time, and a graph has no "
                "timestamps; give a number of updates, an int"
            )

    def _perform(self, batch: Any, progress: Any = None) -> Any:
        """Apply a batch, or an order about watches, under the lock."""
        if isinstance(batch, WatchOrder):
            return self._engine.apply_order(batch)
        return self._apply(batch, progress)

    def _has_performed(self, batch: Any, before: int) -> bool:
        """Whether that was done when something interrupted it; ``before``: the update count."""
        if isinstance(batch, WatchOrder):
            return self._engine.has_applied(batch)
        return self._update_count != before

    @property
    def watches(self) -> tuple[Watch, ...]:
        """The watches that have not been closed, in the order in which they were made."""
        return tuple(self._engine.watches)

    def explain(self, a: Id, b: Id) -> Explanation:
        """Return how two vertices come together: where they meet, and the path from each.

        Printing it says up to which similarity they are in one cluster, or that no cut has them in
        one, and why.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.add([1, 2, 3], edges=([1, 2], [2, 3], [0.9, 0.2]))
        >>> print(g.explain(1, 3))
        1 and 3 are in one cluster at similarities up to 0.1; they meet in node 1 of 3 points, \
at linkage 0.1
          from 1, 2 merges:
            0.9: node 0, 2 points
            0.1: node 1, 3 points
          from 3, 1 merge:
            0.1: node 1, 3 points
        """
        for id in (a, b):
            if id not in self:
                raise KeyError(f"id {show(id)} is not in the {self._holder}")
        meeting = self._engine.meeting(a, b)
        return Explanation._of(plain_id(a), plain_id(b), meeting, self.threshold, self.resolution)

    @property
    def ids(self) -> NDArray[Any]:
        """The ids in order of insertion: an array of int64, or of object holding str."""
        return self._engine.all_ids()

    @property
    def epsilon(self) -> float:
        """How far from the best a merge may be."""
        return self._engine.parameters.epsilon

    @property
    def threshold(self) -> float:
        """Similarity below which nothing need be merged."""
        return self._engine.parameters.threshold

    @property
    def resolution(self) -> float:
        """What weights are rounded to multiples of."""
        return self._engine.resolution

    @property
    def threads(self) -> int | None:
        """Threads that a large update may use; None: one for every core."""
        return self._engine.parameters.threads

    @property
    def version(self) -> int:
        """A number that grows by one with every update that changed something."""
        return self._engine.engine.version

    @property
    def n_levels(self) -> int:
        """The number of levels in the engine."""
        return len(self.level_sizes)

    @property
    def level_sizes(self) -> list[tuple[int, int]]:
        """The numbers of vertices and edges of each level."""
        return self._engine.engine.level_sizes()

    def __len__(self) -> int:
        return len(self._engine.engine)

    def __contains__(self, id: object) -> bool:
        return self._engine.holds(id)
