"""The figures of the paper; additions.py has further ones.

Every function draws one figure of the results, or returns None if there is nothing to draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from benchmarks.evaluation.additions import churn, cost_against_points, memory, tails
from benchmarks.evaluation.drawing import STYLE, dots, legend, line, number_axis, panels, save
from benchmarks.evaluation.names import DATASET_STYLES, DATASET_TITLES, PAPER, SYSTEM_STYLES
from benchmarks.evaluation.plan import EPSILONS
from benchmarks.evaluation.read_results import Results, Row

NMI_SHOWN = 0.3  # below the best: the range of systems far below would hide all differences
Draw = Callable[[Results], Figure | None]


def agreement(measure: str, label: str) -> Draw:
    """Return the drawing of NMI or ARI of all systems after all insertions."""

    def values(results: Results, name: str, system: str) -> list[tuple[float, bool]]:
        row = results.row(name, system, "insertion")
        return [(row[measure], True)] if row else []

    def paper(name: str, system: str) -> float | None:
        return PAPER[name].nmi.get(system) if measure == "nmi" and name in PAPER else None

    def draw(results: Results) -> Figure:
        figure = dots(results, lambda d, s: values(results, d, s), label, log=False, marks=paper)
        if figure.axes[0].get_legend_handles_labels()[0]:
            legend(figure, figure.axes)
        return figure

    return draw


def time_per_update(protocol: str) -> Draw:
    """Return the drawing of the cost of an update with every system."""

    def values(results: Results, name: str, system: str) -> list[tuple[float, bool]]:
        row = results.row(name, system, protocol)
        if not row or "ms_mean" not in row:
            return []
        settle = row["settle_ms"] or 0
        both = [(row["ms_mean"], True)]
        return both + ([(row["ms_mean"] + settle, False)] if settle > row["ms_mean"] / 10 else [])

    def paper(name: str, system: str) -> float | None:
        if name not in PAPER:
            return None
        published = PAPER[name]
        seconds = {"static": published.static_s, "dynhac": getattr(published, f"{protocol}_s")}
        found = (seconds | getattr(published, f"others_{protocol}_s")).get(system)
        return None if found is None else found * 1e3

    def draw(results: Results) -> Figure:
        label = f"ms per {protocol} (CPU)"
        figure = dots(results, lambda d, s: values(results, d, s), label, log=True, marks=paper)
        axis = figure.axes[0]
        axis.plot([], [], "o", color="#555555", label="update")
        axis.plot([], [], "o", color="#555555", mfc="white", label="update and what it put off")
        legend(figure, figure.axes)
        return figure

    return draw


def over_updates(protocol: str, measure: str) -> Draw:
    """Return the drawing of NMI or cost over the updates of a protocol."""

    def draw(results: Results) -> Figure | None:
        names = [d for d in results.datasets if results.row(d, "dynhac", protocol)]
        if not names:
            return None
        height = 3.8 if len(names) == 1 else 2.7
        figure, axes = panels([DATASET_TITLES[d] for d in names], height=height)
        growing = protocol == "growth"
        for axis, name in zip(axes, names, strict=True):
            for system in reversed(results.systems):  # ours on top
                row = results.row(name, system, protocol)
                if not row or "ms_mean" not in row:
                    continue
                style = line(SYSTEM_STYLES[system])
                x = "points" if growing else "updates"
                at = [c for c in row["checkpoints"] if measure in c]
                if measure == "nmi" or growing or row["recomputes"]:
                    axis.plot([c[x] for c in at], [c[measure] for c in at], **style)
                else:
                    _thinned(axis, row, style)
            if measure == "ms":
                axis.set_yscale("log")
            else:
                shown = np.concatenate([at.get_ydata() for at in axis.lines])
                best, least = shown.max(), shown.min()
                axis.set_ylim(max(least - 0.01, best - NMI_SHOWN), best + 0.01)
            if growing:
                number_axis(axis)
            axis.set_xlabel("points" if growing else f"{protocol}s")
            axis.set_ylabel("NMI" if measure == "nmi" else "ms per update (CPU)")
        legend(figure, axes)
        return figure

    return draw


def _thinned(axis: Any, row: Row, style: dict[str, Any]) -> None:
    """Draw the cost of updates as medians over twenty intervals: single costs vary too much."""
    update, ms = np.array(row["series"]["update"]), np.array(row["series"]["ms"])
    parts = np.array_split(np.arange(len(ms)), min(20, len(ms)))
    axis.plot(
        [update[p].mean() for p in parts], [np.median(ms[p]) for p in parts], **style, markevery=4
    )


def over_epsilon(results: Results) -> Figure | None:
    """NMI and cost over epsilon, for all data sets, beside the paper's figures."""
    figure, axes = panels(["NMI after all insertions", "insertion", "deletion"], height=3.3)
    places = range(len(EPSILONS))
    values = sorted(EPSILONS)
    for name in results.datasets:
        rows = {
            p: [results.row(name, "dynhac", p, e) for e in values]
            for p in ("insertion", "deletion")
        }
        if None in rows["insertion"]:
            continue
        style = line(DATASET_STYLES[name])
        axes[0].plot(places, [r["nmi"] for r in rows["insertion"] if r], **style)
        for axis, protocol in zip(axes[1:], rows, strict=True):
            if None not in rows[protocol]:
                axis.plot(places, [r["ms_mean"] for r in rows[protocol] if r], **style)
            if name in PAPER:
                published = getattr(PAPER[name], f"{protocol}_by_epsilon")
                label = f"{style['label']}, in the paper"
                theirs = [published[e] * 1e3 for e in values]
                faint = style | {"linestyle": ":", "label": label, "markerfacecolor": "white"}
                axis.plot(places, theirs, **faint)
    for axis in axes:
        axis.set_xticks(places, [f"{e:g}" for e in values])
        axis.set_xlabel("ε")
    for axis in axes[1:]:
        axis.set_yscale("log")
        axis.set_ylabel("ms per update (CPU)")
    legend(figure, axes)
    return figure


