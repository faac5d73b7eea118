"""The part of a dendrogram that is drawn: by `dynhac.plot`, and in notebooks.

Each branch ends in a row of its own. The roots of the largest trees take up to half of the rows.
Then the node with the most leaves is opened, repeatedly, until all rows are used. With a flat
clustering, nodes above its clusters are opened first: what is closed is a cluster, if there are
enough rows. In a large tree most splits near the root separate a few outliers, so side branches
below ``least`` leaves get no row.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.input.errors import counted

if TYPE_CHECKING:
    from dynhac.dendrogram.dendrogram import Dendrogram


class Sketch(NamedTuple):
    """The part of a dendrogram that is drawn.

    ``branches`` maps each opened node to the two branches in which it splits, the larger first:
    those of its own merge, or of the first one below it with two branches that are large enough.
    ``merge`` is the merge where an opened node splits, and a closed node itself; ``x`` is the
    similarity of that merge. Leaves have neither.
    """

    trees: list[int]  # the highest node that is drawn of each tree
    branches: dict[int, tuple[int, int]]
    ends: list[int]  # the nodes that are not opened, from the top down
    row: dict[int, float]
    size: dict[int, int]
    merge: dict[int, int]
    x: dict[int, float]
    trees_left_out: int
    leaves_left_out: int  # those of the trees left out


class Marked(NamedTuple):
    """Where the merges are with respect to a flat clustering; one entry per merge."""

    above: list[bool]  # there are clusters below it
    inside: list[bool]  # its leaves are in one cluster

    @classmethod
    def by_cut(cls, dendrogram: Dendrogram, cut: float) -> Marked:
        """Return where the merges are with respect to a cut; its clusters have any size."""
        inside = dendrogram.min_similarity >= cut
        return cls((~inside).tolist(), inside.tolist())

    @classmethod
    def by_labels(cls, dendrogram: Dendrogram, labels: NDArray[np.int64]) -> Marked:
        """Return where the merges are with respect to clusters that are nodes of the tree."""
        n = dendrogram.n_leaves
        above = np.zeros(len(dendrogram), dtype=np.bool_)
        tops = cluster_nodes(dendrogram, labels)
        above[[node - n for node in ancestors(dendrogram, tops) if node not in tops]] = True
        inside = (labels[some_leaf(dendrogram)] >= 0) & ~above
        return cls(above.tolist(), inside.tolist())


def usual_size(dendrogram: Dendrogram) -> int:
    """Return the size below which branches are not drawn by default."""
    return max(1, dendrogram.n_leaves // 500)


def sketch_of(
    dendrogram: Dendrogram, rows: int, least: int, marked: Marked | None = None
) -> Sketch:
    """Select the nodes to draw in at most ``rows`` rows."""
    n = dendrogram.n_leaves
    sizes = np.concatenate([np.ones(n, np.int64), dendrogram.size])
    a, b = dendrogram.children.T
    swap = (sizes[a] < sizes[b]) | ((sizes[a] == sizes[b]) & (a > b))
    size = sizes.tolist()
    larger, smaller = np.where(swap, b, a).tolist(), np.where(swap, a, b).tolist()
    similarity = dendrogram.min_similarity.tolist()

    def is_above(node: int) -> bool:
        return marked is not None and node >= n and marked.above[node - n]

    def main_part(node: int) -> int:
        """Return the first node that is no longer above a cluster, if it loses only outliers."""
        inner = node
        while is_above(inner):
            if size[smaller[inner - n]] >= least:
                break
            inner = larger[inner - n]
        return inner if size[inner] >= least else node

    def entry(node: int) -> tuple[bool, int, int]:
        return not is_above(node), -size[node], node

    roots = sorted(dendrogram.roots.tolist(), key=lambda root: -size[root])
    wanted = [root for root in roots if size[root] >= least] or roots[:1]
    drawn = (rows + 1) // 2
    trees = [main_part(root) for root in wanted[:drawn]]
    drawn = len(trees)
    branches: dict[int, tuple[int, int]] = {}
    merges: dict[int, int] = {}
    closed = [entry(tree) for tree in trees]
    heapq.heapify(closed)
    while drawn + len(branches) < rows and (closed or drawn < len(wanted)):
        if not closed:
            trees.append(main_part(wanted[drawn]))
            closed.append(entry(trees[-1]))
            drawn += 1
            continue
        merge = node = heapq.heappop(closed)[2]
        while merge >= n:
            if size[smaller[merge - n]] >= least:
                branches[node] = main_part(larger[merge - n]), main_part(smaller[merge - n])
                merges[node] = merge
                for branch in branches[node]:
                    heapq.heappush(closed, entry(branch))
                break
            merge = larger[merge - n]

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
    return Sketch(
        trees,
        branches,
        ends,
        row,
        {node: size[node] for node in row},
        merges,
        {node: similarity[merge - n] for node, merge in merges.items()},
        len(roots) - drawn,
        n - sum(size[root] for root in wanted[:drawn]),
    )


def left_out(sketch: Sketch, least: int) -> list[str]:
    """Return remarks about what is not drawn."""
    remarks = []
    if least > 1:
        remarks.append(f"branches below {least:,} leaves not drawn")
    if sketch.trees_left_out:
        trees = counted(sketch.trees_left_out, "more tree", "more trees")
        leaves = counted(sketch.leaves_left_out, "leaf", "leaves")
        remarks.append(f"{trees} ({leaves}) left out")
    return remarks


def spans(sketch: Sketch) -> NDArray[np.float64]:
    """Return the similarities at both ends of each drawn branch from merge to merge."""
    x = sketch.x
    found = [
        (x[node], x[branch])
        for node, branches in sketch.branches.items()
        for branch in branches
        if branch in x
    ]
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def clusters_in(dendrogram: Dendrogram, sketch: Sketch, marked: Marked | None) -> dict[int, int]:
    """Map every drawn node within a cluster to the number of the cluster.

    Clusters are numbered from the top down. Single leaves are not numbered.
    """
    cluster: dict[int, int] = {}
    if marked is None:
        return cluster
    count, n = 0, dendrogram.n_leaves
    stack = list(reversed(sketch.trees))
    while stack:
        node = stack.pop()
        if node not in cluster and node in sketch.merge and marked.inside[sketch.merge[node] - n]:
            cluster[node] = count
            count += 1
        for branch in reversed(sketch.branches.get(node, ())):
            if node in cluster:
                cluster[branch] = cluster[node]
            stack.append(branch)
    return cluster


def leaves_under(dendrogram: Dendrogram, nodes: list[int]) -> list[NDArray[np.int64]]:
    """Return the leaves under each of some nodes, of which none is under another, ascending."""
    n = dendrogram.n_leaves
    first, second = dendrogram.children[:, 0].tolist(), dendrogram.children[:, 1].tolist()
    owner = [-1] * (n + len(first))
    for place, node in enumerate(nodes):
        owner[node] = place
    for merge in range(len(first) - 1, -1, -1):  # parents before children
        if owner[n + merge] >= 0:
            owner[first[merge]] = owner[second[merge]] = owner[n + merge]
    owners = np.array(owner[:n], dtype=np.int64)
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(len(nodes) + 1))
    return [order[start:end] for start, end in pairwise(ends.tolist())]


def some_leaf(dendrogram: Dendrogram) -> NDArray[np.int64]:
    """Return a leaf under each merge."""
    n = dendrogram.n_leaves
    leaf: NDArray[np.int64] = dendrogram.children[:, 0].copy()
    while (inner := np.flatnonzero(leaf >= n)).size:
        leaf[inner] = leaf[leaf[inner] - n]  # twice as far down as before
    return leaf


def cluster_nodes(dendrogram: Dendrogram, labels: NDArray[np.int64]) -> dict[int, int]:
    """Map the node of each cluster to its label; clusters are nodes of the tree, or -1 for none.

    Single leaves are left out.
    """
    label = labels[some_leaf(dendrogram)]
    sizes = np.append(np.bincount(labels[labels >= 0]), 0)
    found = np.flatnonzero((label >= 0) & (dendrogram.size == sizes[label]))
    nodes = (found + dendrogram.n_leaves).tolist()
    return dict(zip(nodes, label[found].tolist(), strict=True))


def ancestors(dendrogram: Dendrogram, nodes: Iterable[int]) -> set[int]:
    """Return some nodes and all nodes above them."""
    n = dendrogram.n_leaves
    parents = np.full(n + len(dendrogram), -1)
    parents[dendrogram.children] = np.arange(n, len(parents))[:, None]
    parent = parents.tolist()
    found: set[int] = set()
    for start in nodes:
        node = start
        while node >= 0 and node not in found:
            found.add(node)
            node = parent[node]
    return found
