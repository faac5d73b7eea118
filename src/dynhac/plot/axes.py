"""Axes of matplotlib in the style that all plots of the package share."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from dynhac.extras import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#334155"
GRID = "#e2e8f0"
LARGEST_FONT, SMALLEST_FONT = 9.0, 3.0


def new_axes(width: float, height: float, purpose: str) -> Axes:
    """Return the axes of a new figure, in inches; ``purpose`` is the function that needs them."""
    plt = optional("matplotlib.pyplot", "plot", purpose)
    ax: Axes = plt.subplots(figsize=(width, height), layout="constrained")[1]
    return ax


def remove_frame(ax: Axes) -> None:
    """Leave only the x axis and a vertical grid."""
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    ax.grid(axis="x", color=GRID, lw=0.7)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)


def axes_size(ax: Axes) -> tuple[float, float]:
    """Return the width and the height of the axes, in points."""
    extent, points = ax.get_window_extent(), 72 / ax.figure.dpi
    return extent.width * points, extent.height * points


def row_height(ax: Axes, rows: float) -> float:
    """Return the height of a row, in points, if the axes have this many rows."""
    return axes_size(ax)[1] / max(rows, 1)


def font_size(ax: Axes, rows: float) -> float:
    """Return a font size at which the texts of this many rows do not overlap."""
    return min(LARGEST_FONT, max(SMALLEST_FONT, 0.8 * row_height(ax, rows)))


def write_title(ax: Axes, title: str) -> None:
    """Write a title above the axes, aligned left, in as many lines as it needs."""
    characters = max(20, int(axes_size(ax)[0] / (0.55 * LARGEST_FONT)))
    ax.set_title("\n".join(wrap(title, characters)), fontsize=LARGEST_FONT, loc="left")