def time_against_edges(results: Results) -> Figure | None:
    """Cost of single updates by edges in groups that were run again."""
    figure, axes = panels(["insertion", "deletion"], width=4.4, height=3.5)
    for axis, protocol in zip(axes, ("insertion", "deletion"), strict=True):
        for name in results.datasets:
            row = results.row(name, "dynhac", protocol)
            if row and "edges_rerun" in row["series"]:
                style = DATASET_STYLES[name]
                edges = np.maximum(row["series"]["edges_rerun"], 1)
                axis.plot(
                    edges,
                    row["series"]["ms"],
                    style.marker,
                    color=style.colour,
                    ms=3.5,
                    alpha=0.6,
                    label=style.title,
                )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("edges in groups rerun by the update")
        axis.set_ylabel("ms of the update (CPU)")
    legend(figure, axes)
    return figure


def rounds(results: Results) -> Figure | None:
    """Number of levels or rounds by number of points, while a data set grows."""
    names = [d for d in results.datasets if results.row(d, "dynhac", "growth")]
    if not names:
        return None
    figure, axes = panels([DATASET_TITLES[d] for d in names], width=5.5, height=3.2)
    for axis, name in zip(axes, names, strict=True):
        for system in results.systems:
            row = results.row(name, system, "growth")
            at = [c for c in row["checkpoints"] if c["levels"] is not None] if row else []
            if at:
                style = line(SYSTEM_STYLES[system])
                axis.plot([c["points"] for c in at], [c["levels"] for c in at], **style)
        number_axis(axis)
        axis.set_ylim(0, 1.08 * axis.get_ylim()[1])
        axis.set_xlabel("points")
        axis.set_ylabel("levels (rounds)")
    legend(figure, axes)
    return figure


FIGURES: dict[str, tuple[str, Draw]] = {
    "nmi": ("NMI of all systems", agreement("nmi", "NMI, best cut")),
    "ari": ("ARI of all systems", agreement("ari", "ARI, best cut")),
    "nmi-over-insertions": ("NMI over the insertions", over_updates("insertion", "nmi")),
    "nmi-over-deletions": ("NMI over the deletions", over_updates("deletion", "nmi")),
    "nmi-over-growth": ("NMI while growing", over_updates("growth", "nmi")),
    "time-insertion": ("Time per insertion", time_per_update("insertion")),
    "time-deletion": ("Time per deletion", time_per_update("deletion")),
    "time-over-insertions": ("Time over the insertions", over_updates("insertion", "ms")),
    "time-over-deletions": ("Time over the deletions", over_updates("deletion", "ms")),
    "time-over-growth": ("Time while growing", over_updates("growth", "ms")),
    "epsilon": ("NMI and time over epsilon", over_epsilon),
    "time-against-edges": ("Time of an update against the edges rerun", time_against_edges),
    "rounds": ("Levels against points", rounds),
    "cost-against-points": ("Cost against the number of points", cost_against_points),
    "tails": ("Median, 99th percentile and maximum", tails),
    "churn": ("Labels changed per update", churn),
    "memory": ("Memory", memory),
}


def draw_all(
    results: Results, folder: Path, figures: Mapping[str, tuple[str, Draw]] = FIGURES
) -> list[str]:
    """Draw every figure with results and return their names."""
    drawn = []
    with plt.rc_context(STYLE):
        for name, (_, draw) in figures.items():
            figure = draw(results)
            if figure is not None:
                save(figure, folder, name)
                drawn.append(name)
    return drawn
