"""A plot of clusters over time: one lane per cluster, whose thickness is the cluster's size.

The x axis counts updates. A lane shows the size of one cluster from its first update to its last.
When a cluster is absorbed, a line leads from its lane to that of the survivor. When a cluster
splits, a dashed line leads to the lane of each new cluster. The clusters with the largest peaks get
lanes of their own; the sizes of all others are summed in a grey lane at the bottom, and a line to
or from one of them is short. All lanes have the same scale, except that the grey one is drawn
smaller, and labelled so, where it would be much thicker than the rest. `dynhac.plot.lanes` selects
what is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.input.columns import whole_number
from dynhac.input.errors import counted
from dynhac.plot.axes import INK, font_size, new_axes, remove_frame, row_height, write_title
from dynhac.plot.lanes import Lane, Link, choose_lanes, links_of, ordered
from dynhac.watch.events import NO_CLUSTER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynhac.watch.history import Timeline

# The palette of Okabe and Ito, distinguishable with any colour vision, without black and without
# yellow, which is hard to see on white. Neighbouring lanes have different colours.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
OTHERS = "#94a3b8"
THICKEST = 0.84  # rows that the largest cluster fills
MOST_OF_OTHERS = 2.5  # rows that the lane of all other clusters may fill
STUB = 0.44  # length, in rows, of a line to or from a cluster without a lane
MARKS: dict[str, dict[str, Any]] = {
    "born": {"marker": "o", "mfc": "white", "ls": "none", "ms": 5, "mec": INK, "mew": 0.9},
    "died": {"marker": "X", "mfc": INK, "ls": "none", "ms": 6, "mec": INK, "mew": 0.9},
    "merged": {"marker": "v", "mfc": INK, "ls": "-", "ms": 6, "mec": INK, "mew": 0.9},
    "split": {"marker": "v", "mfc": "white", "ls": (0, (3, 2)), "ms": 6, "mec": INK, "mew": 0.9},
}


def plot_timeline(timeline: Timeline, ax: Axes | None = None, max_clusters: int = 20) -> Axes:
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

    Returns
    -------
    matplotlib Axes
        With one tick on the y axis per lane that has space for its name, from the top down.

    Notes
    -----
    Merges and splits are lines between two lanes. If one of the two clusters has no lane, the line
    is short; it is left out if the peak of that cluster is below 5% of the peak of the other.

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
    >>> ax = plot_timeline(timeline)  # doctest: +SKIP
    """
    chosen = choose_lanes(timeline, whole_number(max_clusters, "max_clusters", 1))
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

    first = int(timeline.update[0]) if len(timeline.update) else timeline.last_update
    end = timeline.last_update + max(0.6, 0.01 * (timeline.last_update - first))
    for row, lane in enumerate(lanes):
        _draw_lane(ax, lane, row, THICKEST / peak, COLOURS[row % len(COLOURS)], end)
    if others is not None:
        _draw_lane(ax, others, bottom, THICKEST * shrunk / peak, OTHERS, end)
    drawn = _draw_links(ax, links, row_of) + _mark_ends(ax, timeline, links, row_of)

    ax.set_xlim(first - 0.02 * (end - first), end)
    ax.set_ylim(rows - 0.4, -0.6)
    ax.locator_params(axis="x", integer=True, min_n_ticks=1)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel("update", loc="left")
    remove_frame(ax)
    names = {row_of[lane.cluster]: (str(lane.cluster), _sizes(lane)) for lane in lanes}
    first_named = sorted(names, key=lambda row: -lanes[int(row)].peak)
    if others is not None:
        scale = "" if shrunk == 1.0 else f"\nat {shrunk:.2g} of the scale"
        names[bottom] = counted(n_others, "other", "others"), _sizes(others) + scale
        first_named.insert(0, bottom)
    _write_names(ax, names, first_named, rows)
    _write_legend(ax, drawn)
    write_title(ax, _title(timeline, first, len(lanes), n_others))
    return ax


