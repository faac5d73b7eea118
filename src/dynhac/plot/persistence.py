"""A plot of the condensed tree: how long clusters last when the similarity of the cut is raised.

Similarity is on the y axis and grows downwards. A branch is as wide as its number of leaves at the
similarity of the cut. It becomes narrower where leaves and small clusters fall off, and divides
where a cluster divides into two of at least ``min_size`` leaves, which lie beside each other in its
width. So a horizontal line at θ crosses the clusters of the cut at θ, and a long branch is a
cluster that lasts. The chosen clusters are coloured.

`dynhac.plot.branches` selects and places what is drawn. Texts are written into the clusters, or
below them, where there is space.
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.dendrogram.cuts import snap
from dynhac.dendrogram.selection import automatic_min_size
from dynhac.dendrogram.sketch import cluster_nodes, leaves_under
from dynhac.input.columns import real_number
from dynhac.input.errors import counted, wrong_type
from dynhac.plot.axes import (
    LINE,
    axes_size,
    extent_of,
    largest_font,
    lay_out,
    new_axes,
    shortened,
    write_title,
)
from dynhac.plot.branches import NONE, Layout, Piece
from dynhac.plot.colours import Theme, theme_of
from dynhac.plot.text_placement import Place, Placer
from dynhac.plot.ticks import plain_number, powers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynhac.dendrogram.dendrogram import Dendrogram
    from dynhac.plot.dendrogram import Labels

ROWS = 4  # of texts below each other under the end of a branch
LABELLED = 100  # clusters with a text, at most


def plot_persistence(
    dendrogram: Dendrogram,
    *,
    min_size: int | None = None,
    theta: float | None = None,
    labels: Labels | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the condensed tree, with the automatic clusters in colours.

    Parameters
    ----------
    dendrogram : Dendrogram
        The dendrogram. Several trees are drawn beside each other, the largest first.
    min_size : int, default 25
        The least number of leaves of a branch; as for `Dendrogram.labels`.
    theta : float, optional
        A cut: a line at this similarity, and its clusters of at least ``min_size`` leaves in
        colours instead of the automatic ones.
    labels : mapping or callable, optional
        The texts of clusters. A mapping from the stable ids of merges (`Dendrogram.node_ids`) to
        texts, such as `Clusters.node_labels` returns. Or a function of the ids of the leaves of a
        cluster, which is called once per cluster, in the order of their labels. The number of
        leaves is written behind the text. Without a text, or with None, a cluster shows its label
        as in `Dendrogram.labels`.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes
        With the similarity on the y axis, and numbers of leaves on the x axis.

    Notes
    -----
    In a large tree, branches below 1/500 of all leaves are drawn only if they lead to a cluster.
    A text has no place if it would overlap another one or a branch; larger clusters go first.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac import DynHAC
    >>> model = DynHAC(n_neighbors=10)
    >>> _ = model.insert(np.random.default_rng(0).normal(np.repeat([[0], [9]], 50, axis=0)))
    >>> d = model.dendrogram()
    >>> ax = d.plot_persistence()  # doctest: +SKIP
    >>> ax = d.plot_persistence(labels=model.clusters().node_labels())  # doctest: +SKIP
    """
    least = automatic_min_size(min_size)
    if not (labels is None or callable(labels) or isinstance(labels, Mapping)):
        raise wrong_type("labels", labels, "it must map node_ids to texts, or be a function of ids")
    found = dendrogram.labels(theta, min_size=least)
    nodes = cluster_nodes(dendrogram, found)
    cut = None
    if theta is not None:
        cut = float(snap(real_number(theta, "theta"), dendrogram.resolution))
    layout = Layout(dendrogram, least, nodes, cut)
    if ax is None:
        ax = new_axes(9, 5.5, "plot_persistence()")
    theme = theme_of(ax)
    ax.set_yscale("log")
    ax.set_xlim(-0.02 * layout.right, 1.02 * layout.right)
    ax.set_xticks([])
    ax.set_ylabel("similarity θ", fontsize=largest_font())
    ax.set_xlabel("width: number of leaves", fontsize=largest_font())
    ax.set_title("title", fontsize=largest_font(), loc="left")
    ax.set_ylim(layout.high, layout.low)
    lay_out(ax)  # now the size of the axes is known
    _set_levels(ax, theme, layout)
    write_title(ax, _title(dendrogram, layout, found, least, theta), ax.get_window_extent().x1)
    lay_out(ax)
    _set_levels(ax, theme, layout)
    _draw(ax, theme, layout)
    if cut is not None:
        ax.axhline(cut, color=theme.cut, lw=1.1, ls=(0, (4, 2)), zorder=3.5)
    texts = _texts(dendrogram, nodes, found, labels)
    _write(ax, theme, layout, texts, cut)
    return ax


