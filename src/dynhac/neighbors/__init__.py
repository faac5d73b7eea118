"""Nearest neighbours among vectors that come and go, behind one small interface.

`NeighborIndex` is what the model needs; `ExactIndex`, `KDBlocksIndex` and `UsearchIndex` are what
there is; `make_index` and `choose_backend` pick one.
"""

from dynhac.neighbors.choose import choose_backend, make_index
from dynhac.neighbors.exact import ExactIndex
from dynhac.neighbors.index import NeighborIndex
from dynhac.neighbors.kd_tree import KDBlocksIndex
from dynhac.neighbors.metrics import METRICS, Metric, resolve_metric
from dynhac.neighbors.usearch import UsearchIndex

__all__ = [
    "METRICS",
    "ExactIndex",
    "KDBlocksIndex",
    "Metric",
    "NeighborIndex",
    "UsearchIndex",
    "choose_backend",
    "make_index",
    "resolve_metric",
]
