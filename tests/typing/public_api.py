"""The types of the public interface, as mypy sees them from outside. Checked, never run."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import dynhac
from dynhac import (
    Change,
    CondensedTree,
    Dendrogram,
    DynHAC,
    Event,
    Explanation,
    GraphHAC,
    PointChange,
    Suggestion,
    Suggestions,
    Timeline,
    VerifyReport,
    Watch,
)
from dynhac.store import DurableDynHAC, DurableGraphHAC

Labels = NDArray[np.int64]


def points(model: DynHAC, unknown: NDArray[np.float64]) -> None:
    assert_type(model.insert([0.0, 1.0]), int)
    assert_type(model.insert([0.0, 1.0], "a"), int | str)
    assert_type(model.insert([[0.0, 1.0]]), NDArray[Any])
    assert_type(model.insert([[0.0, 1.0], [2.0, 3.0]], ids=["a", "b"]), NDArray[Any])
    assert_type(model.insert(unknown), Any)  # its shape is not known, so neither is the answer
    assert_type(model.delete([1, 2]), PointChange)
    assert_type(model.update(insert=[[0.0]], delete=1), PointChange)
    assert_type(model.vectors(), NDArray[np.float32])
    assert_type(model.dimension, int | None)
    assert_type(model.last_change, PointChange | None)
    assert_type(model.max_age, int | float | np.timedelta64 | None)
    assert_type(DynHAC.load("file"), DynHAC)


def graphs(g: GraphHAC) -> None:
    assert_type(g.update(add=[1, 2], edges=(1, 2, 0.5)), Change)
    assert_type(g.edges(), tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]])
    assert_type(g.degrees([1]), NDArray[np.int64])
    assert_type(GraphHAC.from_graph(([1], [2], [0.5]), epsilon=0.0), GraphHAC)
    assert_type(GraphHAC.load("file", threads=2), GraphHAC)


def both(model: DynHAC | GraphHAC) -> None:
    assert_type(model.labels(0.5), Labels)
    assert_type(model.labels(), Labels)
    assert_type(model.labels(conductance=0.5, min_size=5, noise="nearest"), Labels)
    assert_type(model.dendrogram().condensed(), CondensedTree)
    assert_type(model.cut([0.5, 0.2]), Labels)
    assert_type(model.dendrogram(), Dendrogram)
    assert_type(model.suggest(), Suggestions)
    assert_type(model.suggest()[0], Suggestion)
    assert_type(model.suggest()[0].theta, float)
    assert_type(model.watch(0.5), Watch)
    assert_type(model.explain(1, "a"), Explanation)
    assert_type(model.explain(1, 2).a, int | str)
    assert_type(model.verify(), VerifyReport)
    assert_type(model.level_sizes, list[tuple[int, int]])


def watches(watch: Watch, event: Event) -> None:
    assert_type(watch.events, list[Event])
    assert_type(event.kind, Literal["born", "died", "merged", "split", "grew", "shrank"])
    assert_type(watch.timeline(), Timeline)
    assert_type(
        watch.timeline().events,
        list[tuple[int, Literal["born", "died", "merged", "split"], int, tuple[int, ...]]],
    )
    assert_type(watch.cluster_of(1), int)


def exports(d: Dendrogram) -> None:
    assert_type(d.linkage(), NDArray[np.float64])
    assert_type(d.to_newick(), str)
    assert_type(d.to_parquet("file"), None)
    assert_type(d.labels(n_clusters=2), Labels)


def stores() -> None:
    assert_type(dynhac.open("folder", "points"), DurableDynHAC)
    assert_type(dynhac.open("folder", "graph", mode="r"), DurableGraphHAC)
    assert_type(dynhac.open("folder"), DurableDynHAC | DurableGraphHAC)
    with dynhac.open("folder", "points") as model:
        assert_type(model, DurableDynHAC)
        for update in model.changes(since=3):
            assert_type(update["number"], int)
        assert_type(model.snapshot(), int)
    assert_type(DurableDynHAC.load("file"), DynHAC)
