"""Graphs of awkward shapes: star, clique, path and grid of equal weights, and a monotone path.

Also two random graphs, to be joined by one edge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

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


def random_pair(n: int, degree: int = 6) -> Pairs:
    """Two random graphs of n / 2 vertices each, with about ``degree`` edges a vertex."""
    rng = np.random.default_rng(0)
    half = n // 2
    ends = rng.integers(0, half, (2, n * degree)) + np.repeat([0, half], n * degree // 2)
    ends = np.sort(ends[:, ends[0] != ends[1]], axis=0)
    u, v = np.unique(ends, axis=1)
    return u, v


class Shape(NamedTuple):
    """Two sizes of a shape.

    The second has about ten times the edges of the first: a cost per edge that grows between them
    shows quadratic behaviour.
    """

    pairs: Callable[[int], Pairs]
    sizes: tuple[int, int]
    monotone: bool = False  # weights fall from edge to edge, and epsilon is 0

    def weights(self, edges: int) -> NDArray[np.float64]:
        """Return the weights of the edges."""
        return np.linspace(1, 0.5 if self.monotone else 1, edges)


SHAPES = {
    "star": Shape(star, (10_000, 100_000)),
    "clique": Shape(clique, (632, 2_000)),
    "path": Shape(path, (10_000, 100_000)),
    "monotone path": Shape(path, (10_000, 100_000), monotone=True),
    "grid": Shape(grid, (9_000, 90_000)),
}
