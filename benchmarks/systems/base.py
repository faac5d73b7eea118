"""The interface of the clustering systems that the evaluation compares.

A *system* holds points under int64 ids and offers clusterings of them. Points arrive as `Arrivals`,
with coordinates and with the edges of a k-nearest-neighbour graph; ``needs`` says which of the two
a system reads. A system may postpone work: ``settle`` does what is left. So the cost of an update
is the time of ``insert`` or ``delete`` and, if clusters are wanted, of ``settle``; after that
``cuts`` only reads.

`Updated` is the common part of systems that update a model, `Refitted` of those that cannot: it
keeps the points and their edges and fits everything again when clusters are asked for. Both kinds
have ``insert`` and ``delete``; ``abilities`` tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.quality import THETAS, thetas_from

Ids = NDArray[np.int64]
Cut = tuple[float, NDArray[np.int64]]

SAMPLE = 2_000  # points that a typical radius is from


@dataclass(frozen=True)
class Abilities:
    """What a system can do without a fit from scratch."""

    insert: bool  # at less than the cost of a fit
    delete: bool  # at less than the cost of a fit
    hierarchy: bool  # nested clusters of every size
    guarantee: bool  # a proven bound on the quality of the clusters


class Choice(NamedTuple):
    """The clusters that a system chooses by itself, and the tree that it takes them from.

    ``labels`` are aligned with the ids of the system, -1 for noise; ``tree`` is a linkage matrix as
    of scipy.
    """

    labels: Ids
    tree: NDArray[np.float64]


class Arrivals(NamedTuple):
    """Points that arrive together, and their edges to earlier points or to each other.

    Every edge is listed once; ``w`` are similarities in (0, 1].
    """

    ids: Ids
    points: NDArray[np.float32]
    u: Ids
    v: Ids
    w: NDArray[np.float64]


def points_only(ids: Ids, points: NDArray[np.float32]) -> Arrivals:
    """Return arrivals without edges, for systems that read points."""
    none = np.empty(0, np.int64)
    return Arrivals(ids, points, none, none, np.empty(0))


@dataclass(frozen=True)
class Settings:
    """Parameters of a system; it ignores those that it does not have."""

    epsilon: float = 0.1
    threshold: float = 1e-4
    seed: int = 0
    normalised: bool = False  # points are scaled to unit length first
    neighbors: int = 50  # of systems that search for neighbours themselves
    radius: float | None = None  # of systems that have one; None: from the first points
    min_size: int | None = None  # of clusters that a system chooses; None: its default
    cuts: tuple[float, ...] = tuple(THETAS.tolist())

    def thetas(self) -> NDArray[np.float64]:
        """Similarities at which a hierarchy down to the threshold can be cut."""
        return thetas_from(self.threshold, np.array(self.cuts))


class Unavailable(Exception):
    """A system cannot run here; the message says why."""


@contextmanager
def needing(package: str) -> Iterator[None]:
    """Turn a failed import of a package into `Unavailable`."""
    try:
        yield
    except ImportError as error:
        raise Unavailable(f"{package} cannot be imported: {error}") from error


class System(Protocol):
    """A clustering system; see the head of this file."""

    name: str
    abilities: Abilities
    needs: str  # "points" or "graph": the part of the arrivals that is read

    def build(self, batch: Arrivals) -> None:
        """Insert the first points; called once, before anything else."""

    def insert(self, batch: Arrivals) -> None:
        """Insert points."""

    def delete(self, ids: Ids) -> None:
        """Delete points; NotImplementedError if the system cannot."""

    def settle(self) -> None:
        """Do all postponed work."""

    def cuts(self) -> Iterator[Cut]:
        """Yield flat clusterings as ``(threshold, labels)``, the labels aligned with `ids`."""

    def ids(self) -> Ids:
        """Return the ids of the points that are held."""


class Chooser(System, Protocol):
    """A system that chooses clusters without a threshold."""

    def choose(self) -> Choice:
        """Choose the clusters once more; after `settle`, from the tree that there is."""


class Rows:
    """All points and edges in order of arrival, for a fit from scratch."""

    def __init__(self) -> None:
        self.ids: Ids = np.empty(0, np.int64)
        self.points: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self.u: Ids = np.empty(0, np.int64)
        self.v: Ids = np.empty(0, np.int64)
        self.w: NDArray[np.float64] = np.empty(0)
        self._waiting: list[Arrivals] = []

    def add(self, batch: Arrivals) -> None:
        """Add points; the arrays are concatenated when they are needed."""
        self._waiting.append(batch)

    def gather(self) -> None:
        """Concatenate all arrivals."""
        if not self._waiting:
            return
        held = [Arrivals(self.ids, self.points, self.u, self.v, self.w)] if len(self.ids) else []
        parts = held + self._waiting
        self._waiting = []
        self.ids, self.points, self.u, self.v, self.w = (
            np.concatenate([part[i] for part in parts]) for i in range(5)
        )

    def remove(self, ids: Ids) -> None:
        """Remove points and their edges."""
        self.gather()
        known = np.isin(ids, self.ids)
        if not known.all():
            raise KeyError(f"point {ids[~known][0]} is not held")
        kept = ~np.isin(self.ids, ids)
        self.ids, self.points = self.ids[kept], self.points[kept]
        whole = ~(np.isin(self.u, ids) | np.isin(self.v, ids))
        self.u, self.v, self.w = self.u[whole], self.v[whole], self.w[whole]

    def edge_rows(self) -> tuple[Ids, Ids]:
        """Return the ends of the edges as positions in ``ids``."""
        order = np.argsort(self.ids, kind="stable")
        u, v = (order[np.searchsorted(self.ids, end, sorter=order)] for end in (self.u, self.v))
        return u, v


class Updated:
    """A system that updates its model; subclasses implement `insert`, `cuts` and `ids`."""

    name = ""
    abilities = Abilities(insert=True, delete=False, hierarchy=True, guarantee=False)
    needs = "points"

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def build(self, batch: Arrivals) -> None:
        """Insert the first points."""
        self.insert(batch)

    def insert(self, batch: Arrivals) -> None:
        """Insert points."""
        raise NotImplementedError

    def delete(self, ids: Ids) -> None:
        """Raise: deletion is not part of the algorithm."""
        raise NotImplementedError(f"{self.name} has no deletion")

    def settle(self) -> None:
        """Do nothing: no work is postponed."""


class UpdatedPoints(Updated):
    """An updated system that also keeps its points, to label them; it has a radius."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._points: dict[int, NDArray[Any]] = {}

    def choose_radius(self, points: NDArray[np.float32], neighbor: int, quantile: float) -> float:
        """Return the radius of the settings, or a typical one of the first points."""
        if self.settings.radius:
            return self.settings.radius
        return typical_radius(points, neighbor, quantile, self.settings.seed)

    def ids(self) -> Ids:
        """Return the ids in order of arrival."""
        return np.fromiter(self._points, np.int64, len(self._points))


