"""A plot of a dendrogram, truncated so that a tree of any size is readable.

Similarity is on the x axis, with the roots on the left and the leaves on the right.
`dynhac.dendrogram.sketch` selects what is drawn, `dynhac.plot.scales` makes the axis. A node that
is not opened is drawn as a triangle with its number of leaves. A merge is labelled with its
similarity and, in brackets, its number of leaves, if there is free space. Texts are measured and
placed when the layout of the figure is final, so that none overlaps a line or another text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.dendrogram.cuts import snap
from dynhac.dendrogram.selection import DEFAULT_MIN_SIZE
from dynhac.dendrogram.sketch import (
    Marked,
    Sketch,
    clusters_in,
    leaves_under,
    left_out,
    sketch_of,
    spans,
    usual_size,
)
from dynhac.input.columns import real_number, whole_number
from dynhac.input.errors import counted, wrong_type
from dynhac.plot.axes import (
    LINE,
    axes_size,
    extent_of,
    font_size,
    largest_font,
    lay_out,
    new_axes,
    remove_frame,
    shortened,
    write_row_labels,
    write_title,
)
from dynhac.plot.colours import Theme, colours_of, theme_of
from dynhac.plot.scales import check_scale, chosen_scale, set_scale
from dynhac.plot.text_placement import Line, Place, Placer
from dynhac.plot.ticks import plain_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynhac.dendrogram.dendrogram import Dendrogram

Labels = Mapping[int, object] | Callable[[NDArray[Any]], object]

XLABEL = "similarity (in brackets: number of leaves)"
EDGE = 0.7  # rows between the first or last row and the end of the axis
# Places of the text at a merge, the best first: between the two branches, or along the line before.
PLACES = (
    Place((2.5, 0.0), "left", "center_baseline"),
    Place((-2.5, 2.0), "right", "bottom"),
    Place((-2.5, -2.0), "right", "top"),
)
BESIDE = (Place((2.5, 0.0), "left", "center"), Place((-2.5, 0.0), "right", "center"))


class Drawing(NamedTuple):
    """What has been drawn in the axes."""

    lines: list[Line]
    triangles: list[tuple[float, float, float]]  # x and y of the tip, half of the base
    marks: list[tuple[float, str, str]]  # vertical lines: x, text, colour
    right: float  # the right end of the axis
    colour: dict[int, str]  # of the nodes within a cluster


def plot_dendrogram(
    dendrogram: Dendrogram,
    max_leaves: int = 40,
    *,
    theta: float | None = None,
    scale: str = "auto",
    labels: Labels | None = None,
    text: Callable[[Any], object] = str,
    min_size: int | None = None,
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
    theta : float, optional
        A cut: a line at this similarity, and a colour for every cluster of two or more leaves.
        Without it every automatic cluster, as of `Dendrogram.labels`, has a colour. Merges above
        the clusters are opened first. A grey triangle has several clusters, or none.
    scale : {"auto", "linear", "log", "rank"}, default "auto"
        The scale of the similarities. With "rank" the merges are drawn at equal distances, with
        their similarities at the ticks. "auto" is "log" if the drawn branches are longer with it,
        else "linear"; see Notes.
    labels : mapping or callable, optional
        The texts of nodes. A mapping from the stable ids of merges (`Dendrogram.node_ids`) to
        texts, such as `Clusters.node_labels` returns. Or a function of the ids of the leaves under
        a node, which is called once per row, from the top down. The number of leaves is written
        behind the text. Without a text, or with None, a closed node shows its number of leaves.
    text : callable, default str
        From the id of a leaf to its text, such as ``titles.__getitem__``. It is used for rows that
        are single leaves, if ``labels`` is not a function that returns a text for them.
    min_size : int, optional
        Side branches and trees of fewer leaves get no row. By default 1/500 of all leaves, so that
        below 1000 leaves nothing is left out.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes
        With one tick on the y axis per row, from the top down. The tick has no text if there is no
        space for it.

    Notes
    -----
    "auto" compares the lengths of the drawn branches, as parts of the axis, by their geometric
    mean, and takes the scale on which they are longer. On a logarithmic scale merges of similarity
    0 are drawn on the left, at a tick 0. The threshold of the model is drawn as a dotted line if it
    is near the merges.

    Examples
    --------
    >>> from dynhac import GraphHAC
    >>> g = GraphHAC.from_graph(([1, 2, 3], [2, 3, 4], [0.9, 0.3, 0.8]))
    >>> d = g.dendrogram()
    >>> ax = d.plot(theta=0.5)  # doctest: +SKIP
    >>> ax = d.plot(theta=0.5, labels=g.clusters(0.5).node_labels())  # doctest: +SKIP
    >>> ax = d.plot(labels=dict(zip(d.node_ids.tolist(), ["low", "high", "all"])))  # doctest: +SKIP
    """
    rows = whole_number(max_leaves, "max_leaves", 1)
    usual = usual_size(dendrogram)
    least = usual if min_size is None else whole_number(min_size, "min_size", 1)
    scale = check_scale(scale)
    if not (labels is None or callable(labels) or isinstance(labels, Mapping)):
        raise wrong_type("labels", labels, "it must map node_ids to texts, or be a function of ids")
    if not callable(text):
        raise wrong_type("text", text, "it must be a function from the id of a leaf to its text")
    cut = marked = clusters = None
    if theta is not None:
        n_clusters = int(dendrogram.labels(theta).max(initial=-1)) + 1
        clusters = f"{counted(n_clusters, 'cluster', 'clusters')} at θ = {plain_number(theta)}"
        cut = float(snap(real_number(theta, "theta"), dendrogram.resolution))
        marked = Marked.by_cut(dendrogram, cut)
    elif (dendrogram.similarity > 0).all():
        found = dendrogram.labels()
        n_clusters = int(found.max(initial=-1)) + 1
        if n_clusters:
            automatic = counted(n_clusters, "automatic cluster", "automatic clusters")
            clusters = f"{automatic} of at least {DEFAULT_MIN_SIZE}"
            marked = Marked.by_labels(dendrogram, found)
    sketch = sketch_of(dendrogram, rows, least, marked)
    ends = sketch.ends
    if ax is None:
        ax = new_axes(9, 1.2 + 0.23 * max(len(ends), 4), "plot()")
    theme = theme_of(ax)
    cluster = clusters_in(dendrogram, sketch, marked)
    drawing = _draw(ax, theme, sketch, scale, cut, cluster, dendrogram.threshold)

    names = _names(dendrogram, sketch, labels, text)
    ax.yaxis.tick_right()
    places = [sketch.row[node] for node in ends]
    font = font_size(ax, len(ends) + 1)
    ax.set_yticks(places, _row_texts(ax, sketch, names, font), fontsize=font)
    ax.set_title("title", fontsize=largest_font(), loc="left")
    ax.set_xlabel("similarity", fontsize=largest_font(), loc="left")
    lay_out(ax)  # now the size of the axes is known
    write_title(ax, _title(dendrogram, sketch, least, clusters), ax.figure.bbox.x1)
    if sketch.x and extent_of(ax, XLABEL, largest_font()).width <= ax.bbox.width:
        ax.xaxis.label.set_text(XLABEL)
    rows_high = _set_rows(ax, sketch, drawing)
    font = font_size(ax, rows_high)
    by_size = sorted(range(len(ends)), key=lambda i: (-sketch.size[ends[i]], i))
    write_row_labels(ax, places, _row_texts(ax, sketch, names, font), font, by_size)
    _write_inside(ax, theme, sketch, drawing, names, rows_high)
    return ax


