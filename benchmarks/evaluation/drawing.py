"""Shared parts of the figures: panels, legends, and one row or line per system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.evaluation.names import DATASET_TITLES, SYSTEM_STYLES, Style
from benchmarks.evaluation.read_results import Results

STYLE: Any = {
    "font.size": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.markersize": 4.5,
    "lines.linewidth": 1.3,
    "svg.hashsalt": "dynhac",  # makes files reproducible
}


def panels(
    titles: Sequence[str], width: float = 3.3, height: float = 2.7, *, sharex: bool = False
) -> tuple[Figure, Any]:
    """Return a figure of one panel per title, at most three side by side."""
    across = min(len(titles), 3)
    width = max(width, 6.6 / across)  # a legend needs room
    down = -(-len(titles) // across)
    figure, axes = plt.subplots(
        down,
        across,
        figsize=(width * across, height * down),
        layout="constrained",
        squeeze=False,
        sharex=sharex,
    )
    for axis, title in zip(axes.flat, titles, strict=False):
        axis.set_title(title, fontsize=9.5, loc="left")
    for axis in list(axes.flat)[len(titles) :]:
        axis.set_axis_off()
    return figure, list(axes.flat)[: len(titles)]


def legend(
    figure: Figure, axes: Sequence[Axes], styles: Mapping[str, Style] = SYSTEM_STYLES
) -> None:
    """Put one legend of everything drawn under the panels, what has a style in its order."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    order = [style.title for style in styles.values()]
    found = dict(sorted(found.items(), key=lambda f: order.index(f[0]) if f[0] in order else -1))
    columns = max(1, min(len(found), 4, int(figure.get_figwidth() / 2.2)))
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns)


def line(style: Style) -> dict[str, Any]:
    """Return the style of the line of a system or data set."""
    return {
        "color": style.colour,
        "marker": style.marker,
        "linestyle": style.line,
        "label": style.title,
    }


def dots(
    results: Results,
    values: Callable[[str, str], Sequence[tuple[float, bool]]],
    xlabel: str,
    *,
    log: bool,
    marks: Callable[[str, str], float | None] | None = None,
    mark_label: str = "in the paper (whole set, its machine)",
) -> Figure:
    """Draw one panel per data set with a row per system and a dot per value (filled or not)."""
    shown = [s for s in results.systems if any(values(d, s) for d in results.datasets)]
    height = max(0.9 + 0.21 * len(shown), 2.2)
    titles = [DATASET_TITLES[d] for d in results.datasets]
    figure, axes = panels(titles, width=3.6, height=height, sharex=True)
    for at, (axis, name) in enumerate(zip(axes, results.datasets, strict=True)):
        for row, system in enumerate(shown):
            style = SYSTEM_STYLES[system]
            found = values(name, system)
            if found:
                ends = [value for value, _ in found]
                axis.plot(ends, [row] * len(ends), "-", color=style.colour, lw=1)
            for value, filled in found:
                face = style.colour if filled else "white"
                axis.plot(value, row, "o", color=style.colour, mfc=face, ms=6)
            mark = marks(name, system) if marks else None
            if mark is not None:
                axis.plot(mark, row, "|", color="black", ms=12, mew=2, label=mark_label)
        if log:
            axis.set_xscale("log")
            axis.xaxis.set_major_locator(LogLocator(numticks=6))
        first = at % 3 == 0
        axis.set_yticks(range(len(shown)), [SYSTEM_STYLES[s].title if first else "" for s in shown])
        axis.set_ylim(len(shown) - 0.4, -0.6)
        axis.tick_params(labelbottom=True)
        axis.set_xlabel(xlabel)
    return figure


def number_axis(axis: Axes) -> None:
    """Make the x axis logarithmic, for numbers that span less than three powers of ten."""
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def dataset_rows(axis: Axes, results: Results) -> None:
    """Give every data set a row of a panel, from the top down."""
    count = len(results.datasets)
    axis.set_yticks(range(count), [DATASET_TITLES[d] for d in results.datasets])
    axis.set_ylim(count - 0.5, -0.5)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)
