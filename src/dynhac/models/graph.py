"""GraphHAC: the hierarchy of a weighted graph that changes.

The model itself is the engine's. This class turns what users pass into batches of columns, and what
the engine holds into arrays in the users' ids. It keeps the last dendrogram until the engine has
moved on; the engine's version tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac.dendrogram.dendrogram import Dendrogram
from dynhac.files.graph_state import MOST_THREADS, Persistent
from dynhac.input.columns import (
    NO_IDS,
    NO_WEIGHTS,
    IdColumn,
    Ids,
    edge_columns,
    id_column,
    pair_columns,
    real_number,
    resolution_of_weights,
    whole_number,
)
from dynhac.input.errors import Batch, counted
from dynhac.input.graphs import Edges, graph_edges, vertices_and_edges
from dynhac.models.change import Change
from dynhac.models.explanation import Explanation
from dynhac.models.keyed import KeyedEngine
from dynhac.models.verification import VerifyReport, verify
from dynhac.watch.watch import Watch

if TYPE_CHECKING:
    from dynhac._core import ChangeData


class GraphHAC(Persistent):
    """Average-linkage hierarchical clustering of a weighted graph, kept up to date.

    The hierarchy is (1+ε)-approximate after every update: each merge joins two clusters whose
    average similarity is within a factor 1+ε of the best there was. An update costs what it
    changes, not what the graph holds.

    Parameters
    ----------
    epsilon : float, default 0.1
        How far from the best a merge may be, >= 0. With 0 the hierarchy is exact.
    threshold : float, default 1e-4
        Similarity below which nothing need be merged, >= 0. With 0 all that hangs together is.
    resolution : float, default 2**-32
        Weights are rounded to multiples of this, so that sums are exact; > 0. Similarities that
        they are compared with allow for it: a cut or a threshold at 0.2 counts an edge of 0.2 in.
    threads : int, default 1
        Threads that a large update may use, up to 1024. The result does not depend on it.

    Notes
    -----
    Ids are all int (64 bits) or all str; the first batch decides. Threads may share an object:
    readers and a writer are safe, and the interpreter lock is released while the engine works.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC(epsilon=0.1, threshold=1e-4)
    >>> _ = g.update(add=["a", "b", "c"], edges=(["a", "b"], ["b", "c"], [0.9, 0.3]))
    >>> g.labels(0.5).tolist()
    [0, 0, 1]
    >>> change = g.update(add="d", edges=("d", "c", 0.8), remove="a")
    >>> g.ids.tolist(), g.labels(0.5).tolist()
    (['b', 'c', 'd'], [0, 1, 1])
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        epsilon: float = 0.1,
        threshold: float = 1e-4,
        *,
        resolution: float = 2.0**-32,
        threads: int = 1,
    ) -> None:
        self._epsilon = real_number(epsilon, "epsilon")
        self._threshold = real_number(threshold, "threshold")
        self._threads = whole_number(threads, "threads", 1, MOST_THREADS)
        self._keyed = KeyedEngine(
            self._epsilon,
            self._threshold,
            resolution_of_weights(resolution),
            self._threads,
        )
        self._engine = self._keyed.engine
        self._cache: Dendrogram | None = None

    @classmethod
    def from_graph(cls, graph: Edges, ids: Ids | None = None, **parameters: Any) -> GraphHAC:
        """Return a model of a whole graph.

        Parameters
        ----------
        graph : scipy.sparse matrix, networkx Graph, or edges as in `update`
            Vertices are the rows of a matrix, the nodes of a networkx graph, or the ids that the
            edges mention.
        ids : ids, optional
            The ids of the rows of a matrix (default: 0, 1, ...); otherwise the vertices in the
            order wanted, those without edges included.
        **parameters
            Passed to the constructor.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph(([1, 2], [2, 3], [0.9, 0.3]), epsilon=0)
        >>> g.ids.tolist()
        [1, 2, 3]
        """
        model = cls(**parameters)
        if ids is None:
            ids, graph = vertices_and_edges(graph)
        model.update(add=ids, edges=graph)
        return model

    def update(
        self,
        *,
        add: Ids | None = None,
        edges: Edges | None = None,
        remove: Ids | None = None,
        remove_edges: tuple[Ids, Ids] | None = None,
    ) -> Change:
        """Apply one batch of changes, all of it or, if an error is raised, nothing.

        Removals come first, so that an id both in ``remove`` and in ``add`` is replaced.

        Parameters
        ----------
        add : ids, optional
            New vertices: an id, or a list, range, array or column of ids.
        edges : optional
            Weights to set, between vertices old or new; an edge that exists gets the new weight.
            A pair may be listed in either direction or both, with one weight. One of

            - a tuple ``(u, v, w)`` of columns, or a table with columns u, v and w;
            - a scipy.sparse matrix, whose rows and columns stand for ``add`` if that is given, else
              for `ids` as they are before the batch; one triangle or both, nothing on the diagonal;
            - a networkx graph with the attribute ``weight`` on every edge; its nodes that are not
              in the graph are added.
        remove : ids, optional
            Vertices to remove, with their edges.
        remove_edges : tuple (u, v) of columns, optional
            Edges to remove.

        Returns
        -------
        Change
            What the update did.

        Raises
        ------
        KeyError
            An id or edge that is not in the graph.
        ValueError
            Anything else that is wrong with the batch; the message names it. Values of a wrong type
            are a TypeError as well.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.update(add=[1, 2, 3], edges=([1, 2], [2, 3], [0.9, 0.3]))
        >>> _ = g.update(edges=(1, 3, 0.6), remove_edges=(2, 3))
        >>> g.update(edges=([1, 2], [3, 3], [0.5, float("nan")]))
        Traceback (most recent call last):
            ...
        ValueError: weight of edge (2, 3) is nan; weights must be finite and > 0
        """
        gone = NO_IDS if remove is None else id_column(remove, "remove")
        new = NO_IDS if add is None else id_column(add, "add")
        cut_u: IdColumn = NO_IDS
        cut_v: IdColumn = NO_IDS
        if remove_edges is not None:
            cut_u, cut_v = pair_columns(remove_edges)
        with self._keyed.lock:
            if edges is None:
                batch = Batch(gone, new, cut_u, cut_v, NO_IDS, NO_IDS, NO_WEIGHTS)
            elif type(edges) is tuple and len(edges) == 3:
                batch = Batch(gone, new, cut_u, cut_v, *edge_columns(*edges))
            else:
                given = None if add is None else new
                new, listed = graph_edges(edges, given, gone, self._keyed.ids, self._keyed.holds)
                batch = Batch(gone, new, cut_u, cut_v, *listed)
            return Change(self._apply(batch))

    def _apply(self, batch: Batch) -> ChangeData:
        """Apply a batch whose columns have been read, under the lock."""
        with self._keyed.guard:
            data = self._keyed.update(batch)
        self._cache = None
        return data

    def add(self, ids: Ids, edges: Edges | None = None) -> Change:
        """Add vertices, with edges to each other and to old ones; see `update`.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.add([1, 2], edges=(1, 2, 0.5))
        >>> len(g)
        2
        """
        return self.update(add=ids, edges=edges)

    def remove(self, ids: Ids) -> Change:
        """Remove vertices and their edges; see `update`."""
        return self.update(remove=ids)

    def set_edges(self, u: Ids, v: Ids, w: ArrayLike) -> Change:
        """Insert edges between existing vertices, or replace their weights; see `update`."""
        return self.update(edges=(u, v, w))

    def remove_edges(self, u: Ids, v: Ids) -> Change:
        """Remove edges; see `update`."""
        return self.update(remove_edges=(u, v))

    def dendrogram(self) -> Dendrogram:
        """Return the hierarchy as it is now: a view that later updates do not change."""
        cached = self._cache
        if cached is not None and cached.version == self._engine.version:
            return cached
        snapshot, (ids,) = self._keyed.read(self._engine.snapshot, lambda s: (s.keys,))
        dendrogram = self._cache = Dendrogram(
            ids,
            snapshot.children,
            snapshot.similarity,
            snapshot.min_similarity,
            snapshot.size,
            snapshot.node_ids,
            self._epsilon,
            self._threshold,
            snapshot.version,
            self._keyed.resolution,
        )
        return dendrogram

    def labels(
        self, theta: float | None = None, *, n_clusters: int | None = None, min_size: int = 1
    ) -> NDArray[np.int64]:
        """Return a flat clustering aligned with `ids`; see `Dendrogram.labels`.

        When other threads update the model, take one `dendrogram` and its ids and labels instead.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.add([1, 2, 3], edges=([1, 2], [2, 3], [0.9, 0.2]))
        >>> g.labels(0.5).tolist(), g.labels(n_clusters=3).tolist()
        ([0, 0, 1], [0, 1, 2])
        """
        return self.dendrogram().labels(theta, n_clusters=n_clusters, min_size=min_size)

    def cut(self, thetas: ArrayLike, min_size: int = 1) -> NDArray[np.int64]:
        """Return flat clusterings at several similarities, in one pass; see `Dendrogram.cut`."""
        return self.dendrogram().cut(thetas, min_size)

    def verify(self) -> VerifyReport:
        """Check every merge against the plain graph, and the engine's caches.

        It takes about as long as a build, and blocks updates only while it copies the state.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.add([1, 2, 3], edges=([1, 2], [2, 3], [0.9, 0.2]))
        >>> g.verify().ok
        True
        """
        return verify(self._engine, self._epsilon, self._keyed.threshold, self._keyed.resolution)

    def watch(self, theta: float, min_size: int = 1) -> Watch:
        """Return the flat clusters at ``theta``, to be followed through all later updates.

        Parameters
        ----------
        theta : float
            The similarity of the cut, at least the threshold.
        min_size : int, default 1
            Points in smaller clusters belong to no cluster.

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
        cluster 2 born with 1 point, out of 0; size 1
        """
        return Watch(self._keyed, theta, min_size, self._threshold)

    @property
    def watches(self) -> tuple[Watch, ...]:
        """The watches that have not been closed."""
        return tuple(self._keyed.watches)

    def explain(self, a: int | str, b: int | str) -> Explanation:
        """Return how two vertices come together: where they meet, and the path from each.

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
        return Explanation.of(a, b, self._keyed.meeting(a, b))

    def edges(
        self, of: Ids | None = None
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
        """Return edges as columns ``(u, v, w)``; weights as rounded on the way in.

        Parameters
        ----------
        of : ids, optional
            Return the edges at these vertices, each with the given vertex as ``u`` (default: every
            edge of the graph once).

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph(([1, 2], [2, 3], [0.5, 0.25]))
        >>> [column.tolist() for column in g.edges(of=3)]
        [[3], [2], [0.25]]
        """
        if of is None:
            (_, _, w), (u, v) = self._keyed.read(self._engine.edges, lambda edges: edges[:2])
            return u, v, w
        ids = id_column(of, "of")
        (_, _, w), (u, v) = self._keyed.read(
            lambda: self._keyed.look_up(ids, self._engine.edges_of), lambda edges: edges[:2]
        )
        return u, v, w

    def degrees(self, ids: Ids) -> NDArray[np.int64]:
        """Return how many edges each of the given vertices has."""
        return self._keyed.look_up(id_column(ids, "ids"), self._engine.degrees)

    @property
    def ids(self) -> NDArray[Any]:
        """The ids in order of insertion: an array of int64, or of object holding str."""
        cached = self._cache
        if cached is not None and cached.version == self._engine.version:
            return cached.ids
        _, (ids,) = self._keyed.read(self._engine.keys, lambda keys: (keys,))
        ids.setflags(write=False)
        return ids

    @property
    def epsilon(self) -> float:
        """How far from the best a merge may be."""
        return self._epsilon

    @property
    def threshold(self) -> float:
        """Similarity below which nothing need be merged."""
        return self._threshold

    @property
    def resolution(self) -> float:
        """What weights are rounded to multiples of."""
        return self._keyed.resolution

    @property
    def threads(self) -> int:
        """Threads that a large update may use."""
        return self._threads

    @property
    def version(self) -> int:
        """A number that grows by one with every update that changed something."""
        return self._engine.version

    @property
    def n_levels(self) -> int:
        """The number of levels in the engine."""
        return len(self._engine.level_sizes())

    @property
    def level_sizes(self) -> list[tuple[int, int]]:
        """The numbers of vertices and edges of each level."""
        return self._engine.level_sizes()

    @property
    def memory(self) -> int:
        """Bytes held by the engine."""
        return self._engine.memory()

    def __len__(self) -> int:
        return len(self._engine)

    def __contains__(self, id: object) -> bool:
        return self._keyed.holds(id)

    def __repr__(self) -> str:
        sizes = self._engine.level_sizes()
        vertices, edges = sizes[0] if sizes else (0, 0)
        return (
            f"<GraphHAC: {counted(vertices, 'vertex', 'vertices')}, "
            f"{counted(edges, 'edge', 'edges')}, {counted(len(sizes), 'level', 'levels')}; "
            f"epsilon={self._epsilon:g}, threshold={self._threshold:g}>"
        )