def _draw(
    ax: Axes,
    theme: Theme,
    sketch: Sketch,
    scale: str,
    cut: float | None,
    cluster: Mapping[int, int],
    threshold: float,
) -> Drawing:
    """Draw lines and triangles."""
    from matplotlib.collections import LineCollection

    row, x = sketch.row, sketch.x
    if scale == "auto":
        scale = chosen_scale(spans(sketch))
    left, right = set_scale(ax, scale, list(x.values()), cut, threshold)
    palette = colours_of(range(max(cluster.values(), default=-1) + 1))
    colour = {node: palette[number] for node, number in cluster.items()}
    lines: list[Line] = []
    inks: list[str] = []

    def horizontal(start: float, node: int) -> None:
        """Draw the line that leads to a node; it has the colour of a cluster from the cut on."""
        end, y, ink = x.get(node, right), row[node], colour.get(node, theme.ink)
        if cut is not None and start < cut < end and node in colour:
            lines.append((start, y, cut, y))
            inks.append(theme.ink)
            start = cut
        lines.append((start, y, end, y))
        inks.append(ink)

    for tree in sketch.trees:
        horizontal(left, tree)
    for node, branches in sketch.branches.items():
        lines.append((x[node], row[branches[0]], x[node], row[branches[1]]))
        inks.append(colour.get(node, theme.ink))
        for branch in branches:
            horizontal(x[node], branch)

    closed = [node for node in sketch.ends if node in x]
    largest = max((sketch.size[node] for node in closed), default=1)
    triangles = []
    for node in closed:
        half = 0.12 + 0.26 * (sketch.size[node] / largest) ** 0.5
        ink = colour.get(node, theme.neutral if cluster or cut is not None else theme.closed)
        lines.append((x[node], row[node], right, row[node]))  # visible where the tip is too thin
        inks.append(ink)
        triangles.append((x[node], row[node], half))
        corners = [x[node], right, right], [row[node], row[node] - half, row[node] + half]
        ax.fill(*corners, fc=ink, ec=ink, lw=0.6, zorder=3)
    segments = list(np.array(lines, dtype=np.float64).reshape(-1, 2, 2))
    ax.add_collection(
        LineCollection(segments, colors=inks, linewidths=1.1, capstyle="projecting"), False
    )
    marks = []
    if left <= threshold and 0 < threshold < right and x:
        marks.append((threshold, f"threshold {plain_number(threshold)}", theme.neutral))
        ax.axvline(threshold, color=theme.neutral, lw=1.0, ls=":", zorder=1.5)
    if cut is not None:
        marks.append((cut, f"θ = {plain_number(cut)}", theme.cut))
        ax.axvline(cut, color=theme.cut, lw=1.1, ls=(0, (4, 2)), zorder=1.8)
    remove_frame(ax, theme)
    return Drawing(lines, triangles, marks, right, colour)


