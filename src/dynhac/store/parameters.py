"""The parameters of a model as plain values, and whether others are the same.

A store keeps what its model was made with. A ``similarity`` that is a function, and an index of the
user's own as ``neighbors``, cannot be kept: they stand there as None and are given again whenever
the store is opened. ``threads`` may be another number every time, since no result depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.input.errors import show
from dynhac.store.models import DurableDynHAC, DurableGraphHAC

if TYPE_CHECKING:
    from dynhac.store.snapshots import Model

KINDS: dict[str, type[DurableDynHAC] | type[DurableGraphHAC]] = {
    "points": DurableDynHAC,
    "graph": DurableGraphHAC,
}
GIVEN_AGAIN = ("similarity", "neighbors")


def parameters_of(model: Model) -> dict[str, Any]:
    """Return the parameters of a model in JSON's types."""
    header = model._header()
    graph = header if isinstance(model, DurableGraphHAC) else header["graph"]
    names = ("epsilon", "threshold", "resolution", "threads")
    parameters = {name: graph[name] for name in names}
    if isinstance(model, DurableGraphHAC):
        return parameters
    for name in ("n_neighbors", "metric", "neighbors", "repair"):
        parameters[name] = header[name]
    similarity = header["similarity"]
    parameters["similarity"] = list(similarity) if isinstance(similarity, tuple) else similarity
    window = header["window"]
    age = window["max_age"]
    parameters["max_points"] = window["max_points"]
    parameters["max_age"] = {"nanoseconds": age} if window["of_dates"] else age
    return parameters


def arguments(kept: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a constructor: those kept, but for what is given."""
    merged = {**kept, **given}
    age = merged.get("max_age")
    if isinstance(age, dict):
        merged["max_age"] = np.timedelta64(age["nanoseconds"], "ns")
    return merged


def check_same(kind: str, kept: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise if parameters are given that are not those of the store."""
    if kind == "points":
        for name in GIVEN_AGAIN:
            if kept[name] is None and given.get(name) is None:
                what = "a function" if name == "similarity" else "an index"
                raise ValueError(
                    f"the store was made with {what} of your own as {name}; give it again"
                )
    now = parameters_of(KINDS[kind]._new(arguments(kept, given)))
    for name in given:
        if name != "threads" and now[name] != kept[name]:
            raise ValueError(
                f"{name} is {show(given[name])}, but the store was made with "
                f"{show(kept[name])}; leave it out, or make another store"
            )
