"""A dendrogram as a linkage matrix of scipy.

scipy requires one tree whose heights never decrease towards the root. So the height of a merge
comes from the smallest linkage in its subtree, and separate trees are joined at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynhac.input.errors import InvalidTypeError, show

if TYPE_CHECKING:
    from dynhac.dendrogram.dendrogram import Dendrogram


def inverse_distance(similarity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``1 / similarity - 1``, the inverse of ``similarity = 1 / (1 + distance)``."""
    if similarity.size and similarity.max() > 1.0:
        raise ValueError(
            f"similarity {similarity.max():g} is above 1, so that the distance 1/similarity - 1 "
            "would be negative; give another rule, such as distance=lambda s: 1 / s"
        )
    return 1.0 / similarity - 1.0


def linkage_matrix(
    dendrogram: Dendrogram,
    distance: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    join_distance: float,
) -> NDArray[np.float64]:
    """Return the ``(n - 1, 4)`` linkage matrix; see `Dendrogram.linkage`."""
    n, merges = dendrogram.n_leaves, len(dendrogram)
    min_similarity, size, roots = dendrogram.min_similarity, dendrogram.size, dendrogram.roots
    order = np.argsort(-min_similarity, kind="stable")
    node = np.arange(n + merges)
    node[n + order] = np.arange(n, n + merges)
    heights = np.asarray(distance(min_similarity[order]), dtype=np.float64)
    if heights.shape != (merges,):
        raise InvalidTypeError(
            f"distance returned shape {heights.shape} for {merges} similarities; it must return "
            "one distance for each"
        )
    if not np.all(heights >= 0) or not np.all(heights[1:] >= heights[:-1]):
        raise ValueError(
            "distance must return numbers >= 0 that never grow with the similarity; "
            "it returned others"
        )
    if isinstance(join_distance, bool) or not isinstance(join_distance, (int, float, np.number)):
        raise InvalidTypeError(f"join_distance is {show(join_distance)}; it must be a number")
    join_height = float(join_distance)
    if not join_height >= (heights[-1] if merges else 0.0):
        raise ValueError(
            f"join_distance is {join_height}; it must be at least the largest distance "
            f"of a merge, {heights[-1] if merges else 0.0:g}"
        )

    matrix = np.empty((max(n - 1, 0), 4), dtype=np.float64)
    matrix[:merges, :2] = np.sort(node[dendrogram.children[order]], axis=1)
    matrix[:merges, 2] = heights
    matrix[:merges, 3] = size[order]
    if len(roots) > 1:
        sizes = np.concatenate([np.ones(n, np.int64), size])[roots]
        matrix[merges:, :2], matrix[merges:, 3] = _join(node[roots], sizes, n + merges)
        matrix[merges:, 2] = join_height
    return matrix


def _join(
    trees: NDArray[np.int64], sizes: NDArray[np.int64], next_node: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Join trees in pairs, repeatedly, so that the joined tree is shallow.

    Returns the pairs of nodes and the sizes of the joined trees.
    """
    pairs: list[NDArray[np.int64]] = []
    totals: list[NDArray[np.int64]] = []
    while len(trees) > 1:
        half = len(trees) // 2
        pairs.append(np.sort(trees[: 2 * half].reshape(half, 2), axis=1))
        totals.append(sizes[: 2 * half].reshape(half, 2).sum(axis=1))
        trees = np.concatenate([trees[2 * half :], np.arange(next_node, next_node + half)])
        sizes = np.concatenate([sizes[2 * half :], totals[-1]])
        next_node += half
    return np.concatenate(pairs), np.concatenate(totals)
