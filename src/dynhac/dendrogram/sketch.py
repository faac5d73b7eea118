"""The upper part of a dendrogram, as it is drawn: by `dynhac.plot`, and in notebooks.

The roots of the largest trees take up to half of the rows. Then the node with the most leaves is
opened, repeatedly, until there are enough rows. In a large tree most splits near the root separate
a few outliers, so side branches below a size get no row.

The time does not depend on the size of the tree, but for a few passes over arrays: no more than
`STEPS` merges are looked at to open one node. A node that needs more, in a chain of small branches,
stays closed.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from dynhac.dendrogram.dendrogram import Dendrogram

STEPS = 20_000
SPAN_OF_LOG = 20  # a larger ratio of similarities needs a logarithmic axis


class Sketch(NamedTuple):
    """The part of a dendrogram that is drawn.

    ``branches`` maps each opened node to the two branches in which it splits, the larger first:
    those of its own merge, or of the first one below it with two branches that are large enough.
    ``x`` is the similarity of that merge, and of each closed node. Leaves have none.
    """

    trees: list[int]  # the roots drawn
    branches: dict[int, tuple[int, int]]
    ends: list[int]  # the nodes that are not opened, from the top down
    row: dict[int, float]
    size: dict[int, int]
    x: dict[int, float]


def usual_size(dendrogram: Dendrogram) -> int:
    """Return the size below which branches are not drawn by default."""
    return max(1, dendrogram.n_leaves // 500)


def sketch_of(dendrogram: Dendrogram, rows: int, least: int) -> Sketch:
    """Select the nodes to draw in ``rows`` rows; branches below ``least`` leaves get none."""
    n, sizes, children = dendrogram.n_leaves, dendrogram.size, dendrogram.children

    def size_of(node: int) -> int:
        return int(sizes[node - n]) if node >= n else 1

    wanted = _largest_trees(dendrogram, rows, least)
    trees = wanted[: (rows + 1) // 2]
    branches: dict[int, tuple[int, int]] = {}
    merges: dict[int, int] = {}  # of each node with branches, the merge where it splits
    closed = [(-size_of(tree), tree) for tree in trees]  # sorted, and so a heap
    while len(trees) + len(branches) < rows and (closed or len(trees) < len(wanted)):
        if not closed:
            tree = wanted[len(trees)]
            trees.append(tree)
            closed.append((-size_of(tree), tree))
            continue
        merge = node = heapq.heappop(closed)[1]
        for _ in range(STEPS):
            if merge < n:
                break
            pair = children[merge - n].tolist()
            large, small = sorted(pair, key=lambda child: (-size_of(child), child))
            if size_of(small) >= least:
                branches[node], merges[node] = (large, small), merge
                heapq.heappush(closed, (-size_of(large), large))
                heapq.heappush(closed, (-size_of(small), small))
                break
            merge = large

    row: dict[int, float] = {}
    next_row = 0.0
    for tree in trees:
        stack = [tree]
        while stack:
            node = stack.pop()
            if node in branches:
                stack += reversed(branches[node])
            else:
                row[node] = next_row
                next_row += 1.0
        next_row += 0.5
    ends = list(row)
    merges.update((node, node) for node in ends if node >= n)
    for node in reversed(branches):  # branches before the node they belong to
        large, small = branches[node]
        row[node] = (row[large] + row[small]) / 2
    x = {node: float(dendrogram.min_similarity[merge - n]) for node, merge in merges.items()}
    return Sketch(trees, branches, ends, row, {node: size_of(node) for node in row}, x)


def _largest_trees(dendrogram: Dendrogram, count: int, least: int) -> list[int]:
    """Return the roots of the largest trees of at least this size, but at least one root."""
    roots, n = dendrogram.roots, dendrogram.n_leaves
    sizes = np.ones(len(roots), np.int64)
    merged = roots >= n
    sizes[merged] = dendrogram.size[roots[merged] - n]
    order = np.argsort(-sizes, kind="stable")[:count]
    large: list[int] = roots[order[sizes[order] >= least]].tolist()
    return large or roots[order[:1]].tolist()
