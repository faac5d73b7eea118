"""The branches of the condensed tree that are drawn, and where.

A branch is a path from a root, or from below a merge that divides it, down to the next such merge,
or to where no side has ``least`` leaves. On the way it loses small branches. In a large tree a
merge divides a branch only if both sides have 1/500 of all leaves, or if the smaller one leads to a
cluster. The two sides of the merge lie beside each other in the width that the branch has there, so
branches never overlap. A branch in which a cluster begins is drawn as two pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dynhac.dendrogram.sketch import ancestors, usual_size
from dynhac.plot.colours import colours_of

if TYPE_CHECKING:
    from dynhac.dendrogram.dendrogram import Dendrogram

NONE = -1  # the label of leaves in no cluster
GAP = 0.02  # between two trees, as a part of all leaves
NARROWEST = 1 / 1000  # step in the width of a branch, as a part of all leaves
ABOVE = 0.06  # of the axis, above the first division


class Piece(NamedTuple):
    """A branch, or a part of it, from top to bottom.

    Between ``at[i]`` and ``at[i + 1]`` it has ``width[i]`` leaves. Its middle is at ``x``.
    """

    cluster: int  # label, or NONE
    x: float
    at: list[float]  # similarities
    width: list[int]


class Layout:
    """The pieces to draw, and the limits of the axes."""

    def __init__(
        self, dendrogram: Dendrogram, least: int, nodes: dict[int, int], cut: float | None
    ) -> None:
        n = self._n = dendrogram.n_leaves
        sizes = np.concatenate([np.ones(n, np.int64), dendrogram.size])
        a, b = dendrogram.children.T
        swap = (sizes[a] < sizes[b]) | ((sizes[a] == sizes[b]) & (a > b))
        self._larger, self._smaller = np.where(swap, b, a).tolist(), np.where(swap, a, b).tolist()
        self._size: list[int] = sizes.tolist()
        self._at = np.maximum(dendrogram.min_similarity, np.finfo(np.float64).tiny).tolist()
        self._least, self.drawn_least = least, max(least, usual_size(dendrogram))
        self._nodes, self._cut = nodes, cut
        self._on_the_way = ancestors(dendrogram, nodes)

        roots = [r for r in dendrogram.roots.tolist() if r >= n and self._size[r] >= least]
        roots.sort(key=lambda root: (-self._size[root], root))
        trees = [r for r in roots if self._size[r] >= self.drawn_least or r in self._on_the_way]
        self.trees_left_out = len(dendrogram.roots) - len(trees)
        self.leaves_left_out = n - sum(self._size[root] for root in trees)
        self._set_limits(trees, dendrogram.threshold)
        self.pieces: list[Piece] = []
        left = 0.0
        for root in trees:
            self._add_tree(root, left + self._size[root] / 2)
            left += self._size[root] + GAP * n
        self.right = max(left - GAP * n, 1.0)
        order = sorted(self.pieces, key=lambda piece: piece.x)
        found = dict.fromkeys(piece.cluster for piece in order if piece.cluster != NONE)
        self.colour = colours_of(list(found))

    def _set_limits(self, trees: list[int], threshold: float) -> None:
        """Set the lowest and the highest similarity of the y axis."""
        low = min((self._at[tree - self._n] for tree in trees), default=0.5)
        high = low
        for tree in trees:
            for _, end in self._branches(tree):
                high = max(high, self._at[end - self._n])
        if self._cut is not None:
            low, high = min(low, self._cut), max(high, self._cut)
        if high <= low * 1.01:
            low, high = low / 1.1, high * 1.1
        self.threshold = threshold if low / 10 <= threshold <= low else None
        self.low = low * (low / high) ** ABOVE
        self.high = high

    def _branches(self, root: int) -> list[tuple[int, int]]:
        """Return the top and the end of each branch that is drawn."""
        found, stack = [], [root]
        while stack:
            top = node = stack.pop()
            while (
                not self._divides(node) and self._size[self._larger[node - self._n]] >= self._least
            ):
                node = self._larger[node - self._n]
            found.append((top, node))
            if self._divides(node):
                stack += [self._smaller[node - self._n], self._larger[node - self._n]]
        return found

    def _divides(self, node: int) -> bool:
        """Whether the two sides of a merge are drawn beside each other."""
        small = self._smaller[node - self._n]
        if self._size[small] < self._least:
            return False
        return self._size[small] >= self.drawn_least or small in self._on_the_way

    def _add_tree(self, root: int, x: float) -> None:
        """Add the pieces of a tree whose middle is at ``x``."""
        n, step = self._n, NARROWEST * self._n
        middle = {root: (x, self.low, NONE)}
        for top, end in self._branches(root):
            x, start, cluster = middle.pop(top)
            at: list[float] = [start]
            width: list[int] = []
            node = top
            while True:
                if cluster == NONE and node in self._nodes:
                    cluster = self._nodes[node]
                    if self._cut is not None and start < self._cut:
                        # A cluster of a cut begins at the cut.
                        self._extend(at, width, self._cut, self._size[node], step)
                    if width:
                        self.pieces.append(Piece(NONE, x, at, width))
                        at, width = [at[-1]], []
                self._extend(at, width, self._at[node - n], self._size[node], step)
                if node == end:
                    break
                start, node = self._at[node - n], self._larger[node - n]
            self.pieces.append(Piece(cluster, x, at, width))
            if self._divides(end):
                large, small = self._larger[end - n], self._smaller[end - n]
                left = x - self._size[end] / 2
                middle[large] = left + self._size[large] / 2, self._at[end - n], cluster
                left += self._size[large]
                middle[small] = left + self._size[small] / 2, self._at[end - n], cluster

    @staticmethod
    def _extend(at: list[float], width: list[int], until: float, size: int, step: float) -> None:
        """Extend a piece; small changes of its width are not drawn."""
        if width and width[-1] - size < step:
            at[-1] = until
        else:
            at.append(until)
            width.append(size)
