"""The axis of similarities: its scale, its limits and its ticks.

- *linear*: the similarity itself.
- *log*: its logarithm. Merges of similarity 0 are drawn left of all others, at a tick 0.
- *rank*: the drawn merges at equal distances, whatever their similarities are. Ticks are at merges.
- *auto*: log if the drawn branches are longer with it than with linear, else linear. Compared are
  the geometric means of the lengths of all branches from merge to merge, as parts of the axis; of a
  single path it is largest if merges are at equal distances. Branches of length 0 do not count.

Merges of embeddings are usually much closer to each other at small similarities, and log is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.input.errors import show
from dynhac.plot.ticks import plain_number, powers, round_numbers, spaced

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynhac.plot.ticks import Candidates

SCALES = ("auto", "linear", "log", "rank")
MARGIN = 0.08  # of the axis, on either side of the merges
MOST_FOR_THRESHOLD = 0.25  # by which the axis is extended to show the threshold


def check_scale(scale: object) -> str:
    """Return the name of a scale, or raise."""
    if scale not in SCALES or not isinstance(scale, str):
        raise ValueError(f"scale is {show(scale)}; it must be one of {', '.join(SCALES)}")
    return scale


def chosen_scale(branches: NDArray[np.float64]) -> str:
    """Return the scale that "auto" stands for; a branch leads from one similarity to a larger one.

    >>> chosen_scale(np.array([[0.1, 0.2], [0.2, 0.3], [0.3, 0.4]]))
    'linear'
    >>> chosen_scale(np.array([[0.01, 0.02], [0.02, 0.04], [0.04, 0.3]]))
    'log'
    """
    low, high = branches[(branches[:, 0] > 0) & (branches[:, 0] < branches[:, 1])].T
    if not len(low):
        return "linear"
    linear = (high - low) / (high.max() - low.min())
    log = np.log(high / low) / np.log(high.max() / low.min())
    return "log" if np.log(log).mean() > np.log(linear).mean() + 1e-9 else "linear"


def set_scale(
    ax: Axes, scale: str, similarities: Sequence[float], cut: float | None, threshold: float
) -> tuple[float, float]:
    """Scale the x axis for merges and for the line of a cut, and return its limits.

    ``scale`` is not "auto". The threshold is within the limits if this makes the axis only a little
    longer.
    """
    merges = np.array(similarities, dtype=np.float64)
    values = np.unique(np.r_[merges, [] if cut is None else cut])
    if not len(values):
        values = np.array([0.5, 1.0])
    if scale == "log" and not (values > 0).any():
        scale = "linear"  # all merges have similarity 0
    forward, backward, ticks = _functions(scale, values, threshold)
    low, high = forward(values[[0, -1]])
    if high == low:
        low, high = forward(values[0] * np.array([0.9, 1.1]) + [0, 1e-9])
    margin = MARGIN * (high - low)
    if threshold > 0:
        (place,) = forward(np.array([threshold]))
        if low - MOST_FOR_THRESHOLD * (high - low) <= place < low:
            low = place
    left, right = backward(np.array([low - margin, high + margin])).tolist()
    if scale == "linear":
        ax.set_xscale("linear")
    elif scale == "log" and values[0] > 0:
        ax.set_xscale("log")
    else:
        ax.set_xscale("function", functions=(forward, backward))
    from matplotlib.ticker import FuncFormatter, NullLocator

    def text(x: float, _: Any = None) -> str:
        return plain_number(x, 2 if scale == "rank" else 6)

    ax.xaxis.set_major_locator(spaced(ticks, text, least=0.0))
    ax.xaxis.set_major_formatter(FuncFormatter(text))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlim(left, right)
    return left, right


def _functions(
    scale: str, values: NDArray[np.float64], threshold: float
) -> tuple[Callable[..., Any], Callable[..., Any], Candidates]:
    """Return the function from similarity to place, its inverse, and candidates for ticks."""
    if scale == "linear":
        return np.asarray, np.asarray, round_numbers
    if scale == "rank":
        knots = np.unique(np.r_[values, threshold]) if threshold > 0 else values
        ranks = np.arange(len(knots), dtype=np.float64)

        def every(low: float, high: float) -> Iterator[Sequence[float]]:
            seen = values[(values >= low) & (values <= high)]
            for step in range(1, len(seen) + 1):
                yield seen[::step].tolist()

        return *_interpolation(knots, ranks), every
    above = values[values > 0]
    if values[0] > 0:
        return np.log, np.exp, powers
    # Zero is left of the smallest similarity above it, by a sixth of the others' span.
    low, high = np.log(above[[0, -1]])
    zero = low - max((high - low) / 6, 0.3)

    def forward(x: Any) -> Any:
        x = np.asarray(x, np.float64)
        small = zero + (low - zero) * x / above[0]
        return np.where(x < above[0], small, np.log(np.maximum(x, above[0])))

    def backward(y: Any) -> Any:
        y = np.asarray(y, np.float64)
        small = above[0] * (y - zero) / (low - zero)
        return np.where(y < low, small, np.exp(np.maximum(y, low)))

    def ticks(least: float, most: float) -> Iterator[Sequence[float]]:
        for some in powers(max(least, float(above[0])), most):
            yield [0.0, *some]

    return forward, backward, ticks


def _interpolation(
    knots: NDArray[np.float64], ranks: NDArray[np.float64]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the linear interpolation through ``(knots, ranks)``, and its inverse."""
    if len(knots) == 1:
        knots, ranks = knots[0] + np.array([0.0, 1.0]), np.array([0.0, 1.0])
    gap = max(float(knots[-1] - knots[0]) / len(knots), 1e-9)
    x = np.r_[knots[0] - 1e3 * gap, knots, knots[-1] + 1e3 * gap]
    y = np.r_[ranks[0] - 1e3, ranks, ranks[-1] + 1e3]
    return lambda v: np.interp(v, x, y), lambda v: np.interp(v, y, x)
