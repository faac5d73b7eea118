"""Streams: the order in which the points of a data set are inserted and deleted, as a graph.

The edges of a batch join its points to their k nearest neighbours in the same or earlier batches,
with similarity ``1 / (1 + distance)``. Neighbours are slow to find, so a finished stream is kept in
a file of plain arrays.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import SEED, shuffled_points
from benchmarks.common.knn import prefix_neighbours

Array = NDArray[np.generic]

NEIGHBOURS = 50
SINGLE_UPDATES = 200
REAL = ("mnist", "fruits360", "intents", "tinyimagenet")
BUILTIN = ("digits", "blobs")


# A protocol gives the batch boundaries of n points: batch i is points bounds[i] to bounds[i + 1].


def insertion(n: int) -> Array:
    """99% of the points at once, or fewer to leave enough to measure; then single points."""
    bulk = max(min(n * 99 // 100, n - SINGLE_UPDATES), 1)
    return np.r_[0, np.arange(bulk, min(bulk + SINGLE_UPDATES, n) + 1)]


def deletion(n: int) -> Array:
    """100 equal batches: early points have many edges, as after many insertions."""
    return np.linspace(0, n, 101).astype(np.int64)


def growth(n: int) -> Array:
    """1,000 points at once, then all others one at a time."""
    return np.r_[0, np.arange(min(1_000, n // 2), n + 1)]


def batches(n: int) -> Array:
    """Five sevenths of the points at once, then batches of 10, 100, 1,000 and 10,000."""
    bounds = [0, n * 5 // 7]
    for size, count in ((10, 10), (100, 10), (1_000, 2), (10_000, 1)):
        fitting = min(count, (n - bounds[-1]) // size)
        bounds += [bounds[-1] + size * (i + 1) for i in range(fitting)]
    return np.array(bounds)


PROTOCOLS: dict[str, Callable[[int], Array]] = {
    "insertion": insertion,
    "deletion": deletion,
    "growth": growth,
    "batches": batches,
}


@dataclass(frozen=True)
class Stream:
    """Points ``0 .. bounds[-1]``, their labels, and their edges ordered by batch."""

    bounds: Array
    edge_bounds: Array
    u: Array
    v: Array
    w: Array
    labels: Array

    @property
    def n_batches(self) -> int:
        """Number of batches."""
        return len(self.bounds) - 1

    def ids(self, first: int, last: int | None = None) -> Array:
        """Points of batches ``first`` to ``last``, exclusive (by default of ``first`` alone)."""
        return np.arange(self.bounds[first], self.bounds[first + 1 if last is None else last])

    def edges(self, first: int, last: int | None = None) -> tuple[Array, Array, Array]:
        """Edges that arrive with those batches."""
        part = slice(self.edge_bounds[first], self.edge_bounds[first + 1 if last is None else last])
        return self.u[part], self.v[part], self.w[part]

    def batch(self, first: int, last: int | None = None) -> dict[str, Any]:
        """Points and edges of those batches, as arguments of `GraphHAC.update`."""
        return {"add": self.ids(first, last), "edges": self.edges(first, last)}


def stream_path(cache: Path, name: str, protocol: str) -> Path:
    """Return the file of a stream."""
    return cache / f"{name}-{protocol}-k{NEIGHBOURS}-seed{SEED}.npz"


def make_stream(points: Array, labels: Array, bounds: Array, title: str) -> Stream:
    """Find the neighbours of points that arrive in batches with these bounds."""
    limit = np.repeat(bounds[1:], np.diff(bounds))
    query, neighbour, distance = prefix_neighbours(
        points, limit, NEIGHBOURS, title=f"{title}: neighbours"
    )
    # Two points of one batch may find each other; the edge is kept once. The point that finds is
    # in the later batch, so ordering by the larger end keeps batches together.
    low, high = np.minimum(query, neighbour), np.maximum(query, neighbour)
    _, first = np.unique(high * len(points) + low, return_index=True)
    u, v = high[first], low[first]
    return Stream(bounds, np.searchsorted(u, bounds), u, v, 1 / (1 + distance[first]), labels)


def save_stream(path: Path, stream: Stream, **more: Array) -> None:
    """Write a stream and further arrays to a file, which is complete or absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part.npz")
    arrays = {field.name: getattr(stream, field.name) for field in fields(stream)}
    arrays |= {name: arrays[name].astype(np.int32) for name in ("u", "v")}
    np.savez(unfinished, **arrays, **more)
    unfinished.rename(path)


def prepare(cache: Path, name: str, protocol: str, data: Path | None) -> Path:
    """Return the file of a stream; write it if it does not exist."""
    path = stream_path(cache, name, protocol)
    if not path.exists():
        points, labels = shuffled_points(name, data)
        bounds = PROTOCOLS[protocol](len(points))
        points, labels = points[: bounds[-1]], labels[: bounds[-1]]
        save_stream(path, make_stream(points, labels, bounds, f"{name} {protocol}"))
    return path


def load_stream(path: Path) -> Stream:
    """Read a stream, with the dtypes that a user would pass."""
    with np.load(path, allow_pickle=False) as arrays:
        return Stream(
            bounds=arrays["bounds"],
            edge_bounds=arrays["edge_bounds"],
            u=arrays["u"].astype(np.int64),
            v=arrays["v"].astype(np.int64),
            w=arrays["w"],
            labels=arrays["labels"],
        )
