"""Select an index by name, or by metric, dimension and number of points.

A KD-tree is exact and fast for Euclidean distances in up to 8 dimensions. A scan is exact and fast
enough while points times dimension is small. Beyond that only an approximate index is fast, or one
on a GPU, which is used only if it is asked for.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec

from dynhac.input.errors import InvalidTypeError, show
from dynhac.neighbors.exact import ExactIndex
from dynhac.neighbors.gpu import GpuIndex
from dynhac.neighbors.index import NeighborIndex
from dynhac.neighbors.kd_tree import MOST_DIMENSIONS, KDBlocksIndex
from dynhac.neighbors.metrics import Metric, resolve_metric
from dynhac.neighbors.usearch import UsearchIndex

MOST_NUMBERS_SCANNED = 100_000_000
"""Numbers (points times dimension) up to which "auto" selects a scan."""

WANTED = "it must be 'auto', 'exact', 'kd', 'usearch', 'gpu' or an index object"
METHODS = ("add", "remove", "query", "save", "load", "__len__")


def choose_backend(metric: str | Metric, dimension: int, points: int) -> str:
    """Return the backend for this many points: "kd", "exact" or "usearch".

    Warns if "usearch" would be selected but is not installed.

    Examples
    --------
    >>> from dynhac.neighbors import choose_backend
    >>> choose_backend("cosine", dimension=64, points=20_000)
    'exact'
    """
    if resolve_metric(metric).name == "euclidean" and dimension <= MOST_DIMENSIONS:
        return "kd"
    if points * dimension <= MOST_NUMBERS_SCANNED:
        return "exact"
    if find_spec("usearch") is not None:
        return "usearch"
    warnings.warn(
        f"{points:,} points of dimension {dimension} are many for a scan, and usearch is not "
        "installed; for faster searches pip install dynhac[ann]",
        RuntimeWarning,
        stacklevel=2,
    )
    return "exact"


def make_index(
    backend: object,
    metric: str | Metric,
    dimension: int,
    expected_points: int,
    *,
    threads: int = 1,
) -> NeighborIndex:
    """Return a new index, or ``backend`` itself if it is an object with the methods of an index.

    ``threads`` is how many threads an exact index may use.

    Examples
    --------
    >>> from dynhac.neighbors import make_index
    >>> type(make_index("auto", "cosine", dimension=64, expected_points=1000)).__name__
    'ExactIndex'
    """
    metric = resolve_metric(metric)
    if not isinstance(backend, str):
        complete = all(callable(getattr(backend, name, None)) for name in METHODS)
        if not complete or isinstance(backend, type):
            raise InvalidTypeError(
                f"neighbors is {show(backend)}; {WANTED} with the methods {', '.join(METHODS)}"
            )
        assert isinstance(backend, NeighborIndex)
        own = getattr(backend, "metric", None)
        if isinstance(own, str) and own != metric.name:
            raise ValueError(
                f"neighbors is an index of metric {own!r}, but the model's is {metric.name!r}"
            )
        return backend
    if backend == "auto":
        backend = choose_backend(metric, dimension, expected_points)
    if backend == "exact":
        return ExactIndex(metric, threads=threads)
    if backend == "kd":
        if metric.name != "euclidean":
            raise ValueError(
                f"neighbors is 'kd', which is for metric 'euclidean', not {metric.name!r}; "
                "use 'auto', 'exact', 'usearch' or 'gpu'"
            )
        return KDBlocksIndex(dimension, threads=threads)
    if backend == "usearch":
        return UsearchIndex(metric, dimension)
    if backend == "gpu":
        return GpuIndex(metric, dimension)
    raise ValueError(f"neighbors is {show(backend)}; {WANTED}")
