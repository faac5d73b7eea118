"""The edges of a graph from a matrix of similarities between samples.

An entry is the similarity of the samples of its row and its column. Zeros, stored or not, are
ignored, so a matrix may hold each pair once, in either triangle, or twice. If it holds a pair
twice, the two values must agree up to rounding. The diagonal is ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

TOLERANCE = 1e-6
"""The largest difference between the two entries of a pair, relative to the larger one."""


Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Edges ``(u, v, weight)`` between samples, identified by their rows; each pair once."""


def similarity_edges(X: Any, resolution: float) -> Edges:
    """Return the edges of a dense or sparse matrix of finite similarities, or raise.

    A similarity that rounds to zero at the resolution is no edge.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.sklearn.precomputed import similarity_edges
    >>> matrix = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.0, 1.0]])
    >>> [column.tolist() for column in similarity_edges(matrix, resolution=2**-32)]
    [[0, 1], [1, 2], [0.5, 0.25]]
    >>> matrix[1, 0] = 0.75
    >>> similarity_edges(matrix, resolution=2**-32)
    Traceback (most recent call last):
        ...
    ValueError: X is not symmetric: row 0, column 1 is 0.5, but row 1, column 0 is 0.75; they \
must be the same, or one of them 0
    """
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X has shape {X.shape}; with metric 'precomputed' it must be square, with the "
            "similarity of samples i and j in row i, column j"
        )
    matrix = sparse.csr_array(X, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    entries = matrix.tocoo()
    row, column, value = entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data
    wrong = np.flatnonzero((value < 0) & (row != column))
    if wrong.size:
        at = wrong[0]
        raise ValueError(
            f"Negative values in data passed to DynHACClustering: row {row[at]}, column "
            f"{column[at]} of X is {value[at]}; similarities must be >= 0"
        )
    u, v = np.minimum(row, column), np.maximum(row, column)
    order = np.lexsort((v, u))  # stable: of a pair's entries, the upper triangle comes first
    order = order[u[order] != v[order]]
    u, v, w = u[order], v[order], value[order]
    second = np.flatnonzero((u[1:] == u[:-1]) & (v[1:] == v[:-1])) + 1
    a, b = w[second - 1], w[second]
    different = np.flatnonzero(np.abs(a - b) > TOLERANCE * np.maximum(a, b))
    if different.size:
        at = second[different[0]]
        raise ValueError(
            f"X is not symmetric: row {u[at]}, column {v[at]} is {w[at - 1]}, but row {v[at]}, "
            f"column {u[at]} is {w[at]}; they must be the same, or one of them 0"
        )
    w[second - 1] = np.maximum(a, b)
    kept = w >= 0.5 * resolution
    kept[second] = False
    return u[kept], v[kept], w[kept]
