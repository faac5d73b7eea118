"""Our own systems with what the evaluation wants to see of them, and no other system has.

The engine's counters of the last update, the number of levels, and the full check of every merge.
They run as the plain systems do; what is kept is what the engine returns anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynhac import Change, GraphHAC
from systems import SYSTEMS
from systems.base import Arrivals, Ids, Rows, Settings, System
from systems.ours import Dynhac, Static


class ObservedDynhac(Dynhac):
    """The engine, keeping what its last update did."""

    last_change: Change

    def insert(self, batch: Arrivals) -> None:
        """Take more points."""
        self.last_change = self.model.update(add=batch.ids, edges=(batch.u, batch.v, batch.w))

    def delete(self, ids: Ids) -> None:
        """Let points go."""
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
    """Return the adjacency entries in groups that the last update decided again."""
    change = getattr(system, "last_change", None)
    return None if change is None else int(change.edges_rerun)


def levels(system: System) -> int | None:
    """Return the number of levels or rounds, of a system that has such."""
    model = getattr(system, "model", None)
    for name in ("n_levels", "rounds"):
        found = getattr(model, name, None)
        if isinstance(found, int):
            return found
    return None


def check(system: System) -> dict[str, Any] | None:
    """Return what the full check finds in the state as it is, where there is such a check."""
    verify = getattr(getattr(system, "model", None), "verify", None)
    if verify is None:
        return None
    report = verify()
    return {
        "ok": bool(report.ok),
        "bad_merges": int(report.bad_merges),
        "worst_goodness": float(report.worst_goodness),
        "report": str(report),
    }
