"""States of systems that take very long to build, kept from one job for the next.

A system that inserts its points one by one (``one_by_one``) has the same state after the same
points, whatever the protocol. So a job can continue from the state that another job of the same
data set has built; the time of that build counts. Kept states are in the folder of the streams and
belong to one commit; they can be deleted at any time.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from benchmarks.common import machine
from benchmarks.systems import System

KEPT_FROM_S = 30.0  # quicker builds are not kept


def kept_state(job: dict[str, Any], points: int) -> Path:
    """Return the file of the state of a job's system after so many points."""
    name = f"built-{job['dataset']}-{job['system']}-{points}-{machine.commit()}.pickle"
    return Path(job["path"]).parent / name


def load(path: Path) -> tuple[System, float] | None:
    """Return a kept system and the CPU seconds of its build, or None."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        found: tuple[System, float] = pickle.load(file)
    return found


def keep(path: Path, system: System, seconds: float) -> None:
    """Keep a state for other jobs, unless it was built quickly."""
    if seconds < KEPT_FROM_S:
        return
    for stale in path.parent.glob(path.name.rpartition("-")[0] + "-*.pickle"):
        stale.unlink()  # of another commit
    unfinished = path.with_suffix(".part")
    with unfinished.open("wb") as file:
        pickle.dump((system, seconds), file, protocol=pickle.HIGHEST_PROTOCOL)
    unfinished.replace(path)
