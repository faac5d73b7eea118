"""The data sets with classes, as points or as a graph.

A set is in a seeded random order; a sample is a prefix of it. Both kinds of set make a model of
ours and insert their points into it, by position.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import DATASETS, SEED, Ints, shuffled_points
from benchmarks.common.streams import BUILTIN, NEIGHBOURS
from dynhac import DynHAC, GraphHAC

POINT_SETS = ("mnist", "fruits360", "tinyimagenet", "intents", "reuters", "aloi", "ilsvrc")
POINT_SETS += ("cora", "geonames")
GRAPHS = {"email": "email_eu_core.npz"}
SETS = (*POINT_SETS, *GRAPHS, *BUILTIN)
EPSILON = 0.1
KD_DIMENSIONS = 8


@dataclass(frozen=True)
class PointSet:
    """Points and their classes."""

    points: NDArray[np.float32]
    classes: Ints

    def work(self) -> float:
        """Return points² x dimensions, which bounds what a search among all pairs costs."""
        n, dimensions = self.points.shape
        return float(n) ** 2 * dimensions

    def prefix(self, size: int | None) -> PointSet:
        """Return the first points."""
        return PointSet(self.points[:size], self.classes[:size])

    def model(self) -> DynHAC:
        """Return an empty model, with exact neighbours."""
        exact = "kd" if self.points.shape[1] <= KD_DIMENSIONS else "exact"
        return DynHAC(EPSILON, n_neighbors=NEIGHBOURS, neighbors=exact)

    def insert(self, model: Any, ids: Ints) -> None:
        """Insert points into a model."""
        model.insert(self.points[ids], ids=ids)

    def delete(self, model: Any, ids: Ints) -> None:
        """Delete points from a model."""
        model.delete(ids)


@dataclass(frozen=True)
class GraphSet:
    """Vertices with classes, and weighted edges; weights are in (0, 1]."""

    u: Ints
    v: Ints
    w: NDArray[np.float64]
    classes: Ints

    def prefix(self, size: int | None) -> GraphSet:
        """Return the first vertices and the edges among them."""
        classes = self.classes[:size]
        kept = (self.u < len(classes)) & (self.v < len(classes))
        return GraphSet(self.u[kept], self.v[kept], self.w[kept], classes)

    def model(self) -> GraphHAC:
        """Return an empty model."""
        return GraphHAC(EPSILON)

    def insert(self, model: Any, ids: Ints) -> None:
        """Insert vertices into a model, with their edges to each other and to those it holds."""
        new, held = (np.zeros(len(self.classes), bool) for _ in range(2))
        new[ids] = True
        held[ids] = held[model.ids] = True
        part = held[self.u] & held[self.v] & (new[self.u] | new[self.v])
        model.update(add=ids, edges=(self.u[part], self.v[part], self.w[part]))

    def delete(self, model: Any, ids: Ints) -> None:
        """Delete vertices from a model."""
        model.update(remove=ids)


def available(data: Path | None) -> list[str]:
    """Return the sets whose files are in a folder; without one, those that need no file."""
    if data is None:
        return list(BUILTIN)
    return [s for s in SETS if (name := _file(s)) is not None and (data / name).exists()]


def _file(name: str) -> str | None:
    return GRAPHS[name] if name in GRAPHS else DATASETS[name].file


def size_of(name: str, data: Path | None) -> int:
    """Return how many points of a set are used, without reading them."""
    file = _file(name)
    if file is None or data is None:
        return len(load(name, data).classes)
    with np.load(data / file, allow_pickle=False) as arrays:
        n = len(arrays["y"])
    most = None if name in GRAPHS else DATASETS[name].points
    return n if most is None else min(n, most)


def load(name: str, data: Path | None) -> PointSet | GraphSet:
    """Read a set, in its random order."""
    if name not in GRAPHS:
        return PointSet(*shuffled_points(name, data))
    if data is None:
        raise SystemExit(f"{name} needs --data (or DYNHAC_DATA), the folder with {GRAPHS[name]}")
    with np.load(data / GRAPHS[name], allow_pickle=False) as arrays:
        edges, weight, classes = (arrays[k] for k in ("edges", "weight", "y"))
    order = np.random.default_rng(SEED).permutation(len(classes))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    u, v = place[edges.astype(np.int64)].T
    w = weight.astype(np.float64)
    return GraphSet(u, v, w / w.max(), classes[order].astype(np.int64))
