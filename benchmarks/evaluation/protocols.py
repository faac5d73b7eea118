"""The protocols: in which batches points arrive, and which single updates are measured.

insertion: 99% of the points in one batch, then the rest one at a time; costs are averaged over the
last 100 updates. deletion: 100 batches, then points are deleted one at a time, the last first;
averaged over the first 100. growth: 1,000 points, then all others one at a time. Of small data sets
fewer points are built, so that 100 single updates are left if possible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import streams

AVERAGED = 100  # updates that a reported average is over


def single_updates(n: int) -> int:
    """Return the number of single updates for n points."""
    return max(n // 100, min(AVERAGED, n // 2))


def _insertion(n: int) -> NDArray[np.int64]:
    return np.r_[0, np.arange(n - single_updates(n), n + 1)].astype(np.int64)


def _deletion(n: int) -> NDArray[np.int64]:
    return np.unique(streams.deletion(n)).astype(np.int64)


def _growth(n: int) -> NDArray[np.int64]:
    return streams.growth(n).astype(np.int64)


@dataclass(frozen=True)
class Protocol:
    """Batches of a stream, how many of them are built, and what the single updates are.

    Attributes
    ----------
    bounds : callable
        Batch boundaries of n points: batch i is points bounds[i] to bounds[i + 1].
    deletes : bool
        Whether all batches are built and single points deleted, the last first; otherwise the
        first batch is built and the others, of one point each, are inserted.
    from_the_end : bool
        Whether averages are over the last updates rather than the first.
    """

    bounds: Callable[[int], NDArray[np.int64]]
    deletes: bool
    from_the_end: bool

    def updates(self, n: int) -> int:
        """Return the number of single updates."""
        return single_updates(n) if self.deletes else len(self.bounds(n)) - 2

    def averaged(self, n_updates: int) -> slice:
        """Return the updates that an average is over."""
        return slice(-min(AVERAGED, n_updates), None) if self.from_the_end else slice(0, AVERAGED)


PROTOCOLS = {
    "insertion": Protocol(_insertion, deletes=False, from_the_end=True),
    "deletion": Protocol(_deletion, deletes=True, from_the_end=False),
    "growth": Protocol(_growth, deletes=False, from_the_end=True),
}


def checkpoints(n_updates: int, count: int = 10) -> list[int]:
    """Return after how many updates clusterings are scored: evenly spaced, from 0 on."""
    return sorted({round(i * n_updates / count) for i in range(count + 1)})
