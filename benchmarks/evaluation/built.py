"""States of systems that take very long to build, kept from one job for the next.

A system that takes its points one by one (``one_by_one``) is in the same state after the same
points, whatever the protocol: what one job has built, the others of the same data set go on from,
and count the time that it took there. Kept states are in the folder of the neighbours, and are of
one commit: they can be deleted at any time.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import machine
from systems import System

KEPT_FROM_S = 30.0  # a build that is quicker is made again


def kept_state(job: dict[str, Any], points: int) -> Path:
    """Return where the state of a job's system after so many points is kept."""
    name = f"built-{job['dataset']}-{job['system']}-{points}-{machine.commit()}.pickle"
    return Path(job["path"]).parent / name


def load(path: Path) -> tuple[System, float] | None:
    """Return a system and the CPU seconds that its state took to build, if it has been kept."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        found: tuple[System, float] = pickle.load(file)
    return found


def keep(path: Path, system: System, seconds: float) -> None:
    """Keep a state for other jobs."""
    if seconds < KEPT_FROM_S:
        return
    for stale in path.parent.glob(path.name.rpartition("-")[0] + "-*.pickle"):
        stale.unlink()  # of another commit
    unfinished = path.with_suffix(".part")
    with unfinished.open("wb") as file:
        pickle.dump((system, seconds), file, protocol=pickle.HIGHEST_PROTOCOL)
    unfinished.replace(path)