class Refitted:
    """A system that fits everything again when its clusters are asked for after a change.

    Subclasses implement `fit`, and `read`, which turns the result of `fit` into cuts.
    """

    name = ""
    abilities = Abilities(insert=False, delete=False, hierarchy=True, guarantee=False)
    needs = "points"

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.rows = Rows()
        self._fitted: Any = None

    def build(self, batch: Arrivals) -> None:
        """Insert the first points."""
        self.insert(batch)

    def insert(self, batch: Arrivals) -> None:
        """Insert points."""
        self.rows.add(batch)
        self._fitted = None

    def delete(self, ids: Ids) -> None:
        """Delete points."""
        self.rows.remove(ids)
        self._fitted = None

    def settle(self) -> None:
        """Fit, if anything has changed."""
        if self._fitted is None:
            self.rows.gather()
            self._fitted = self.fit(self.rows)

    def cuts(self) -> Iterator[Cut]:
        """Yield flat clusterings aligned with `ids`."""
        self.settle()
        yield from self.read(self._fitted)

    def ids(self) -> Ids:
        """Return the ids in order of arrival."""
        self.rows.gather()
        return self.rows.ids

    def fit(self, rows: Rows) -> Any:
        """Return a model of all points, never None."""
        raise NotImplementedError

    def read(self, fitted: Any) -> Iterator[Cut]:
        """Yield the cuts of such a model."""
        raise NotImplementedError


def flat(theta: float, labels: NDArray[Any]) -> Iterator[Cut]:
    """Yield a clustering with all noise (-1) in one cluster, and with every noise point alone."""
    labels = np.asarray(labels).astype(np.int64)
    noise = labels < 0
    apart = labels.copy()
    apart[noise] = labels.max(initial=-1) + 1 + np.arange(noise.sum())
    yield theta, np.where(noise, labels.max(initial=-1) + 1, labels)
    if noise.any():
        yield theta, apart


def unit_length(points: NDArray[Any]) -> NDArray[np.float32]:
    """Return the points scaled to length 1; a zero vector stays zero."""
    length = np.sqrt((points.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return (points / np.where(length > 0, length, 1)).astype(np.float32)


def typical_radius(points: NDArray[np.float32], neighbor: int, quantile: float, seed: int) -> float:
    """Return a quantile of the distances of points to their ``neighbor``-th neighbour."""
    from sklearn.neighbors import NearestNeighbors

    rng = np.random.default_rng(seed)
    sample = points[rng.permutation(len(points))[:SAMPLE]]
    search = NearestNeighbors(n_neighbors=min(neighbor + 1, len(points))).fit(points)
    return max(float(np.quantile(search.kneighbors(sample)[0][:, -1], quantile)), 1e-12)
