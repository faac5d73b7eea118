"""Our own systems with what only they can report.

This is the engine's counters of the last update, the number of levels, and the check of every
merge. They cost what the plain systems cost: they only keep what the engine returns anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common.quality import verification
from benchmarks.systems import SYSTEMS
from benchmarks.systems.base import Arrivals, Ids, Rows, Settings, System
from benchmarks.systems.ours import Dynhac, Static
from dynhac import Change, GraphHAC


class ObservedDynhac(Dynhac):
    """The engine, keeping the change of its last update."""

    last_change: Change

    def insert(self, batch: Arrivals) -> None:
        """Insert points."""
        self.last_change = self.model.update(add=batch.ids, edges=(batch.u, batch.v, batch.w))

    def delete(self, ids: Ids) -> None:
        """Delete points."""
        self.last_change = self.model.update(remove=ids)


class ObservedStatic(Static):
    """Recomputation, keeping the last model."""

    model: GraphHAC

    def fit(self, rows: Rows) -> GraphHAC:
        """Build the hierarchy of all edges."""
        self.model = super().fit(rows)
        return self.model


OBSERVED: dict[str, Callable[[Settings], System]] = {
    "dynhac": ObservedDynhac,
    "static": ObservedStatic,
}


def make(name: str, settings: Settings) -> System:
    """Return a new system of a name."""
    return OBSERVED.get(name, SYSTEMS[name])(settings)


def edges_rerun(system: System) -> int | None:
    """Return the adjacency entries in groups that the last update ran again."""
    change = getattr(system, "last_change", None)
    return None if change is None else int(change.edges_rerun)


def levels(system: System) -> int | None:
    """Return the number of levels or rounds, or None if the system has none."""
    model = getattr(system, "model", None)
    for name in ("n_levels", "rounds"):
        found = getattr(model, name, None)
        if isinstance(found, int):
            return found
    return None


def check(system: System) -> dict[str, Any] | None:
    """Return what `verify` reports, or None if the system has no such check."""
    model = getattr(system, "model", None)
    return verification(model) if hasattr(model, "verify") else None
