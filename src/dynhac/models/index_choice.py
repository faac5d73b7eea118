"""Which neighbour index a model of points uses, and when it changes to another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynhac._core import PythonIndex
from dynhac.input.columns import INT64_MAX
from dynhac.neighbors import (
    CellsIndex,
    ExactIndex,
    GpuIndex,
    KDBlocksIndex,
    choose_backend,
    make_index,
)
from dynhac.neighbors.checked import CheckedIndex
from dynhac.neighbors.choose import MOST_NUMBERS_SCANNED, split_name

if TYPE_CHECKING:
    from dynhac import _core
    from dynhac._core import IndexChoice
    from dynhac.models.parameters import PointParameters
    from dynhac.neighbors import NeighborIndex
    from dynhac.neighbors.metrics import Metric

NO_INDEX: IndexChoice = (None, None, 0)


class IndexChooser:
    """Chooses the index of a model; the core calls it when it needs one."""

    __slots__ = ("metric", "neighbors", "threads")

    def __init__(self, parameters: PointParameters) -> None:
        self.metric = parameters.metric
        self.neighbors = parameters.neighbors
        self.threads = parameters.graph.thread_count

    def __call__(
        self, dimension: int, n_points: int, before: str | None, outgrown: bool
    ) -> IndexChoice:
        """Return a new, empty index; None instead of it if the old one should stay.

        Parameters
        ----------
        dimension, n_points : int
            What it is for.
        before : str or None
            The backend that the model had, None if it had none yet.
        outgrown : bool
            Whether there are too many points for that; otherwise the index was lost.
        """
        if not isinstance(self.neighbors, str):
            raise RuntimeError(
                f"the index {type(self.neighbors).__name__} failed in the middle of a change "
                "and may not match the points any more; make a new model from ids and vectors()"
            )
        # An index that learns stays what it is, so that its history goes on.
        wanted = "cells" if before == "cells" and self.neighbors == "auto" else self.neighbors
        if wanted == "auto":
            wanted = choose_backend(self.metric, dimension, n_points)
        name, _ = split_name(wanted)
        max_points = INT64_MAX
        if name == "exact" and self.neighbors == "auto":
            max_points = MOST_NUMBERS_SCANNED // max(1, dimension)
        if outgrown and name == before:
            return None, name, max_points
        index = make_index(wanted, self.metric, dimension, n_points, threads=self.threads)
        return for_core(index, dimension), name, max_points


def own_choice(index: NeighborIndex, metric: Metric) -> IndexChoice:
    """Return the choice of an index of the user's own, with its answers checked."""
    checked = CheckedIndex(index, signed=metric.name == "inner_product")
    return PythonIndex(checked, checks_itself=True), None, INT64_MAX


def for_core(index: NeighborIndex, dimension: int) -> _core.NeighborIndex:
    """Return a new index of the package as the core calls it: its compiled part, if it has one."""
    if type(index) is ExactIndex:
        return index.new_scan(dimension)
    if type(index) is CellsIndex:
        return index.new_cells()
    if type(index) is KDBlocksIndex:
        return index._tree
    return PythonIndex(index, checks_itself=isinstance(index, GpuIndex))
