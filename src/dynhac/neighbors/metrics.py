"""Distances between vectors: in float64 to report, and fast float32 keys with error bounds to scan.

`Metric.pair_distances` defines every distance that the package reports. It computes in float64, row
by row, so that the distance of a pair does not depend on the other pairs of the batch, on the order
of the two vectors, or on the backend that found the pair. Equal vectors have distance exactly 0.

`Metric.keys` is for scans. A key grows with the distance, but is computed in float32, mostly by one
matrix product, and comes with a bound of its error. The bounds are the usual ones for sums of
products in any order (Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1). Where
float32 overflows, key or bound is inf or nan, and a scan must not exclude the vector. The bounds
for Euclidean distances are tight if the vectors lie around a common centre, which need not be the
origin nor exactly their mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dynhac.input.errors import InvalidTypeError, show
from dynhac.neighbors.arrays import parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac.neighbors.index import Distances, Ints

    Floats: TypeAlias = NDArray[np.float32]

FEW_COLUMNS = 8
"""Up to this dimension a loop over the columns is faster than a reduction over them."""

CHUNK = 2**20
"""Numbers that are converted to float64 at a time, which bounds the memory."""

FEW_QUERIES = 8
NUMBERS_PER_PRODUCT = 2**18
"""For larger matrix-vector products BLAS starts threads, which is slower."""

ROUNDING = 2.0**-24
TINY = 2.0**-120
"""Bounds the error from underflow, also on processors without subnormal numbers."""


class Metric:
    """A distance between vectors; `METRICS` has all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.neighbors.metrics import resolve_metric
    >>> metric = resolve_metric("cosine")
    >>> x = metric.prepare(np.array([[3, 4], [4, 3], [0, 0]]))
    >>> metric.pair_distances(x, x[[0, 0, 0]]).round(2).tolist()
    [0.0, 0.04, 1.0]
    """

    name: str

    def prepare(self, vectors: Floats) -> Floats:
        """Return the vectors in the form that the other methods take, one row each."""
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def pair_distances(self, a: Floats, b: Floats) -> Distances:
        """Return the distance of each row of ``a`` from the same row of ``b``."""
        raise NotImplementedError

    def distances_at(self, a: Floats, rows: Ints, b: Floats, columns: Ints) -> Distances:
        """Return the distances of pairs ``a[rows[i]]``, ``b[columns[i]]``, in bounded memory."""
        found = np.empty(len(rows))
        for part in parts(len(rows), CHUNK // max(1, a.shape[1])):
            found[part] = self.pair_distances(a[rows[part]], b[columns[part]])
        return found

    def centre(self, vectors: Floats) -> Floats:
        """Return the point for `keys` around which the vectors lie."""
        return np.zeros(vectors.shape[1], np.float32)

    def keys(
        self, queries: Floats, vectors: Floats, spans: Floats, centre: Floats
    ) -> tuple[Floats, Floats]:
        """Return the keys of all queries (rows) and vectors (columns), and their error bounds.

        ``spans`` are the distances of the vectors from ``centre``.
        """
        raise NotImplementedError


class Euclidean(Metric):
    """The length of the difference."""

    name = "euclidean"

    def pair_distances(self, a: Floats, b: Floats) -> Distances:
        """See `Metric.pair_distances`."""
        difference = a.astype(np.float64)
        difference -= b
        found: Distances = np.sqrt(_dot_rows(difference, difference))
        return found

    def centre(self, vectors: Floats) -> Floats:
        """Return the mean."""
        mean: Distances = vectors.mean(axis=0, dtype=np.float64)
        return mean.astype(np.float32)

    def keys(
        self, queries: Floats, vectors: Floats, spans: Floats, centre: Floats
    ) -> tuple[Floats, Floats]:
        """See `Metric.keys`: the squared distance, or half of it minus a term of the query."""
        dimension = vectors.shape[1]
        if dimension <= FEW_COLUMNS:  # differences are accurate wherever the vectors lie
            keys = np.zeros((len(queries), len(vectors)), np.float32)
            for j in range(dimension):
                difference = vectors[:, j] - queries[:, j, None]
                difference *= difference
                keys += difference
            return keys, _error_bound(keys.copy(), dimension)
        # With c the centre, half of |x - q|² is |x - c|²/2 - <q - c, x> and a term without x.
        queries = queries - centre
        keys = _products(queries, vectors)
        squares = spans * spans
        np.subtract(squares * np.float32(0.5), keys, out=keys)
        norms = spans + lengths(centre[None])  # not less than the lengths of the vectors
        error = norms * lengths(queries)[:, None]
        error += squares
        return keys, _error_bound(error, dimension)


class InnerProduct(Metric):
    """Minus the inner product: the most similar vectors come first; may be negative."""

    name = "inner_product"

    def pair_distances(self, a: Floats, b: Floats) -> Distances:
        """See `Metric.pair_distances`."""
        return 0.0 - _dot_rows(a.astype(np.float64), b.astype(np.float64))

    def keys(
        self, queries: Floats, vectors: Floats, spans: Floats, centre: Floats
    ) -> tuple[Floats, Floats]:
        """See `Metric.keys`: minus the inner product."""
        keys = _products(queries, vectors)
        np.negative(keys, out=keys)
        return keys, _error_bound(spans * lengths(queries)[:, None], queries.shape[1])


class Cosine(InnerProduct):
    """One minus the cosine of the angle; a zero vector has distance 1 from every vector."""

    name = "cosine"

    def prepare(self, vectors: Floats) -> Floats:
        """Return the vectors scaled to length 1; zero vectors stay zero."""
        norms = np.sqrt(_squares(vectors))
        norms[norms == 0.0] = 1.0
        return (vectors / norms[:, None]).astype(np.float32)

    def pair_distances(self, a: Floats, b: Floats) -> Distances:
        """See `Metric.pair_distances`."""
        x, y = a.astype(np.float64), b.astype(np.float64)
        # The square root of a rounded square is the number itself, so that equal vectors have
        # a cosine of exactly 1.
        scale = np.sqrt(_dot_rows(x, x) * _dot_rows(y, y))
        scale[scale == 0.0] = 1.0
        found: Distances = np.maximum(1.0 - _dot_rows(x, y) / scale, 0.0)
        return found


METRICS: dict[str, Metric] = {m.name: m for m in (Euclidean(), Cosine(), InnerProduct())}


def resolve_metric(metric: object) -> Metric:
    """Return the metric of this name.

    Examples
    --------
    >>> from dynhac.neighbors.metrics import resolve_metric
    >>> resolve_metric("manhattan")
    Traceback (most recent call last):
        ...
    ValueError: metric is 'manhattan'; it must be 'euclidean', 'cosine' or 'inner_product'
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str) and metric in METRICS:
        return METRICS[metric]
    error = ValueError if isinstance(metric, str) else InvalidTypeError
    raise error(f"metric is {show(metric)}; it must be 'euclidean', 'cosine' or 'inner_product'")


