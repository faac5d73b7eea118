"""The graph of a model of points: a graph that only its model changes.

Whoever changed it behind the model's back would leave the model with points that are not in its
graph. So updates from outside are refused.
"""

from __future__ import annotations

from typing import Any, NoReturn

from dynhac.change import Change
from dynhac.graph import GraphHAC


class ModelGraph(GraphHAC):
    """A graph to read; `DynHAC` changes it."""

    __slots__ = ()

    def update(self, **batch: Any) -> NoReturn:
        """Refuse: only the model changes its graph."""
        raise TypeError(
            "the graph of a DynHAC is there to be read; use the model's insert, delete and update"
        )

    def update_with_points(self, **batch: Any) -> Change:
        """Apply a batch that goes with a change of the points."""
        return super().update(**batch)
