"""A plot of a dendrogram, truncated so that a tree of any size is readable.

Similarity is on the x axis, with the roots on the left and the leaves on the right. Each branch
ends in a row of its own. The roots of the largest trees take up to half of the rows. Then the node
with the most leaves is opened, repeatedly, until there are ``max_leaves`` rows. A node that is
still closed is drawn as a triangle with its number of leaves. In a large tree most splits near the
root separate a few outliers, so side branches below ``min_size`` leaves get no row. A merge is
labelled with its similarity and, in brackets, its number of leaves, if there is free space.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.input.columns import whole_number
from dynhac.input.errors import counted
from dynhac.plot.axes import INK, axes_width, font_size, new_axes, remove_frame, write_title
from dynhac.plot.text_placement import Placer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynhac.dendrogram.dendrogram import Dendrogram

CLOSED = "#7aa6d8"
LONGEST_LABEL = 28
WIDEST_TICK = 38.0  # points for the number at a tick, with the space beside it
SPAN_OF_LOG = 20  # a larger ratio of similarities needs a logarithmic axis


Line = tuple[float, float, float, float]
"""The ends ``x0, y0, x1, y1`` of a line along one of the axes."""


class Sketch(NamedTuple):
    """The part of a dendrogram that is drawn.

    ``trees`` are the roots drawn. ``opened`` maps each opened node to the merge at which it splits
    (itself, or the first below it with two branches that are large enough) and to those two
    branches, the larger first. Every other node that is drawn gets a row.
    """

    trees: list[int]
    opened: dict[int, tuple[int, int, int]]
    trees_left_out: int
    leaves_left_out: int


def plot_dendrogram(
    dendrogram: Dendrogram,
    max_leaves: int = 40,
    *,
    min_size: int | None = None,
    label: Callable[[NDArray[Any]], str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a dendrogram with at most ``max_leaves`` rows.

    Parameters
    ----------
    dendrogram : Dendrogram
        The dendrogram. Several trees are drawn below each other, the largest first.
    max_leaves : int, default 40
        The largest number of rows. A subtree that does not fit is drawn as a triangle with its
        number of leaves.
    min_size : int, optional
        Side branches and trees of fewer leaves get no row. By default 1/500 of all leaves, so that
        below 1000 leaves nothing is left out.
    label : callable, optional
        The text beside a row, given the ids of its leaves (default: the id of a single leaf, the
        number of several). It is called once per row, from the top down.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes
        With one tick on the y axis per row, from the top down.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC.from_graph(([1, 2, 3], [2, 3, 4], [0.9, 0.3, 0.8]))
    >>> ax = g.dendrogram().plot(2, label=lambda ids: f"{len(ids)} leaves")  # doctest: +SKIP
    """
    rows = whole_number(max_leaves, "max_leaves", 1)
    least = max(1, dendrogram.n_leaves // 500)
    if min_size is not None:
        least = whole_number(min_size, "min_size", 1)
    sketch = _sketch(dendrogram, rows, least)
    row_of = _rows(sketch)
    if ax is None:
        ax = new_axes(9, 1.2 + 0.23 * max(len(row_of) - len(sketch.opened), 4), "plot()")
    ends = [node for node in row_of if node not in sketch.opened]
    if label is None:
        texts = [_label(dendrogram, node) for node in ends]
    else:
        texts = [_shortened(label(dendrogram.ids[_leaves(dendrogram, node)])) for node in ends]
    lines = _draw(ax, dendrogram, sketch, row_of)
    _write(ax, [row_of[node] for node in ends], texts)
    write_title(ax, _title(dendrogram, sketch, least))
    _write_merges(ax, dendrogram, sketch, row_of, lines)
    return ax


def _sketch(dendrogram: Dendrogram, rows: int, least: int) -> Sketch:
    """Select the nodes to draw: open the largest node until there are ``rows`` rows."""
    n = dendrogram.n_leaves
    children = dendrogram.children.tolist()
    size = np.concatenate([np.ones(n, np.int64), dendrogram.size])
    leaves = size.tolist()

    def split_of(node: int) -> tuple[int, int, int] | None:
        while node >= n:
            large, small = sorted(children[node - n], key=lambda child: (-leaves[child], child))
            if leaves[small] >= least:
                return node, large, small
            node = large
        return None

    sizes = size[dendrogram.roots]
    order = np.argsort(-sizes, kind="stable")
    wanted: list[int] = dendrogram.roots[order[: max(1, np.count_nonzero(sizes >= least))]].tolist()
    trees = wanted[: (rows + 1) // 2]
    opened: dict[int, tuple[int, int, int]] = {}
    closed = [(-leaves[tree], tree) for tree in trees]
    heapq.heapify(closed)
    while len(trees) + len(opened) < rows:
        if closed:
            node = heapq.heappop(closed)[1]
            split = split_of(node)
            if split is not None:
                opened[node] = split
                for child in split[1:]:
                    heapq.heappush(closed, (-leaves[child], child))
        elif len(trees) < len(wanted):
            tree = wanted[len(trees)]
            trees.append(tree)
            closed.append((-leaves[tree], tree))
        else:
            break
    left_out = sizes[order[len(trees) :]]
    return Sketch(trees, opened, len(left_out), int(left_out.sum()))


def _rows(sketch: Sketch) -> dict[int, float]:
    """Return the row of each node drawn; an opened one lies between its two branches."""
    row_of: dict[int, float] = {}
    next_row = 0.0
    for tree in sketch.trees:
        stack = [tree]
        inner: list[int] = []
        while stack:
            node = stack.pop()
            if node in sketch.opened:
                inner.append(node)
                _, large, small = sketch.opened[node]
                stack += [small, large]
            else:
                row_of[node] = next_row
                next_row += 1.0
        for node in reversed(inner):
            _, large, small = sketch.opened[node]
            row_of[node] = (row_of[large] + row_of[small]) / 2
        next_row += 0.5
    return row_of


def _draw(ax: Axes, dendrogram: Dendrogram, sketch: Sketch, row_of: dict[int, float]) -> list[Line]:
    """Draw lines and triangles, and return the lines."""
    n, min_similarity = dendrogram.n_leaves, dendrogram.min_similarity
    ends = [node for node in row_of if node not in sketch.opened]

    x_of = {node: float(min_similarity[sketch.opened[node][0] - n]) for node in sketch.opened}
    x_of.update((node, float(min_similarity[node - n])) for node in ends if node >= n)
    left, right = _set_axis(ax, list(x_of.values()))

    lines = [(left, row_of[tree], x_of.get(tree, right), row_of[tree]) for tree in sketch.trees]
    for node, (_, large, small) in sketch.opened.items():
        lines.append((x_of[node], row_of[large], x_of[node], row_of[small]))
        lines += [
            (x_of[node], row_of[child], x_of.get(child, right), row_of[child])
            for child in (large, small)
        ]
    for x0, y0, x1, y1 in lines:
        ax.plot([x0, x1], [y0, y1], color=INK, lw=1.1, solid_capstyle="projecting")
    largest = max((int(dendrogram.size[node - n]) for node in ends if node >= n), default=1)
    for node in ends:
        if node >= n:
            x, row = x_of[node], row_of[node]
            half = 0.14 + 0.26 * float(dendrogram.size[node - n] / largest) ** 0.5
            corners = [x, right, right], [row, row - half, row + half]
            ax.plot([x, right], [row, row], color=INK, lw=1.1)  # visible where the tip is too thin
            ax.fill(*corners, fc=CLOSED, ec=INK, lw=0.6, zorder=3)
            lines += [(x, row, right, row), (right, row - half, right, row + half)]

    ax.set_ylim(max(row_of.values(), default=0.0) + 0.7, -0.7)
    remove_frame(ax)
    ax.set_xlabel("similarity (in brackets: number of leaves)" if x_of else "similarity")
    return lines


def _set_axis(ax: Axes, similarities: list[float]) -> tuple[float, float]:
    """Scale the x axis, logarithmically if the similarities need it, and return its limits."""
    low, high = min(similarities, default=0.5), max(similarities, default=1.0)
    if high > SPAN_OF_LOG * low:
        from matplotlib.ticker import LogLocator, NullFormatter

        margin = (high / low) ** 0.08
        left, right = low / margin, high * margin
        ax.set_xscale("log")
        dense = axes_width(ax) > 3 * WIDEST_TICK * np.log10(right / left)
        steps = (1.0, 2.0, 5.0) if dense else (1.0,)
        ax.xaxis.set_major_locator(LogLocator(subs=steps))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
    else:
        margin = 0.08 * (high - low) or 0.08 * high
        left, right = low - margin, high + margin
    ax.set_xlim(left, right)
    return left, right


def _write(ax: Axes, rows: list[float], texts: list[str]) -> None:
    """Write a text beside each row, without overlaps."""
    ax.yaxis.tick_right()
    ax.set_yticks(rows)
    ax.set_yticklabels(texts, fontsize=font_size(ax, len(rows)))


def _write_merges(
    ax: Axes,
    dendrogram: Dendrogram,
    sketch: Sketch,
    row_of: dict[int, float],
    lines: list[Line],
) -> None:
    """Write similarity and size beside the opened merges, the largest first, where there is space.

    The first choice is between the two branches on the right, then the line on the left.
    """
    n, rows = dendrogram.n_leaves, len(row_of) - len(sketch.opened)
    merges = {node: split[0] - n for node, split in sketch.opened.items()}
    placer = Placer(ax)
    placer.block(lines)
    size = min(8.0, font_size(ax, rows))
    for node in sorted(merges, key=lambda node: (-dendrogram.size[node - n], node)):
        merge, row = merges[node], row_of[node]
        x = float(dendrogram.min_similarity[merge])
        similarity = f"{x:.2g}"
        both = f"{similarity} ({dendrogram.size[node - n]:,})"
        for text in (both, similarity):
            if (
                placer.place(text, x, row, (2, 0), ("left", "center_baseline"), size)
                or placer.place(text, x, row, (-2, 1.5), ("right", "bottom"), size)
                or placer.place(text, x, row, (-2, -1.5), ("right", "top"), size)
            ):
                break


def _leaves(dendrogram: Dendrogram, node: int) -> list[int]:
    """Return the leaves under a node, ascending."""
    n, leaves, stack = dendrogram.n_leaves, [], [node]
    while stack:
        node = stack.pop()
        if node < n:
            leaves.append(node)
        else:
            stack += dendrogram.children[node - n].tolist()
    return sorted(leaves)


def _label(dendrogram: Dendrogram, node: int) -> str:
    if node >= dendrogram.n_leaves:
        return f"({dendrogram.size[node - dendrogram.n_leaves]:,})"
    return _shortened(dendrogram.ids[node])


def _shortened(label: object) -> str:
    text = str(label)
    if len(text) > LONGEST_LABEL:
        text = text[: LONGEST_LABEL - 1] + "…"
    return text.replace("$", r"\$")  # a dollar sign would start a formula


def _title(dendrogram: Dendrogram, sketch: Sketch, least: int) -> str:
    leaves = counted(dendrogram.n_leaves, "leaf", "leaves")
    title = f"{leaves} in {counted(len(dendrogram.roots), 'tree', 'trees')}"
    if least > 1:
        title += f"; branches below {least:,} leaves not drawn"
    if sketch.trees_left_out:
        trees = counted(sketch.trees_left_out, "more tree", "more trees")
        title += f"; {trees} ({counted(sketch.leaves_left_out, 'leaf', 'leaves')}) left out"
    return title
