"""All clusters of a flat clustering, and what is in them.

A `Clusters` describes one state of a model and holds no reference to it. Everything is computed by
the core in one pass over the edges (``core/hierarchy/clusters.h``); here are the arrays.

Points are numbered in order of insertion, and clusters by *position*: the rank of their id.
``_order`` lists the points of all clusters, cluster by cluster and the most typical first;
``_start[i]`` is where those of the cluster at position i begin. In the same way ``_nearest`` holds
positions of near clusters, from ``_nearest_start[i]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.clusters.cluster import Cluster, FrozenArrays, NearCluster, listed
from dynhac.clusters.names import NameKeeper
from dynhac.extras import optional
from dynhac.input.columns import is_int, scalar, whole_number
from dynhac.input.errors import counted, show

if TYPE_CHECKING:
    import pandas

    from dynhac._core import ClusterSummary

ROWS = 10  # clusters in a repr
WIDEST = 60  # characters of the typical points in a repr


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(FrozenArrays, Mapping[int, Cluster]):
    """The clusters of a flat clustering and what is in them, by id.

    Made by ``model.clusters``, `Dendrogram.clusters` and `Watch.summary`. It is a mapping from the
    ids of clusters, in ascending order, to `Cluster`. It describes one state of the model; later
    updates do not change it.

    Similarities are means over all pairs of points, where a missing edge counts as 0, like the
    linkage. A mean over no pairs is nan. The arrays are read-only.

    Attributes
    ----------
    cluster_ids : ndarray of int64, shape (k,)
        The labels, or the stable ids of a watch, ascending.
    sizes : ndarray of int64, shape (k,)
        The numbers of points.
    cohesion : ndarray of float64, shape (k,)
        The mean similarity over all pairs of points in the cluster.
    density : ndarray of float64, shape (k,)
        The share of these pairs that have an edge. In a sparse graph, such as one of nearest
        neighbours, large clusters have a small density, and so a small cohesion.
        ``cohesion / density`` is the mean weight of the edges inside.
    similarity : ndarray of float64, shape (k,)
        The highest cut that keeps the cluster together: the smallest linkage of its merges. nan for
        single points, and for clusters that are no node of the dendrogram.
    node_ids : ndarray of int64, shape (k,)
        The stable ids of the clusters' nodes in the dendrogram; -1 where `similarity` is nan.
    ids : ndarray of int64, or of object holding str, shape (n,)
        The ids of all points, in order of insertion.
    labels : ndarray of int64, shape (n,)
        The cluster of every point, -1 for none.
    typicality : ndarray of float64, shape (n,)
        The mean similarity of a point to the others in its cluster; nan if there are none.
    outlier_score : ndarray of float64, shape (n,)
        How weakly a point belongs to its cluster, from 0 to 1. The total weight of its edges inside
        is compared with that of its neighbours in their clusters: ``1 - own / mean of neighbours``,
        at least 0. The mean is weighted by the edges. A score of 0.8 means that the point is tied
        to its cluster by a fifth of the weight that is usual around it. 1 for single points, and
        for points in no cluster.
    inside_share : ndarray of float64, shape (n,)
        How much of the total weight of the edges of a point stays in its cluster, from 0 to 1; a
        small share means that it lies between clusters. nan without edges or in no cluster.
    version : int
        The version of the model.
    names : tuple of str or None
        The names of the clusters, in the order of `cluster_ids`; None unless `named` has made them.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC.from_graph(([1, 2, 1, 3, 4], [2, 3, 3, 4, 5], [0.9, 0.8, 0.4, 0.1, 0.6]))
    >>> clusters = g.clusters(0.3)
    >>> clusters
    <Clusters: 5 points in 2 clusters>
    cluster  size  cohesion  together up to     nearest  typical
          0     3       0.7             0.6  1 (0.0167)  2, 1, 3
          1     2       0.6             0.6  0 (0.0167)  4, 5
    >>> clusters.medoids.tolist(), clusters[1].members.tolist()
    ([2, 4], [4, 5])
    >>> clusters.outlier_score.round(2).tolist()
    [0.16, 0.0, 0.2, 0.13, 0.0]
    """

    cluster_ids: NDArray[np.int64]
    sizes: NDArray[np.int64]
    cohesion: NDArray[np.float64]
    density: NDArray[np.float64]
    similarity: NDArray[np.float64]
    node_ids: NDArray[np.int64]
    ids: NDArray[Any]
    labels: NDArray[np.int64]
    typicality: NDArray[np.float64]
    outlier_score: NDArray[np.float64]
    inside_share: NDArray[np.float64]
    version: int = field(compare=False)
    _start: NDArray[np.int64]
    _order: NDArray[np.int64]
    _nearest_start: NDArray[np.int64]
    _nearest: NDArray[np.int64]
    _nearest_linkage: NDArray[np.float64]
    names: tuple[str, ...] | None = None

    @classmethod
    def _of(
        cls,
        summary: ClusterSummary,
        cluster_ids: NDArray[np.int64],
        ids: NDArray[Any],
        labels: NDArray[np.int64],
        version: int,
    ) -> Clusters:
        """Return what the core found; ``ids`` and ``labels`` are those of all points."""

        def by_point(values: NDArray[np.float64], without: float) -> NDArray[np.float64]:
            column = np.full(len(ids), without)
            column[summary.members] = values
            return column

        return cls(
            cluster_ids,
            np.diff(summary.start),
            summary.cohesion,
            summary.density,
            summary.similarity,
            summary.node_ids,
            ids,
            labels,
            by_point(summary.typicality, np.nan),
            by_point(summary.outlier, 1.0),
            by_point(summary.inside_share, np.nan),
            version,
            summary.start,
            summary.members,
            summary.nearest_start,
            summary.nearest,
            summary.nearest_linkage,
        )

    @property
    def medoids(self) -> NDArray[Any]:
        """The id of the most typical point of each cluster: most similar to the others."""
        medoids: NDArray[Any] = self.ids[self._order[self._start[:-1]]]
        return medoids

    @property
    def nearest(self) -> NDArray[np.int64]:
        """The id of the nearest other cluster of each cluster; -1 if it has edges to none."""
        nearest = np.full(len(self), -1, np.int64)
        some = np.diff(self._nearest_start) > 0
        nearest[some] = self.cluster_ids[self._nearest[self._nearest_start[:-1][some]]]
        return nearest

    @property
    def nearest_linkage(self) -> NDArray[np.float64]:
        """The linkage to the nearest other cluster, 0 if there is none."""
        linkage = np.zeros(len(self))
        some = np.diff(self._nearest_start) > 0
        linkage[some] = self._nearest_linkage[self._nearest_start[:-1][some]]
        return linkage

    def __len__(self) -> int:
        return len(self.cluster_ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self.cluster_ids.tolist())

    def __contains__(self, id: object) -> bool:
        return self._position(id) is not None

    def __getitem__(self, id: int) -> Cluster:
        position = self._position(id)
        if position is None:
            some = listed(self.cluster_ids[:6].tolist(), 5) or "none"
            raise KeyError(f"cluster {show(id)} is not among the clusters, which are: {some}")
        return self._at(position)

    def largest(self, n: int | None = None) -> list[Cluster]:
        """Return the ``n`` largest clusters, or all, the largest first; among equals, by id."""
        order = np.argsort(-self.sizes, kind="stable")
        wanted = order if n is None else order[: whole_number(n, "n", 0)]
        return [self._at(position) for position in wanted.tolist()]

    def representatives(self, n: int = 5) -> dict[int, NDArray[Any]]:
        """Return the ids of the ``n`` most typical points of each cluster, by cluster.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph(([1, 2, 1], [2, 3, 3], [0.9, 0.8, 0.4]), [1, 2, 3, 4])
        >>> {id: points.tolist() for id, points in g.clusters(0.3).representatives(2).items()}
        {0: [2, 1], 1: [4]}
        """
        most = whole_number(n, "n", 0)
        ends = np.minimum(self._start[1:], self._start[:-1] + min(most, len(self.ids)))
        spans = zip(self.cluster_ids.tolist(), self._start.tolist(), ends.tolist(), strict=False)
        return {id: self.ids[self._order[start:end]] for id, start, end in spans}

    def node_labels(
        self, n: int = 1, text: Callable[[Any], object] = str, separator: str = ", "
    ) -> dict[int, str]:
        """Return a text for the node of each cluster, made of its representatives.

        Parameters
        ----------
        n : int, default 1
            The number of representatives in a text.
        text : callable, default str
            From the id of a point to its text, such as ``titles.__getitem__``.
        separator : str, default ", "
            What is between the representatives.

        Returns
        -------
        dict of int to str
            By the stable id of the node, as in `Dendrogram.node_ids`. Clusters that have no node of
            their own, such as single points, are left out.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph(([1, 2, 1], [2, 3, 3], [0.9, 0.8, 0.4]), [1, 2, 3, 4])
        >>> g.clusters(0.3).node_labels(2)
        {1: '2, 1'}
        """
        points = self.representatives(n).values()
        return {
            node: separator.join(str(text(point)) for point in some.tolist())
            for node, some in zip(self.node_ids.tolist(), points, strict=True)
            if node >= 0
        }

    def named(self, texts: Sequence[str | None], keeper: NameKeeper | None = None) -> Clusters:
        """Return the clusters with names: up to four words that set their texts apart.

        Parameters
        ----------
        texts : sequence of str or None
            The text of each of `ids`; for a model of `dynhac.open` ``model.texts(clusters.ids)``.
        keeper : NameKeeper, optional
            Keeps the name of a cluster as long as it is right, for ids of clusters that are stable.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph(([1, 3], [2, 4], [0.9, 0.8]), [1, 2, 3, 4])
        >>> clusters = g.clusters(0.3).named(["oil price", "oil prices", "gold", "the gold"])
        >>> clusters
        <Clusters: 4 points in 2 clusters>
        cluster  size  cohesion  together up to  nearest  name        typical
              0     2       0.9             0.9        -  oil, price  1, 2
              1     2       0.8             0.8        -  gold, the   3, 4
        """
        found = (keeper or NameKeeper()).names(self.labels, texts)
        return replace(self, names=tuple(found[id] for id in self))

    def to_pandas(self, representatives: int = 5) -> pandas.DataFrame:
        """Return a DataFrame with one row per cluster.

        ``representatives`` is a column of lists of up to so many ids. ``nearest`` and ``node_id``
        are of the nullable dtype Int64.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph(([1, 2, 1], [2, 3, 3], [0.9, 0.8, 0.4]), [1, 2, 3, 4])
        >>> frame = g.clusters(0.3).to_pandas()
        >>> frame[["cluster", "size", "medoid", "representatives"]]
           cluster  size  medoid representatives
        0        0     3       2       [2, 1, 3]
        1        1     1       4             [4]
        """
        pd = optional("pandas", "pandas", "to_pandas()")
        nearest, linkage = self.nearest, self.nearest_linkage
        points = self.representatives(representatives).values()
        return pd.DataFrame(
            {
                "cluster": self.cluster_ids,
                **({} if self.names is None else {"name": pd.Series(self.names, dtype="string")}),
                "size": self.sizes,
                "cohesion": self.cohesion,
                "density": self.density,
                "similarity": self.similarity,
                "node_id": pd.arrays.IntegerArray(self.node_ids.copy(), self.node_ids < 0),
                "nearest": pd.arrays.IntegerArray(nearest, nearest < 0),
                "nearest_linkage": linkage,
                "medoid": _id_column(pd, self.medoids),
                "representatives": pd.Series([some.tolist() for some in points], dtype=object),
            }
        )

    def points_to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame with one row per point, in order of insertion.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph(([1, 2, 1], [2, 3, 3], [0.9, 0.8, 0.4]), [1, 2, 3, 4])
        >>> g.clusters(0.3).points_to_pandas().sort_values("outlier_score").round(2)
           id  cluster  typicality  outlier_score  inside_share
        1   2        0        0.85           0.00           1.0
        0   1        0        0.65           0.16           1.0
        2   3        0        0.60           0.23           1.0
        3   4        1         NaN           1.00           NaN
        """
        pd = optional("pandas", "pandas", "points_to_pandas()")
        return pd.DataFrame(
            {
                "id": _id_column(pd, self.ids),
                "cluster": self.labels,
                "typicality": self.typicality,
                "outlier_score": self.outlier_score,
                "inside_share": self.inside_share,
            }
        )

    def __repr__(self) -> str:
        none = len(self.ids) - len(self._order)
        head = (
            f"<Clusters: {counted(len(self.ids), 'point', 'points')} in "
            f"{counted(len(self), 'cluster', 'clusters')}"
            f"{f'; in none: {none:,}' if none else ''}>"
        )
        if not len(self):
            return head
        named = self.names is not None
        name = ("name",) if named else ()
        rows = [("cluster", "size", "cohesion", "together up to", "nearest", *name, "typical")]
        for cluster in self.largest(ROWS):
            near = [f"{near.id} ({near.linkage:.3g})" for near in cluster.nearest[:1]]
            typical = listed(cluster.members[:6].tolist(), 5)
            rows.append(
                (
                    str(cluster.id),
                    f"{cluster.size:,}",
                    _number(cluster.cohesion),
                    _number(cluster.similarity),
                    near[0] if near else "-",
                    *([cluster.name or "-"] if named else []),
                    typical if len(typical) <= WIDEST else typical[: WIDEST - 1] + "…",
                )
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                [*map(str.rjust, row[:5], widths), *map(str.ljust, row[5:-1], widths[5:]), row[-1]]
            )
            for row in rows
        ]
        more = [f"... and {len(self) - ROWS:,} more"] if len(self) > ROWS else []
        return "\n".join([head, *lines, *more])

    def _position(self, id: object) -> int | None:
        """Return the position of a cluster; None if there is no such cluster."""
        id = scalar(id)
        if not is_int(id):
            return None
        position = int(np.searchsorted(self.cluster_ids, id))
        return position if self.cluster_ids[position : position + 1].tolist() == [id] else None

    def _at(self, position: int) -> Cluster:
        points = self._order[self._start[position] : self._start[position + 1]]
        near = slice(*self._nearest_start[position : position + 2].tolist())
        others = self.cluster_ids[self._nearest[near]].tolist()
        return Cluster(
            int(self.cluster_ids[position]),
            self.ids[points],
            self.typicality[points],
            self.outlier_score[points],
            self.inside_share[points],
            float(self.cohesion[position]),
            float(self.density[position]),
            float(self.similarity[position]),
            int(self.node_ids[position]),
            tuple(map(NearCluster, others, self._nearest_linkage[near].tolist())),
            None if self.names is None else self.names[position],
        )


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3g}"


def _id_column(pd: Any, ids: NDArray[Any]) -> Any:
    return pd.array(ids, dtype="string") if ids.dtype == object else ids