def _set_rows(ax: Axes, sketch: Sketch, drawing: Drawing) -> float:
    """Set the limits of the y axis and return its length, in rows.

    The names of vertical lines have a space of their own at the top.
    """
    last = max(sketch.row.values(), default=0.0)
    rows = last + 2 * EDGE
    if drawing.marks:
        height = axes_size(ax)[1]
        names = min(1.3 * LINE * largest_font(), height / 2)
        rows *= height / (height - names)
    ax.set_ylim(last + EDGE, last + EDGE - rows)
    return rows


def _write_inside(
    ax: Axes,
    theme: Theme,
    sketch: Sketch,
    drawing: Drawing,
    names: Mapping[int, str],
    rows: float,
) -> None:
    """Write the names of vertical lines, and texts at the opened merges, where there is space."""
    bottom, top = ax.get_ylim()
    across = [(x, bottom, x, top) for x, _, _ in drawing.marks]
    placer = Placer(ax, theme, [*drawing.lines, *across])
    for x, y, half in drawing.triangles:
        placer.keep_free((x, y), drawing.right, half)
    largest = largest_font()
    for x, text, colour in reversed(drawing.marks):
        above = (x, (top - EDGE) / 2)
        for place in BESIDE:
            if placer.place(text, above, place, largest, colour):
                break
    font = min(0.9 * largest, font_size(ax, rows))
    for node in sorted(sketch.branches, key=lambda node: (-sketch.size[node], node)):
        number, size = plain_number(sketch.x[node], 2), f"({sketch.size[node]:,})"
        texts = [f"{number} {size}", number]
        if node in names:
            texts.insert(0, f"{shortened(ax, names[node], font, 0.25)} {size}")
        for text, place in product(texts, PLACES):
            if placer.place(text, (sketch.x[node], sketch.row[node]), place, font):
                break


def _names(
    dendrogram: Dendrogram,
    sketch: Sketch,
    labels: Labels | None,
    text: Callable[[Any], object],
) -> dict[int, str]:
    """Return the texts of nodes: those that the user gives, and those of leaves."""
    n = dendrogram.n_leaves
    names: dict[int, object] = {}
    if isinstance(labels, Mapping):
        for node, merge in sketch.merge.items():
            below, own = dendrogram.node_ids[[merge - n, node - n]].tolist()
            names[node] = labels.get(below, labels.get(own))
    elif labels is not None:
        for node, leaves in zip(sketch.ends, leaves_under(dendrogram, sketch.ends), strict=True):
            names[node] = labels(dendrogram.ids[leaves])
    for node in sketch.ends:
        if node not in sketch.x and names.get(node) is None:
            names[node] = text(dendrogram.ids[node : node + 1].tolist()[0])
    return {node: str(name) for node, name in names.items() if name is not None}


def _row_texts(ax: Axes, sketch: Sketch, names: Mapping[int, str], font: float) -> list[str]:
    """Return the text of each row: a name, which may be shortened, and a number of leaves."""
    texts = []
    for node in sketch.ends:
        name = shortened(ax, names[node], font) if node in names else ""
        texts.append(f"{name} ({sketch.size[node]:,})".lstrip() if node in sketch.x else name)
    return texts


def _title(dendrogram: Dendrogram, sketch: Sketch, least: int, clusters: str | None) -> str:
    n, trees = dendrogram.n_leaves, len(dendrogram.roots)
    title = f"{counted(n, 'leaf', 'leaves')} in {counted(trees, 'tree', 'trees')}"
    cut = [] if clusters is None else [clusters]
    return "; ".join([title, *cut, *left_out(sketch, least)])
