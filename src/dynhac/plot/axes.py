"""Axes of matplotlib in the style that all plots of the package share, and sizes of texts.

Font sizes follow ``font.size`` of matplotlib's settings. Sizes on the page are known only when the
layout of the figure is final: `lay_out` makes it so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from dynhac.extras import optional
from dynhac.plot.colours import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

LARGEST, SMALLEST = 0.9, 0.6  # of the font size in the settings
LINE = 1.25  # height of a line of text, in font sizes
WIDEST_LABEL = 0.4  # of the width of the figure


def new_axes(width: float, height: float, purpose: str) -> Axes:
    """Return the axes of a new figure, in inches; ``purpose`` is the function that needs them."""
    plt = optional("matplotlib.pyplot", "plot", purpose)
    scale = plt.rcParams["font.size"] / 10
    ax: Axes = plt.subplots(figsize=(width * scale, height * scale), layout="constrained")[1]
    return ax


def lay_out(ax: Axes) -> None:
    """Make the layout of the figure final, as drawing would; this is quicker."""
    figure = ax.figure.canvas.figure
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)


def remove_frame(ax: Axes, theme: Theme) -> None:
    """Leave only the x axis and a vertical grid."""
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    ax.grid(axis="x", color=theme.grid, lw=0.7)
    ax.grid(visible=False, axis="y")
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)


def largest_font() -> float:
    """Return the size of the largest font that the plots use, in points."""
    from matplotlib import rcParams

    return LARGEST * float(rcParams["font.size"])


def axes_size(ax: Axes) -> tuple[float, float]:
    """Return the width and the height of the axes, in points."""
    extent, points = ax.get_window_extent(), 72 / ax.figure.dpi
    return extent.width * points, extent.height * points


def row_height(ax: Axes, rows: float) -> float:
    """Return the height of a row, in points, if the axes have this many rows."""
    return axes_size(ax)[1] / max(rows, 1)


def font_size(ax: Axes, rows: float) -> float:
    """Return the font size for this many rows; texts of the smallest one may need more space."""
    largest = largest_font()
    return min(largest, max(SMALLEST / LARGEST * largest, row_height(ax, rows) / LINE))


def extent_of(ax: Axes, text: str, size: float) -> Bbox:
    """Return the box of a text, in pixels, if it is written at the origin of the figure."""
    written = ax.figure.text(0, 0, text, fontsize=size)
    try:
        return written.get_window_extent()
    finally:
        written.remove()


def shortened(ax: Axes, text: object, size: float, widest: float = WIDEST_LABEL) -> str:
    """Return a text in one line, at most ``widest`` of the figure wide, and without formulas."""
    words = " ".join(str(text).split())
    limit = widest * ax.figure.bbox.width

    def fits(length: int) -> bool:
        return extent_of(ax, _plain(words, length), size).width <= limit

    low, high = 1, min(len(words), 200)
    if not fits(high):
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        high = low
    return _plain(words, high)


def _plain(text: str, length: int) -> str:
    if length < len(text):
        text = text[:length].rstrip() + "…"
    return text.replace("$", r"\$")  # a dollar sign would start a formula


def with_space(boxes: Mapping[int, Bbox], order: Iterable[int]) -> set[int]:
    """Return which of some boxes below each other to show; those first in ``order`` go first."""
    shown: set[int] = set()
    for i in order:
        box = boxes[i]
        if all(box.y1 <= boxes[j].y0 or boxes[j].y1 <= box.y0 for j in shown):
            shown.add(i)
    return shown


def write_row_labels(
    ax: Axes, rows: Sequence[float], texts: Sequence[str], size: float, order: Iterable[int]
) -> None:
    """Write a text at each row, except where there is no space; ``order`` tells which go first."""
    style: dict[str, Any] = {"fontsize": size}
    ax.set_yticks(rows, texts, **style)
    lay_out(ax)
    boxes = {i: label.get_window_extent() for i, label in enumerate(ax.get_yticklabels())}
    shown = with_space(boxes, order)
    if len(shown) < len(rows):
        ax.set_yticks(rows, [t if i in shown else "" for i, t in enumerate(texts)], **style)
        lay_out(ax)


def write_title(ax: Axes, title: str, right: float) -> None:
    """Write a title above the axes, in as many lines as it needs to end before ``right`` pixels."""
    size = largest_font()
    space = right - ax.get_window_extent().x0
    letter = extent_of(ax, title, size).width / max(len(title), 1)
    for characters in range(max(12, int(space / max(letter, 1e-9))), 11, -2):
        lines = "\n".join(wrap(title, characters))
        if extent_of(ax, lines, size).width <= 0.98 * space:
            break
    ax.set_title(lines, fontsize=size, loc="left")
