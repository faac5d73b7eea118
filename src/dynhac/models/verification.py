"""The full check of a dendrogram, and its report.

The merges are replayed level by level on the input graph, independently of the engine's caches; the
caches are audited too. The check costs about as much as a build.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynhac import _core

if TYPE_CHECKING:
    from dynhac._core import Meter
    from dynhac.models.engine import IdEngine


@dataclass(frozen=True)
class VerifyReport:
    """The result of `GraphHAC.verify`; true if no error was found.

    Attributes
    ----------
    ok : bool
        Whether no error was found.
    merges : int
        Merges replayed.
    bad_merges : int
        Merges that are not (1+ε)-good.
    worst_goodness : float
        The largest goodness of all merges: the heaviest linkage at either of the two clusters,
        divided by the smallest linkage among this merge and those below it. At most 1+ε if every
        merge is good.
    wrong_similarities : int
        Merges whose stored similarity is not the linkage of the two clusters.
    heavy_edges_left : int
        Edges between roots that are heavy enough to be merged.
    wrong_caches : tuple of str
        Errors found in the engine's caches, one line each.
    seconds : float
        Duration of the check.
    """

    ok: bool
    merges: int
    bad_merges: int
    worst_goodness: float
    wrong_similarities: int
    heavy_edges_left: int
    wrong_caches: tuple[str, ...]
    seconds: float

    def __bool__(self) -> bool:
        return self.ok

    def _repr_html_(self) -> str:
        from dynhac.notebook.views import lines_html

        return lines_html("VerifyReport", self)

    def __str__(self) -> str:
        if self.ok:
            return (
                f"verified: {self.merges:,} merges, all good (worst ratio "
                f"{self.worst_goodness:.6g}), no heavy edge left, caches right; "
                f"{self.seconds:.2f} s"
            )
        lines = [f"NOT VERIFIED ({self.merges:,} merges, {self.seconds:.2f} s)"]
        if self.bad_merges:
            lines.append(f"  merges not good: {self.bad_merges:,}, worst {self.worst_goodness:.6g}")
        if self.wrong_similarities:
            lines.append(f"  merges with a wrong similarity: {self.wrong_similarities:,}")
        if self.heavy_edges_left:
            lines.append(f"  heavy edges left unmerged: {self.heavy_edges_left:,}")
        if self.wrong_caches:
            lines.append(f"  wrong caches: {len(self.wrong_caches):,}")
            lines += [f"    {line}" for line in self.wrong_caches[:10]]
            if len(self.wrong_caches) > 10:
                lines.append("    ...")
        return "\n".join(lines)


def verify(
    engine: IdEngine, epsilon: float, threshold: float, resolution: float, meter: Meter
) -> VerifyReport:
    """Check one consistent state of ``engine``."""
    start = time.perf_counter()
    with engine.lock:
        # Code that is called meanwhile must not wait for the lock of the state's readers.
        before, engine.exporting = engine.exporting, True
        try:
            if engine.guard.held:  # by this thread: code of the user's, called by an update, asks
                snapshot, u, v, w, wrong_caches = engine.engine.export()
            else:
                with engine.guard:
                    snapshot, u, v, w, wrong_caches = engine.engine.export(meter)
        finally:
            engine.exporting = before
    tree = (snapshot.children, snapshot.similarity, snapshot.level)
    limits = (epsilon, threshold, resolution)
    found = _core.check(len(snapshot.keys), u, v, w, *tree, *limits, meter)
    wrong = found.bad_merges or found.wrong_similarities or found.heavy_edges_left or wrong_caches
    return VerifyReport(not wrong, *found, tuple(wrong_caches), time.perf_counter() - start)