def _draw_lane(ax: Axes, lane: Lane, row: float, scale: float, colour: str, end: float) -> None:
    """Draw each interval of updates in which the cluster has points."""
    update = np.append(lane.update.astype(np.float64), end)
    size = np.append(lane.size, 0)
    alive = np.concatenate([[False], size > 0])
    ends = np.flatnonzero(alive[1:] != alive[:-1])  # begin and end of each interval
    for i, j in ends.reshape(-1, 2).tolist():
        half = np.append(size[i:j], size[j - 1]) * (scale / 2)
        ax.fill_between(
            update[i : j + 1], row - half, row + half, step="post", color=colour, lw=0.8, zorder=2
        )


def _draw_links(ax: Axes, links: list[Link], row_of: dict[int, float]) -> list[str]:
    """Draw a line for each link, with a mark at the cluster that gained the points."""
    drawn = []
    for kind in ("merged", "split"):
        chosen = [link for link in links if link.kind == kind]
        if chosen:
            drawn.append(kind)
            x = np.array([link.update for link in chosen])
            start, end = np.array([_rows(link, row_of) for link in chosen]).T
            style = MARKS[kind] | {"ls": "none"}
            ax.vlines(x, start, end, color=INK, lw=1.1, linestyles=MARKS[kind]["ls"], zorder=3)
            for marker, points in (("v", end > start), ("^", end < start)):
                ax.plot(x[points], end[points], **(style | {"marker": marker}), zorder=4)
    return drawn


def _rows(link: Link, row_of: dict[int, float]) -> tuple[float, float]:
    """Return the rows where a link starts and ends; a cluster without a lane is just below."""
    below = row_of[link.end if link.start == NO_CLUSTER else link.start] + STUB
    return row_of.get(link.start, below), row_of.get(link.end, below)


def _mark_ends(
    ax: Axes, timeline: Timeline, links: list[Link], row_of: dict[int, float]
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
            ax.plot(*zip(*marks, strict=True), **MARKS[kind], zorder=4)
    return drawn


def _write_names(
    ax: Axes, names: dict[float, tuple[str, str]], order: list[float], rows: float
) -> None:
    """Write names on the left and sizes on the right, in this order, where there is space."""
    font = font_size(ax, rows)
    gap = 1.2 * font / row_height(ax, rows)
    named: list[float] = []
    for row in order:
        if all(abs(row - used) >= gap for used in named):
            named.append(row)
    ax.set_yticks(sorted(named))
    ax.set_yticklabels([names[row][0] for row in sorted(named)], fontsize=font)
    ax.set_ylabel("cluster")
    beside: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "fontsize": font, "color": INK}
    for row in named:
        ax.text(1.01, row, names[row][1], va="center", **beside)
    if named:
        ax.annotate(
            "size now (peak)",
            (1.01, 1),
            (0, 3),
            "axes fraction",
            "offset points",
            size=8,
            color=INK,
        )


def _sizes(lane: Lane) -> str:
    return f"{lane.last:,}" + (f" ({lane.peak:,})" if lane.peak > lane.last else "")


def _write_legend(ax: Axes, kinds: list[str]) -> None:
    from matplotlib.lines import Line2D

    if kinds:
        ax.legend(
            handles=[
                Line2D([], [], color=INK, lw=1.1, label=kind, **style)
                for kind, style in MARKS.items()
                if kind in kinds
            ],
            loc="upper right",
            bbox_to_anchor=(1.0, 0.0),
            borderaxespad=2.4,
            ncols=len(kinds),
            fontsize=8,
            frameon=False,
        )


def _title(timeline: Timeline, first: int, n_lanes: int, n_others: int) -> str:
    title = counted(n_lanes + n_others, "cluster", "clusters")
    if n_lanes:
        title += f", updates {first:,} to {timeline.last_update:,}"
    if n_others:
        title += f"; the {n_lanes:,} largest drawn, the other {n_others:,} summed"
    return title
