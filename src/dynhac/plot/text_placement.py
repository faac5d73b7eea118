"""Placement of texts in a plot without overlaps.

Overlaps are tested in pixels, by bounding boxes, after the layout of the figure is final. A text
without a free place is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR = "#475569"


class Placer:
    """Places texts one by one, each only where it overlaps nothing placed before."""

    def __init__(self, ax: Axes) -> None:
        ax.figure.canvas.figure.draw_without_rendering()  # makes the layout final
        self._ax = ax
        self._boxes: NDArray[np.float64] = np.empty((0, 4))
        self._margin = 1.5 * ax.figure.dpi / 72

    def block(self, boxes: Sequence[tuple[float, float, float, float]]) -> None:
        """Keep boxes or lines ``x0, y0, x1, y1``, in data coordinates, free of texts."""
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
        """Write a text at ``offset`` points from ``(x, y)`` if that place is free.

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
