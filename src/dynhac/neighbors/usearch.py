"""Approximate nearest neighbours among many vectors: an HNSW graph, built by usearch.

The graph holds every distinct vector once, under the key from `VectorIndex`; equal vectors share a
key. (If hundreds of equal vectors were nodes, their edges would lead only to each other.) The index
keeps the vectors too, to report exact distances, and to scan them while they are few or where the
graph finds fewer than k. That is rare: removals or near duplicates have disconnected it then.

The graph depends only on the order of additions and removals, because one thread builds it. usearch
does not save the state of the random generator that draws the levels of new nodes. So `save`
replaces the graph by a reloaded one: the index then continues like any other that loads the state.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.neighbors.arrays import parts
from dynhac.neighbors.usearch_file import read_graph
from dynhac.neighbors.vector_index import PAIRS_AT_ONCE, VectorIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from dynhac.neighbors.index import Distances, Ints, Vectors
    from dynhac.neighbors.metrics import Metric

MOST_NUMBERS_WITHOUT_GRAPH = 2**18
"""Numbers (distinct vectors times dimension) up to which examining all is as fast as the graph."""

MOST = {"connectivity": 2**10, "expansion_add": 2**20, "expansion_search": 2**20}
"""The largest settings that are loaded, so that a small file cannot request much memory."""

SCALED = 2.0**-23
"""How far a vector of length 1 from another machine may be from ours: its length, a sum in float64,
may be rounded in another way, and then the float32 next to ours is taken."""

# Vectors prepared for cosine have length 1 or 0, so that the inner product is the cosine.
USEARCH_METRICS = {"euclidean": "l2sq", "cosine": "ip", "inner_product": "ip"}


class UsearchIndex(VectorIndex):
    """An approximate index for many vectors; needs usearch.

    Distances are exact. A few of the k nearest may be missing, with farther vectors instead.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "inner_product"}
        How distance is measured.
    dimension : int
        The length of the vectors.
    connectivity : int, default 32
        Edges of a vector in the graph.
    expansion_add, expansion_search : int, optional
        Candidates to examine when a vector is added, and in a query. Larger values are slower and
        find more neighbours. By default 128 and 192; 512 each for inner products, which are not a
        metric and harder to search.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.neighbors import UsearchIndex
    >>> index = UsearchIndex("euclidean", dimension=1)
    >>> index.add(np.array([0, 1, 2]), np.array([[0.0], [5.0], [6.0]], np.float32))
    >>> slots, distances = index.query(np.array([[5.25]], np.float32), 2)
    >>> slots.tolist(), distances.tolist()
    ([[1, 2]], [[0.25, 0.75]])
    """

    __slots__ = ("_graph", "_settings")

    def __init__(
        self,
        metric: str | Metric,
        dimension: int,
        *,
        connectivity: int = 32,
        expansion_add: int | None = None,
        expansion_search: int | None = None,
    ) -> None:
        super().__init__(metric)
        usual = (512, 512) if self.metric == "inner_product" else (128, 192)
        self._settings = (
            dimension,
            connectivity,
            usual[0] if expansion_add is None else expansion_add,
            usual[1] if expansion_search is None else expansion_search,
        )
        self._graph = _new_graph(self.metric, *self._settings)

    def add(self, slots: Ints, vectors: Vectors) -> None:
        """See `NeighborIndex.add`."""
        keys, new = self._add(slots, self._metric.prepare(vectors))
        if len(keys):
            with _interrupts():
                self._graph.add(keys.astype(np.uint64), new, threads=1)

    def remove(self, slots: Ints) -> None:
        """See `NeighborIndex.remove`."""
        keys = self._remove(slots)
        if len(keys):
            with _interrupts():
                self._graph.remove(keys.astype(np.uint64), threads=1)

    def query(self, vectors: Vectors, k: int) -> tuple[Ints, Distances]:
        """See `NeighborIndex.query`."""
        if len(self._distinct) * self._settings[0] <= MOST_NUMBERS_WITHOUT_GRAPH:
            return super().query(vectors, k)
        return self._nearest(vectors, k, self._graph_candidates, k)

    def save(self) -> dict[str, NDArray[Any]]:
        """See `NeighborIndex.save`."""
        written = self._graph.save()
        self._read_graph(np.frombuffer(written, np.uint8))  # what cannot be loaded is not saved
        graph = _new_graph(self.metric, *self._settings)
        graph.load(written)
        self._graph = graph
        slots, keys = self._keys.held()
        return {
            "graph": np.frombuffer(written, np.uint8),
            "settings": np.array(self._settings, np.int64),
            "slots": slots,
            "keys": keys,
            "free": self._keys.free_keys(),
        }

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `NeighborIndex.load`; the settings are those of the saved index.

        Everything is checked before usearch reads it. ValueError: it is not the state of an index.
        """
        self._settings = self._read_settings(arrays["settings"])
        keys, vectors = self._read_graph(arrays["graph"])
        if np.signbit(vectors[vectors == 0.0]).any():
            raise ValueError("a vector of its index has a negative zero")
        self._keys.load(arrays["slots"], arrays["keys"], arrays["free"], keys, vectors)
        self._distinct.add(keys, vectors)
        self._graph = _new_graph(self.metric, *self._settings)
        self._graph.load(arrays["graph"].tobytes())

    def _read_graph(self, data: NDArray[np.uint8]) -> tuple[Ints, Vectors]:
        dimension, connectivity = self._settings[:2]
        return read_graph(data, USEARCH_METRICS[self.metric], dimension, connectivity)

    def _read_settings(self, column: NDArray[Any]) -> tuple[int, int, int, int]:
        if column.dtype != np.int64 or column.shape != (4,):
            raise ValueError("the settings of its index are not four numbers")
        settings: tuple[int, int, int, int] = tuple(column.tolist())
        if settings[0] != self._settings[0]:
            raise ValueError(f"its index has dimension {settings[0]}, not {self._settings[0]}")
        for (name, most), value in zip(MOST.items(), settings[1:], strict=True):
            if not 1 <= value <= most:
                raise ValueError(f"{name} of its index is {value}; it must be in 1 ... {most}")
        return settings

    def has_vectors(self, slots: Ints, vectors: Vectors, *, far: float = SCALED) -> bool:
        """Return whether slots that are in the index have these vectors.

        Vectors that were scaled to length 1 may differ by ``far`` in each column.
        """
        keys = self._keys.keys_of(slots)
        if self.metric != "cosine":
            far = 0.0
        for part in parts(len(slots), PAIRS_AT_ONCE // self._settings[0]):
            expected = self._metric.prepare(vectors[part])
            if (np.abs(self._distinct.vectors_of(keys[part]) - expected) > far).any():
                return False
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, (self.metric, self._settings[0], self.save())

    def _graph_candidates(self, queries: Vectors, k: int) -> tuple[Ints, Ints]:
        """Return pairs (query, key) from the graph, or from a scan where it finds too few."""
        k = min(k, len(self._distinct))
        with _interrupts():
            found = self._graph.search(queries, k, threads=1)
        counts = np.array([len(found)]) if len(queries) == 1 else found.counts
        keys = np.zeros((len(queries), k), np.int64)
        keys[:, : found.keys.shape[-1]] = found.keys
        full = np.flatnonzero(counts == k)
        short = np.flatnonzero(counts < k)
        pairs = [(np.repeat(full, k), keys[full].ravel())]
        for part in parts(len(short), PAIRS_AT_ONCE // len(self._distinct)):
            rows, scanned = self._distinct.all_pairs(queries[short[part]])
            pairs.append((short[part][rows], scanned))
        return np.concatenate([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])


@contextmanager
def _interrupts() -> Iterator[None]:
    """Turn the RuntimeError that usearch raises on Ctrl-C into a KeyboardInterrupt."""
    try:
        yield
    except RuntimeError as error:
        if "terminated" not in str(error):
            raise
        raise KeyboardInterrupt from error


def _new_graph(
    metric: str, dimension: int, connectivity: int, expansion_add: int, expansion_search: int
) -> Any:
    try:
        from usearch.index import Index
    except ImportError as error:
        raise ImportError("neighbors='usearch' needs usearch: pip install dynhac[ann]") from error
    return Index(
        ndim=dimension,
        metric=USEARCH_METRICS[metric],
        dtype="f32",
        connectivity=connectivity,
        expansion_add=expansion_add,
        expansion_search=expansion_search,
    )


def _loaded(metric: str, dimension: int, arrays: Mapping[str, NDArray[Any]]) -> UsearchIndex:
    """Return an index with a saved state, for pickle."""
    index = UsearchIndex(metric, dimension)
    index.load(arrays)
    return index
