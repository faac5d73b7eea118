"""The parameters of models: checked, and as plain values for files and stores.

A ``similarity`` that is a function, and an index of the user's own as ``neighbors``, have no plain
value: they are None there, and are given again when a file is loaded or a store is opened.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from dynhac.dendrogram.cuts import snap
from dynhac.input.columns import real_number, resolution_of_weights, whole_number
from dynhac.input.errors import FileError, InvalidTypeError, counted, show
from dynhac.input.timestamps import read_age
from dynhac.neighbors import NeighborIndex, make_index
from dynhac.neighbors.metrics import resolve_metric
from dynhac.neighbors.similarity import resolve_similarity

Parameters = TypeVar("Parameters", "GraphParameters", "PointParameters")

if TYPE_CHECKING:
    from dynhac.neighbors.metrics import Metric
    from dynhac.neighbors.similarity import Similarity

MOST_THREADS = 1024
MOST_NEIGHBORS = 2**20
UNITS = ("D", "h", "m", "s", "ms", "us", "ns")
GIVEN_AGAIN = {"similarity": "a function", "neighbors": "an index"}
"""Parameters that may have no plain value, and what they are then."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Given(NamedTuple):
    """What is given again when a model is loaded.

    Attributes
    ----------
    threads : int or None
        Another number of threads than the model had.
    neighbors, similarity
        The index and the function of the user's own, if the model had one.
    filled : bool
        Whether the index holds the points of the model already, as in a copy.
    """

    threads: int | None = None
    neighbors: NeighborIndex | None = None
    similarity: object = None
    filled: bool = False

    def check(self) -> None:
        """Raise if something is wrong in itself."""
        if self.threads is not None:
            whole_number(self.threads, "threads", 1, MOST_THREADS)
        if isinstance(self.neighbors, str):
            raise InvalidTypeError(
                f"neighbors is {show(self.neighbors)}; the file has the name of the index, and "
                "only an index of your own is given again"
            )
        if self.neighbors is not None:
            make_index(self.neighbors, "euclidean", 1, 0)

    def complete(self, kind: type[Parameters], plain: Mapping[str, Any]) -> Parameters:
        """Return the parameters in a file, with what is given.

        FileError: too much or too little is given. ValueError: the parameters are not right.
        """
        values = dict(plain)
        if self.threads is not None:
            values["threads"] = self.threads
        for name, value in (("neighbors", self.neighbors), ("similarity", self.similarity)):
            if name not in plain:
                continue
            if plain[name] is None and value is None:
                raise FileError(
                    f"the model had {GIVEN_AGAIN[name]} of your own as {name}; give it to load"
                )
            if plain[name] is not None and value is not None:
                raise FileError(f"the model has its own {name}, {show(plain[name])}; give none")
            if value is not None:
                values[name] = value
        parameters = kind.read(**values)
        if parameters.plain().keys() != plain.keys():
            raise ValueError("a parameter is missing")
        return parameters


NOTHING_GIVEN = Given()


@dataclass(frozen=True)
class GraphParameters:
    """The parameters of a `GraphHAC`.

    Attributes
    ----------
    threads : int or None
        Threads that a large update may use; None: one for every core.
    """

    epsilon: float
    threshold: float
    resolution: float
    threads: int | None

    @classmethod
    def read(
        cls,
        epsilon: object = 0.1,
        threshold: object = 0.0,
        *,
        resolution: object = 2.0**-32,
        threads: object = None,
    ) -> GraphParameters:
        """Return parameters as users give them, checked."""
        return cls(
            real_number(epsilon, "epsilon"),
            real_number(threshold, "threshold"),
            resolution_of_weights(resolution),
            None if threads is None else whole_number(threads, "threads", 1, MOST_THREADS),
        )

    @property
    def engine(self) -> tuple[float, float, float, int]:
        """The arguments of the engine, which compares the threshold with rounded weights."""
        threshold = float(snap(self.threshold, self.resolution))
        return self.epsilon, threshold, self.resolution, self.thread_count

    @property
    def thread_count(self) -> int:
        """The number of threads on this machine."""
        return min(cores(), MOST_THREADS) if self.threads is None else self.threads

    def plain(self) -> dict[str, Any]:
        """Return the parameters in the types of JSON, by the names of `read`."""
        return dict(vars(self))


@dataclass(frozen=True)
class PointParameters:
    """The parameters of a `DynHAC`.

    Attributes
    ----------
    max_age : int, float or None
        The age at which points expire; nanoseconds if ``ages_are_dates``.
    """

    graph: GraphParameters
    n_neighbors: int
    metric: Metric
    similarity: Similarity
    neighbors: str | NeighborIndex
    repair: bool
    max_points: int | None
    max_age: int | float | None
    ages_are_dates: bool

    @classmethod
    def read(
        cls,
        epsilon: object = 0.1,
        threshold: object = 0.0,
        n_neighbors: object = 50,
        metric: object = "euclidean",
        *,
        similarity: object = None,
        neighbors: object = "auto",
        repair: object = True,
        max_points: object = None,
        max_age: object = None,
        resolution: object = 2.0**-32,
        threads: object = None,
    ) -> PointParameters:
        """Return parameters as users give them, checked."""
        graph = GraphParameters.read(epsilon, threshold, resolution=resolution, threads=threads)
        if not isinstance(repair, (bool, np.bool_)):
            raise InvalidTypeError(f"repair is {show(repair)}; it must be True or False")
        measure = resolve_metric(metric)
        index = make_index(neighbors, measure, 1, 0)  # raises if neighbors is wrong
        if isinstance(max_age, Mapping):
            max_age = np.timedelta64(max_age["nanoseconds"], "ns")
        dates, age = (False, None) if max_age is None else read_age(max_age)
        return cls(
            graph,
            whole_number(n_neighbors, "n_neighbors", 1, MOST_NEIGHBORS),
            measure,
            resolve_similarity(similarity, measure),
            neighbors if isinstance(neighbors, str) else index,
            bool(repair),
            None if max_points is None else whole_number(max_points, "max_points", 1),
            age,
            dates,
        )

    @property
    def own_index(self) -> NeighborIndex | None:
        """The index of the user's own, None if neighbors is a name."""
        return None if isinstance(self.neighbors, str) else self.neighbors

    def require_empty_index(self) -> None:
        """Raise if the index of the user's own, for a new model, holds vectors."""
        own = self.own_index
        if own is not None and len(own):
            raise ValueError(
                f"neighbors is an index that holds {counted(len(own), 'vector', 'vectors')}; it "
                "must be empty"
            )

    @property
    def public_max_age(self) -> int | float | np.timedelta64 | None:
        """The age at which points expire, as users see it."""
        if self.max_age is None or not self.ages_are_dates:
            return self.max_age
        age = np.timedelta64(int(self.max_age), "ns")
        in_units: list[np.timedelta64] = [age.astype(f"m8[{unit}]") for unit in UNITS]
        return next(whole for whole in in_units if whole == age)

    def plain(self) -> dict[str, Any]:
        """Return the parameters in the types of JSON, by the names of `read`."""
        return {
            **self.graph.plain(),
            "n_neighbors": self.n_neighbors,
            "metric": self.metric.name,
            "similarity": self.similarity.spec,
            "neighbors": self.neighbors if isinstance(self.neighbors, str) else None,
            "repair": self.repair,
            "max_points": self.max_points,
            "max_age": {"nanoseconds": self.max_age} if self.ages_are_dates else self.max_age,
        }
