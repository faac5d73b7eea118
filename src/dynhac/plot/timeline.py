"""A plot of clusters over time: one lane per cluster, whose thickness is the cluster's size.

A lane shows the size of one cluster from its first update to its last. When a cluster is absorbed,
a line leads from its lane to that of the survivor. When a cluster splits, a dashed line leads to
the lane of each new cluster. The clusters with the largest peaks get lanes of their own; the sizes
of all others are summed in a grey lane at the bottom. Lines lead from lane to lane only: if the
other cluster has none, a mark stands alone at the end or the begin of the lane. All lanes have the
same scale, except that the grey one is drawn smaller, and labelled so, where it would be much
thicker than the rest. `dynhac.plot.lanes` selects what is drawn, `dynhac.plot.time_axis` makes the
x axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.input.columns import whole_number
from dynhac.input.errors import counted, wrong_type
from dynhac.plot.axes import (
    axes_size,
    font_size,
    largest_font,
    lay_out,
    new_axes,
    remove_frame,
    shortened,
    with_space,
    write_row_labels,
    write_title,
)
from dynhac.plot.colours import Theme, colours_of, theme_of
from dynhac.plot.lanes import Lane, Link, choose_lanes, links_of, ordered
from dynhac.plot.time_axis import TimeAxis
from dynhac.watch.events import NO_CLUSTER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynhac.watch.history import Timeline

Names = Mapping[int, object] | Callable[[int], object]

THICKEST = 0.84  # rows that the largest cluster fills
MOST_OF_OTHERS = 2.5  # rows that the lane of all other clusters may fill
HEADING = "size now (peak)"


def plot_timeline(
    timeline: Timeline,
    ax: Axes | None = None,
    max_clusters: int = 20,
    *,
    x: str = "auto",
    labels: Names | None = None,
) -> Axes:
    """Draw the sizes of clusters over time, with their births, deaths, merges and splits.

    Parameters
    ----------
    timeline : Timeline
        The timeline, such as `Watch.timeline` returns.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.
    max_clusters : int, default 20
        The number of clusters with a lane of their own: those with the largest peaks. The sizes of
        all others are summed in one lane.
    x : {"auto", "time", "update"}, default "auto"
        What the x axis shows: the times of the updates, which are numbers or dates, or their
        numbers. "auto" is "time" if the timeline has times.
    labels : mapping or callable, optional
        The names of clusters, by id: a mapping, or a function of the id. Without a name, or with
        None, a cluster shows its id.

    Returns
    -------
    matplotlib Axes
        With one tick on the y axis per lane, from the top down. The tick has no text if there is no
        space for it.

    Notes
    -----
    Merges and splits are lines between two lanes. If a lane begins with a split from a cluster
    without a lane, or ends with a merge into one, the mark of the event is at the lane, without a
    line. A cluster has the colour of its id, as far as different clusters have different colours
    then.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.plot import Timeline, plot_timeline
    >>> timeline = Timeline(
    ...     update=np.array([1, 2, 4, 4]),
    ...     cluster=np.array([7, 8, 7, 8]),
    ...     size=np.array([50, 20, 70, 0]),
    ...     last_update=5,
    ...     events=[(1, "born", 7, ()), (2, "born", 8, ()), (4, "merged", 7, (8,))],
    ... )
    >>> ax = plot_timeline(timeline, labels={7: "coffee", 8: "cocoa"})  # doctest: +SKIP
    """
    if not (labels is None or callable(labels) or isinstance(labels, Mapping)):
        raise wrong_type("labels", labels, "it must map clusters to names, or be a function")
    chosen = choose_lanes(timeline, whole_number(max_clusters, "max_clusters", 1))
    axis = TimeAxis(timeline, x)
    links = links_of(timeline, chosen)
    lanes, others, n_others = ordered(chosen.lanes, links), chosen.others, chosen.n_others
    peak = max((lane.peak for lane in lanes), default=1)
    row_of = {lane.cluster: float(row) for row, lane in enumerate(lanes)}
    rows, shrunk, bottom = float(max(len(lanes), 1)), 1.0, 0.0
    if others is not None:
        shrunk = min(1.0, MOST_OF_OTHERS * peak / others.peak)
        height = max(1.0, others.peak * shrunk / peak)
        bottom = rows + height / 2
        rows += height + 0.5
    if ax is None:
        ax = new_axes(10, min(1.7 + 0.36 * max(rows, 3.0), 40.0), "plot_timeline()")
    theme = theme_of(ax)
    colours = colours_of([lane.cluster for lane in lanes])
    for lane in lanes:
        colour = colours[lane.cluster]
        _draw_lane(ax, lane, axis, row_of[lane.cluster], THICKEST / peak, colour)
    if others is not None:
        _draw_lane(ax, others, axis, bottom, THICKEST * shrunk / peak, theme.neutral)
    marks = _marks(theme)
    drawn = _draw_links(ax, links, axis, row_of, marks)
    drawn += _mark_ends(ax, timeline, links, axis, row_of, marks)

    axis.apply(ax)
    ax.set_ylim(rows - 0.4, -0.6)
    remove_frame(ax, theme)
    named = _names([lane.cluster for lane in lanes], labels)
    names = {row_of[lane.cluster]: (named[lane.cluster], _sizes(lane)) for lane in lanes}
    largest = sorted(row_of.values(), key=lambda row: -lanes[int(row)].peak)
    if others is not None:
        scale = "" if shrunk == 1.0 else f"\nat {shrunk:.2g} of the scale"
        names[bottom] = counted(n_others, "other", "others"), _sizes(others) + scale
        largest.insert(0, bottom)
    _write_names(ax, theme, names, largest, rows, _title(timeline, axis, len(lanes), n_others))
    ax.set_ylabel("cluster" if labels is None else "", fontsize=largest_font())
    _write_legend(ax, theme, [kind for kind in marks if kind in drawn], marks)
    return ax


def _draw_lane(ax: Axes, lane: Lane, axis: TimeAxis, row: float, scale: float, colour: str) -> None:
    """Draw each interval of updates in which the cluster has points."""
    x = np.append(axis.places(lane.update), axis.end)
    size = np.append(lane.size, 0)
    alive = np.concatenate([[False], size > 0])
    ends = np.flatnonzero(alive[1:] != alive[:-1])  # begin and end of each interval
    for i, j in ends.reshape(-1, 2).tolist():
        half = np.append(size[i:j], size[j - 1]) * (scale / 2)
        ax.fill_between(
            x[i : j + 1], row - half, row + half, step="post", color=colour, lw=0.8, zorder=2
        )


def _marks(theme: Theme) -> dict[str, dict[str, Any]]:
    """Return the style of the mark of each kind of event."""
    full, hollow = theme.ink, theme.background
    style: dict[str, Any] = {"ls": "none", "ms": 6, "mec": theme.ink, "mew": 0.9}
    return {
        "born": style | {"marker": "o", "mfc": hollow, "ms": 5},
        "died": style | {"marker": "X", "mfc": full},
        "merged": style | {"marker": "v", "mfc": full, "ls": "-", "color": full},
        "split": style | {"marker": "v", "mfc": hollow, "ls": (0, (3, 2)), "color": full},
    }


def _draw_links(
    ax: Axes,
    links: list[Link],
    axis: TimeAxis,
    row_of: dict[int, float],
    marks: dict[str, dict[str, Any]],
) -> list[str]:
    """Draw a line for each link, with a mark at the cluster that gained the points.

    A link to or from a cluster without a lane is only a mark.
    """
    drawn = []
    for kind in ("merged", "split"):
        chosen = [link for link in links if link.kind == kind]
        if chosen:
            drawn.append(kind)
            style = marks[kind] | {"ls": "none", "zorder": 4}
            x = axis.places(np.array([link.update for link in chosen]))
            start, end = np.array([_rows(link, row_of) for link in chosen]).T
            both = start != end
            ax.vlines(
                x[both],
                start[both],
                end[both],
                color=marks[kind]["color"],
                lw=1.1,
                linestyles=marks[kind]["ls"],
                zorder=3,
            )
            for marker, which in (("v", end > start), ("^", end < start), (">", ~both)):
                if which.any():
                    ax.plot(x[which], end[which], **(style | {"marker": marker}))
    return drawn


def _rows(link: Link, row_of: dict[int, float]) -> tuple[float, float]:
    """Return the rows where a link starts and ends: twice the same if only one has a lane."""
    known = row_of[link.end if link.start == NO_CLUSTER else link.start]
    return row_of.get(link.start, known), row_of.get(link.end, known)


def _mark_ends(
    ax: Axes,
    timeline: Timeline,
    links: list[Link],
    axis: TimeAxis,
    row_of: dict[int, float],
    styles: dict[str, dict[str, Any]],
) -> list[str]:
    """Mark births and deaths, except those that a link shows already."""
    linked = {(link.update, cluster) for link in links for cluster in (link.start, link.end)}
    drawn = []
    for kind in ("born", "died"):
        marks = [
            (update, row_of[cluster])
            for update, what, cluster, _ in timeline.events
            if what == kind and cluster in row_of and (update, cluster) not in linked
        ]
        if marks:
            drawn.append(kind)
            update, row = np.array(marks).T
            ax.plot(axis.places(update.astype(np.int64)), row, **styles[kind], zorder=4)
    return drawn


def _names(clusters: list[int], labels: Names | None) -> dict[int, str]:
    """Return the name of each cluster."""
    names = {}
    for cluster in clusters:
        if isinstance(labels, Mapping):
            name = labels.get(cluster)
        else:
            name = None if labels is None else labels(cluster)
        names[cluster] = str(cluster if name is None else name)
    return names


def _write_names(
    ax: Axes,
    theme: Theme,
    names: dict[float, tuple[str, str]],
    order: list[float],
    rows: float,
    title: str,
) -> None:
    """Write names on the left, sizes on the right, where there is space, and the title."""
    places = sorted(names)
    order_of_rows = [places.index(row) for row in order]

    def texts(font: float) -> list[str]:
        return [shortened(ax, names[row][0], font) for row in places]

    font = font_size(ax, rows)
    ax.set_yticks(places, texts(font), fontsize=font)
    beside: dict[str, Any] = {
        "transform": ax.get_yaxis_transform(),
        "va": "center",
        "color": theme.text,
    }
    sizes = [ax.text(1.01, row, names[row][1], fontsize=font, **beside) for row in places]
    if places:
        style: dict[str, Any] = {"size": 0.9 * largest_font(), "color": theme.text}
        ax.annotate(HEADING, (1.01, 1), (0, 3), "axes fraction", "offset points", **style)
    ax.set_title("title", fontsize=largest_font(), loc="left")
    lay_out(ax)  # now the size of the axes is known
    write_title(ax, title, ax.get_window_extent().x1)
    font = font_size(ax, rows)
    for text in sizes:
        text.set_fontsize(font)
    write_row_labels(ax, places, texts(font), font, order_of_rows)
    labels = ax.get_yticklabels()
    named = [i for i in order_of_rows if labels[i].get_text()]
    shown = with_space({i: sizes[i].get_window_extent() for i in named}, named)
    for i, text in enumerate(sizes):
        if i not in shown:
            text.remove()


def _sizes(lane: Lane) -> str:
    return f"{lane.last:,}" + (f" ({lane.peak:,})" if lane.peak > lane.last else "")


def _write_legend(
    ax: Axes, theme: Theme, kinds: list[str], marks: dict[str, dict[str, Any]]
) -> None:
    """Write the legend below the x axis, in as few lines as there is space for."""
    from matplotlib.lines import Line2D

    if not kinds:
        return
    size = 0.9 * largest_font()
    axis_box: Any = ax.xaxis.get_tightbbox()
    below = ax.get_window_extent().y0 - axis_box.y0
    handles = [Line2D([], [], lw=1.1, label=kind, **marks[kind]) for kind in kinds]
    for columns in range(len(kinds), 0, -1):
        legend = ax.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(0.0, 0.0),
            borderaxespad=below * 72 / ax.figure.dpi / size + 0.2,
            borderpad=0,
            ncols=columns,
            fontsize=size,
            frameon=False,
            labelcolor=theme.text,
        )
        if legend.get_window_extent().width * 72 / ax.figure.dpi <= axes_size(ax)[0]:
            break


def _title(timeline: Timeline, axis: TimeAxis, n_lanes: int, n_others: int) -> str:
    title = counted(n_lanes + n_others, "cluster", "clusters")
    if n_lanes:
        title += f", updates {axis.first_update:,} to {timeline.last_update:,}"
    if n_others:
        title += f"; the {n_lanes:,} largest drawn, the other {n_others:,} summed"
    return title
