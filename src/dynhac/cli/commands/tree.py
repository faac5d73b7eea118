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
from dynhac.dendrogram.selection import DEFAULT_MIN_SIZE
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
            min=1,
            help="Minimal size of the parts that are drawn (default: 1 % of all points), and of "
            f"automatic clusters (default: {DEFAULT_MIN_SIZE}).",
        ),
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Ids to show for each cluster.")] = 5,
    json: Json = False,
) -> None:
    """Draw the hierarchy: clusters, their similarity, and the clusters into which they split.

    It starts from the clusters of a cut, or from whole trees. The similarity of a cluster is the
    highest cut that keeps it together. Only splits into parts of a minimal size are drawn; points
    that split off in smaller parts are counted in brackets. Without a cut, each part tells which of
    the automatic clusters of dynhac labels it is in, or how many of them are in it.
    """
    with open_store(store) as opened:
        hierarchy = opened.dendrogram()
    automatic = _Automatic(hierarchy, min_size) if theta is None else None
    min_size = min_size or max(2, hierarchy.n_leaves // 100)
    branches = _Branches(hierarchy, min_size, examples, automatic)
    tops = branches.tops(theta)
    result = {
        "points": hierarchy.n_leaves,
        "clusters": len(tops),
        "automatic": None if automatic is None else automatic.count,
        "min_size": min_size,
        "tree": [branches.branch(node, depth) for node in tops[:top]],
    }
    if json:
        print_json(result)
    else:
        print_text(_drawing(result, theta))


class _Automatic:
    """The automatic clusters of a hierarchy, by node."""

    def __init__(self, tree: Dendrogram, min_size: int | None) -> None:
        labels = tree.labels(min_size=None if min_size is None else max(min_size, 2))
        self.count = int(labels.max(initial=-1)) + 1
        self._cluster: list[int] = labels.tolist()  # that a node is in, or -1
        self._inside = [int(label >= 0) for label in self._cluster]  # how many are in a node
        for left, right in tree.children.tolist():
            one = self._cluster[left] == self._cluster[right] >= 0
            self._cluster.append(self._cluster[left] if one else -1)
            self._inside.append(1 if one else self._inside[left] + self._inside[right])

    def at(self, node: int) -> tuple[int | None, int]:
        """Return the cluster that a node is in, or None, and the number of clusters in it."""
        cluster = self._cluster[node]
        return (cluster if cluster >= 0 else None), self._inside[node]


class _Branches:
    """The clusters of a hierarchy, with splits into parts of a minimal size."""

    def __init__(
        self,
        tree: Dendrogram,
        min_size: int,
        examples: int,
        automatic: _Automatic | None,
    ) -> None:
        self._tree = tree
        self._min_size = min_size
        self._examples = examples
        self._automatic = automatic
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
        off in smaller parts before the split into ``parts``. ``cluster`` is the automatic cluster
        that it is in, and ``clusters`` the number of those in it; None for the parts of a cut.
        """
        tree = self._tree
        merge = node - tree.n_leaves
        parts, small = self._split(node) if depth else ([], 0)
        cluster, clusters = self._automatic.at(node) if self._automatic else (None, None)
        return {
            "size": int(self._sizes[node]),
            "similarity": float(tree.min_similarity[merge]) if merge >= 0 else None,
            "node_id": int(tree.node_ids[merge]) if merge >= 0 else None,
            "cluster": cluster,
            "clusters": clusters,
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
        what += f"; {counted(result['automatic'], 'automatic cluster', 'automatic clusters')}"
    else:
        what = f"{counted(clusters, 'cluster', 'clusters')} at {theta:g}"
    top = Tree(Text(f"{counted(points, 'point', 'points')} in {what}", style="bold"))
    for branch in branches:
        _add(top, branch)
    if clusters > len(branches):
        left_out = points - sum(branch["size"] for branch in branches)
        top.add(f"... and {clusters - len(branches):,} more with {left_out:,} points; see --top")
    return top


def _add(parent: Tree, branch: dict[str, Any], inside: bool = False) -> None:
    """Add a line for a cluster, and below it those of its parts.

    If ``inside`` is set, the lines above name the automatic cluster that it is in.
    """
    from rich.text import Text

    size, ids = branch["size"], branch["ids"]
    line = Text(counted(size, "point", "points"), "bold cyan", no_wrap=True, overflow="ellipsis")
    if branch["similarity"] is not None:
        line.append(f" at {branch['similarity']:.3g}", style="not bold green")
    if branch["clusters"] and not inside:
        found = counted(branch["clusters"], "cluster", "clusters")
        if branch["cluster"] is not None:
            found = f"cluster {branch['cluster']}"
        line.append(f"  {found}", style="not bold yellow")
    if ids:
        line.append(f"  {sample_text(ids, size, len(ids))}", style="not bold default")
    if branch["small"]:
        line.append(f"  ({branch['small']:,} split off)", style="not bold dim default")
    child = parent.add(line)
    for part in branch["parts"]:
        _add(child, part, branch["cluster"] is not None)
