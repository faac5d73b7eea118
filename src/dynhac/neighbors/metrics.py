"""Distances between vectors, as all indexes report them.

They are compiled; `core/neighbors/metric.h` describes them. A distance is computed in float64 and
always in the same order of operations, so that it does not depend on the other pairs of the batch,
on the order of the two vectors, or on the index that found the pair. Equal vectors have distance
exactly 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dynhac._core import pair_distances, scaled
from dynhac.input.errors import InvalidTypeError, show
from dynhac.neighbors.arrays import parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dynhac.neighbors.index import Distances, Ints

    Floats: TypeAlias = NDArray[np.float32]

CHUNK = 2**20
"""Numbers that are copied at a time, which bounds the memory."""


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
        return pair_distances(self.name, np.ascontiguousarray(a), np.ascontiguousarray(b))

    def distances_at(self, a: Floats, rows: Ints, b: Floats, columns: Ints) -> Distances:
        """Return the distances of pairs ``a[rows[i]]``, ``b[columns[i]]``, in bounded memory."""
        found = np.empty(len(rows))
        for part in parts(len(rows), CHUNK // max(1, a.shape[1])):
            found[part] = self.pair_distances(a[rows[part]], b[columns[part]])
        return found


class Euclidean(Metric):
    """The length of the difference."""

    name = "euclidean"


class InnerProduct(Metric):
    """Minus the inner product: the most similar vectors come first; may be negative."""

    name = "inner_product"


class Cosine(Metric):
    """One minus the cosine of the angle; a zero vector has distance 1 from every vector."""

    name = "cosine"

    def prepare(self, vectors: Floats) -> Floats:
        """Return the vectors scaled to length 1; zero vectors stay zero."""
        return scaled(super().prepare(vectors))


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
