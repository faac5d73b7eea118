"""A model of points in a file, a pickle or a copy: one moment of it, from which another goes on.

The state is that of the graph, the points, the window and the neighbour index, each with a prefix
of its own before the names of its arrays. A similarity that is a function, and an index of the
user's own, are not in a file: they are given again when it is loaded.

An index whose answers follow from the points alone is made again from them; usearch's, and one of
the user's own, depend on what they went through and are saved.

The file may come from somebody else. The graph validates itself; here the points must be those of
the graph, and finite. What usearch and an index of the user's own make of their arrays is their
business.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.files.graph_state import MOST_THREADS
from dynhac.input.columns import whole_number
from dynhac.input.errors import FileError, InvalidTypeError, show
from dynhac.models.modelgraph import ModelGraph
from dynhac.models.pointgraph import PointGraph
from dynhac.models.store import PointStore
from dynhac.models.windows import Window
from dynhac.neighbors import make_index, resolve_metric
from dynhac.neighbors.similarity import resolve_similarity

if TYPE_CHECKING:
    from typing_extensions import Self

    from dynhac._core import ReentryGuard
    from dynhac.models.attempt import ShortWay
    from dynhac.models.point_change import PointChange
    from dynhac.neighbors import NeighborIndex
    from dynhac.neighbors.similarity import SimilaritySpec

KIND = "DynHAC"
STATE_VERSION = 1
MOST_NEIGHBORS = 2**20
EXACT = ("exact", "kd")
BACKENDS = (*EXACT, "usearch")


class PersistentPoints:
    """The parts of a `DynHAC`, and what it knows about files, pickles and copies."""

    __slots__ = ("_last_change", "_lock", "_points", "graph")

    graph: ModelGraph
    _points: PointGraph
    # Updates are made under it, and it is the lock of the graph; a thread may take it again.
    _lock: AbstractContextManager[Any]
    _last_change: PointChange | ShortWay | None  # of a point inserted by the short way: that

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, from which `load` makes one that goes on in the same way.

        The file is complete or, if an error is raised, not touched. Updates wait meanwhile. Of a
        ``similarity`` that is a function, and of an index of your own, the file has no copy: give
        them to `load` again.

        Parameters
        ----------
        path : str or path
            An old file is replaced.

        Examples
        --------
        >>> import os, tempfile
        >>> from dynhac import DynHAC
        >>> model = DynHAC()
        >>> _ = model.insert([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(os.path.join(folder, "points.dynhac"))
        ...     again = DynHAC.load(os.path.join(folder, "points.dynhac"))
        >>> again.insert([5.0, 5.1])
        3
        >>> again.labels(0.5).tolist()
        [0, 0, 1, 1]
        """
        from dynhac.files.format import write_file

        with self._still(), closing(self._columns()) as columns:
            write_file(path, KIND, self._header(), columns)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        neighbors: NeighborIndex | None = None,
        similarity: SimilaritySpec = None,
        threads: int | None = None,
    ) -> Self:
        """Return the model in a file that `save` has written.

        Parameters
        ----------
        path : str or path
            The file.
        neighbors : object, optional
            A new, empty index, if the model had one of your own.
        similarity : callable, optional
            The function, if the similarity of the model was one.
        threads : int, optional
            Threads that a large update may use; by default as in the model that was saved.

        Raises
        ------
        FileError
            The file holds something else, or is damaged.

        Notes
        -----
        Files from others are checked before they are used, with one exception: usearch's part is
        in a format of its own, which only usearch reads. Load files with such an index from people
        you trust.
        """
        from dynhac.files.format import about, read_file

        if threads is not None:
            threads = whole_number(threads, "threads", 1, MOST_THREADS)
        if neighbors is not None:
            if isinstance(neighbors, str):
                raise InvalidTypeError(
                    f"neighbors is {show(neighbors)}; the file says what finds the neighbours, and "
                    "only an index of your own is given again"
                )
            make_index(neighbors, "euclidean", 1, 0)  # says what is wrong with it
        header, arrays = read_file(path, KIND)
        with about(path):
            return cls._from_state(header, arrays, neighbors, similarity, threads)

    def _header(self) -> dict[str, Any]:
        points = self._points
        return {
            "state": STATE_VERSION,
            "graph": self.graph._header(),
            "n_neighbors": points.n_neighbors,
            "metric": points.metric.name,
            "similarity": points.similarity.spec,
            "neighbors": points.neighbors if isinstance(points.neighbors, str) else None,
            "repair": points.repair,
            "window": points.window.parameters(),
            "backend": points.backend,
            "settled": points.settled,
            "index_saved": self._saves_index(),
        }

    @contextmanager
    def _still(self) -> Iterator[None]:
        """A time without updates; RuntimeError if one is going on in this very thread."""
        with self._lock:
            self._settle()
            with self._guard:
                yield

    def _settle(self) -> None:
        """Before the points are used, under the lock: finish an update that was interrupted."""
        if not self._guard.held:
            self._points.settle()

    @property
    def _guard(self) -> ReentryGuard:
        """Held while the model is updated or saved, by the thread that has the lock."""
        return self.graph._keyed.guard

    def _saves_index(self) -> bool:
        points = self._points
        return points.index is not None and points.backend not in EXACT and not points.lost

    def _columns(self, index: bool = True) -> Generator[tuple[str, NDArray[Any]], None, None]:
        """Give the whole state, one array at a time, under the lock; with or without the index."""
        points = self._points
        with closing(self.graph._keyed.columns()) as columns:
            for name, column in columns:
                yield f"graph/{name}", column
        parts: dict[str, Mapping[str, NDArray[Any]]] = {"window": points.window.state(points.store)}
        if points.store is not None:
            parts["points"] = points.store.state()
            if index and points.index is not None and self._saves_index():
                parts["index"] = points.index.save()
        for part, arrays in parts.items():
            for name, array in arrays.items():
                yield f"{part}/{name}", array

    @classmethod
    def _from_state(
        cls,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        neighbors: NeighborIndex | None = None,
        similarity: SimilaritySpec = None,
        threads: int | None = None,
        filled: bool = False,
    ) -> Self:
        """Return the model that a state was taken from; ``filled``: with its own index.

        FileError: it is not the state of a model.
        """
        version = header.get("state")
        if version != STATE_VERSION:
            raise FileError(
                f"the model has state version {show(version)}, and this version of dynhac reads "
                f"version {STATE_VERSION}"
            )
        model = cls.__new__(cls)
        model._last_change = None
        try:
            _check_given(header, neighbors, similarity)
            if neighbors is not None and not filled and len(neighbors):
                raise FileError("neighbors must be a new, empty index")
            model.graph = ModelGraph._from_state(header["graph"], _part(arrays, "graph/"), threads)
            model._lock = model.graph._keyed.lock
            model._points = _restore(model.graph, header, arrays, neighbors, similarity)
        except KeyError as error:
            raise FileError(f"the model is damaged: {error.args[0]} is missing") from error
        except FileError:
            raise
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            raise FileError(f"the model is damaged: {error}") from error
        return model

    def __reduce__(self) -> tuple[Any, ...]:
        points = self._points
        own = None if isinstance(points.neighbors, str) else points.neighbors
        with self._still(), closing(self._columns(index=own is None)) as columns:
            header, arrays = self._header(), dict(columns)
        if own is not None:
            header["index_saved"] = False  # it goes along as it is
        return self._from_state, (header, arrays, own, points.similarity.function, None, True)

    def __copy__(self) -> Self:
        with self._lock:  # for an index of the user's own, which goes along as it is
            make, (header, arrays, own, *rest) = self.__reduce__()
            own = copy.deepcopy(own)
        return make(header, arrays, own, *rest)  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()


