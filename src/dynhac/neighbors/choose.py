"""Select an index by name, or by metric, dimension and number of points.

A KD-tree is exact and fast for Euclidean distances in up to 8 dimensions. A scan is exact and fast
enough while points times dimension is small. Beyond that only an approximate index is fast, or one
on a GPU, which is used only if it is asked for.
"""

from __future__ import annotations

from dynhac.input.errors import InvalidTypeError, show
from dynhac.neighbors.cells import RECALL, CellsIndex, checked_recall
from dynhac.neighbors.exact import ExactIndex
from dynhac.neighbors.gpu import GpuIndex
from dynhac.neighbors.index import NeighborIndex
from dynhac.neighbors.kd_tree import MOST_DIMENSIONS, KDBlocksIndex
from dynhac.neighbors.metrics import Metric, resolve_metric
from dynhac.neighbors.usearch import UsearchIndex

MOST_NUMBERS_SCANNED = 20_000_000
"""Numbers (points times dimension) up to which "auto" selects a scan.

Up to there the codes fit into the cache of a usual processor, and a search takes less than a
millisecond. `benchmarks/neighbors.py` measures what exactness costs: just below, an insertion into
cells takes 0.7 of the time on embeddings of texts and images, a third on tighter clusters; with
twice as many numbers, less than a tenth.
"""

WANTED = "it must be 'auto', 'exact', 'kd', 'cells', 'usearch', 'gpu' or an index object"
METHODS = ("add", "remove", "query", "save", "load", "__len__")


def choose_backend(metric: str | Metric, dimension: int, points: int) -> str:
    """Return the backend for this many points: "kd", "exact" or "cells".

    Examples
    --------
    >>> from dynhac.neighbors import choose_backend
    >>> choose_backend("cosine", dimension=64, points=20_000)
    'exact'
    """
    if resolve_metric(metric).name == "euclidean" and dimension <= MOST_DIMENSIONS:
        return "kd"
    return "exact" if points * dimension <= MOST_NUMBERS_SCANNED else "cells"


def split_name(backend: str) -> tuple[str, float]:
    """Return the name of an index and its recall; the recall follows "cells" after a colon.

    Examples
    --------
    >>> from dynhac.neighbors.choose import split_name
    >>> split_name("cells:0.99"), split_name("kd")
    (('cells', 0.99), ('kd', 0.995))
    """
    name, colon, recall = backend.partition(":")
    if not colon or name != "cells":
        return backend, RECALL
    try:
        return name, checked_recall(float(recall))
    except ValueError:
        raise ValueError(
            f"neighbors is {show(backend)}; the recall after 'cells:' must be > 0 and <= 1"
        ) from None


def make_index(
    backend: object,
    metric: str | Metric,
    dimension: int,
    expected_points: int,
    *,
    threads: int = 1,
) -> NeighborIndex:
    """Return a new index, or ``backend`` itself if it is an object with the methods of an index.

    ``threads`` is how many threads an index may use that is compiled.

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
    backend, recall = split_name(backend)
    if backend == "cells":
        return CellsIndex(metric, dimension, recall=recall, threads=threads)
    if backend == "exact":
        return ExactIndex(metric, threads=threads)
    if backend == "kd":
        if metric.name != "euclidean":
            raise ValueError(
                f"neighbors is 'kd', which is for metric 'euclidean', not {metric.name!r}; "
                "use 'auto', 'exact', 'cells' or 'gpu'"
            )
        return KDBlocksIndex(dimension, threads=threads)
    if backend == "usearch":
        return UsearchIndex(metric, dimension)
    if backend == "gpu":
        return GpuIndex(metric, dimension)
    raise ValueError(f"neighbors is {show(backend)}; {WANTED}")
