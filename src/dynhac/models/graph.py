"""GraphHAC: the hierarchy of a weighted graph that changes.

`GraphHAC.update` reads its arguments into a batch of columns, and the engine applies it. With a
store, the batch goes through the store's writer, which puts it into the log first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac.files.model_state import SavedModel
from dynhac.input.batches import GraphBatch
from dynhac.input.columns import (
    NO_IDS,
    IdColumn,
    Ids,
    check_new_ids,
    edge_columns,
    id_column,
    pair_columns,
)
from dynhac.input.errors import counted
from dynhac.input.graphs import Edges, graph_edges, vertices_and_edges
from dynhac.input.payloads import NewPayloads
from dynhac.models.change import Change
from dynhac.models.engine import IdEngine
from dynhac.models.hierarchy import BatchWriter, Hierarchy
from dynhac.models.parameters import Given, GraphParameters
from dynhac.progress import ProgressOption, for_update

if TYPE_CHECKING:
    from typing_extensions import Self

    from dynhac._core import Meter
    from dynhac.files.model_state import Source


class ReadOnlyGraph:
    """Takes the place of a store's writer in the graph of a `DynHAC`, and refuses updates."""

    def prepare(self) -> NoReturn:
        """Refuse: only the model changes its graph."""
        raise TypeError(
            "the graph of a DynHAC is there to be read; use the model's insert, delete and update"
        )

    def write(self, model: Any, batch: Any, progress: Any, payloads: Any) -> NoReturn:
        """Refuse."""
        self.prepare()


