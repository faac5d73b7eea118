"""``dynhac tree``: the hierarchy as a drawing in text.

Trees of average linkage are unbalanced: most merges add one point to a large cluster. So only
splits are drawn of which both parts have a minimal size. Points that split off in smaller parts
are counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

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
    from rich.text import Text
    from rich.tree import Tree


class Branch(NamedTuple):
    """A cluster, and the clusters into which it splits.

    Attributes
    ----------
    size : int
        Points in it.
    similarity : float or None
        Cuts up to this similarity keep the cluster together; None for a single point.
    node_id : int or None
        The stable id of its merge; None for a single point.
    ids : list
        Some of its points.
    small : int
        Points that split off in smaller parts before the split into ``parts``.
    parts : list of Branch
        The clusters into which it splits; empty if there are none, or at the maximal depth.
    """

    size: int
    similarity: float | None
    node_id: int | None
    ids: list[Any]
    small: int
    parts: list[Branch]


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
    tops = _top_nodes(hierarchy, theta)
    branches = [_branch(hierarchy, node, depth, min_size, examples) for node in tops[:top]]
    if json:
        result = {"points": hierarchy.n_leaves, "clusters": len(tops), "min_size": min_size}
        print_json(result | {"tree": [_as_dict(branch) for branch in branches]})
    else:
        print_text(_drawing(hierarchy, theta, branches, len(tops)))


def _top_nodes(tree: Dendrogram, theta: float | None) -> list[int]:
    """Return the nodes of the clusters of a cut, or the roots, largest first."""
    n = tree.n_leaves
    nodes = tree.roots
    if theta is not None:
        tree.labels(theta)  # raises if theta is not valid
        inside = np.ones(n + len(tree), dtype=np.bool_)
        inside[n:] = tree.min_similarity >= snap(theta, tree.resolution)
        top = inside.copy()
        top[tree.children[inside[n:]]] = False
        nodes = np.flatnonzero(top)
    sizes = np.concatenate([np.ones(n, np.int64), tree.size])[nodes]
    return [int(node) for node in nodes[np.argsort(-sizes, kind="stable")]]


def _branch(tree: Dendrogram, node: int, depth: int, min_size: int, examples: int) -> Branch:
    """Return a node with its splits down to a depth."""
    n = tree.n_leaves
    if node < n:
        return Branch(1, None, None, tree.ids[[node]].tolist()[:examples], 0, [])
    merge = node - n
    parts, small = _split(tree, node, min_size) if depth else ([], 0)
    return Branch(
        int(tree.size[merge]),
        float(tree.min_similarity[merge]),
        int(tree.node_ids[merge]),
        _examples(tree, node, examples),
        small if parts else 0,
        [_branch(tree, part, depth - 1, min_size, examples) for part in parts],
    )


def _split(tree: Dendrogram, node: int, min_size: int) -> tuple[list[int], int]:
    """Return the parts of the first split that is drawn, and how many points split off before."""
    n, small = tree.n_leaves, 0
    while node >= n:
        sides = sorted(tree.children[node - n].tolist(), key=lambda side: -_size(tree, side))
        if _size(tree, sides[1]) >= min_size:
            return sides, small
        small += _size(tree, sides[1])
        node = sides[0]
    return [], small


def _size(tree: Dendrogram, node: int) -> int:
    return 1 if node < tree.n_leaves else int(tree.size[node - tree.n_leaves])


def _examples(tree: Dendrogram, node: int, most: int) -> list[Any]:
    """Return ids of some points under a node."""
    found: list[int] = []
    stack = [node]
    while stack and len(found) < most:
        node = stack.pop()
        if node < tree.n_leaves:
            found.append(node)
        else:
            stack += reversed(tree.children[node - tree.n_leaves].tolist())
    return list(tree.ids[found].tolist())


def _as_dict(branch: Branch) -> dict[str, Any]:
    return branch._asdict() | {"parts": [_as_dict(part) for part in branch.parts]}


def _drawing(tree: Dendrogram, theta: float | None, branches: list[Branch], count: int) -> Tree:
    """Return the branches as a tree that rich prints."""
    from rich.text import Text
    from rich.tree import Tree

    if theta is None:
        what = counted(count, "tree", "trees")
    else:
        what = f"{counted(count, 'cluster', 'clusters')} at {theta:g}"
    top = Tree(Text(f"{counted(tree.n_leaves, 'point', 'points')} in {what}", style="bold"))
    stack = [(top, branch) for branch in reversed(branches)]
    while stack:
        parent, branch = stack.pop()
        child = parent.add(_line(branch))
        stack += [(child, part) for part in reversed(branch.parts)]
    if count > len(branches):
        left_out = tree.n_leaves - sum(branch.size for branch in branches)
        top.add(f"... and {count - len(branches):,} more with {left_out:,} points; see --top")
    return top


def _line(branch: Branch) -> Text:
    from rich.text import Text

    line = Text(counted(branch.size, "point", "points"), style="bold cyan", no_wrap=True)
    if branch.similarity is not None:
        line.append(f" at {branch.similarity:.3g}", style="not bold green")
    if branch.ids:
        sample = sample_text(branch.ids, branch.size, len(branch.ids))
        line.append(f"  {sample}", style="not bold default")
    if branch.small:
        line.append(f"  ({branch.small:,} split off)", style="not bold dim default")
    line.overflow = "ellipsis"
    return line
