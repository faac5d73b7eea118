"""Figures of this part: agreement on every set, and the number of clusters while a set grows."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from benchmarks.evaluation.clusters.names import CHOICE_STYLES
from benchmarks.evaluation.clusters.results import choices, growth, tasks
from benchmarks.evaluation.drawing import legend, line, number_axis, panels
from benchmarks.evaluation.names import DATASET_TITLES
from benchmarks.evaluation.read_results import Results


def quality(results: Results) -> Figure | None:
    """NMI and ARI of every choice, a row per set and sample.

    Noise is given to ancestors (filled) and counted as points alone (white).
    """
    found = list(tasks(results))
    if not found:
        return None
    figure, axes = panels(["NMI", "ARI"], width=4.6, height=1.3 + 0.5 * len(found))
    for axis, measure in zip(axes, ("nmi", "ari"), strict=True):
        for place, (_, part, row) in enumerate(found):
            chosen = choices(results, row["dataset"], part)
            for shift, (name, figures) in enumerate(reversed(chosen.items())):  # ours on top
                style = CHOICE_STYLES[name]
                y = place + ((len(chosen) - 1) / 2 - shift) * 0.13
                filled, white = (figures[way][measure] for way in ("ancestors", "alone"))
                look = {"color": style.colour, "ms": 5.5}
                axis.plot([filled, white], [y, y], "-", color=style.colour, lw=0.8)
                if white != filled:
                    axis.plot(white, y, style.marker, mfc="white", **look)
                axis.plot(filled, y, style.marker, label=style.title, **look)
        for place in range(1, len(found)):
            axis.axhline(place - 0.5, color="#dddddd", lw=0.6)
        axis.grid(visible=False, axis="y")
        first = axis is axes[0]
        axis.set_yticks(range(len(found)), [title if first else "" for title, _, _ in found])
        axis.set_ylim(len(found) - 0.5, -0.5)
        axis.set_xlim(-0.02, 1.02)
        axis.set_xlabel(f"{measure.upper()}; white: noise alone, else noise to ancestors")
    legend(figure, axes, CHOICE_STYLES)
    return figure


def clusters_over_growth(results: Results) -> Figure | None:
    """Number of clusters by number of points, beside the number of classes."""
    names = [d for d in results.datasets if len(_sizes(results, d)) > 1]
    if not names:
        return None
    figure, axes = panels([DATASET_TITLES[d] for d in names], height=2.8)
    for axis, dataset in zip(axes, names, strict=True):
        _draw_classes(axis, results, dataset)
        for name, at in reversed(growth(results, dataset).items()):  # ours on top
            counts = [max(figures["clusters"], 1) for _, figures in at]
            axis.plot([c["points"] for c, _ in at], counts, **line(CHOICE_STYLES[name]))
        number_axis(axis)
        first, *_, last = sorted(_sizes(results, dataset))
        if last > 20 * first:  # more labels would not fit
            axis.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.set_yscale("log")
        axis.set_xlabel("points")
        axis.set_ylabel("clusters")
    legend(figure, axes, CHOICE_STYLES)
    return figure


def _sizes(results: Results, dataset: str) -> dict[int, dict[str, int]]:
    """Return the checkpoints of a growing set by number of points."""
    every = growth(results, dataset).values()
    return {at["points"]: at for checkpoints in every for at, _ in checkpoints}


def _draw_classes(axis: Axes, results: Results, dataset: str) -> None:
    at = sorted(_sizes(results, dataset).items())
    for key, label, width in (
        ("classes", "classes", 5),
        ("classes_large", "classes of 25 points or more", 2),
    ):
        counts = [max(found[key], 1) for _, found in at]
        axis.plot([n for n, _ in at], counts, "-", color="#bbbbbb", lw=width, label=label)


FIGURES: dict[str, tuple[str, Callable[[Results], Figure | None]]] = {
    "clusters-quality": ("Agreement of clusters without a threshold", quality),
    "clusters-growth": ("Number of clusters while growing", clusters_over_growth),
}
