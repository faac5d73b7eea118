"""Hierarchical clustering that stays up to date.

`GraphHAC` holds a weighted graph and its (1+ε)-approximate average-linkage hierarchy. Vertices and
edges come and go in batches; the hierarchy, and the ids of its clusters, follow. `DynHAC` does the
same for vectors, and `dynhac.open` keeps either of them on disk.

Examples
--------
>>> from dynhac import GraphHAC
>>> g = GraphHAC(epsilon=0.1, threshold=1e-4)
>>> change = g.update(add=[1, 2, 3], edges=([1, 2], [2, 3], [0.9, 0.3]))
>>> g.labels(0.5).tolist()
[0, 0, 1]
"""

from typing import TYPE_CHECKING, Any

from dynhac.clusters import Cluster, Clusters
from dynhac.dendrogram.condensed import CondensedTree
from dynhac.dendrogram.dendrogram import Dendrogram
from dynhac.dendrogram.suggest import Suggestion, Suggestions
from dynhac.input.errors import FileError, InvalidTypeError
from dynhac.models.change import Change, Node, Nodes
from dynhac.models.explanation import Explanation
from dynhac.models.graph import GraphHAC
from dynhac.models.verification import VerifyReport
from dynhac.progress import Progress
from dynhac.watch import Event, Timeline, Watch, replay

if TYPE_CHECKING:
    from dynhac.client import AsyncClient, Client, ServiceError
    from dynhac.models.point_change import PointChange
    from dynhac.models.points import DynHAC
    from dynhac.models.prediction import Neighbors, Prediction
    from dynhac.plot import plot_dendrogram, plot_persistence, plot_timeline
    from dynhac.store import RecoveryWarning, StoreError, StoreLockedError
    from dynhac.store import open as open  # not in __all__: it would hide the builtin one
    from dynhac.version import __version__ as __version__

__all__ = [
    "AsyncClient",
    "Change",
    "Client",
    "Cluster",
    "Clusters",
    "CondensedTree",
    "Dendrogram",
    "DynHAC",
    "Event",
    "Explanation",
    "FileError",
    "GraphHAC",
    "InvalidTypeError",
    "Neighbors",
    "Node",
    "Nodes",
    "PointChange",
    "Prediction",
    "Progress",
    "RecoveryWarning",
    "ServiceError",
    "StoreError",
    "StoreLockedError",
    "Suggestion",
    "Suggestions",
    "Timeline",
    "VerifyReport",
    "Watch",
    "plot_dendrogram",
    "plot_persistence",
    "plot_timeline",
    "replay",
]

# What is imported when it is first asked for, to keep the import of graphs alone quick.
_LATER = {
    "AsyncClient": "dynhac.client",
    "Client": "dynhac.client",
    "DynHAC": "dynhac.models.points",
    "Neighbors": "dynhac.models.prediction",
    "PointChange": "dynhac.models.point_change",
    "Prediction": "dynhac.models.prediction",
    "RecoveryWarning": "dynhac.store.errors",
    "ServiceError": "dynhac.client",
    "StoreError": "dynhac.store.errors",
    "StoreLockedError": "dynhac.store.errors",
    "__version__": "dynhac.version",
    "open": "dynhac.store",
    "plot_dendrogram": "dynhac.plot",
    "plot_persistence": "dynhac.plot",
    "plot_timeline": "dynhac.plot",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value


_FOLDERS = ("neighbors", "reference", "river", "sklearn", "spark")
"""Folders with public names of their own."""


def __dir__() -> list[str]:
    special = {name for name in globals() if name.startswith("__")}
    return sorted({*special, *__all__, *_LATER, *_FOLDERS})
