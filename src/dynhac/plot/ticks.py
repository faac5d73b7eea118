"""Ticks of axes: plain numbers, as many as there is space for.

A locator gets lists of ticks to choose from, the densest first. It takes the first whose labels do
not overlap, at the present size of the axes and of the font; so it still works after zooming.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Candidates = Callable[[float, float], Iterator[Sequence[float]]]
"""Gives lists of ticks between two numbers, the densest first."""

WIDTH_OF_DIGIT = 0.65  # in font sizes
GAP = 0.7  # between two labels, in font sizes


def plain_number(x: float, digits: int = 6) -> str:
    """Return a number without an exponent, unless it is very small or very large.

    >>> plain_number(0.000025), plain_number(0.123456, 2), plain_number(1500.0), plain_number(2e-9)
    ('0.000025', '0.12', '1,500', '2e-09')
    """
    if x != 0 and not 1e-6 <= abs(x) < 10.0 ** max(9, digits):
        return f"{x:.{digits}g}"
    text = f"{float(f'{x:.{digits}g}'):,.12f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def round_numbers(low: float, high: float) -> Iterator[Sequence[float]]:
    """Give ticks of a linear axis."""
    from matplotlib.ticker import MaxNLocator

    for n in range(9, 0, -1):
        yield list(MaxNLocator(n, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))


def whole_numbers(low: float, high: float) -> Iterator[Sequence[float]]:
    """Give ticks of a linear axis that counts."""
    from matplotlib.ticker import MaxNLocator

    for n in range(9, 0, -1):
        locator = MaxNLocator(n, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1)
        yield [x for x in locator.tick_values(low, high) if x == int(x)]


def powers(low: float, high: float) -> Iterator[Sequence[float]]:
    """Give ticks of a logarithmic axis."""
    low = max(low, 1e-300)
    if high < 10 * low:
        yield from round_numbers(low, high)
        return
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    for digits in ((1, 2, 5), (1, 3), (1,)):
        yield [float(f"{d}e{power}") for power in range(first, last + 1) for d in digits]
    for step in range(2, last - first + 2):
        yield [float(f"1e{power}") for power in range(first + -first % step, last + 1, step)]


def spaced(candidates: Candidates, text: Callable[[float], str], least: float = -np.inf) -> Any:
    """Return a locator that takes the first candidates whose labels do not overlap.

    ``text`` is the label of a tick. There are no ticks below ``least``.
    """
    from matplotlib.ticker import Locator

    class Spaced(Locator):
        """Ticks with enough space for their labels."""

        def __call__(self) -> Any:
            axis: Any = self.axis
            return self.tick_values(*sorted(axis.get_view_interval()))

        def tick_values(self, vmin: float, vmax: float) -> Any:
            axis: Any = self.axis
            axes, transform = axis.axes, axis.get_transform()
            low, high = transform.transform(np.array([vmin, vmax]))
            pixels = axes.bbox.width / max(high - low, 1e-300)
            font = axis.majorTicks[0].label1.get_fontsize() * axes.figure.dpi / 72
            ticks: list[float] = []
            places = widths = np.empty(0)
            for some in candidates(vmin, vmax):
                ticks = [x for x in some if max(vmin, least) <= x <= vmax]
                places = pixels * transform.transform(np.array(ticks, dtype=np.float64))
                widths = WIDTH_OF_DIGIT * font * np.array([len(text(x)) for x in ticks])
                gaps = np.diff(places) - (widths[1:] + widths[:-1]) / 2
                if ticks and (gaps > GAP * font).all():
                    break
            # A label beyond an end of the axis could leave the figure.
            within = (places - widths / 2 >= pixels * low) & (places + widths / 2 <= pixels * high)
            return np.array(ticks, dtype=np.float64)[within if within.any() else slice(None)]

    return Spaced()
