"""The edges of a graph from a matrix of similarities.

An entry is the similarity of the vertices of its row and its column. Zeros, stored or not, are no
edges, nor are values that round to 0 at the resolution: a dense matrix has a value for every pair.
So a matrix may hold each pair once, in either triangle, or twice. If it holds a pair twice, the two
values must agree up to rounding; the larger one counts. The diagonal is ignored.

Sparse matrices of scipy are recognised by their module; scipy is not imported here.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from dynhac.input.errors import InvalidTypeError

TOLERANCE = 1e-6
"""The largest difference between the two entries of a pair, relative to the larger one."""

MatrixEdges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Edges u < v and their weights, identified by their rows; each pair once, in order."""


def is_sparse(matrix: object) -> bool:
    """Whether ``matrix`` is a sparse matrix or array of scipy."""
    return type(matrix).__module__.startswith("scipy.sparse") and hasattr(matrix, "tocsr")


def is_dense(matrix: object) -> TypeGuard[NDArray[Any]]:
    """Whether ``matrix`` is an array of two dimensions."""
    return isinstance(matrix, np.ndarray) and matrix.ndim == 2


def check_square(matrix: Any, name: str = "edges") -> None:
    """Raise if a matrix does not have as many columns as rows."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{name} is a matrix of shape {matrix.shape}; it must be square, with the similarity "
            "of vertices i and j in row i, column j"
        )


def matrix_edges(
    matrix: Any, resolution: float, name: str = "edges", user: str = "GraphHAC"
) -> MatrixEdges:
    """Return the edges of a dense or sparse matrix of similarities, or raise.

    Parameters
    ----------
    matrix : ndarray, or sparse matrix or array of scipy
        The similarities.
    resolution : float
        A similarity that rounds to 0 at this resolution is no edge.
    name, user : str
        What messages call the matrix, and the class that it was passed to.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.input.matrices import matrix_edges
    >>> matrix = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.0, 1.0]])
    >>> [column.tolist() for column in matrix_edges(matrix, resolution=2**-32)]
    [[0, 1], [1, 2], [0.5, 0.25]]
    >>> matrix[1, 0] = 0.75
    >>> matrix_edges(matrix, resolution=2**-32, name="X")
    Traceback (most recent call last):
        ...
    ValueError: X is not symmetric: row 0, column 1 is 0.5, but row 1, column 0 is 0.75; they \
must be the same, or one of them 0
    """
    check_square(matrix, name)
    if matrix.dtype.kind not in "iuf":
        raise InvalidTypeError(
            f"{name} is a matrix of dtype {matrix.dtype}; similarities must be int or float"
        )
    u, v, forth, back = _sparse_pairs(matrix) if is_sparse(matrix) else _dense_pairs(matrix)
    for row, column, values in ((u, v, forth), (v, u, back)):
        wrong = np.flatnonzero(~((values >= 0) & (values < np.inf)))
        if wrong.size:
            at = wrong[0]
            # These words are the rule for estimators of scikit-learn.
            negative = f"Negative values in data passed to {user}: " if values[at] < 0 else ""
            raise ValueError(
                f"{negative}row {row[at]}, column {column[at]} of {name} is {values[at]}; "
                "similarities must be finite and >= 0"
            )
    weights = np.maximum(forth, back)
    differ = np.abs(forth - back) > TOLERANCE * weights
    different = np.flatnonzero(differ & (forth > 0) & (back > 0))
    if different.size:
        at = different[0]
        raise ValueError(
            f"{name} is not symmetric: row {u[at]}, column {v[at]} is {forth[at]}, but row "
            f"{v[at]}, column {u[at]} is {back[at]}; they must be the same, or one of them 0"
        )
    kept = weights >= 0.5 * resolution
    return u[kept], v[kept], weights[kept]


Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
"""Pairs u < v in order, with their entries in the upper and in the lower triangle."""


def _dense_pairs(matrix: NDArray[Any]) -> Pairs:
    values = np.asarray(matrix, np.float64)
    u, v = np.nonzero(np.triu((values != 0) | (values.T != 0), 1))
    return u, v, values[u, v], values[v, u]


def _sparse_pairs(matrix: Any) -> Pairs:
    rows = matrix.tocsr().astype(np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()  # duplicates are summed, as everywhere in scipy
        rows.sum_duplicates()
    entries = rows.tocoo()
    row, column, value = entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data
    used = np.flatnonzero((row != column) & (value != 0))
    row, column, value = row[used], column[used], value[used]
    u, v = np.minimum(row, column), np.maximum(row, column)
    order = np.lexsort((v, u))
    u, v, value, upper = u[order], v[order], value[order], (row < column)[order]
    first = np.ones(len(u), np.bool_)
    first[1:] = (u[1:] != u[:-1]) | (v[1:] != v[:-1])
    pair = np.cumsum(first) - 1
    forth, back = np.zeros((2, int(first.sum())))
    forth[pair[upper]] = value[upper]
    back[pair[~upper]] = value[~upper]
    return u[first], v[first], forth, back
