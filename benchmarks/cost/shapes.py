"""Graphs of equal weights and awkward shapes: star, clique, path and grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


def star(n: int) -> Pairs:
    """Vertex 0 joined to n leaves."""
    return np.zeros(n, np.int64), np.arange(1, n + 1)


def clique(n: int) -> Pairs:
    """All pairs of n vertices."""
    u, v = np.triu_indices(n, k=1)
    return u.astype(np.int64), v.astype(np.int64)


def path(n: int) -> Pairs:
    """A path of n vertices."""
    return np.arange(n - 1), np.arange(1, n)


def grid(n: int) -> Pairs:
    """A square grid of about n vertices."""
    side = round(n**0.5)
    cell = np.arange(side * side).reshape(side, side)
    u = np.r_[cell[:, :-1].ravel(), cell[:-1].ravel()]
    v = np.r_[cell[:, 1:].ravel(), cell[1:].ravel()]
    return u, v


# Every shape with two sizes. The second has about ten times the edges of the first: a cost per edge
# that grows between them shows quadratic behaviour.
SHAPES: dict[str, tuple[Callable[[int], Pairs], tuple[int, int]]] = {
    "star": (star, (10_000, 100_000)),
    "clique": (clique, (632, 2_000)),
    "path": (path, (10_000, 100_000)),
    "grid": (grid, (9_000, 90_000)),
}
