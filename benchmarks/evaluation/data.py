"""Data sets of the evaluation, the order of their points, and their streams on disk.

Points come in a seeded random order, except where a data set has an order of its own (news come as
they were published). A subset is a prefix of that order. A stream holds the points of a protocol
and their similarity graph: a batch's edges join its points to their k nearest neighbours in the
same or earlier batches, with similarity ``1 / (1 + distance)``. Finding neighbours is slow, so
streams are kept as files; a file is complete or absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.protocols import PROTOCOLS
from streams import (
    BUILTIN,
    NEIGHBOURS,
    REAL,
    SEED,
    Dataset,
    Stream,
    load_points,
    load_stream,
    make_stream,
    save_stream,
)

TIME_ORDER = {"reuters": Dataset(1e-2, "reuters_minilm384.npz")}
# Sets that fetch.py prepares: the paper's own, for those who can download them.
FETCHED = {
    "aloi": Dataset(1e-2, "aloi_scale128.npz"),
    "ilsvrc": Dataset(1e-2, "ilsvrc_features.npz", points=50_000),
}
DATASETS = REAL | TIME_ORDER | FETCHED | BUILTIN


@dataclass(frozen=True)
class PointStream:
    """A stream with the points themselves, row i being point i."""

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
    if name in REAL or name in BUILTIN:
        points, labels = load_points(name, data)
        return points.astype(np.float32), labels.astype(np.int64)
    file = DATASETS[name].file
    assert file is not None
    if data is None:
        raise SystemExit(f"{name} needs --data (or DYNHAC_DATA), the folder that has {file}")
    with np.load(data / file, allow_pickle=False) as arrays:
        if name in TIME_ORDER:
            order = np.argsort(arrays["time"], kind="stable")
        else:
            order = np.random.default_rng(SEED).permutation(len(arrays["X"]))
        order = order[: DATASETS[name].points]
        return arrays["X"][order].astype(np.float32), arrays["y"][order].astype(np.int64)


def stream_file(
    folder: Path, name: str, protocol: str, size: int | None, data: Path | None
) -> tuple[Path, int]:
    """Return the file of a stream and its number of points, after making it if need be."""
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
    """Return points, which come in this order, as a stream."""
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
