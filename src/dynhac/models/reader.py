"""What can be read of a model that keeps a graph: everything that can be read of the graph.

Reading needs no lock, since the graph needs none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac.input.errors import show

if TYPE_CHECKING:
    from dynhac.dendrogram.dendrogram import Dendrogram
    from dynhac.models.explanation import Explanation
    from dynhac.models.modelgraph import ModelGraph
    from dynhac.models.verification import VerifyReport
    from dynhac.watch.watch import Watch


class GraphReader:
    """The reading half of a model.

    Attributes
    ----------
    graph : GraphHAC
        The graph, to be read: only the model can change it.
    """

    __slots__ = ()

    graph: ModelGraph

    def dendrogram(self) -> Dendrogram:
        """Return the hierarchy as it is now: a view that later updates do not change."""
        return self.graph.dendrogram()

    def labels(
        self, theta: float | None = None, *, n_clusters: int | None = None, min_size: int = 1
    ) -> NDArray[np.int64]:
        """Return a flat clustering aligned with `ids`; see `Dendrogram.labels`.

        Examples
        --------
        >>> from dynhac import DynHAC
        >>> model = DynHAC()
        >>> _ = model.insert([[0.0], [0.1], [5.0]])
        >>> model.labels(0.5).tolist(), model.labels(n_clusters=3).tolist()
        ([0, 0, 1], [0, 1, 2])
        """
        return self.graph.labels(theta, n_clusters=n_clusters, min_size=min_size)

    def cut(self, thetas: ArrayLike, min_size: int = 1) -> NDArray[np.int64]:
        """Return flat clusterings at several similarities, in one pass; see `Dendrogram.cut`."""
        return self.graph.cut(thetas, min_size)

    def watch(self, theta: float, min_size: int = 1) -> Watch:
        """Return the flat clusters at ``theta``, to be followed; see `GraphHAC.watch`."""
        return self.graph.watch(theta, min_size)

    @property
    def watches(self) -> tuple[Watch, ...]:
        """The watches that have not been closed."""
        return self.graph.watches

    def explain(self, a: int | str, b: int | str) -> Explanation:
        """Return how two points come together; see `GraphHAC.explain`."""
        for id in (a, b):
            if id not in self.graph:
                raise KeyError(f"id {show(id)} is not in the model")
        return self.graph.explain(a, b)

    def verify(self) -> VerifyReport:
        """Check every merge against the plain graph; see `GraphHAC.verify`."""
        return self.graph.verify()

    @property
    def ids(self) -> NDArray[Any]:
        """The ids in order of insertion: an array of int64, or of object holding str."""
        return self.graph.ids

    @property
    def epsilon(self) -> float:
        """How far from the best a merge may be."""
        return self.graph.epsilon

    @property
    def threshold(self) -> float:
        """Similarity below which nothing need be merged."""
        return self.graph.threshold

    @property
    def resolution(self) -> float:
        """What similarities are rounded to multiples of."""
        return self.graph.resolution

    @property
    def threads(self) -> int:
        """Threads that a large update may use."""
        return self.graph.threads

    @property
    def version(self) -> int:
        """A number that grows by one with every update that changed something."""
        return self.graph.version

    @property
    def n_levels(self) -> int:
        """The number of levels in the engine."""
        return self.graph.n_levels

    @property
    def level_sizes(self) -> list[tuple[int, int]]:
        """The numbers of vertices and edges of each level."""
        return self.graph.level_sizes

    def __len__(self) -> int:
        return len(self.graph)

    def __contains__(self, id: object) -> bool:
        return id in self.graph
