"""Placement of texts in a plot without overlaps.

Overlaps are tested in pixels, by bounding boxes, after the layout of the figure is final. A text
without a free place is left out. Behind a text the background hides the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.plot.colours import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

Line = tuple[float, float, float, float]
"""The ends ``x0, y0, x1, y1`` of a line along one of the axes, or corners of a rectangle, in data
coordinates."""

SLICES = 12  # boxes that cover a triangle
GAP = 1.0  # points between a text and everything else


class Place(NamedTuple):
    """Where a text is relative to a point: an offset in points, and its alignments."""

    offset: tuple[float, float]
    ha: str
    va: str


class Placer:
    """Places texts one by one, each only where it overlaps no line and no text placed before."""

    def __init__(self, ax: Axes, theme: Theme, lines: Sequence[Line]) -> None:
        self._ax, self._theme = ax, theme
        self._gap = GAP * ax.figure.dpi / 72
        self._boxes: NDArray[np.float64] = np.empty((0, 4))
        ends = np.array(lines, dtype=np.float64).reshape(-1, 2)
        pixels = ax.transData.transform(ends).reshape(-1, 2, 2)
        self._keep_free(np.hstack([pixels.min(axis=1), pixels.max(axis=1)]))

    def keep_free(self, tip: tuple[float, float], right: float, half: float) -> None:
        """Keep texts out of a triangle with this tip and a base at ``right``."""
        corners = [tip, (right, tip[1] - half), (right, tip[1] + half)]
        (x0, y), (x1, a), (_, b) = self._ax.transData.transform(corners)
        x = np.linspace(x0, x1, SLICES + 1)
        height = np.linspace(0, abs(b - a) / 2, SLICES + 1)[1:]
        self._keep_free(np.column_stack([x[:-1], y - height, x[1:], y + height]))

    def place(
        self,
        text: str,
        xy: tuple[float, float],
        place: Place,
        size: float,
        colour: str | None = None,
    ) -> bool:
        """Write a text at a place relative to ``xy`` if it is free; return whether it was."""
        style: dict[str, Any] = {
            "ha": place.ha,
            "va": place.va,
            "fontsize": size,
            "color": colour or self._theme.text,
            "bbox": {"fc": self._theme.background, "ec": "none", "pad": 0},
            "zorder": 2.5,
            "annotation_clip": False,
        }
        written = self._ax.annotate(text, xy, place.offset, textcoords="offset points", **style)
        written.set_in_layout(False)
        box = written.get_window_extent()
        free = self.is_free(box)
        if free:
            self.keep_box(box)
        else:
            written.remove()
        return free

    def is_free(self, box: Bbox) -> bool:
        """Whether a box, in pixels, is inside the axes and overlaps nothing."""
        inside = self._ax.get_window_extent()
        overlapped = np.all(self._boxes[:, :2] < (box.x1, box.y1), axis=1) & np.all(
            self._boxes[:, 2:] > (box.x0, box.y0), axis=1
        )
        within = (
            inside.x0 <= box.x0
            and box.x1 <= inside.x1
            and inside.y0 <= box.y0
            and box.y1 <= inside.y1
        )
        return bool(within and not overlapped.any())

    def keep_box(self, box: Bbox) -> None:
        """Keep texts out of a box, in pixels."""
        self._keep_free(np.array([box.extents]))

    def _keep_free(self, boxes: NDArray[np.float64]) -> None:
        grown = boxes + self._gap * np.array([-1, -1, 1, 1])
        self._boxes = np.vstack([self._boxes, grown])
