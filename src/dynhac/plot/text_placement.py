"""Texts in a picture that meet neither each other nor what is drawn.

Everything is judged in pixels, after the layout of the figure has been settled, by the boxes around
texts and drawn things. A text that fits nowhere is left out: fewer texts that can be read are worth
more than many that cannot. matplotlib itself is only ever touched through the axes given.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_FONT, SMALLEST_FONT = 9.0, 3.0
COLOUR = "#475569"


def row_height(ax: Axes, rows: float) -> float:
    """Return how high each of so many rows of the axes is, in points."""
    height: float = ax.get_window_extent().height * 72 / ax.figure.dpi
    return height / max(rows, 1)


def font_size(ax: Axes, rows: float) -> float:
    """Return the size of a font that lets so many rows of text stand below each other."""
    return min(LARGEST_FONT, max(SMALLEST_FONT, 0.8 * row_height(ax, rows)))


def width(ax: Axes) -> float:
    """Return how wide the axes are, in points."""
    points: float = ax.get_window_extent().width * 72 / ax.figure.dpi
    return points


def write_title(ax: Axes, title: str) -> None:
    """Write a title above the left of the axes, in as many lines as it needs."""
    characters = max(20, int(width(ax) / (0.55 * LARGEST_FONT)))
    ax.set_title("\n".join(wrap(title, characters)), fontsize=LARGEST_FONT, loc="left")


class Placer:
    """Places texts one after the other, each only where it meets nothing placed before."""

    def __init__(self, ax: Axes) -> None:
        ax.figure.canvas.figure.draw_without_rendering()  # settles the layout, hence the pixels
        self._ax = ax
        self._boxes: NDArray[np.float64] = np.empty((0, 4))
        self._margin = 1.5 * ax.figure.dpi / 72

    def block(self, boxes: Sequence[tuple[float, float, float, float]]) -> None:
        """Keep texts off boxes or lines ``x0, y0, x1, y1``, given in the units of the axes."""
        corners = np.array(boxes, dtype=np.float64).reshape(-1, 2)
        pixels = self._ax.transData.transform(corners).reshape(-1, 2, 2)
        added = np.concatenate([pixels.min(axis=1), pixels.max(axis=1)], axis=1)
        self._boxes = np.concatenate([self._boxes, added])

    def place(
        self,
        text: str,
        x: float,
        y: float,
        offset: tuple[float, float],
        align: tuple[str, str],
        size: float,
        colour: str = COLOUR,
    ) -> bool:
        """Write a text at ``offset`` points from ``(x, y)``, if there is room for it.

        ``align`` is its horizontal and vertical alignment. Returns whether it was written.
        """
        written = self._ax.annotate(
            text,
            (x, y),
            xytext=offset,
            textcoords="offset points",
            ha=align[0],
            va=align[1],
            fontsize=size,
            color=colour,
        )
        box = written.get_window_extent()
        inside = self._ax.get_window_extent()
        low, high = (box.x0, box.y0 - 1), (box.x1, box.y1 + 1)
        free = (
            inside.x0 <= box.x0
            and box.x1 <= inside.x1
            and not np.any(
                np.all(self._boxes[:, :2] < high, axis=1) & np.all(self._boxes[:, 2:] > low, axis=1)
            )
        )
        if free:
            margin = self._margin
            grown = [box.x0 - margin, box.y0, box.x1 + margin, box.y1]
            self._boxes = np.concatenate([self._boxes, [grown]])
        else:
            written.remove()
        return free
