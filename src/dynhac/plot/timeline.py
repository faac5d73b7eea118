"""A picture of clusters over time: one lane for each, as thick as the cluster is large.

Time runs along the x axis in updates. A lane shows the size of one cluster from the update that
made it to the one that ended it. When a cluster is absorbed a line leads from its lane to the
survivor's; when one splits, a dashed line leads to the lane of each part that became a cluster of
its own. The clusters that grew largest get lanes; the sizes of all others are summed up in a grey
lane at the bottom, and a line to or from one of them is a short one. All lanes have one scale,
except that the grey one is drawn smaller, and says so, where it would dwarf them. What is drawn is
chosen in `dynhac.plot.lanes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.extras import optional
from dynhac.input.columns import whole_number
from dynhac.input.errors import counted
from dynhac.plot.lanes import KINDS, NO_CLUSTER, Lane, Link, choose_lanes, links_of, ordered
from dynhac.plot.text_placement import font_size, row_height, write_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which people with any colour vision can tell apart; without black, and
# without the yellow that white paper swallows. Neighbouring lanes never have the same one.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
OTHERS = "#94a3b8"
INK = "#334155"
THICKEST = 0.84  # how much of its row the largest cluster fills
MOST_OF_OTHERS = 2.5  # how many rows the lane of the others may fill
STUB = 0.44  # rows that a line to or from a cluster without a lane is long
MARKS: dict[str, dict[str, Any]] = {
    "born": {"marker": "o", "mfc": "white", "ls": "none", "ms": 5},
    "died": {"marker": "X", "mfc": INK, "ls": "none", "ms": 6},
    "merged": {"marker": "v", "mfc": INK, "ls": "-", "ms": 6},
    "split": {"marker": "v", "mfc": "white", "ls": (0, (3, 2)), "ms": 6},
}


class Timeline(NamedTuple):
    """How the clusters that a watch follows came, changed and went.

    Attributes
    ----------
    update, cluster, size : ndarray of int64, shape (r,)
        One row for each cluster whose size an update changed: the number of the update, the id of
        the cluster, and its size after the update, 0 if the cluster ended. Ordered by update.
    last_update : int
        The number of the last update, changes or not.
    events : list of tuple (update, kind, cluster, others)
        What happened, ``kind`` being "born", "died", "merged" (``others`` were absorbed by
        ``cluster``) or "split" (``others`` left ``cluster``).
    """

    update: NDArray[np.int64]
    cluster: NDArray[np.int64]
    size: NDArray[np.int64]
    last_update: int
    events: list[tuple[int, str, int, tuple[int, ...]]]


def plot_timeline(timeline: Timeline, ax: Axes | None = None, max_clusters: int = 20) -> Axes:
    """Draw the sizes of clusters over time, with their births, deaths, merges and splits.

    Parameters
    ----------
    timeline : Timeline
        What to draw, such as a watch's ``timeline()``.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure of a fitting height.
    max_clusters : int, default 20
        How many clusters get a lane of their own: those with the largest peaks. The sizes of all
        others are summed up in one lane.

    Returns
    -------
    matplotlib Axes
        With a tick on the y axis for each lane whose name has room, from the top down.

    Notes
    -----
    Merges and splits between two lanes are lines from one to the other. Where the other cluster
    has no lane the line is a short one; it is left out if that cluster was always small, below a
    twentieth of what the cluster with the lane was at its peak.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.plot.timeline import Timeline, plot_timeline
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
        plt = optional("matplotlib.pyplot", "plot", "plot_timeline()")
        figure_height = min(1.7 + 0.36 * max(rows, 3.0), 40.0)
        ax = plt.subplots(figsize=(10, figure_height), layout="constrained")[1]

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
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    ax.grid(axis="x", color="#e2e8f0", lw=0.7)
    ax.set_axisbelow(True)
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
    """Draw each stretch of updates over which the cluster has points."""
    update = np.append(lane.update.astype(np.float64), end)
    size = np.append(lane.size, 0)
    alive = np.concatenate([[False], size > 0])
    begins = np.flatnonzero(~alive[:-1] & alive[1:])
    ends = np.flatnonzero(alive[:-1] & ~alive[1:])
    for i, j in zip(begins.tolist(), ends.tolist(), strict=True):
        half = np.append(size[i:j], size[j - 1]) * (scale / 2)
        ax.fill_between(
            update[i : j + 1], row - half, row + half, step="post", color=colour, lw=0.8, zorder=2
        )


def _draw_links(ax: Axes, links: list[Link], row_of: dict[int, float]) -> list[str]:
    """Draw a line for each link, with a mark that points to where the points went."""
    drawn = []
    for kind in ("merged", "split"):
        chosen = [link for link in links if link.kind == kind]
        if not chosen:
            continue
        drawn.append(kind)
        x = [link.update for link in chosen]
        ends = [_rows(link, row_of) for link in chosen]
        start, end = np.array(ends, dtype=np.float64).T
        style = MARKS[kind]
        ax.vlines(x, start, end, color=INK, lw=1.1, linestyles=style["ls"], zorder=3)
        for marker, points in (("v", end > start), ("^", end < start)):
            ax.plot(
                np.array(x)[points],
                end[points],
                **(style | {"marker": marker, "ls": "none"}),
                mec=INK,
                mew=0.9,
                zorder=4,
            )
    return drawn


def _rows(link: Link, row_of: dict[int, float]) -> tuple[float, float]:
    """Return where a link starts and ends: just below the lane for a cluster that has none."""
    if link.start == NO_CLUSTER:
        return row_of[link.end] + STUB, row_of[link.end]
    if link.end == NO_CLUSTER:
        return row_of[link.start], row_of[link.start] + STUB
    return row_of[link.start], row_of[link.end]


def _mark_ends(
    ax: Axes, timeline: Timeline, links: list[Link], row_of: dict[int, float]
) -> list[str]:
    """Mark births and deaths, other than those that a link shows already."""
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
            ax.plot(*zip(*marks, strict=True), **MARKS[kind], mec=INK, mew=0.9, zorder=4)
    return drawn


def _write_names(
    ax: Axes, names: dict[float, tuple[str, str]], order: list[float], rows: float
) -> None:
    """Write names on the left and sizes on the right, in that order, where there is room."""
    font = font_size(ax, rows)
    gap = 1.2 * font / row_height(ax, rows)
    named: list[float] = []
    for row in order:
        if all(abs(row - used) >= gap for used in named):
            named.append(row)
    ax.set_yticks(sorted(named))
    ax.set_yticklabels([names[row][0] for row in sorted(named)], fontsize=font)
    ax.tick_params(axis="y", length=0)
    ax.set_ylabel("cluster")
    beside: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "fontsize": font, "color": INK}
    for row in named:
        ax.text(1.01, row, names[row][1], va="center", **beside)
    if named:
        ax.annotate(
            "size now (peak)",
            (1.01, 1.0),
            xycoords="axes fraction",
            xytext=(0, 3),
            textcoords="offset points",
            fontsize=8,
            color=INK,
        )


def _sizes(lane: Lane) -> str:
    return f"{lane.last:,}" + (f" ({lane.peak:,})" if lane.peak > lane.last else "")


def _write_legend(ax: Axes, kinds: list[str]) -> None:
    from matplotlib.lines import Line2D

    if kinds:
        ax.legend(
            handles=[
                Line2D([], [], color=INK, mec=INK, mew=0.9, lw=1.1, label=kind, **MARKS[kind])
                for kind in KINDS
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
        title += f"; the {n_lanes:,} largest drawn, the other {n_others:,} summed up"
    return title
