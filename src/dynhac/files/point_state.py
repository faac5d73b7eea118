"""The points of a `DynHAC` in its state: their columns, the clock and the neighbour index.

An index whose answers follow from the points alone is built again from them. The answers of
cells, of usearch, and of an index of the user's own, depend on their history: these indexes are
saved. The arrays of cells and usearch are checked before they are loaded; those of an index of the
user's own it has to check itself.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac._core import Cells
from dynhac.files.model_state import SavedModel, Source, made
from dynhac.input.columns import FLOAT64, INT64, INT64_MAX
from dynhac.input.errors import FileError, show
from dynhac.models.engine import IdEngine
from dynhac.models.index_choice import IndexChooser, for_core
from dynhac.models.parameters import Given, PointParameters
from dynhac.neighbors import make_index
from dynhac.neighbors.choose import split_name

if TYPE_CHECKING:
    from typing_extensions import Self

    from dynhac._core import Meter, PointModel
    from dynhac.neighbors import NeighborIndex
    from dynhac.neighbors.similarity import SimilaritySpec
    from dynhac.progress import ProgressOption

    Arrays = Mapping[str, NDArray[Any]]

REBUILT = ("exact", "kd", "gpu")
BACKENDS = (*REBUILT, "cells", "usearch")


class SavedPoints(SavedModel):
    """What a `DynHAC` knows about files, pickles and copies."""

    __slots__ = ()

    _file_kind = "DynHAC"

    _parameters: PointParameters
    _points: PointModel

    def _start(self, parameters: PointParameters, engine: IdEngine) -> None:
        raise NotImplementedError

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        neighbors: NeighborIndex | None = None,
        similarity: SimilaritySpec = None,
        threads: int | None = None,
        progress: ProgressOption = None,
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
        progress : bool or callable, optional
            Whether to show how far the call is, or a function to tell; see `Progress`.

        Raises
        ------
        FileError
            The file holds something else, or is damaged.

        Notes
        -----
        Everything in the file is checked before it is used, and the model is verified, see
        `verify`. So files from others are safe to load. Only an index of your own has to check its
        part itself.
        """
        return cls._load_file(path, Given(threads, neighbors, similarity), progress)

    def _header(self) -> dict[str, Any]:
        points = self._points
        return {
            "parameters": self._parameters.plain(),
            "time_kind": points.time_kind,
            "backend": points.backend,
            "index_max_points": points.index_max_points,
            "index_saved": _saves_index(points),
        }

    def _sources(self, index: bool = True) -> Iterator[tuple[str, Source]]:
        for name, column in self._engine.columns():
            yield f"graph/{name}", column
        yield from _point_columns(self._points, index)

    def _load(
        self,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        given: Given,
        progress: Meter | None,
    ) -> None:
        parameters = given.complete(PointParameters, header["parameters"])
        graph = {
            name.removeprefix("graph/"): array
            for name, array in arrays.items()
            if name.startswith("graph/")
        }
        self._start(parameters, IdEngine(parameters.graph, graph, progress))
        _load_points(self._points, self._engine, parameters, header, arrays, given.filled)

    def __reduce__(self) -> tuple[Any, ...]:
        own, function = self._parameters.own_index, self._parameters.similarity.function
        with self._still():
            header, arrays = self._full_header(), dict(made(self._sources(index=own is None)))
        if own is not None:
            header["index_saved"] = False  # the index itself goes along
            header["index_lost"] = self._points.index_lost
        make = (self._copied_as or type(self))._from_state
        return make, (header, arrays, Given(None, own, function, filled=True))

    def __copy__(self) -> Self:
        with self._engine.lock:  # the index of the user's own must be copied at the same moment
            make, (header, arrays, given) = self.__reduce__()
            given = given._replace(neighbors=copy.deepcopy(given.neighbors))
        return make(header, arrays, given)  # type: ignore[no-any-return]


def widened(model: SavedPoints, dimension: int) -> Any:
    """Return a copy of a model, with its watches, whose vectors have more columns, which are 0.

    No distance changes, and so nothing else does. The index is built again, so that it must not be
    one of the user's own.
    """
    make, (header, arrays, given) = model.__reduce__()
    old = arrays["points/vectors"]
    vectors = np.zeros((len(old), dimension), old.dtype)
    vectors[:, : old.shape[1]] = old
    arrays = {n: a for n, a in arrays.items() if not n.startswith("index/")}
    arrays["points/vectors"] = vectors
    choose, count = IndexChooser(model._parameters), len(model._engine.engine)
    _, backend, max_points = choose(dimension, count, header["backend"], False)
    header |= {"backend": backend, "index_max_points": max_points, "index_saved": False}
    return make(header, arrays, given)


def _saves_index(points: PointModel) -> bool:
    """Whether the index of a model is part of its state."""
    return points.index is not None and points.backend not in REBUILT and not points.index_lost


def _point_columns(points: PointModel, index: bool) -> Iterator[tuple[str, Source]]:
    """Give the columns of the state, with or without those of the index."""
    clock = points.clock
    if clock is not None:
        yield "clock", np.array([clock], FLOAT64 if isinstance(clock, float) else INT64)
    if points.dimension is None:
        return
    for name, column in points.state_columns():
        yield f"points/{name}", column
    yield "points/counters", np.array([points.next_arrival, points.next_id], INT64)
    if index and _saves_index(points):
        points.set_index_saved()
        held = points.index
        saved = held.save() if isinstance(held, Cells) else held.object.save()
        for name, array in saved.items():
            yield f"index/{name}", array