def _set_levels(ax: Axes, theme: Theme, layout: Layout) -> None:
    """Set limits, ticks and grid of the y axis; below the branches is space for texts."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    height = axes_size(ax)[1]
    free = min(0.3, (ROWS * LINE * largest_font() + 6) / height)
    low, high = layout.low, layout.high
    bottom = high * (high / low) ** (free / (1 - free))
    ax.set_ylim(bottom, low)
    ticks: list[float] = []
    for some in powers(low, high):
        ticks = [x for x in some if low <= x <= high]
        if len(ticks) * 1.6 * LINE * largest_font() <= height:
            break
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda x, _: plain_number(x)))
    ax.tick_params(axis="y", labelsize=largest_font())
    for side in ("bottom", "right", "top"):
        ax.spines[side].set_visible(False)
    ax.grid(axis="y", color=theme.grid, lw=0.7)
    ax.set_axisbelow(True)


def _draw(ax: Axes, theme: Theme, layout: Layout) -> None:
    """Draw the pieces."""
    from matplotlib.collections import PolyCollection

    shapes = []
    for piece in layout.pieces:
        y = np.repeat(piece.at, 2)[1:-1]
        half = np.repeat(piece.width, 2) / 2
        right = np.column_stack([piece.x + half, y])
        left = np.column_stack([piece.x - half, y])
        shapes.append(np.concatenate([right, left[::-1]]))
    points = axes_size(ax)[0] / (1.04 * layout.right)  # of one leaf
    style: dict[str, Any] = {
        "facecolors": [layout.colour.get(p.cluster, theme.neutral) for p in layout.pieces],
        "edgecolors": theme.background,
        # An edge must not hide a narrow piece.
        "linewidths": [min(0.5, points * p.width[0] / 8) for p in layout.pieces],
    }
    ax.add_collection(PolyCollection(shapes, **style, zorder=2), False)


def _texts(
    dendrogram: Dendrogram,
    nodes: dict[int, int],
    found: NDArray[np.int64],
    labels: Labels | None,
) -> dict[int, str]:
    """Return the text of each cluster, by its label."""
    names: dict[int, object] = {}
    sizes = np.bincount(found[found >= 0], minlength=len(nodes)).tolist()
    if isinstance(labels, Mapping):
        n = dendrogram.n_leaves
        ids = {label: int(dendrogram.node_ids[node - n]) for node, label in nodes.items()}
        names = {label: labels.get(id) for label, id in ids.items()}
    elif labels is not None:
        order = sorted(nodes, key=nodes.__getitem__)
        for node, leaves in zip(order, leaves_under(dendrogram, order), strict=True):
            names[nodes[node]] = labels(dendrogram.ids[leaves])
    return {
        label: f"{label if names.get(label) is None else names[label]} ({sizes[label]:,})"
        for label in nodes.values()
    }


def _write(
    ax: Axes, theme: Theme, layout: Layout, texts: Mapping[int, str], cut: float | None
) -> None:
    """Write the texts of the largest clusters into them, or below, and that of the line of a cut.

    A text that is not directly below the end of its cluster has a line that leads there.
    """
    boxes = [
        (piece.x - width / 2, start, piece.x + width / 2, end)
        for piece in layout.pieces
        for start, end, width in zip(piece.at, piece.at[1:], piece.width, strict=False)
    ]
    left, right = ax.get_xlim()
    lines = [] if cut is None else [(left, cut, right, cut)]
    placer = Placer(ax, theme, [*boxes, *lines])
    size = largest_font()
    if cut is not None:
        for place in (Place((-2, 2), "right", "bottom"), Place((-2, -2), "right", "top")):
            if placer.place(f"θ = {plain_number(cut)}", (right, cut), place, size, theme.cut):
                break
    first: dict[int, Piece] = {}
    lowest: dict[int, Piece] = {}
    for piece in layout.pieces:
        if piece.cluster != NONE:
            first.setdefault(piece.cluster, piece)
            if piece.at[-1] > lowest.setdefault(piece.cluster, piece).at[-1]:
                lowest[piece.cluster] = piece
    largest = sorted(first, key=lambda c: (-first[c].width[0], c))[:LABELLED]
    for cluster in largest:
        text = shortened(ax, texts[cluster], size, 0.25)
        if not _write_inside(ax, first[cluster], layout.colour[cluster], text, size):
            _write_below(ax, theme, placer, lowest[cluster], text, size)


def _write_inside(ax: Axes, piece: Piece, colour: str, text: str, size: float) -> bool:
    """Write a text at the top of a piece, in several lines if needed; return whether it fits."""
    edge = 6 * ax.figure.dpi / 72
    scale = ax.transData.transform([(0, at) for at in piece.at])[:, 1]
    leaf = float(np.diff(ax.transData.transform([(0, 1), (1, 1)])[:, 0])[0])
    wrapped = ["\n".join(wrap(text, n, break_long_words=False)) for n in range(len(text), 2, -1)]
    for lines in dict.fromkeys([*wrapped, " ".join(text.split()[:-1])]):
        box = extent_of(ax, lines, size)
        wide = sum(width * leaf >= box.width + edge for width in piece.width)  # the first ones
        if scale[0] - scale[wide] >= box.height + edge:
            ax.annotate(
                lines,
                (piece.x, piece.at[0]),
                (0, -3),
                textcoords="offset points",
                ha="center",
                va="top",
                fontsize=size,
                color=_readable_on(colour),
                zorder=4,
            ).set_in_layout(False)
            return True
    return False


def _write_below(
    ax: Axes, theme: Theme, placer: Placer, piece: Piece, text: str, size: float
) -> None:
    """Write a text below the end of a piece if there is space."""
    from matplotlib.transforms import Bbox

    end = piece.x, piece.at[-1]
    x, y = ax.transData.transform(end)
    pixel = ax.figure.dpi / 72
    for row in range(ROWS):
        down = 3 + row * LINE * size
        line = Bbox([[x - pixel, y - down * pixel], [x + pixel, y - 1.5 * pixel]])
        if row and not placer.is_free(line):
            return
        if placer.place(text, end, Place((0, -down), "center", "top"), size):
            if row:
                arrow = {"arrowstyle": "-", "color": theme.neutral, "lw": 0.7, "shrinkA": 0}
                style: dict[str, Any] = {"arrowprops": {**arrow, "shrinkB": 0}, "zorder": 1.9}
                ax.annotate(
                    "", (end[0], end[1]), (0, -down), textcoords="offset points", **style
                ).set_in_layout(False)
                placer.keep_box(line)
            return


def _readable_on(colour: str) -> str:
    """Return black or white, whichever has more contrast with a colour."""
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return "black" if linear @ [0.2126, 0.7152, 0.0722] > 0.179 else "white"


def _title(
    dendrogram: Dendrogram,
    layout: Layout,
    found: NDArray[np.int64],
    least: int,
    theta: float | None,
) -> str:
    n, trees = dendrogram.n_leaves, len(dendrogram.roots)
    number = counted(int(found.max(initial=NONE)) + 1, "cluster", "clusters")
    where = "chosen automatically" if theta is None else f"at θ = {plain_number(theta)}"
    parts = [
        f"{counted(n, 'leaf', 'leaves')} in {counted(trees, 'tree', 'trees')}",
        f"{number} of at least {least:,} leaves {where}",
    ]
    if (found < 0).any():
        parts.append(f"{(found < 0).mean():.1%} of leaves in none")
    if layout.drawn_least > least:
        parts.append(f"other branches below {layout.drawn_least:,} leaves not drawn")
    if layout.trees_left_out:
        more = counted(layout.trees_left_out, "tree", "trees")
        parts.append(f"{more} ({counted(layout.leaves_left_out, 'leaf', 'leaves')}) left out")
    return "; ".join(parts)