class GraphHAC(Hierarchy, SavedModel):
    """Average-linkage hierarchical clustering of a weighted graph, kept up to date.

    The hierarchy is (1+ε)-approximate after every update: each merge joins two clusters whose
    average similarity is within a factor 1+ε of the best there was. An update costs what it
    changes, not what the graph holds.

    Parameters
    ----------
    epsilon : float, default 0.1
        How far from the best a merge may be, >= 0. With 0 the hierarchy is exact.
    threshold : float, default 0
        Similarity below which nothing need be merged, >= 0. With 0 every connected component
        becomes one tree.
    resolution : float, default 2**-32
        Weights are rounded to multiples of this, so that sums are exact; > 0. Similarities that
        they are compared with allow for it: a cut or a threshold at 0.2 counts an edge of 0.2 in.
    threads : int, optional
        Threads that a large update may use, up to 1024; by default one for every core. The result
        does not depend on it.

    Notes
    -----
    Ids are all int (64 bits) or all str; the first batch decides. Threads may share an object:
    readers and a writer are safe, and the interpreter lock is released while the engine works.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC(epsilon=0.1)
    >>> _ = g.update(add=["a", "b", "c"], edges=(["a", "b"], ["b", "c"], [0.9, 0.3]))
    >>> g.labels(0.5).tolist()
    [0, 0, 1]
    >>> change = g.update(add="d", edges=("d", "c", 0.8), remove="a")
    >>> g.ids.tolist(), g.labels(0.5).tolist()
    (['b', 'c', 'd'], [0, 1, 1])
    """

    __slots__ = ("__weakref__",)

    _file_kind = "GraphHAC"

    def __init__(
        self,
        epsilon: float = 0.1,
        threshold: float = 0.0,
        *,
        resolution: float = 2.0**-32,
        threads: int | None = None,
    ) -> None:
        parameters = GraphParameters.read(
            epsilon, threshold, resolution=resolution, threads=threads
        )
        self._start(IdEngine(parameters))

    def _start(self, engine: IdEngine, writer: BatchWriter | None = None) -> None:
        self._engine = engine
        self._writer = writer

    @classmethod
    def _over(cls, engine: IdEngine) -> Self:
        """Return the graph of a `DynHAC`, to be read."""
        graph = cls.__new__(cls)
        graph._start(engine, ReadOnlyGraph())
        return graph

    @classmethod
    def from_graph(
        cls,
        graph: Edges,
        ids: Ids | None = None,
        *,
        epsilon: float = 0.1,
        threshold: float = 0.0,
        resolution: float = 2.0**-32,
        threads: int | None = None,
        progress: ProgressOption = None,
    ) -> Self:
        """Return a model of a whole graph.

        Parameters
        ----------
        graph : matrix of similarities, networkx Graph, or edges as in `update`
            Vertices are the rows of a matrix, the nodes of a networkx graph, or the ids that the
            edges mention.
        ids : ids, optional
            The ids of the rows of a matrix (default: 0, 1, ...); otherwise the vertices in the
            order wanted, those without edges included.
        epsilon, threshold, resolution, threads
            The parameters of the model, as for the constructor.
        progress : bool or callable, optional
            Whether to show how far the call is, or a function to tell; see `Progress`.

        Examples
        --------
        >>> import numpy as np
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph(([1, 2], [2, 3], [0.9, 0.3]), epsilon=0)
        >>> g.ids.tolist()
        [1, 2, 3]
        >>> similarities = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.3], [0.0, 0.3, 1.0]])
        >>> GraphHAC.from_graph(similarities, ["a", "b", "c"]).labels(0.5).tolist()
        [0, 0, 1]
        """
        model = cls(epsilon, threshold, resolution=resolution, threads=threads)
        if ids is None:
            ids, graph = vertices_and_edges(graph)
        model.update(add=ids, edges=graph, progress=progress)
        return model

    def update(
        self,
        *,
        add: Ids | None = None,
        edges: Edges | None = None,
        remove: Ids | None = None,
        remove_edges: tuple[Ids, Ids] | None = None,
        payload: Any = None,
        progress: ProgressOption = None,
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

            - a tuple ``(u, v, w)`` of columns, or a table with columns u, v and w, or source,
              target and weight;
            - a matrix of similarities, an array or one of scipy.sparse, whose rows and columns are
              ``add`` if that is given, else `ids` as they are before the batch; symmetric, or one
              triangle; its diagonal is ignored, and so are values that round to 0;
            - a networkx graph with the attribute ``weight`` on every edge; its nodes that are not
              in the graph are added.
        remove : ids, optional
            Vertices to remove, with their edges.
        remove_edges : tuple (u, v) of columns, optional
            Edges to remove.
        payload : list of dict, optional
            A JSON object, or None, for every vertex in ``add``; for models of `dynhac.open`.
        progress : bool or callable, optional
            Whether to show how far the call is, or a function to tell; see `Progress`.

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
        lock, report = self._prepare_update(), for_update(progress)
        gone = NO_IDS if remove is None else id_column(remove, "remove")
        new = NO_IDS if add is None else id_column(add, "add")
        self._require_payloads(payload)
        payloads = None if payload is None else NewPayloads.read(payload, new)
        cut_u: IdColumn = NO_IDS
        cut_v: IdColumn = NO_IDS
        if remove_edges is not None:
            cut_u, cut_v = pair_columns(remove_edges)
        engine = self._engine
        with lock:
            if edges is None:
                batch = GraphBatch(gone, new, cut_u, cut_v)
            elif type(edges) is tuple and len(edges) == 3:
                batch = GraphBatch(gone, new, cut_u, cut_v, *edge_columns(*edges))
            else:
                given = None if add is None else new
                new, listed = graph_edges(
                    edges, engine.resolution, given, gone, engine.all_ids, engine.holds
                )
                batch = GraphBatch(gone, new, cut_u, cut_v, *listed)
            check_new_ids(batch.add, "add")
            change: Change = self._write(batch, report, payloads)
            return change

    def _apply(self, batch: GraphBatch, progress: Any = None) -> Change:
        """Apply a batch, under the lock."""
        with self._engine.guard:
            return Change(self._engine.update(batch, progress))

    @property
    def _update_count(self) -> int:
        return self._engine.engine.version

    def add(
        self,
        ids: Ids,
        edges: Edges | None = None,
        *,
        payload: Any = None,
        progress: ProgressOption = None,
    ) -> Change:
        """Add vertices, with edges to each other and to old ones; see `update`.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.add([1, 2], edges=(1, 2, 0.5))
        >>> len(g)
        2
        """
        return self.update(add=ids, edges=edges, payload=payload, progress=progress)

    def remove(self, ids: Ids, *, progress: ProgressOption = None) -> Change:
        """Remove vertices and their edges; see `update`."""
        return self.update(remove=ids, progress=progress)

    def set_edges(self, u: Ids, v: Ids, w: ArrayLike, *, progress: ProgressOption = None) -> Change:
        """Insert edges between existing vertices, or replace their weights; see `update`."""
        return self.update(edges=(u, v, w), progress=progress)

    def remove_edges(self, u: Ids, v: Ids, *, progress: ProgressOption = None) -> Change:
        """Remove edges; see `update`."""
        return self.update(remove_edges=(u, v), progress=progress)

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
        engine = self._engine
        if of is None:
            (_, _, w), (u, v) = engine.read(engine.engine.edges, lambda edges: edges[:2])
            return u, v, w
        ids = id_column(of, "of")
        (_, _, w), (u, v) = engine.read(
            lambda: engine.look_up(ids, engine.engine.edges_of), lambda edges: edges[:2]
        )
        return u, v, w

    def degrees(self, ids: Ids) -> NDArray[np.int64]:
        """Return how many edges each of the given vertices has."""
        return self._engine.look_up(id_column(ids, "ids"), self._engine.engine.degrees)

    @property
    def memory(self) -> int:
        """Bytes held by the engine."""
        return self._engine.engine.memory()

    def _header(self) -> dict[str, Any]:
        return {"parameters": self._engine.parameters.plain()}

    def _sources(self) -> Iterator[tuple[str, Source]]:
        return self._engine.columns()

    def _load(
        self,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        given: Given,
        progress: Meter | None,
    ) -> None:
        parameters = given.complete(GraphParameters, header["parameters"])
        self._start(IdEngine(parameters, arrays, progress))

    def _repr_html_(self) -> str:
        from dynhac.notebook.views import graph_html

        return graph_html(self)

    def __repr__(self) -> str:
        sizes = self.level_sizes
        vertices, edges = sizes[0] if sizes else (0, 0)
        return (
            f"<GraphHAC: {counted(vertices, 'vertex', 'vertices')}, "
            f"{counted(edges, 'edge', 'edges')}, {counted(len(sizes), 'level', 'levels')}; "
            f"epsilon={self.epsilon:g}, threshold={self.threshold:g}>"
        )
