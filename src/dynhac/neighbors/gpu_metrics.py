"""Distances on a device: the same bits as `Metric.pair_distances`, and bounds from fast products.

**Exact distances.** `pair_distances` adds float64 numbers in the same order as the compiled
distances (`core/neighbors/kernels.h`), so that a distance has the same bits as on the host.

**Upper bounds.** For a query q and a vector x, let s = <f(q), f(x)> + o(x), where

============== =================== ============== ===================
metric         f(x)                o(x)           distance
============== =================== ============== ===================
euclidean      x - centre          -|f(x)|² / 2   √(|f(q)|² - 2s)
cosine         x / |x|             0              1 - s
inner_product  x                   0              -s
============== =================== ============== ===================

The larger s is, the nearer is x. `widen` and `widen_queries` scale f(x) and f(q), round them to
half precision, and append columns, so that **one product of the two matrices is an upper bound of
every s**, scaled: with y and z the scaled vectors, y' and z' the rounded ones,

    <z, y> = <z', y'> + <z', y - y'> + <z - z', y>  <=  <z', y'> + |z'| |y - y'| + |z - z'| |y|,

and the appended columns are o(y) as a sum of two numbers; a bound of |y - y'|, times |z'|; and a
bound of |y|, times |z - z'|. A last one lowers all products of a query by the same, its *shift*, so
that they are close to 0 for near vectors: where a float has the most digits. Each is rounded up.
The columns also cover the rounding errors of the product itself, at most `unit` for every addition
(Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1; twice his unit roundoff, as
tensor cores do not round to nearest), and those of the exact distances. So vectors with a bound
below the s of the k-th nearest are not among the k nearest. Nothing is assumed about the vectors;
if the bounds are too loose, fewer are excluded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynhac.neighbors.gpu_arrays import Arrays

BLOCK = 128
LANES = 8
"""A row is added in blocks of at most 128 numbers, each as 8 sums of every 8th number."""

EXTRA = 7
"""Appended columns: o(y) in two parts; the bounds of |y - y'| and |y|; whether a row is unused; and
1 twice, for the two parts of the shift."""
UNUSED = 4


@dataclass(frozen=True)
class Precision:
    """A type of numbers for products.

    Attributes
    ----------
    half : bool
        Whether it is half precision; otherwise float64.
    unit : float
        Bounds the relative error of an addition in a product.
    up, tiny : float
        ``x * (1 + up) + tiny``, rounded, is at least x.
    rounding : float
        A product, before it was rounded, was at most ``x + |x| * rounding + tiny``.
    length : float or None
        The length to which the longest vectors are scaled; they are not scaled if None.
    unused : float
        What the product has, at least, below every bound, in the rows that are not in use.
    align : int
        The number of columns is a multiple of it.
    """

    half: bool
    unit: float
    up: float
    tiny: float
    rounding: float
    length: float | None
    unused: float
    align: int


HALF = Precision(True, 2.0**-23, 2.0**-10, 2.0**-24, 1.01 * 2.0**-11, 64.0, 40_000.0, 8)
DOUBLE = Precision(False, 2.0**-50, 2.0**-50, 0.0, 2.0**-50, None, 1e300, 1)

LONGEST = 128.0
"""Scaled vectors that are longer do not fit into half precision, nor do their products."""


def width_of(dimension: int, precision: Precision) -> int:
    """Return the number of columns of widened vectors."""
    return -(-(dimension + EXTRA) // precision.align) * precision.align


def row_sums(values: Any) -> Any:
    """Return the sums of rows of float64 numbers, in the order of the compiled distances."""
    n, width = values.shape
    if width <= LANES:
        sums = values[:, 0]
        for j in range(1, width):
            sums = sums + values[:, j]
        return sums
    return _block_sums(values.reshape(n, 1, width))[:, 0]


def _block_sums(values: Any) -> Any:
    """Return the sums of the last axis of three, each in that order."""
    n, blocks, width = values.shape
    if width > BLOCK:
        left = width // 2 - width // 2 % LANES
        if 2 * left == width:
            halves = _block_sums(values.reshape(n, 2 * blocks, left)).reshape(n, blocks, 2)
            return halves[:, :, 0] + halves[:, :, 1]
        return _block_sums(values[:, :, :left]) + _block_sums(values[:, :, left:])
    lanes = values[:, :, :LANES]
    whole = width - width % LANES
    for j in range(LANES, whole, LANES):
        lanes = lanes + values[:, :, j : j + LANES]
    while lanes.shape[2] > 1:
        lanes = lanes[:, :, 0::2] + lanes[:, :, 1::2]
    sums = lanes[:, :, 0]
    for j in range(whole, width):
        sums = sums + values[:, :, j]
    return sums


def prepare(xp: Arrays, metric: str, vectors: Any) -> Any:
    """Return vectors as `Metric.prepare` does, with 0.0 for -0.0."""
    if metric == "cosine":
        lengths = xp.sqrt(squares(xp, vectors))
        lengths = xp.where(lengths == 0.0, 1.0, lengths)
        vectors = xp.cast(xp.cast(vectors, xp.double) / lengths[:, None], xp.single)
    return vectors + 0.0


def squares(xp: Arrays, vectors: Any) -> Any:
    """Return the squared lengths of rows in float64."""
    wide = xp.cast(vectors, xp.double)
    return row_sums(wide * wide)


def pair_distances(xp: Arrays, metric: str, x: Any, y: Any, xx: Any = None, yy: Any = None) -> Any:
    """Return the distances of vectors in ``x`` from those in ``y``, along the last axis.

    ``x`` is float64, and ``y`` may be float32. ``xx`` and ``yy`` are the squared lengths, for
    metric "cosine".
    """
    values = x - y if metric == "euclidean" else x * y
    if metric == "euclidean":
        values = values * values
    sums = row_sums(values.reshape(-1, values.shape[-1])).reshape(values.shape[:-1])
    if metric == "euclidean":
        return xp.sqrt(sums)
    if metric == "inner_product":
        return 0.0 - sums
    scale = xp.sqrt(xx * yy)
    scale = xp.where(scale == 0.0, 1.0, scale)
    found = 1.0 - sums / scale
    return xp.where(found > 0.0, found, 0.0)


def form(xp: Arrays, metric: str, vectors: Any, centre: Any) -> Any:
    """Return f of vectors, in float64."""
    wide = xp.cast(vectors, xp.double)
    if metric == "euclidean":
        return wide - centre
    if metric == "cosine":
        lengths = xp.sqrt(xp.total(wide * wide, 1))
        return wide / xp.where(lengths == 0.0, 1.0, lengths)[:, None]
    return wide


def lengths_of(xp: Arrays, formed: Any) -> Any:
    """Return the lengths of rows of float64 numbers."""
    return xp.sqrt(xp.total(formed * formed, 1))


def error_unit(dimension: int, precision: Precision) -> float:
    """Return the bound of the error of a product, relative to the sum of its magnitudes.

    The sum is that of z', y', o(y) and the shift; the other columns are smaller by far. In float64
    the bound is large enough for the errors of f, of lengths and of exact distances as well.
    """
    return (1.02 * (dimension + EXTRA) + 16.0) * precision.unit


def widen(xp: Arrays, metric: str, formed: Any, scale: float, precision: Precision) -> Any:
    """Return f of vectors, widened and rounded; no row may be longer than `LONGEST`, scaled."""
    n, dimension = formed.shape
    up, tiny = 1.0 + precision.up, precision.tiny
    unit = error_unit(dimension, precision)
    wide = xp.empty((n, width_of(dimension, precision)), xp.half if precision.half else xp.double)
    wide[:, dimension:] = 0.0
    scaled = formed * scale
    lengths = lengths_of(xp, scaled)
    wide[:, :dimension] = scaled
    lost = lengths_of(xp, scaled - xp.cast(wide[:, :dimension], xp.double))
    if metric == "euclidean":
        offset = lengths * lengths * -0.5
        _put_in_two(xp, wide[:, dimension : dimension + 2], offset, offset * -unit, precision)
    wide[:, dimension + 2] = (lost + lengths * unit) * up + tiny
    wide[:, dimension + 3] = lengths * (up + unit) + tiny
    wide[:, dimension + UNUSED + 1 : dimension + EXTRA] = 1.0
    return wide


def widen_queries(
    xp: Arrays, metric: str, formed: Any, scale: float, precision: Precision
) -> tuple[Any, tuple[Any, Any]]:
    """Return f of queries, widened and rounded; the scale and the shift of rows of the product.

    A product is the bound of s times the scale, and the shift. The scale is 0 for a query that is
    too long: then the products tell nothing.
    """
    n, dimension = formed.shape
    up, tiny = 1.0 + precision.up, precision.tiny
    unit = error_unit(dimension, precision)
    wide = xp.empty((n, width_of(dimension, precision)), xp.half if precision.half else xp.double)
    wide[:, dimension:] = 0.0
    lengths = lengths_of(xp, formed)
    factor = lengths * 0.0 + 1.0  # of the query
    if precision.length is not None:
        if metric == "euclidean":
            factor = precision.length / (lengths * scale + 1e-300)
            factor = xp.where(factor < 1.0, factor, 1.0)
            factor = xp.cast(xp.cast(factor, xp.half), xp.double)  # it is a column itself
            factor = xp.where(factor < 2.0**-14, 0.0, factor) * scale
        else:
            factor = precision.length / xp.where(lengths == 0.0, 1.0, lengths)
    if metric == "euclidean":
        wide[:, dimension] = factor / scale
        wide[:, dimension + 1] = factor / scale
    shift = lengths * 0.0
    if metric == "euclidean":  # a product is half of the squared distance, negative
        shift = xp.where(factor == scale, lengths * lengths * (-0.5 * scale * scale), 0.0)
    elif metric == "cosine":  # a product is the distance, negative
        shift = factor * lengths * -scale
    _put_in_two(
        xp, wide[:, dimension + UNUSED + 1 : dimension + EXTRA], shift, shift * -unit, precision
    )
    scaled = formed * factor[:, None]
    wide[:, :dimension] = scaled
    rounded = xp.cast(wide[:, :dimension], xp.double)
    wide[:, dimension + 2] = lengths_of(xp, rounded) * (up + unit) + tiny
    wide[:, dimension + 3] = lengths_of(xp, scaled - rounded) * up + tiny
    wide[:, dimension + UNUSED] = -precision.unused
    return wide, (factor * scale, shift)


def _put_in_two(xp: Arrays, columns: Any, values: Any, more: Any, precision: Precision) -> None:
    """Write numbers, and a little more, as the sums of two columns, rounded up."""
    columns[:, 0] = values
    rest = values - xp.cast(columns[:, 0], xp.double) + more
    columns[:, 1] = rest + xp.magnitude(rest) * precision.up + precision.tiny


def excluded(
    xp: Arrays,
    metric: str,
    formed: Any,
    bounds: Any,
    scaling: tuple[Any, Any],
    furthest: Any,
    precision: Precision,
) -> Any:
    """Return for which queries all vectors up to a bound are further away than ``furthest``.

    ``bounds`` are the largest products of these vectors, one for every query, and ``scaling`` is
    what `widen_queries` returned.
    """
    factor, shift = scaling
    bounds = xp.cast(bounds, xp.double)
    bounds = bounds + xp.magnitude(bounds) * precision.rounding + precision.tiny
    bounds = bounds - shift + xp.magnitude(shift) * 2.0**-50
    bounds = xp.where(factor > 0.0, bounds / xp.where(factor > 0.0, factor, 1.0), float("inf"))
    if metric == "inner_product":
        return -bounds > furthest
    if metric == "cosine":
        return 1.0 - bounds - 2.0**-48 > furthest
    own = xp.total(formed * formed, 1)
    slack = error_unit(formed.shape[1], DOUBLE)
    slack = (own + xp.magnitude(bounds) * 2.0) * slack
    return own - 2.0 * bounds - slack > furthest * furthest * (1.0 + 2.0**-40)
