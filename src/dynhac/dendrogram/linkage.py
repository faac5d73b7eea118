"""A dendrogram as a linkage matrix of scipy.

scipy requires one tree whose heights never decrease towards the root. So the height of a merge
comes from the smallest linkage in its subtree, and separate trees are joined at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynhac.input.columns import is_number
from dynhac.input.errors import InvalidTypeError, show

if TYPE_CHECKING:
    from dynhac.dendrogram.dendrogram import Dendrogram

DistanceRule = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""From similarities to distances >= 0 that do not grow with the similarity."""


def inverse_distance(similarity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``1 / similarity - 1``, the inverse of ``similarity = 1 / (1 + distance)``."""
    if similarity.size and similarity.max() > 1.0:
        raise ValueError(
            f"similarity {similarity.max():g} is above 1, so that the distance 1/similarity - 1 "
            "would be negative; give another rule, such as distance=lambda s: 1 / s"
        )
    return 1.0 / similarity - 1.0


def linkage_matrix(
    dendrogram: Dendrogram, distance: DistanceRule, join_distance: float
) -> NDArray[np.float64]:
    """Return the ``(n - 1, 4)`` linkage matrix; see `Dendrogram.linkage`."""
    n, merges = dendrogram.n_leaves, len(dendrogram)
    order = np.argsort(-dendrogram.min_similarity, kind="stable")
    heights = np.asarray(distance(dendrogram.min_similarity[order]), dtype=np.float64)
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
    if not is_number(join_distance):
        raise InvalidTypeError(f"join_distance is {show(join_distance)}; it must be a number")
    highest = heights.max(initial=0.0)
    if not join_distance >= highest:
        raise ValueError(
            f"join_distance is {float(join_distance)}; it must be at least the largest distance "
            f"of a merge, {highest:g}"
        )

    # Joins take the next two trees of a queue and append the joined one: the tree stays shallow.
    node = np.arange(2 * n - 1)
    node[n + order] = np.arange(n, n + merges)
    queue = np.concatenate([node[dendrogram.roots], node[n + merges :]])
    sizes = np.concatenate([np.ones(n, np.int64), dendrogram.size])[dendrogram.roots].tolist()
    for first in range(0, len(queue) - 1, 2):
        sizes.append(sizes[first] + sizes[first + 1])
    pairs = np.concatenate([node[dendrogram.children[order]], queue[:-1].reshape(-1, 2)])
    matrix = np.empty((len(pairs), 4), dtype=np.float64)
    matrix[:, :2] = np.sort(pairs, axis=1)
    matrix[:merges, 2], matrix[:merges, 3] = heights, dendrogram.size[order]
    matrix[merges:, 2], matrix[merges:, 3] = join_distance, sizes[len(dendrogram.roots) :]
    return matrix
