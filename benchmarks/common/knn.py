"""Exact nearest neighbours among a prefix of the points, for streams.

The neighbours of point q are among the points below ``limit[q]``, q excluded. A matrix product
gives every distance up to rounding. Every pair that could be among the k nearest despite rounding
is computed again in float64 from the coordinates, so the neighbours are exact; of equal distances
the lower index comes first. The distance of a pair is the same number from both ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

Array = NDArray[np.generic]

_ROWS = 256  # queries per matrix product: 256 x 10^5 float32 distances are 100 MB
_PAIRS = 1 << 17  # pairs computed again at a time


def prefix_neighbours(
    points: Array, limit: Array, k: int, first: int = 0, title: str = "neighbours"
) -> tuple[Array, Array, Array]:
    """Return ``(query, neighbour, distance)`` for every query from ``first`` on, sorted by query.

    A query has fewer than k neighbours only if its limit is that low. ``limit`` must not decrease.
    """
    dim = points.shape[1]
    dtype = np.float64 if dim <= 8 else np.float32
    centred = points.astype(np.float64) - points.mean(axis=0, dtype=np.float64)
    norm = np.sqrt((centred**2).sum(axis=1))
    # Largest error of a squared distance: rounding of the inputs, the product and the sums.
    margin = (dim + 8) * np.finfo(dtype).eps * (norm + norm.max()) ** 2
    rough = centred.astype(dtype)
    square = (norm**2).astype(dtype)
    found: list[tuple[Array, Array, Array]] = []
    blocks = range(first, len(points), _ROWS)
    for start in tqdm(blocks, desc=title, unit_scale=_ROWS, unit="pt", disable=None):
        rows = np.arange(start, min(start + _ROWS, len(points)))
        seen = int(limit[rows[-1]])
        dist = rough[rows] @ rough[:seen].T
        dist *= -2
        dist += square[:seen]  # without the query's own square, the same in all columns
        for i in np.flatnonzero(limit[rows] < seen):
            dist[i, limit[rows[i]] :] = np.inf
        inside = rows < seen
        dist[np.flatnonzero(inside), rows[inside]] = np.inf
        kth = np.partition(dist, min(k, seen) - 1, axis=1)[:, min(k, seen) - 1]
        cut = np.minimum(kth + 2 * margin[rows].astype(dtype), np.finfo(dtype).max)
        row, col = np.nonzero(dist <= cut[:, None])
        found.append(_nearest(points, rows[row], col, k))
    query, neighbour, distance = (np.concatenate(part) for part in zip(*found, strict=True))
    return query, neighbour, distance


def _nearest(points: Array, query: Array, column: Array, k: int) -> tuple[Array, Array, Array]:
    """Compute the distances of candidate pairs in float64 and keep each query's k nearest."""
    distance = np.empty(len(query))
    for s in range(0, len(query), _PAIRS):
        part = slice(s, s + _PAIRS)
        delta = points[query[part]].astype(np.float64)
        delta -= points[column[part]]
        distance[part] = np.sqrt((delta**2).sum(axis=1))
    order = np.lexsort((column, distance, query))
    query, column, distance = query[order], column[order], distance[order]
    begins = np.r_[True, query[1:] != query[:-1]]
    rank = np.arange(len(query)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    keep = rank < k
    return query[keep], column[keep].astype(np.int64), distance[keep]
