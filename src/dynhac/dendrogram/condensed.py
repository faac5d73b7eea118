"""The condensed tree of a dendrogram: what the automatic choice of clusters chooses from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynhac import _core
from dynhac.dendrogram.selection import automatic_min_size
from dynhac.extras import optional
from dynhac.input.columns import INT64_MAX
from dynhac.input.errors import counted

if TYPE_CHECKING:
    import pandas

    from dynhac.dendrogram.dendrogram import Dendrogram


@dataclass(frozen=True, eq=False, repr=False)
class CondensedTree:
    """The branches of a dendrogram, and which of them are chosen as clusters.

    Made by `Dendrogram.condensed`. The arrays are read-only.

    A *split* is a merge of two clusters of at least ``min_size`` leaves each. A *branch* begins at
    a root or below a split, at its *top*, and goes down to the next split, or to where no side has
    ``min_size`` leaves. All other leaves leave it on the way. Each merge has a *level*,
    (log similarity + 2 log conductance) / 3, of the smallest linkage in its subtree and of its
    conductance, which `Dendrogram.labels` explains: the larger, the tighter. The *excess* of a
    branch is the sum over its leaves of the level at which they leave the branch minus the level at
    which it was born. It is at least 0 and at most 1.5 times the number of leaves. A branch is
    *good* if it does not end in a split, or if its excess is at least 1.15 times that of the best
    choice below it. The topmost good branches are chosen.

    A root is taken to be born one level below a merge, at the threshold of the model, with a tree
    of its own size and weight; without a threshold, so early that its excess is the largest. If it
    has more than 3/4 of all leaves, it is good only if, in addition, the best choice below it has
    an excess of at most 0.4 per leaf.

    Attributes
    ----------
    top : ndarray of int64, shape (b,)
        The node at the top of each branch; its leaves are those of the branch. Parents come before
        their children.
    parent : ndarray of int64, shape (b,)
        The branch above each branch; -1 for a root.
    birth, death : ndarray of float64, shape (b,)
        The level of the split above, and the level at the lower end of the branch. A root is born
        at most 1.5 levels below the mean level at which its leaves leave it: earlier makes no
        difference.
    size : ndarray of int64, shape (b,)
        The number of leaves below the top.
    excess : ndarray of float64, shape (b,)
        See above.
    kept : ndarray of bool, shape (b,)
        Whether the branch is one of the clusters that `Dendrogram.labels` gives.
    level : ndarray of float64, shape (m,)
        The level of each merge of the dendrogram.
    min_size : int
        The size that both sides of a split have at least.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC.from_graph(([1, 2, 3, 4, 5], [2, 3, 4, 5, 6], [0.9, 0.8, 0.1, 0.9, 0.8]))
    >>> tree = g.dendrogram().condensed(min_size=3)
    >>> tree
    <CondensedTree: 3 branches of at least 3 leaves, 2 of them chosen>
    >>> tree.parent.tolist(), tree.size.tolist(), tree.kept.tolist()
    ([-1, 0, 0], [6, 3, 3], [False, True, True])
    """

    top: NDArray[np.int64]
    parent: NDArray[np.int64]
    birth: NDArray[np.float64]
    death: NDArray[np.float64]
    size: NDArray[np.int64]
    excess: NDArray[np.float64]
    kept: NDArray[np.bool_]
    level: NDArray[np.float64]
    min_size: int

    @classmethod
    def _of(cls, dendrogram: Dendrogram, min_size: int | None) -> CondensedTree:
        least = automatic_min_size(min_size)
        data = _core.condense(
            dendrogram.n_leaves,
            dendrogram.children,
            dendrogram.similarity,
            dendrogram.min_similarity,
            min(least, INT64_MAX),
            dendrogram.threshold,
        )
        for array in data:
            array.setflags(write=False)
        return cls(*data, min_size=least)

    def __len__(self) -> int:
        return len(self.top)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row per branch: all attributes but ``level`` and ``min_size``.

        Examples
        --------
        >>> from dynhac import GraphHAC
        >>> g = GraphHAC.from_graph(([1, 2, 3], [2, 3, 4], [0.9, 0.1, 0.8]))
        >>> frame = g.dendrogram().condensed(min_size=2).to_pandas()
        >>> frame[["top", "parent", "size", "kept"]].values.tolist()
        [[6, -1, 4, False], [5, 0, 2, True], [4, 0, 2, True]]
        """
        pd = optional("pandas", "pandas", "to_pandas()")
        names = ("top", "parent", "birth", "death", "size", "excess", "kept")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def __repr__(self) -> str:
        return (
            f"<CondensedTree: {counted(len(self), 'branch', 'branches')} of at least "
            f"{self.min_size:,} leaves, {int(self.kept.sum()):,} of them chosen>"
        )
