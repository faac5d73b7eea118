"""What every clustering system of the evaluation looks like to the pipeline.

A *system* holds points under int64 ids and says how it would cluster them. Points come as
`Arrivals`, with coordinates and with the edges of a k-nearest-neighbour graph; ``needs`` says which
of the two a system reads. Work may be put off: ``settle`` does what is left, so the cost of an
update is the time of ``insert`` or ``delete`` and, where clusters are wanted, of ``settle``; after
that ``cuts`` only reads.

`Refitted` is the common part of all systems that cannot change a model: it keeps the points and
their edges, and a request for clusters fits everything again. ``abilities`` tell them apart from
the ones that do update, as their ``insert`` and ``delete`` work too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from quality import CUTS

Ids = NDArray[np.int64]
Cut = tuple[float, NDArray[np.int64]]


@dataclass(frozen=True)
class Abilities:
    """What a system does without starting afresh."""

    insert: bool  # more points, at less than the cost of a fit
    delete: bool  # points leave, at less than the cost of a fit
    hierarchy: bool  # clusters of every size, one inside the other
    guarantee: bool  # a proven bound on how good the clusters are


class Arrivals(NamedTuple):
    """Points that come together, and their edges to earlier points or to each other.

    The pair of an edge is listed once; ``w`` are similarities in (0, 1].
    """

    ids: Ids
    points: NDArray[np.float32]
    u: Ids
    v: Ids
    w: NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """What a system is made with; one that has no use for a setting ignores it."""

    epsilon: float = 0.1
    threshold: float = 1e-4
    seed: int = 0
    normalised: bool = False  # points are scaled to unit length first
    neighbors: int = 50  # of systems that search for neighbours themselves
    radius: float | None = None  # of systems that have one; None: from the first points
    cuts: tuple[float, ...] = tuple(float(theta) for theta in CUTS)

    def thetas(self) -> NDArray[np.float64]:
        """Similarities to cut at: those that a hierarchy down to the threshold can answer."""
        cuts = np.array(self.cuts)
        # Rounding in geomspace must not lose the cut at the threshold itself.
        reached = cuts[cuts >= self.threshold * (1 - 1e-9)]
        thetas: NDArray[np.float64] = np.maximum(reached, self.threshold)
        return thetas


class Unavailable(Exception):
    """A system cannot run here; the message says why."""


@contextmanager
def needing(package: str) -> Iterator[None]:
    """Turn a failed import of somebody's package into `Unavailable`."""
    try:
        yield
    except ImportError as error:
        raise Unavailable(f"{package} cannot be imported: {error}") from error


class System(Protocol):
    """A clustering system; see the file head."""

    name: str
    abilities: Abilities
    needs: str  # "points" or "graph": what of the arrivals is read

    def build(self, batch: Arrivals) -> None:
        """Take the first points; called once, before anything else."""

    def insert(self, batch: Arrivals) -> None:
        """Take more points."""

    def delete(self, ids: Ids) -> None:
        """Let points go; a system that cannot raises NotImplementedError."""

    def settle(self) -> None:
        """Do all work that has been put off."""

    def cuts(self) -> Iterator[Cut]:
        """Yield flat clusterings as ``(threshold, labels)``, the labels aligned with `ids`."""

    def ids(self) -> Ids:
        """Return the ids of the points that are held."""


class Rows:
    """Points and edges that are held, in order of arrival: what a fit from scratch reads."""

    def __init__(self) -> None:
        self.ids: Ids = np.empty(0, np.int64)
        self.points: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self.u: Ids = np.empty(0, np.int64)
        self.v: Ids = np.empty(0, np.int64)
        self.w: NDArray[np.float64] = np.empty(0)
        self._waiting: list[Arrivals] = []

    def add(self, batch: Arrivals) -> None:
        """Take points; the arrays are put together when they are needed."""
        self._waiting.append(batch)

    def gather(self) -> None:
        """Put all arrivals together."""
        if not self._waiting:
            return
        held = [Arrivals(self.ids, self.points, self.u, self.v, self.w)] if len(self.ids) else []
        parts = held + self._waiting
        self._waiting = []
        self.ids, self.points, self.u, self.v, self.w = (
            np.concatenate([part[i] for part in parts]) for i in range(5)
        )

    def remove(self, ids: Ids) -> None:
        """Let points go, with their edges."""
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


class Refitted:
    """A system that fits everything again when its clusters are asked for after a change.

    Subclasses say what they are and implement `fit`, whose result `read` turns into cuts.
    """

    name = ""
    abilities = Abilities(insert=False, delete=False, hierarchy=True, guarantee=False)
    needs = "points"

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.rows = Rows()
        self._fitted: Any = None

    def build(self, batch: Arrivals) -> None:
        """Take the first points."""
        self.insert(batch)

    def insert(self, batch: Arrivals) -> None:
        """Take more points."""
        self.rows.add(batch)
        self._fitted = None

    def delete(self, ids: Ids) -> None:
        """Let points go."""
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


def flat(name: float, labels: NDArray[Any]) -> Iterator[Cut]:
    """Yield a clustering with noise (-1) in both readings: one cluster, and a cluster each."""
    labels = np.asarray(labels).astype(np.int64)
    noise = labels < 0
    apart = labels.copy()
    apart[noise] = labels.max(initial=-1) + 1 + np.arange(noise.sum())
    yield name, np.where(noise, labels.max(initial=-1) + 1, labels)
    if noise.any():
        yield name, apart


def unit_length(points: NDArray[Any]) -> NDArray[np.float32]:
    """Return the points scaled to length 1; a zero vector stays zero."""
    length = np.sqrt((points.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return (points / np.where(length > 0, length, 1)).astype(np.float32)
