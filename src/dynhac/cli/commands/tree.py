"""``dynhac tree``: the hierarchy as a drawing in text.

Trees of average linkage are unbalanced: most merges add one point to a large cluster. So points
that split off in small parts are only counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from dynhac.cli.command import command
from dynhac.cli.options import INSPECT, Json, StorePath, Theta
from dynhac.cli.output import print_json, print_text, sample_text
from dynhac.cli.stores import open_store
from dynhac.dendrogram.cuts import snap
from dynhac.dendrogram.dendrogram import Dendrogram
from dynhac.input.errors import counted

if TYPE_CHECKING:
    from rich.tree import Tree


@command(
    INSPECT,
    ("The whole hierarchy", "dynhac tree my.store"),
    ("Clusters at 0.35, one split deep", "dynhac tree my.store --theta 0.35 --depth 1"),
    ("All splits into 50 points or more", "dynhac tree my.store -d 20 --min-size 50"),
)
def tree(
    store: StorePath,
    theta: Theta = None,
    depth: Annotated[int, typer.Option("-d", "--depth", min=0, help="Depth of splits.")] = 2,
    top: Annotated[int, typer.Option(min=1, help="Clusters to draw, largest first.")] = 10,
    min_size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Minimal size of the parts that are drawn (default: 1 % of all points)."
        ),
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Ids to show for each cluster.")] = 5,
    json: Json = False,
) -> None:
    """Draw the hierarchy: clusters, their similarity, and the clusters into which they split.

    It starts from the clusters of a cut, or from whole trees. The similarity of a cluster is the
    highest cut that keeps it together. Only splits into parts of a minimal size are drawn; points
    that split off in smaller parts are counted in brackets.
    """
    with open_store(store) as opened:
        hierarchy = opened.dendrogram()
    min_size = min_size or max(2, hierarchy.n_leaves // 100)
    branches = _Branches(hierarchy, min_size, examples)
    tops = branches.tops(theta)
    result = {
        "points": hierarchy.n_leaves,
        "clusters": len(tops),
        "min_size": min_size,
        "tree": [branches.branch(node, depth) for node in tops[:top]],
    }
    if json:
        print_json(result)
    else:
        print_text(_drawing(result, theta))


class _Branches:
    """The clusters of a hierarchy, with splits into parts of a minimal size."""

    def __init__(self, tree: Dendrogram, min_size: int, examples: int) -> None:
        self._tree = tree
        self._min_size = min_size
        self._examples = examples
        self._sizes = np.concatenate([np.ones(tree.n_leaves, np.int64), tree.size])

    def tops(self, theta: float | None) -> list[int]:
        """Return the nodes of the clusters of a cut, or the roots, largest first."""
        tree, n = self._tree, self._tree.n_leaves
        inside = np.ones(len(self._sizes), dtype=np.bool_)
        if theta is not None:
            tree.labels(theta)  # raises if theta is not valid
            inside[n:] = tree.min_similarity >= snap(theta, tree.resolution)
        top = inside.copy()
        top[tree.children[inside[n:]]] = False
        nodes = np.flatnonzero(top)
        return list(nodes[np.argsort(-self._sizes[nodes], kind="stable")].tolist())

    def branch(self, node: int, depth: int) -> dict[str, Any]:
        """Return a cluster with its splits down to a depth.

        Cuts up to its ``similarity`` keep it together. ``node_id`` is the stable id of its merge.
        Both are None for a single point. ``ids`` are some of its points, and ``small`` points split
        off in smaller parts before the split into ``parts``.
        """
        tree = self._tree
        merge = node - tree.n_leaves
        parts, small = self._split(node) if depth else ([], 0)
        return {
            "size": int(self._sizes[node]),
            "similarity": float(tree.min_similarity[merge]) if merge >= 0 else None,
            "node_id": int(tree.node_ids[merge]) if merge >= 0 else None,
            "ids": self._ids(node),
            "small": small,
            "parts": [self.branch(part, depth - 1) for part in parts],
        }

    def _split(self, node: int) -> tuple[list[int], int]:
        """Return the parts of the first split that is drawn, and how many points split off before.

        Empty and 0 if no split is drawn.
        """
        small = 0
        while node >= self._tree.n_leaves:
            left, right = self._tree.children[node - self._tree.n_leaves].tolist()
            if self._sizes[left] < self._sizes[right]:
                left, right = right, left
            if self._sizes[right] >= self._min_size:
                return [left, right], small
            small += int(self._sizes[right])
            node = left
        return [], 0

    def _ids(self, node: int) -> list[Any]:
        """Return ids of some points under a node."""
        found: list[int] = []
        stack = [node]
        while stack and len(found) < self._examples:
            node = stack.pop()
            if node < self._tree.n_leaves:
                found.append(node)
            else:
                stack += reversed(self._tree.children[node - self._tree.n_leaves].tolist())
        return list(self._tree.ids[found].tolist())


def _drawing(result: dict[str, Any], theta: float | None) -> Tree:
    """Return the result as a tree that rich prints."""
    from rich.text import Text
    from rich.tree import Tree

    points, clusters, branches = result["points"], result["clusters"], result["tree"]
    if theta is None:
        what = counted(clusters, "tree", "trees")
    else:
        what = f"{counted(clusters, 'cluster', 'clusters')} at {theta:g}"
    top = Tree(Text(f"{counted(points, 'point', 'points')} in {what}", style="bold"))
    for branch in branches:
        _add(top, branch)
    if clusters > len(branches):
        left_out = points - sum(branch["size"] for branch in branches)
        top.add(f"... and {clusters - len(branches):,} more with {left_out:,} points; see --top")
    return top


def _add(parent: Tree, branch: dict[str, Any]) -> None:
    """Add a line for a cluster, and below it those of its parts."""
    from rich.text import Text

    size, ids = branch["size"], branch["ids"]
    line = Text(counted(size, "point", "points"), "bold cyan", no_wrap=True, overflow="ellipsis")
    if branch["similarity"] is not None:
        line.append(f" at {branch['similarity']:.3g}", style="not bold green")
    if ids:
        line.append(f"  {sample_text(ids, size, len(ids))}", style="not bold default")
    if branch["small"]:
        line.append(f"  ({branch['small']:,} split off)", style="not bold dim default")
    child = parent.add(line)
    for part in branch["parts"]:
        _add(child, part)