def _load_points(
    points: PointModel,
    engine: IdEngine,
    parameters: PointParameters,
    header: Mapping[str, Any],
    arrays: Arrays,
    filled: bool,
) -> None:
    """Load points and index into a new model; ``filled``: an index of the user's own has them."""
    clock = arrays.get("clock")
    if clock is not None:
        if clock.shape != (1,) or clock.dtype not in (INT64, FLOAT64) or not np.isfinite(clock[0]):
            raise FileError("the model is damaged: its clock is not right")
        points.clock = clock[0].item()
    own = parameters.own_index
    if own is not None and not filled and len(own):
        raise FileError("neighbors must be a new, empty index")
    if "points/keys" not in arrays:
        if len(engine.engine):
            raise FileError("the model is damaged: it has a graph without points")
        return
    keys, arrival, vectors, counters = (
        np.ascontiguousarray(arrays[f"points/{name}"])
        for name in ("keys", "arrival", "vectors", "counters")
    )
    if counters.shape != (2,) or counters.dtype != INT64:
        raise FileError("the model is damaged: its counters are not right")
    next_arrival, next_id = counters.tolist()
    kind = header["time_kind"]
    if kind is None and parameters.max_age is not None:
        raise FileError("the model is damaged: its points have no timestamps")
    times = None if kind is None else np.ascontiguousarray(arrays["points/timestamps"])
    points.load(keys, arrival, vectors, kind, times, next_arrival, next_id)
    _check_points(keys, arrival, vectors, next_id, engine)
    most = parameters.max_points
    if most is not None and len(engine.engine) > most:
        raise FileError(
            f"the model is damaged: it has {len(engine.engine)} points, and max_points is {most}"
        )
    if header.get("index_lost"):
        points.lose_index()
    else:
        _load_index(points, engine, parameters, header, arrays)


def _check_points(
    keys: NDArray[np.int64],
    arrival: NDArray[np.int64],
    vectors: NDArray[np.float32],
    next_id: int,
    engine: IdEngine,
) -> None:
    used = np.flatnonzero(arrival >= 0)
    in_order = keys[used[np.argsort(arrival[used])]]
    if not np.array_equal(in_order, engine.engine.keys()):
        raise FileError("the model is damaged: its points are not those of its graph")
    if not np.isfinite(vectors[used]).all():
        raise FileError("the model is damaged: a vector is not finite")
    last = int(in_order.max(initial=-1))
    if next_id < 0 or not (engine.ids.used or last < next_id or last == next_id == INT64_MAX):
        raise FileError("the model is damaged: its next id has been used before")


def _load_index(
    points: PointModel,
    engine: IdEngine,
    parameters: PointParameters,
    header: Mapping[str, Any],
    arrays: Arrays,
) -> None:
    backend, own = header["backend"], parameters.own_index
    if own is None:
        if backend is None:
            if header["index_saved"]:
                raise FileError("the model is damaged: its index has no backend")
            return
        if backend not in BACKENDS:
            raise FileError(f"the model is damaged: its backend is {show(backend)}")
    choice, saved = (backend, header["index_max_points"]), header["index_saved"]
    if backend in REBUILT and saved:
        raise FileError(f"the model is damaged: it has the index of backend {show(backend)}")
    if backend in (*REBUILT, "cells"):
        dimension, count = points.dimension, len(engine.engine)
        assert dimension is not None
        wanted, threads = parameters.neighbors, parameters.graph.thread_count
        if not isinstance(wanted, str) or split_name(wanted)[0] != backend:
            wanted = backend
        index = make_index(wanted, parameters.metric, dimension, count, threads=threads)
        native = for_core(index, dimension)
        if isinstance(native, Cells) and saved:
            _load_cells(points, native, arrays)
            points.load_index((native, *choice))
            points.set_index_saved()
        else:
            points.build_index((native, *choice))
        return
    slots, vectors = points.slots_and_vectors()
    held: Any = points.index.object if own is not None else None
    if own is None:
        held = make_index(backend, parameters.metric, vectors.shape[1], len(slots))
    if saved:
        parts = {
            name.removeprefix("index/"): array
            for name, array in arrays.items()
            if name.startswith("index/")
        }
        if own is None and not np.array_equal(parts["slots"], slots):
            raise FileError("the model is damaged: its index does not hold its points")
        held.load(parts)
        if own is None and not held.has_vectors(slots, vectors):
            raise FileError("the model is damaged: its index does not hold its points")
    elif not len(held):
        held.add(slots, vectors)
    if len(held) != len(slots):
        raise FileError("the model is damaged: its index does not hold its points")
    if own is not None:
        held.hold(slots)
    else:
        points.load_index((for_core(held, vectors.shape[1]), *choice))
    if saved:
        points.set_index_saved()


def _load_cells(points: PointModel, cells: Cells, arrays: Arrays) -> None:
    saved = {
        name.removeprefix("index/"): np.ascontiguousarray(array)
        for name, array in arrays.items()
        if name.startswith("index/")
    }
    slots, vectors = points.slots_and_vectors()
    if not np.array_equal(np.sort(saved["slots"]), slots):
        raise FileError("the model is damaged: its index does not hold its points")
    points.share_vectors(cells)
    cells.load(saved, saved["slots"], vectors[np.searchsorted(slots, saved["slots"])])
