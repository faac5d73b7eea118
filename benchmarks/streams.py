"""The data sets and the order in which their points come and go.

A stream is a similarity graph cut into batches: the edges of a batch join its points to their k
nearest neighbours in the same or earlier batches, with similarity ``1 / (1 + distance)``.
Neighbours are slow to find, so a finished stream is kept as a file of plain arrays.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]

SEED = 0
NEIGHBOURS = 50
SINGLE_UPDATES = 200


@dataclass(frozen=True)
class Dataset:
    """Where points come from, how many of them are used, and where their dendrogram stops."""

    threshold: float
    file: str | None = None  # None: available to everybody, see _builtin
    points: int | None = None


REAL = {
    "mnist": Dataset(1e-4, "mnist_umap2.npz"),
    "fruits360": Dataset(1e-2, "fruits360_bic128.npz", points=108_000),
    "intents": Dataset(1e-2, "intents_minilm384.npz"),
    "tinyimagenet": Dataset(1e-2, "tinyimagenet_effnet256.npz"),
}
BUILTIN = {"digits": Dataset(1e-4), "blobs": Dataset(1e-4)}
DATASETS = REAL | BUILTIN


def load_points(name: str, data: Path | None) -> tuple[Array, Array]:
    """Return the points and labels of a data set, in a seeded random order."""
    dataset = DATASETS[name]
    if dataset.file is None:
        points, labels = _builtin(name)
    elif data is None:
        raise SystemExit(
            f"{name} needs --data (or DYNHAC_DATA), the folder that has {dataset.file}"
        )
    else:
        with np.load(data / dataset.file, allow_pickle=False) as arrays:
            points, labels = arrays["X"], arrays["y"]
    order = np.random.default_rng(SEED).permutation(len(points))[: dataset.points]
    return points[order].astype(np.float32), labels[order].astype(np.int64)


def _builtin(name: str) -> tuple[Array, Array]:
    if name == "digits":
        from sklearn.datasets import load_digits

        digits = load_digits()
        return digits.data, digits.target
    rng = np.random.default_rng(SEED)
    centres = rng.uniform(-30, 30, size=(30, 2))
    labels = rng.integers(30, size=20_000)
    return centres[labels] + rng.normal(size=(20_000, 2)), labels


# A protocol gives the batch boundaries of n points: batch i is points bounds[i] to bounds[i + 1].


def insertion(n: int) -> Array:
    """99% of the points at once, then single points (always enough of them to measure)."""
    bulk = max(min(n * 99 // 100, n - SINGLE_UPDATES), 1)
    return np.r_[0, np.arange(bulk, min(bulk + SINGLE_UPDATES, n) + 1)]


def deletion(n: int) -> Array:
    """100 equal batches: late points hang on early ones, as after a long history of insertions."""
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


def stream_path(cache: Path, name: str, protocol: str) -> Path:
    """File that keeps a stream."""
    return cache / f"{name}-{protocol}-k{NEIGHBOURS}-seed{SEED}.npz"


def make_stream(points: Array, labels: Array, bounds: Array, title: str) -> Stream:
    """Find the neighbours of points that come in batches with these bounds."""
    from knn import prefix_neighbours

    limit = np.repeat(bounds[1:], np.diff(bounds))
    query, neighbour, distance = prefix_neighbours(
        points, limit, NEIGHBOURS, title=f"{title}: neighbours"
    )
    # Two points of one batch may both list the other; the edge is kept once. The listing point is
    # in the later batch, so ordering by the larger end keeps batches together.
    low, high = np.minimum(query, neighbour), np.maximum(query, neighbour)
    _, first = np.unique(high * len(points) + low, return_index=True)
    u, v = high[first], low[first]
    return Stream(bounds, np.searchsorted(u, bounds), u, v, 1 / (1 + distance[first]), labels)


def save_stream(path: Path, stream: Stream, **more: Array) -> None:
    """Write a stream, and arrays that go with it, to a file, which is complete or absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part.npz")
    arrays = {field.name: getattr(stream, field.name) for field in fields(stream)}
    arrays |= {name: arrays[name].astype(np.int32) for name in ("u", "v")}
    np.savez(unfinished, **arrays, **more)
    unfinished.rename(path)


def prepare(cache: Path, name: str, protocol: str, data: Path | None) -> Path:
    """Return the file of a stream, after making it if it is not there."""
    path = stream_path(cache, name, protocol)
    if not path.exists():
        points, labels = load_points(name, data)
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