def lengths(vectors: Floats) -> Floats:
    """Return the lengths of rows; inf on float32 overflow."""
    with np.errstate(over="ignore"):
        return np.sqrt(_squares(vectors)).astype(np.float32)


def _error_bound(magnitude: Floats, dimension: int) -> Floats:
    """Return the error bound of sums of products with these sums of magnitudes, in place."""
    magnitude *= np.float32((dimension + 16) * ROUNDING)
    magnitude += np.float32(TINY)
    return magnitude


def _products(queries: Floats, vectors: Floats) -> Floats:
    """Return the inner products of all queries (rows) with all vectors (columns)."""
    found = np.empty((len(queries), len(vectors)), np.float32)
    if len(queries) > FEW_QUERIES:
        return np.matmul(queries, vectors.T, out=found)
    for part in parts(len(vectors), NUMBERS_PER_PRODUCT // max(1, vectors.shape[1])):
        for row, query in zip(found, queries, strict=True):
            np.dot(vectors[part], query, out=row[part])
    return found


def _squares(vectors: Floats) -> Distances:
    """Return the squared lengths of rows, in bounded memory."""
    found = np.empty(len(vectors))
    for part in parts(len(vectors), CHUNK // max(1, vectors.shape[1])):
        rows = vectors[part].astype(np.float64)
        found[part] = _dot_rows(rows, rows)
    return found


def _dot_rows(a: Distances, b: Distances) -> Distances:
    """Return the inner products of rows; the order of each sum depends only on the dimension."""
    dimension = a.shape[1]
    if dimension > FEW_COLUMNS:
        found: Distances = np.ascontiguousarray(a * b).sum(axis=1)
        return found
    total = np.zeros(len(a))
    for j in range(dimension):
        total += a[:, j] * b[:, j]
    return total
