"""A plot of a dendrogram, truncated so that a tree of any size is readable.

Similarity is on the x axis, with the roots on the left and the leaves on the right. Each branch
ends in a row of its own. `dynhac.dendrogram.sketch` selects the branches. A node that is not opened
is drawn as a triangle with its number of leaves. A merge is labelled with its similarity and, in
brackets, its number of leaves, if there is free space.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.dendrogram.sketch import SPAN_OF_LOG, Sketch, sketch_of, usual_size
from dynhac.input.columns import whole_number
from dynhac.input.errors import counted
from dynhac.plot.axes import INK, axes_size, font_size, new_axes, remove_frame, write_title
from dynhac.plot.text_placement import Line, Placer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynhac.dendrogram.dendrogram import Dendrogram

CLOSED = "#7aa6d8"
LONGEST_LABEL = 28
WIDEST_TICK = 38.0  # points for the number at a tick, with the space beside it
# Places of the text at a merge, the best first: between the two branches, or along the line before.
PLACES = (
    ((2.0, 0.0), "left", "center_baseline"),
    ((-2.0, 1.5), "right", "bottom"),
    ((-2.0, -1.5), "right", "top"),
)


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
    usual = usual_size(dendrogram)
    least = usual if min_size is None else whole_number(min_size, "min_size", 1)
    sketch = sketch_of(dendrogram, rows, least)
    ends = sketch.ends
    if ax is None:
        ax = new_axes(9, 1.2 + 0.23 * max(len(ends), 4), "plot()")

    def text_of(node: int) -> object:
        if label is not None:
            return label(dendrogram.ids[_leaves(dendrogram, node)])
        return f"({sketch.size[node]:,})" if node in sketch.x else dendrogram.ids[node]

    texts = [_shortened(str(text_of(node))) for node in ends]
    lines = _draw(ax, sketch)
    ax.yaxis.tick_right()
    ax.set_yticks([sketch.row[node] for node in ends])
    ax.set_yticklabels(texts, fontsize=font_size(ax, len(ends)))
    write_title(ax, _title(dendrogram, sketch, least))
    _write_merges(ax, sketch, lines)
    return ax


def _draw(ax: Axes, sketch: Sketch) -> list[Line]:
    """Draw lines and triangles, and return the lines."""
    row, x = sketch.row, sketch.x
    left, right = _set_axis(ax, list(x.values()))
    lines = [(left, row[tree], x.get(tree, right), row[tree]) for tree in sketch.trees]
    for node, (large, small) in sketch.branches.items():
        lines.append((x[node], row[large], x[node], row[small]))
        lines += [(x[node], row[end], x.get(end, right), row[end]) for end in (large, small)]
    for x0, y0, x1, y1 in lines:
        ax.plot([x0, x1], [y0, y1], color=INK, lw=1.1, solid_capstyle="projecting")

    closed = [node for node in sketch.ends if node in x]
    largest = max((sketch.size[node] for node in closed), default=1)
    for node in closed:
        tip, y = x[node], row[node]
        half = 0.14 + 0.26 * (sketch.size[node] / largest) ** 0.5
        ax.plot([tip, right], [y, y], color=INK, lw=1.1)  # visible where the tip is too thin
        corners = [tip, right, right], [y, y - half, y + half]
        ax.fill(*corners, fc=CLOSED, ec=INK, lw=0.6, zorder=3)
        lines += [(tip, y, right, y), (right, y - half, right, y + half)]

    ax.set_ylim(max(row.values(), default=0.0) + 0.7, -0.7)
    remove_frame(ax)
    ax.set_xlabel("similarity (in brackets: number of leaves)" if x else "similarity")
    return lines


def _set_axis(ax: Axes, similarities: list[float]) -> tuple[float, float]:
    """Scale the x axis, logarithmically if the similarities need it, and return its limits."""
    low, high = min(similarities, default=0.5), max(similarities, default=1.0)
    if high > SPAN_OF_LOG * low:
        from matplotlib.ticker import LogLocator, NullFormatter

        margin = (high / low) ** 0.08
        left, right = low / margin, high * margin
        ax.set_xscale("log")
        dense = axes_size(ax)[0] > 3 * WIDEST_TICK * np.log10(right / left)
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if dense else (1.0,)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
    else:
        margin = 0.08 * (high - low) or 0.08 * high
        left, right = low - margin, high + margin
    ax.set_xlim(left, right)
    return left, right


def _write_merges(ax: Axes, sketch: Sketch, lines: list[Line]) -> None:
    """Write similarity and size at the opened merges, the largest first, where there is space."""
    placer = Placer(ax, lines)
    font = min(8.0, font_size(ax, len(sketch.ends)))
    for node in sorted(sketch.branches, key=lambda node: (-sketch.size[node], node)):
        x = sketch.x[node]
        texts = (f"{x:.2g} ({sketch.size[node]:,})", f"{x:.2g}")
        for text, place in product(texts, PLACES):
            if placer.place(text, (x, sketch.row[node]), *place, font):
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


def _shortened(text: str) -> str:
    if len(text) > LONGEST_LABEL:
        text = text[: LONGEST_LABEL - 1] + "…"
    return text.replace("$", r"\$")  # a dollar sign would start a formula


def _title(dendrogram: Dendrogram, sketch: Sketch, least: int) -> str:
    n, trees = dendrogram.n_leaves, len(dendrogram.roots)
    title = f"{counted(n, 'leaf', 'leaves')} in {counted(trees, 'tree', 'trees')}"
    if least > 1:
        title += f"; branches below {least:,} leaves not drawn"
    if trees > len(sketch.trees):
        more = counted(trees - len(sketch.trees), "more tree", "more trees")
        leaves = n - sum(sketch.size[tree] for tree in sketch.trees)
        title += f"; {more} ({counted(leaves, 'leaf', 'leaves')}) left out"
    return title
