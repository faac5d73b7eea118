"""``dynhac tree``: the hierarchy on the terminal.

Trees of average linkage are lopsided: most merges add one point to a large cluster. What is drawn
are the splits that matter, where both sides have at least a minimal size; the points that break off
in smaller parts in between are counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dynhac.cli.command import add_command
from dynhac.cli.options import LOOK, At, Json, Store

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from dynhac.dendrogram.dendrogram import Dendrogram


class Branch(NamedTuple):
    """A cluster, and the clusters that it splits into further down.

    Attributes
    ----------
    size : int
        Points in it.
    similarity : float or None
        It is one cluster at cuts up to this similarity; None for a single point.
    node_id : int or None
        The stable id of its merge; None for a single point.
    ids : list
        Some of its points.
    small : int
        Points that break off in smaller parts before the first split.
    parts : list of Branch
        The clusters that it splits into; empty if it does not, or was not followed further.
    """

    size: int
    similarity: float | None
    node_id: int | None
    ids: list[Any]
    small: int
    parts: list[Branch]


def tree(
    store: Store,
    at: At = None,
    depth: Annotated[int, typer.Option("-d", "--depth", min=0, help="Splits to follow.")] = 2,
    top: Annotated[int, typer.Option(min=1, help="Clusters to start from, largest first.")] = 10,
    min_size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Parts with fewer points are not drawn (default: a hundredth of all)."
        ),
    ] = None,
    examples: Annotated[int, typer.Option(min=0, help="Ids shown for each cluster.")] = 5,
    json: Json = False,
) -> None:
    """Draw the hierarchy: clusters, how similar they are within, and what they split into.

    It starts from the clusters of a cut, or from whole trees. A similarity is the one up to which
    a cluster stays together. Only splits into parts of a minimal size are drawn; points that break
    off in smaller parts on the way there are counted in brackets.
    """
    from dynhac.cli.output import show, show_json
    from dynhac.cli.stores import reading

    with reading(store) as opened:
        hierarchy = opened.dendrogram()
    least = min_size or max(2, hierarchy.n_leaves // 100)
    starts = _starts(hierarchy, at)
    branches = [_branch(hierarchy, node, depth, least, examples) for node in starts[:top]]
    if json:
        told = {"points": hierarchy.n_leaves, "clusters": len(starts), "min_size": least}
        show_json(told | {"tree": [_as_dict(branch) for branch in branches]})
    else:
        show(_drawn(hierarchy, at, branches, len(starts)))


def _starts(tree: Dendrogram, at: float | None) -> list[int]:
    """Return the nodes to start from, largest first."""
    import numpy as np

    from dynhac.dendrogram.cuts import snap

    n = tree.n_leaves
    nodes = tree.roots
    if at is not None:
        tree.labels(at)  # says what is wrong with it
        inside = np.ones(n + len(tree), dtype=np.bool_)
        inside[n:] = tree.min_similarity >= snap(at, tree.resolution)
        top = inside.copy()
        top[tree.children[inside[n:]]] = False
        nodes = np.flatnonzero(top)
    sizes = np.concatenate([np.ones(n, np.int64), tree.size])[nodes]
    return [int(node) for node in nodes[np.argsort(-sizes, kind="stable")]]


def _branch(tree: Dendrogram, node: int, depth: int, least: int, examples: int) -> Branch:
    """Return a node with its splits, ``depth`` of them below each other."""
    n = tree.n_leaves
    if node < n:
        return Branch(1, None, None, tree.ids[[node]].tolist()[:examples], 0, [])
    merge = node - n
    parts, small = _split(tree, node, least) if depth else ([], 0)
    return Branch(
        int(tree.size[merge]),
        float(tree.min_similarity[merge]),
        int(tree.node_ids[merge]),
        _examples(tree, node, examples),
        small if parts else 0,
        [_branch(tree, part, depth - 1, least, examples) for part in parts],
    )


def _split(tree: Dendrogram, node: int, least: int) -> tuple[list[int], int]:
    """Return the two sides of the first split that matters, and what breaks off before it."""
    n, small = tree.n_leaves, 0
    while node >= n:
        sides = sorted(tree.children[node - n].tolist(), key=lambda side: -_size(tree, side))
        if _size(tree, sides[1]) >= least:
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


def _drawn(tree: Dendrogram, at: float | None, branches: list[Branch], count: int) -> Tree:
    """Return the branches as a tree of rich."""
    from rich.text import Text
    from rich.tree import Tree

    from dynhac.input.errors import counted

    what = counted(count, "tree", "trees") if at is None else (
        f"{counted(count, 'cluster', 'clusters')} at {at:g}"
    )  # fmt: skip
    top = Tree(Text(f"{counted(tree.n_leaves, 'point', 'points')} in {what}", style="bold"))
    stack = [(top, branch) for branch in reversed(branches)]
    while stack:
        above, branch = stack.pop()
        below = above.add(_line(branch))
        stack += [(below, part) for part in reversed(branch.parts)]
    if count > len(branches):
        left_out = tree.n_leaves - sum(branch.size for branch in branches)
        top.add(f"... and {count - len(branches):,} more with {left_out:,} points; see --top")
    return top


def _line(branch: Branch) -> Text:
    from rich.text import Text

    from dynhac.cli.output import few
    from dynhac.input.errors import counted

    line = Text(counted(branch.size, "point", "points"), style="bold cyan", no_wrap=True)
    if branch.similarity is not None:
        line.append(f" at {branch.similarity:.3g}", style="not bold green")
    if branch.ids:
        line.append(f"  {few(branch.ids, branch.size, len(branch.ids))}", style="not bold default")
    if branch.small:
        line.append(f"  ({branch.small:,} break off)", style="not bold dim default")
    line.overflow = "ellipsis"
    return line


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    add_command(
        app,
        tree,
        [
            ("The whole, from the top", "dynhac tree my.store"),
            ("The clusters at 0.35, one split down", "dynhac tree my.store --at 0.35 --depth 1"),
            ("All splits of 50 points and more", "dynhac tree my.store -d 20 --min-size 50"),
        ],
        LOOK,
    )
