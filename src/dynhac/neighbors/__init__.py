"""Nearest-neighbour indexes that support insertion and deletion.

`NeighborIndex` is the interface that a model uses. `ExactIndex`, `KDBlocksIndex`, `CellsIndex`,
`UsearchIndex` and `GpuIndex` implement it; `make_index` and `choose_backend` select one of them.
"""

from dynhac.neighbors.cells import CellsIndex
from dynhac.neighbors.choose import choose_backend, make_index
from dynhac.neighbors.exact import ExactIndex
from dynhac.neighbors.gpu import GpuIndex
from dynhac.neighbors.index import NeighborIndex
from dynhac.neighbors.kd_tree import KDBlocksIndex
from dynhac.neighbors.usearch import UsearchIndex

__all__ = [
    "CellsIndex",
    "ExactIndex",
    "GpuIndex",
    "KDBlocksIndex",
    "NeighborIndex",
    "UsearchIndex",
    "choose_backend",
    "make_index",
]


def __dir__() -> list[str]:
    return sorted(__all__)
