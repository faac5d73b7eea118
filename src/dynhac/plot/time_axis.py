"""The x axis of a timeline: the numbers of updates, or their times, which are numbers or dates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.input.errors import show
from dynhac.plot.axes import axes_size, largest_font
from dynhac.plot.lanes import checked_times
from dynhac.plot.ticks import plain_number, round_numbers, spaced, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynhac.watch.history import Timeline

CHOICES = ("auto", "time", "update")
LEAST_END = {"update": 0.6, "number": 0.6, "date": 1 / 24}  # shown after the last update; days


class TimeAxis:
    """Where updates are on the x axis.

    Attributes
    ----------
    first_update : int
        The first update shown.
    end : float
        The place up to which the last sizes are drawn.
    """

    def __init__(self, timeline: Timeline, x: object) -> None:
        if x not in CHOICES or not isinstance(x, str):
            raise ValueError(f"x is {show(x)}; it must be one of {', '.join(CHOICES)}")
        if x == "time" and timeline.time is None:
            raise ValueError("x is 'time', but the timeline has no times; give 'update' or 'auto'")
        updates = np.asarray(timeline.update)
        self.first_update = int(updates[0]) if len(updates) else timeline.last_update
        self._kind = "update"
        last = float(timeline.last_update)
        if x != "update" and timeline.time is not None and len(updates):
            time = checked_times(timeline)
            latest = time[-1] if timeline.last_time is None else timeline.last_time
            both = np.append(time, np.array([latest], dtype=time.dtype))
            self._kind = "date" if time.dtype.kind == "M" else "number"
            places = _days(both) if self._kind == "date" else both.astype(np.float64)
            self._updates, self._places, last = updates, places[:-1], float(places[-1])
        self._first = float(self.places(np.array([self.first_update]))[0])
        self.end = last + max(0.01 * (last - self._first), 0.0)
        if self._kind == "update" or last == self._first:
            self.end = max(self.end, last + LEAST_END[self._kind])

    def places(self, updates: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the places of updates on the axis."""
        if self._kind == "update":
            return updates.astype(np.float64)
        row = np.searchsorted(self._updates, updates, side="right") - 1
        return self._places[np.maximum(row, 0)]

    def apply(self, ax: Axes) -> None:
        """Set limits, ticks and label of the axis."""
        from matplotlib.ticker import FuncFormatter

        ax.set_xlim(self._first - 0.02 * (self.end - self._first), self.end)
        if self._kind == "date":
            from matplotlib import dates

            make: Any = dates
            most = int(axes_size(ax)[0] / (6 * largest_font()))
            locator = make.AutoDateLocator(minticks=2, maxticks=max(2, min(most, 9)))
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(make.ConciseDateFormatter(locator))
        else:

            def text(value: float, _: Any = None) -> str:
                return plain_number(value, 15)

            numbers = whole_numbers if self._kind == "update" else round_numbers
            ax.xaxis.set_major_locator(spaced(numbers, text))
            ax.xaxis.set_major_formatter(FuncFormatter(text))
        label = "update" if self._kind == "update" else "time"
        ax.set_xlabel(label, loc="left", fontsize=largest_font())


def _days(times: NDArray[Any]) -> NDArray[np.float64]:
    from matplotlib import dates

    number: Any = dates.date2num
    days: NDArray[np.float64] = np.asarray(number(times), dtype=np.float64)
    return days
