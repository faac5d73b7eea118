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

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dynhac.input.errors import InvalidTypeError, show

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32] | NDArray[np.float64]

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


class Scanned(NamedTuple):
    """Vectors to scan, with the values that `Metric.keys` needs."""

    vectors: NDArray[np.float32]
    norms: NDArray[np.float32]
    """Their lengths."""
    spans: NDArray[np.float32]
    """Their distances from the centre."""
    centre: NDArray[np.float32]


class Metric:
    """A distance between vectors; `METRICS` has all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.neighbors import resolve_metric
    >>> metric = resolve_metric("cosine")
    >>> x = metric.prepare(np.array([[3, 4], [4, 3], [0, 0]]))
    >>> metric.distances(x, x).round(2).tolist()
    [[0.0, 0.04, 1.0], [0.04, 0.0, 1.0], [1.0, 1.0, 1.0]]
    """

    name: str

    def prepare(self, vectors: Floats) -> NDArray[np.float32]:
        """Return the vectors in the form that the other methods take, one row each."""
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def pair_distances(self, a: Floats, b: Floats) -> NDArray[np.float64]:
        """Return the distance of each row of ``a`` from the same row of ``b``."""
        raise NotImplementedError

    def keys(
        self, queries: NDArray[np.float32], scanned: Scanned
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the keys of all queries (rows) and vectors (columns), and their error bounds."""
        raise NotImplementedError

    def needs_centre(self, dimension: int) -> bool:
        """Whether `keys` uses spans and centre; if not, they may have any value."""
        return False

    def distances(self, queries: Floats, vectors: Floats) -> NDArray[np.float64]:
        """Return the distances of all queries (rows) from all vectors (columns)."""
        rows, columns = np.indices((len(queries), len(vectors)))
        found = self.distances_at(queries, rows.ravel(), vectors, columns.ravel())
        return found.reshape(len(queries), len(vectors))

    def distances_at(
        self, a: Floats, rows: NDArray[np.int64], b: Floats, columns: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the distances of pairs ``a[rows[i]]``, ``b[columns[i]]``, in bounded memory."""
        step = max(1, CHUNK // max(1, a.shape[1]))
        if len(rows) <= step:
            return self.pair_distances(a[rows], b[columns])
        found = np.empty(len(rows))
        for i in range(0, len(rows), step):
            part = slice(i, i + step)
            found[part] = self.pair_distances(a[rows[part]], b[columns[part]])
        return found


class Euclidean(Metric):
    """The length of the difference."""

    name = "euclidean"

    def pair_distances(self, a: Floats, b: Floats) -> NDArray[np.float64]:
        """See `Metric.pair_distances`."""
        difference = a.astype(np.float64)
        difference -= b
        found: NDArray[np.float64] = np.sqrt(_dot_rows(difference, difference))
        return found

    def keys(
        self, queries: NDArray[np.float32], scanned: Scanned
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See `Metric.keys`: the squared distance, or half of it minus a term of the query."""
        vectors = scanned.vectors
        dimension = vectors.shape[1]
        if dimension <= FEW_COLUMNS:  # differences are accurate wherever the vectors lie
            keys = np.zeros((len(queries), len(vectors)), np.float32)
            for j in range(dimension):
                difference = vectors[:, j] - queries[:, j, None]
                difference *= difference
                keys += difference
            error = keys * np.float32((dimension + 8) * ROUNDING)
            error += np.float32(TINY)
            return keys, error
        # With c the centre, half of |x - q|² is |x - c|²/2 - <q - c, x> and a term without x.
        queries = queries - scanned.centre
        keys = _products(queries, vectors)
        squares = scanned.spans * scanned.spans
        np.subtract(squares * np.float32(0.5), keys, out=keys)
        error = scanned.norms * lengths(queries)[:, None]
        error += squares
        error *= np.float32((dimension + 16) * ROUNDING)
        error += np.float32(TINY)
        return keys, error

    def needs_centre(self, dimension: int) -> bool:
        """See `Metric.needs_centre`."""
        return dimension > FEW_COLUMNS


class InnerProduct(Metric):
    """Minus the inner product: the most similar vectors come first; may be negative."""

    name = "inner_product"

    def pair_distances(self, a: Floats, b: Floats) -> NDArray[np.float64]:
        """See `Metric.pair_distances`."""
        return 0.0 - _dot_rows(a.astype(np.float64), b.astype(np.float64))

    def keys(
        self, queries: NDArray[np.float32], scanned: Scanned
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See `Metric.keys`: minus the inner product."""
        keys = _products(queries, scanned.vectors)
        np.negative(keys, out=keys)
        error = scanned.norms * lengths(queries)[:, None]
        error *= np.float32((queries.shape[1] + 16) * ROUNDING)
        error += np.float32(TINY)
        return keys, error


class Cosine(InnerProduct):
    """One minus the cosine of the angle; a zero vector has distance 1 from every vector."""

    name = "cosine"

    def prepare(self, vectors: Floats) -> NDArray[np.float32]:
        """Return the vectors scaled to length 1; zero vectors stay zero."""
        norms = np.sqrt(_squares(vectors))
        norms[norms == 0.0] = 1.0
        return (vectors / norms[:, None]).astype(np.float32)

    def pair_distances(self, a: Floats, b: Floats) -> NDArray[np.float64]:
        """See `Metric.pair_distances`."""
        a, b = a.astype(np.float64), b.astype(np.float64)
        # The square root of a rounded square is the number itself, so that equal vectors have
        # a cosine of exactly 1.
        scale = np.sqrt(_dot_rows(a, a) * _dot_rows(b, b))
        scale[scale == 0.0] = 1.0
        found: NDArray[np.float64] = np.maximum(1.0 - _dot_rows(a, b) / scale, 0.0)
        return found


METRICS: dict[str, Metric] = {m.name: m for m in (Euclidean(), Cosine(), InnerProduct())}


def resolve_metric(metric: object) -> Metric:
    """Return the metric of this name.

    Examples
    --------
    >>> from dynhac.neighbors import resolve_metric
    >>> resolve_metric("manhattan")
    Traceback (most recent call last):
        ...
    ValueError: metric is 'manhattan'; it must be 'euclidean', 'cosine' or 'inner_product'
    """
    if isinstance(metric, Metric):
        return metric
    wanted = "it must be 'euclidean', 'cosine' or 'inner_product'"
    if not isinstance(metric, str):
        raise InvalidTypeError(f"metric is {show(metric)}; {wanted}")
    if metric not in METRICS:
        raise ValueError(f"metric is {show(metric)}; {wanted}")
    return METRICS[metric]


def lengths(
    vectors: NDArray[np.float32], centre: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """Return the lengths of rows, or their distances from a centre; inf on float32 overflow."""
    with np.errstate(over="ignore"):
        if centre is not None:
            vectors = vectors - centre
        return np.sqrt(_squares(vectors)).astype(np.float32)


def _products(queries: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the inner products of all queries (rows) with all vectors (columns)."""
    found = np.empty((len(queries), len(vectors)), np.float32)
    if len(queries) > FEW_QUERIES:
        return np.matmul(queries, vectors.T, out=found)
    step = max(1, NUMBERS_PER_PRODUCT // max(1, vectors.shape[1]))
    for i in range(0, len(vectors), step):
        part = vectors[i : i + step]
        for row, query in zip(found, queries, strict=True):
            np.dot(part, query, out=row[i : i + step])
    return found


def _squares(vectors: Floats) -> NDArray[np.float64]:
    """Return the squared lengths of rows, in bounded memory."""
    step = max(1, CHUNK // max(1, vectors.shape[1]))
    found = np.empty(len(vectors))
    for i in range(0, len(vectors), step):
        part = vectors[i : i + step].astype(np.float64)
        found[i : i + step] = _dot_rows(part, part)
    return found


def _dot_rows(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inner products of rows; the order of each sum depends only on the dimension."""
    dimension = a.shape[1]
    if dimension > FEW_COLUMNS:
        found: NDArray[np.float64] = np.ascontiguousarray(a * b).sum(axis=1)
        return found
    total = np.zeros(len(a))
    for j in range(dimension):
        total += a[:, j] * b[:, j]
    return total
