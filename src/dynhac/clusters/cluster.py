"""One cluster of a flat clustering, and what is in it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.input.columns import whole_number
from dynhac.input.errors import counted

SHOWN = 3  # members and near clusters in a repr


class NearCluster(NamedTuple):
    """Another cluster, and the mean similarity over all pairs of points between the two."""

    id: int
    linkage: float


class FrozenArrays:
    """The base of frozen dataclasses with arrays: read-only, also after unpickling, and comparable.

    Arrays are equal if they have the same dtype and values, where nan is equal to nan.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            _same(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
            if field.compare
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False, repr=False)
class Cluster(FrozenArrays):
    """One cluster and what is in it; an item of `Clusters`, or made by `Watch.cluster`.

    Similarities are means over all pairs, where a missing edge counts as 0. A mean over no pairs is
    nan. The arrays are read-only.

    Attributes
    ----------
    id : int
        Its label, or the stable id of a watch.
    members : ndarray of int64, or of object holding str, shape (size,)
        The ids of its points, the most typical first; among equals, the earlier insertion first.
    typicality : ndarray of float64, shape (size,)
        The mean similarity of each member to the other members.
    outlier_score : ndarray of float64, shape (size,)
        How weakly each member belongs to the cluster, from 0 to 1; see `Clusters`.
    inside_share : ndarray of float64, shape (size,)
        How much of the total weight of the edges of each member stays in the cluster, from 0 to 1.
    cohesion : float
        The mean similarity over all pairs of members.
    density : float
        The share of these pairs that have an edge. ``cohesion / density`` is the mean weight of the
        edges.
    similarity : float
        The highest cut that keeps the cluster together: the smallest linkage of its merges. nan if
        it is a single point, or no node of the dendrogram.
    node_id : int
        The stable id of its node in the dendrogram; -1 if it is a single point, or no node.
    nearest : tuple of NearCluster
        Up to ten other clusters with which it shares edges, the nearest first.
    name : str or None
        The words that set its texts apart; None unless `Clusters.named` has named it.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC.from_graph(([1, 2, 1, 3], [2, 3, 3, 4], [0.9, 0.8, 0.4, 0.1]))
    >>> cluster = g.clusters(0.3)[0]
    >>> cluster
    <Cluster 0: 3 points, cohesion 0.7, together up to 0.6; typical: 2, 1, 3; nearest: 1 (0.0333)>
    >>> cluster.medoid, cluster.typicality.round(3).tolist()
    (2, [0.85, 0.65, 0.6])
    """

    id: int
    members: NDArray[Any]
    typicality: NDArray[np.float64]
    outlier_score: NDArray[np.float64]
    inside_share: NDArray[np.float64]
    cohesion: float
    density: float
    similarity: float
    node_id: int
    nearest: tuple[NearCluster, ...]
    name: str | None = None

    @property
    def size(self) -> int:
        """The number of its points."""
        return len(self.members)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def medoid(self) -> Any:
        """The id of its most typical point: the one most similar to the others on average."""
        return self.members[:1].tolist()[0]

    def representatives(self, n: int = 5) -> NDArray[Any]:
        """Return the ids of the ``n`` most typical points, or of all if there are fewer."""
        return self.members[: whole_number(n, "n", 0)]

    def outliers(self, n: int = 5) -> NDArray[Any]:
        """Return the ids of the ``n`` points with the highest outlier scores, the highest first.

        Among equals, the less typical point comes first.
        """
        order = np.argsort(-self.outlier_score[::-1], kind="stable")[: whole_number(n, "n", 0)]
        return self.members[::-1][order]

    def to_dict(self, representatives: int = 5) -> dict[str, Any]:
        """Return the cluster as plain Python values, for JSON; None for what is nan or -1.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph((["a"], ["b"], [0.5]), ["a", "b"])
        >>> g.clusters(0.1)[0].to_dict()  # doctest: +NORMALIZE_WHITESPACE
        {'cluster': 0, 'size': 2, 'cohesion': 0.5, 'density': 1.0, 'similarity': 0.5, 'node_id': 0,
         'representatives': ['a', 'b'], 'nearest': []}
        """
        return {
            "cluster": self.id,
            **({} if self.name is None else {"name": self.name}),
            "size": self.size,
            "cohesion": _or_none(self.cohesion),
            "density": _or_none(self.density),
            "similarity": _or_none(self.similarity),
            "node_id": self.node_id if self.node_id >= 0 else None,
            "representatives": self.representatives(representatives).tolist(),
            "nearest": [near._asdict() for near in self.nearest],
        }

    def __repr__(self) -> str:
        name = f" ({self.name})" if self.name else ""
        parts = [f"<Cluster {self.id}{name}: {counted(self.size, 'point', 'points')}"]
        if self.size > 1:
            parts.append(f", cohesion {self.cohesion:.3g}")
        if self.node_id >= 0:
            parts.append(f", together up to {self.similarity:.3g}")
        parts.append(f"; typical: {listed(self.members.tolist(), SHOWN)}")
        if self.nearest:
            near = [f"{near.id} ({near.linkage:.3g})" for near in self.nearest]
            parts.append(f"; nearest: {listed(near, SHOWN)}")
        return "".join(parts) + ">"


def listed(items: list[Any], most: int) -> str:
    """Return the first items as text, with "…" if there are more."""
    return ", ".join([*map(str, items[:most]), *(["…"] if len(items) > most else [])])


def _same(a: Any, b: Any) -> bool:
    x, y = np.asarray(a), np.asarray(b)
    return x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype == np.float64)


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
