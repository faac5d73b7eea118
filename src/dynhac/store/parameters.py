"""The parameters of the model in a store.

A store keeps what its model was made with, as plain values. A ``similarity`` that is a function,
and an index of the user's own as ``neighbors``, are given again whenever the store is opened.
``threads`` may be another number every time, since no result depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynhac.input.errors import show
from dynhac.models.parameters import GIVEN_AGAIN, GraphParameters, PointParameters
from dynhac.store.models import DurableDynHAC, DurableGraphHAC

KINDS: dict[str, type[DurableDynHAC] | type[DurableGraphHAC]] = {
    "points": DurableDynHAC,
    "graph": DurableGraphHAC,
}
PARAMETERS: dict[str, type[PointParameters] | type[GraphParameters]] = {
    "points": PointParameters,
    "graph": GraphParameters,
}


def same_parameters(kind: str, kept: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """Return the parameters of a store; ValueError if others are given."""
    for name, what in GIVEN_AGAIN.items():
        if name in kept and kept[name] is None and given.get(name) is None:
            raise ValueError(f"the store was made with {what} of your own as {name}; give it again")
    parameters = PARAMETERS[kind].read(**{**kept, **given})
    now = parameters.plain()
    for name in given:
        if name != "threads" and now[name] != kept[name]:
            raise ValueError(
                f"{name} is {show(given[name])}, but the store was made with "
                f"{show(kept[name])}; leave it out, or make another store"
            )
    return parameters