def _part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {n.removeprefix(prefix): array for n, array in arrays.items() if n.startswith(prefix)}


def _check_given(header: Mapping[str, Any], neighbors: object, similarity: object) -> None:
    """Raise if something that is not in the file has not been given, or the other way round."""
    for name, given in (("neighbors", neighbors), ("similarity", similarity)):
        kept = header[name] is not None
        if kept and given is not None:
            raise FileError(f"the model has its own {name}, {show(header[name])}; give none")
        if not kept and given is None:
            what = "an index" if name == "neighbors" else "a function"
            raise FileError(f"the model had {what} of your own as {name}; give it to load")


def _restore(
    graph: ModelGraph,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    neighbors: NeighborIndex | None,
    similarity: SimilaritySpec,
) -> PointGraph:
    metric = resolve_metric(header["metric"])
    kept = header["similarity"]
    points = PointGraph(
        graph,
        metric,
        resolve_similarity(similarity if kept is None else kept, metric),
        header["neighbors"] if neighbors is None else neighbors,
        whole_number(header["n_neighbors"], "n_neighbors", 1, MOST_NEIGHBORS),
        bool(header["repair"]),
        Window.from_parameters(header["window"]),
    )
    own = _part(arrays, "points/")
    if own:
        points.store = PointStore.from_state(graph, own)
        _check_points(points.store, graph)
    elif len(graph):
        raise FileError("the model is damaged: it has a graph without points")
    points.window.load(_part(arrays, "window/"), points.store)
    points.backend, points.settled = header["backend"], bool(header["settled"])
    if points.backend is not None and points.backend not in BACKENDS:
        raise FileError(f"the model is damaged: its backend is {show(points.backend)}")
    if points.store is not None and (points.backend is not None or neighbors is not None):
        points.index = _restore_index(points, points.store, header, arrays)
    return points


def _restore_index(
    points: PointGraph,
    store: PointStore,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> NeighborIndex:
    index = points.index  # one of the user's own
    if index is None:
        index = make_index(points.backend, points.metric, store.dimension, len(store))
    used = store.table.used()
    if header["index_saved"]:
        saved = _part(arrays, "index/")
        if points.backend is not None and not np.array_equal(saved["slots"], used):
            raise FileError("the model is damaged: its index does not hold its points")
        index.load(saved)
    elif not len(index):  # a copy comes with an index of the user's own that is full
        index.add(used, store.table.vectors_of(used))
    if len(index) != len(store):
        raise FileError("the model is damaged: its index does not hold its points")
    return index


def _check_points(store: PointStore, graph: ModelGraph) -> None:
    used = store.table.in_order()
    if not graph.has_vertices(store.table.keys_of(used), store.text):
        raise FileError("the model is damaged: its points are not those of its graph")
    if not np.isfinite(store.table.vectors_of(used)).all():
        raise FileError("the model is damaged: a vector is not finite")
