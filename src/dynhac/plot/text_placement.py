"""Placement of texts in a plot without overlaps.

Overlaps are tested in pixels, by bounding boxes, after the layout of the figure is final. A text
without a free place is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR = "#475569"


Line = tuple[float, float, float, float]
"""The ends ``x0, y0, x1, y1`` of a line along one of the axes, in data coordinates."""


class Placer:
    """Places texts one by one, each only where it overlaps no line and no text placed before."""

    def __init__(self, ax: Axes, lines: Sequence[Line]) -> None:
        ax.figure.canvas.figure.draw_without_rendering()  # makes the layout final
        self._ax = ax
        self._margin = 1.5 * ax.figure.dpi / 72
        ends = np.array(lines, dtype=np.float64).reshape(-1, 2)
        pixels = ax.transData.transform(ends).reshape(-1, 2, 2)
        self._boxes: NDArray[np.float64] = np.hstack([pixels.min(axis=1), pixels.max(axis=1)])

    def place(
        self,
        text: str,
        xy: tuple[float, float],
        offset: tuple[float, float],
        ha: str,
        va: str,
        size: float,
    ) -> bool:
        """Write a text at ``offset`` points from ``xy`` if it is free; return whether it was.

        ``ha`` and ``va`` are the horizontal and vertical alignment of the text.
        """
        style: dict[str, Any] = {"ha": ha, "va": va, "fontsize": size, "color": COLOUR}
        written = self._ax.annotate(text, xy, offset, textcoords="offset points", **style)
        box = written.get_window_extent()
        inside = self._ax.get_window_extent()
        overlapped = np.all(self._boxes[:, :2] < (box.x1, box.y1 + 1), axis=1) & np.all(
            self._boxes[:, 2:] > (box.x0, box.y0 - 1), axis=1
        )
        free = inside.x0 <= box.x0 and box.x1 <= inside.x1 and not overlapped.any()
        if free:
            grown = [box.x0 - self._margin, box.y0, box.x1 + self._margin, box.y1]
            self._boxes = np.vstack([self._boxes, grown])
        else:
            written.remove()
        return bool(free)
