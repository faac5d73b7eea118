"""The streams of the evaluation: data sets, the order of their points, and files.

Points are in a seeded random order, except for data sets with an order of their own (news: by
time). A subset is a prefix of that order. A stream holds the points of a protocol and their
similarity graph: the edges of a batch join its points to their k nearest neighbours in the same or
earlier batches, with similarity ``1 / (1 + distance)``. Finding neighbours is slow, so streams are
kept in files; a file is complete or absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import datasets
from benchmarks.common.datasets import SEED, read_points, shuffled_points
from benchmarks.common.streams import (
    BUILTIN,
    NEIGHBOURS,
    REAL,
    Stream,
    load_stream,
    make_stream,
    save_stream,
)
from benchmarks.evaluation.protocols import PROTOCOLS

TIME_ORDER = ("reuters",)
FETCHED = ("aloi", "ilsvrc")
DATASETS = {n: datasets.DATASETS[n] for n in (*REAL, *TIME_ORDER, *FETCHED, *BUILTIN)}


@dataclass(frozen=True)
class PointStream:
    """A stream and its points; row i is point i."""

    graph: Stream
    points: NDArray[np.float32]


def available(data: Path | None) -> list[str]:
    """Return the data sets whose files are in a folder; without one, those that need no file."""
    if data is None:
        return list(BUILTIN)
    return [name for name, d in DATASETS.items() if d.file is not None and (data / d.file).exists()]


@cache
def points_in_order(name: str, data: Path | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the points and classes of a data set in the order in which they arrive."""
    if name not in TIME_ORDER:
        return shuffled_points(name, data)
    points, classes = read_points(name, data)
    with np.load(data / str(DATASETS[name].file), allow_pickle=False) as arrays:
        order = np.argsort(arrays["time"], kind="stable")
    return points[order], classes[order]


def stream_file(
    folder: Path, name: str, protocol: str, size: int | None, data: Path | None
) -> tuple[Path, int]:
    """Return the file of a stream and its number of points; write it if it does not exist."""
    points, labels = points_in_order(name, data)
    points, labels = points[:size], labels[:size]
    path = folder / f"points-{name}-{protocol}-{len(points)}-k{NEIGHBOURS}-seed{SEED}.npz"
    if not path.exists():
        stream = point_stream(points, labels, protocol, f"{name} {protocol}")
        save_stream(path, stream.graph, points=points)
    return path, len(points)


def point_stream(
    points: NDArray[np.float32], labels: NDArray[np.int64], protocol: str, title: str
) -> PointStream:
    """Return points, which arrive in this order, as a stream."""
    bounds = PROTOCOLS[protocol].bounds(len(points))
    return PointStream(make_stream(points, labels, bounds, title), points)


def sampled(stream: PointStream, size: int, protocol: str, seed: int) -> PointStream:
    """Return a random sample of a stream's points, in their order, as a stream of its own."""
    n = len(stream.points)
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[:size])
    labels = stream.graph.labels[chosen]
    return point_stream(stream.points[chosen], labels, protocol, f"sample {seed}")


def read_stream(path: Path) -> PointStream:
    """Read a stream from its file."""
    with np.load(path, allow_pickle=False) as arrays:
        points = arrays["points"]
    return PointStream(load_stream(path), points)
