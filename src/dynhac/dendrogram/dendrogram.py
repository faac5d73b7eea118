"""The dendrogram: an immutable view of a hierarchy as arrays.

Leaf i is ``ids[i]``, 0 <= i < n; merge j is node n + j and joins the nodes ``children[j]``;
children come before their parent. There may be several trees. Nothing here is recursive, because a
tree may be as deep as it has merges.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac.clusters.clusters import Clusters
from dynhac.clusters.summarize import given_labels, summarize
from dynhac.dendrogram import exports
from dynhac.dendrogram.condensed import CondensedTree
from dynhac.dendrogram.cuts import check_one_given, cut_at
from dynhac.dendrogram.linkage import DistanceRule, inverse_distance, linkage_matrix
from dynhac.dendrogram.selection import chosen_labels, nearest_clusters, read_noise
from dynhac.dendrogram.suggest import Suggestions, suggest_cuts
from dynhac.input.errors import counted

if TYPE_CHECKING:
    import networkx
    import pandas
    import pyarrow
    from matplotlib.axes import Axes

    from dynhac._core import Engine
    from dynhac.plot.dendrogram import Labels


@dataclass(frozen=True, eq=False, repr=False)
class Dendrogram:
    """The state of a hierarchy at one version of a model; later updates do not change it.

    Made by `GraphHAC.dendrogram`. The arrays are read-only.

    Attributes
    ----------
    ids : ndarray of int64, or of object holding str, shape (n,)
        The ids of the leaves, in order of insertion.
    children : ndarray of int64, shape (m, 2)
        The two nodes that each merge joins. Nodes 0..n-1 are leaves, node n+j is merge j.
    similarity : ndarray of float64, shape (m,)
        The linkage of each merge: the mean similarity over all pairs of leaves that it joins,
        where a missing edge counts as 0.
    min_similarity : ndarray of float64, shape (m,)
        The smallest linkage in the subtree of each merge; cuts are made on it.
    size : ndarray of int64, shape (m,)
        The number of leaves under each merge.
    node_ids : ndarray of int64, shape (m,)
        Stable ids: a cluster keeps its id from one update to the next, and its successor takes the
        id over when the cluster gains or loses leaves.
    epsilon, threshold : float
        The parameters of the model.
    version : int
        The version of the model.
    resolution : float
        Weights were rounded to multiples of this; 0 if they were not rounded.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC()
    >>> _ = g.add([10, 20, 30, 40], edges=([10, 20, 30], [20, 30, 40], [0.9, 0.2, 0.8]))
    >>> d = g.dendrogram()
    >>> d
    <Dendrogram: 4 leaves, 3 merges, 1 tree, similarity 0.9 to 0.05>
    >>> d.children.tolist()
    [[0, 1], [2, 3], [4, 5]]
    >>> d.labels(0.5).tolist()
    [0, 0, 1, 1]
    """

    ids: NDArray[Any]
    children: NDArray[np.int64]
    similarity: NDArray[np.float64]
    min_similarity: NDArray[np.float64]
    size: NDArray[np.int64]
    node_ids: NDArray[np.int64]
    epsilon: float
    threshold: float
    version: int = 0
    resolution: float = 0.0
    # The engine that it is a view of, if that still exists: a view must not keep it in memory.
    _engine: Callable[[], Engine | None] = field(default=lambda: None)

    def __post_init__(self) -> None:
        for array in (value for value in vars(self).values() if isinstance(value, np.ndarray)):
            array.setflags(write=False)

    def __reduce__(self) -> tuple[type[Dendrogram], tuple[object, ...]]:
        return Dendrogram, tuple(getattr(self, field.name) for field in fields(self)[:-1])

    def __len__(self) -> int:
        return len(self.children)

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return len(self.ids)

    @cached_property
    def roots(self) -> NDArray[np.int64]:
        """The root of each tree, including trees of a single leaf."""
        is_root = np.ones(self.n_leaves + len(self), dtype=np.bool_)
        is_root[self.children] = False
        roots = np.flatnonzero(is_root)
        roots.setflags(write=False)
        return roots

    def labels(
        self,
        theta: float | None = None,
        *,
        n_clusters: int | None = None,
        conductance: float | None = None,
        min_size: int | None = None,
        noise: str | None = None,
    ) -> NDArray[np.int64]:
        """Return a flat clustering.

        At most one of ``theta``, ``n_clusters`` and ``conductance`` is given. With none of them the
        choice is *automatic*: each cluster is taken at the similarity at which it lasts longest,
        from the tree of all clusters of at least ``min_size`` leaves; see `CondensedTree`. Points
        without any structure are divided into many clusters, if they are all that the model holds.

        Parameters
        ----------
        theta : float, optional
            Clusters are the leaves of the maximal subtrees all of whose merges have a linkage of
            at least ``theta``, which must not be below the threshold. An int above 1 is an error:
            it is more likely to be a number of clusters (for a similarity of 5 give 5.0).
        n_clusters : int, optional
            The number of clusters: from the number of trees to the number of leaves. Merges are
            applied in descending order of `min_similarity`.
        conductance : float, optional
            Clusters are the leaves of the maximal subtrees all of whose merges have at least this
            conductance, > 0 and <= 1: the share of the weight at the smaller side of a merge that
            crosses to the other side. It does not depend on the scale of the similarities. As the
            data grows, the number of clusters grows too, unless they are well separated and the
            conductance is low, such as 0.02.
        min_size : int, optional
            Leaves in smaller clusters get the label -1. By default 25 for the automatic choice,
            where it is at least 2, and 1 otherwise.
        noise : "nearest", optional
            What to do with leaves in no cluster: by default they get the label -1. With "nearest"
            each gets the largest cluster under its nearest ancestor under which there is one; in
            trees without a cluster they keep -1.

        Returns
        -------
        ndarray of int64, shape (n,)
            Labels aligned with `ids`: 0, 1, ... in order of each cluster's first leaf (before
            noise is given to clusters).

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.add(list("abcde"), edges=(list("abcd"), list("bcde"), [0.9, 0.2, 0.8, 0.1]))
        >>> d = g.dendrogram()
        >>> d.labels(0.5).tolist()
        [0, 0, 1, 1, 2]
        >>> d.labels(0.5, min_size=2).tolist()
        [0, 0, 1, 1, -1]
        >>> d.labels(n_clusters=1).tolist()
        [0, 0, 0, 0, 0]
        >>> d.labels(min_size=2).tolist()
        [0, 0, 1, 1, 1]
        >>> d.labels(conductance=0.5, min_size=2, noise="nearest").tolist()
        [0, 0, 1, 1, 1]
        """
        return chosen_labels(self, theta, n_clusters, conductance, min_size, noise)

    def cut(self, thetas: ArrayLike, min_size: int = 1) -> NDArray[np.int64]:
        """Return flat clusterings at several similarities.

        Parameters
        ----------
        thetas : sequence of float
            Similarities, none below the threshold, in any order.
        min_size : int, default 1
            Leaves in smaller clusters get the label -1.

        Returns
        -------
        ndarray of int64, shape (len(thetas), n)
            Row i is what ``labels(thetas[i])`` gives.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.add([1, 2, 3], edges=([1, 2], [2, 3], [0.9, 0.2]))
        >>> g.dendrogram().cut([0.95, 0.5, 0.05]).tolist()
        [[0, 1, 2], [0, 0, 1], [0, 0, 0]]
        """
        return cut_at(self, thetas, min_size)

    def clusters(
        self,
        theta: float | None = None,
        *,
        n_clusters: int | None = None,
        conductance: float | None = None,
        min_size: int | None = None,
        noise: str | None = None,
        labels: ArrayLike | None = None,
    ) -> Clusters:
        """Return what is in the clusters of a flat clustering.

        Typical points and outliers follow from the edges of the graph, which a dendrogram does not
        hold. So this works as long as the model exists and has not been updated since. To always
        describe the present state, use the method ``clusters`` of the model.

        Parameters
        ----------
        theta, n_clusters, conductance, min_size, noise
            As for `labels`: with none of them, the automatic choice.
        labels : sequence of int
            Any other flat clustering, instead of ``theta``: the cluster of each of `ids`, and -1
            for none. Clusters keep their numbers.

        Raises
        ------
        ValueError
            If the model has been updated since or does not exist any more, or if the dendrogram is
            a copy.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph(([1, 2, 1], [2, 3, 3], [0.9, 0.8, 0.4]), [1, 2, 3, 4])
        >>> d = g.dendrogram()
        >>> d.clusters(0.3)[0]
        <Cluster 0: 3 points, cohesion 0.7, together up to 0.6; typical: 2, 1, 3>
        >>> d.clusters(labels=[5, 5, 7, 7]).cohesion.round(3).tolist()
        [0.9, 0.0]
        """
        chosen = self._chosen_labels(theta, n_clusters, conductance, min_size, noise, labels)
        engine = self._engine()
        if engine is None:
            raise ValueError(
                "the dendrogram has no model: that does not exist any more, or the dendrogram is a "
                "copy; clusters() needs the edges of the graph, which only the model holds; keep "
                "the model and use its clusters()"
            )
        found = summarize(engine, self.version, self.ids, chosen)
        if found is None:
            raise ValueError(
                f"the dendrogram is of version {self.version} of its model, which is now at "
                f"{engine.version}, and does not hold the edges that clusters() needs; use "
                "clusters() of the model, or of a new dendrogram"
            )
        return found

    def _chosen_labels(
        self,
        theta: float | None,
        n_clusters: int | None,
        conductance: float | None,
        min_size: int | None,
        noise: str | None,
        labels: ArrayLike | None,
    ) -> NDArray[np.int64]:
        """Return the labels that the arguments of `clusters` select."""
        if labels is None:
            return chosen_labels(self, theta, n_clusters, conductance, min_size, noise)
        check_one_given(theta=theta, n_clusters=n_clusters, conductance=conductance, labels=labels)
        to_nearest = read_noise(noise)
        given = given_labels(labels, self.n_leaves, 1 if min_size is None else min_size)
        return nearest_clusters(self, given) if to_nearest else given

    def condensed(self, min_size: int | None = None) -> CondensedTree:
        """Return the tree of clusters that `labels` chooses from, and what it chooses.

        Parameters
        ----------
        min_size : int, default 25
            At least 2; as for `labels`.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph(([1, 2, 3], [2, 3, 4], [0.9, 0.1, 0.8]))
        >>> d = g.dendrogram()
        >>> d.condensed(min_size=2)
        <CondensedTree: 3 branches of at least 2 leaves, 2 of them chosen>
        >>> d.condensed(min_size=3)
        <CondensedTree: 1 branch of at least 3 leaves, 1 of them chosen>
        """
        return CondensedTree._of(self, min_size)

    def suggest(self, n: int = 5, *, min_size: int | None = None) -> Suggestions:
        """Return a few sensible cuts: where the clusters stay the same over a wide range of θ.

        Parameters
        ----------
        n : int, default 5
            The largest number of suggestions.
        min_size : int, default 25
            Smaller clusters do not count; at least 2.

        Returns
        -------
        Suggestions
            The most persistent cut first, with clearly different numbers of clusters, and beside
            them what the automatic choice of `labels` gives. There is none if no cut has a cluster
            of ``min_size`` leaves.

        Examples
        --------
        >>> import numpy as np
        >>> from dynhac import DynHAC
        >>> middles = np.repeat([[0, 0], [5, 0], [30, 30], [35, 30]], 100, axis=0)
        >>> model = DynHAC(n_neighbors=50)
        >>> _ = model.insert(np.random.default_rng(0).normal(middles))
        >>> d = model.dendrogram()
        >>> d.suggest()
        <Suggestions: 2 cuts of 400 points; clusters of at least 25 points>
            theta  clusters  all  noise  persistence
           0.0007         2    2   0.0%         1.00
             0.03         4    4   0.0%         0.98
        automatic         4        0.0%
        >>> [int(d.labels(cut.theta).max()) + 1 for cut in d.suggest()]
        [2, 4]
        """
        return suggest_cuts(self, n, min_size)

    def linkage(
        self,
        distance: DistanceRule | None = None,
        *,
        join_distance: float = float("inf"),
    ) -> NDArray[np.float64]:
        """Return the dendrogram in the format of `scipy.cluster.hierarchy.linkage`.

        The distance of a merge is ``1 / min_similarity - 1``, the inverse of
        ``similarity = 1 / (1 + distance)``, so that cutting at a distance of ``1 / theta - 1``
        gives the clusters of ``labels(theta)``. Rows are sorted by distance. Separate trees are
        joined at the end, by rows with an infinite distance.

        Parameters
        ----------
        distance : callable, optional
            Another rule, from an array of similarities to an array of distances >= 0 that do not
            grow with the similarity. Required if similarities exceed 1.
        join_distance : float, default inf
            The distance at which separate trees are joined; scipy cannot plot infinite ones.

        Returns
        -------
        ndarray of float64, shape (n - 1, 4)
            Two nodes, their distance, and the number of leaves, for each row.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC()
        >>> _ = g.add([1, 2, 3], edges=(1, 2, 0.5))
        >>> g.dendrogram().linkage().tolist()
        [[0.0, 1.0, 1.0, 2.0], [2.0, 3.0, inf, 3.0]]
        """
        rule = inverse_distance if distance is None else distance
        return linkage_matrix(self, rule, join_distance)

    def to_newick(
        self,
        distance: DistanceRule | None = None,
        *,
        join: bool = False,
        node_ids: bool = False,
    ) -> str:
        """Return the trees in Newick format, one per line; see `exports.newick`."""
        return exports.newick(self, distance, join=join, node_ids=node_ids)

    def to_networkx(self) -> networkx.DiGraph[int]:
        """Return a directed graph with edges from parent to child; see `exports.networkx_graph`."""
        return exports.networkx_graph(self)

    def to_arrow(self) -> pyarrow.Table:
        """Return a table with one row per node; see `exports.arrow_table`."""
        return exports.arrow_table(self)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table of `to_arrow` to a Parquet file."""
        exports.write_parquet(self, path)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table of `to_arrow` as a DataFrame; see `exports.pandas_frame`."""
        return exports.pandas_frame(self)

    def plot(
        self,
        max_leaves: int = 40,
        *,
        theta: float | None = None,
        scale: str = "auto",
        labels: Labels | None = None,
        text: Callable[[Any], object] = str,
        min_size: int | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the tree, truncated to ``max_leaves`` rows; see `dynhac.plot.plot_dendrogram`."""
        from dynhac.plot.dendrogram import plot_dendrogram

        return plot_dendrogram(
            self,
            max_leaves,
            theta=theta,
            scale=scale,
            labels=labels,
            text=text,
            min_size=min_size,
            ax=ax,
        )

    def plot_persistence(
        self,
        *,
        min_size: int | None = None,
        theta: float | None = None,
        labels: Labels | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the condensed tree with its clusters; see `dynhac.plot.plot_persistence`."""
        from dynhac.plot.persistence import plot_persistence

        return plot_persistence(self, min_size=min_size, theta=theta, labels=labels, ax=ax)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dendrogram):
            return NotImplemented
        return (self.epsilon, self.threshold) == (other.epsilon, other.threshold) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("ids", "children", "similarity", "node_ids")
        )

    def _repr_html_(self) -> str:
        from dynhac.notebook.views import dendrogram_html

        return dendrogram_html(self)

    def __repr__(self) -> str:
        span = ""
        if len(self):
            span = f", similarity {self.similarity.max():.3g} to {self.similarity.min():.3g}"
        return (
            f"<Dendrogram: {counted(self.n_leaves, 'leaf', 'leaves')}, "
            f"{counted(len(self), 'merge', 'merges')}, "
            f"{counted(self.n_leaves - len(self), 'tree', 'trees')}{span}>"
        )
