"""Figures that the paper does not have: tails, churn, memory, and cost by number of points."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from benchmarks.cost.jobs import RESULTS
from benchmarks.evaluation.drawing import dataset_rows, dots, legend, line, panels
from benchmarks.evaluation.names import DATASET_TITLES, SYSTEM_STYLES
from benchmarks.evaluation.read_results import Results, Row


def tails(results: Results) -> Figure | None:
    """Median, 99th percentile and maximum of the cost of our updates."""
    figure, axes = panels(["insertion", "deletion"], width=4.2, height=3.0)
    for axis, protocol in zip(axes, ("insertion", "deletion"), strict=True):
        for place, name in enumerate(results.datasets):
            row = results.row(name, "dynhac", protocol)
            if row:
                span = [row["ms_p50"], row["ms_p99"], row["ms_max"]]
                axis.plot(span, [place] * 3, "-", color="#888888", lw=1)
                looks = (("o", 7, "median"), ("D", 5, "99th percentile"), ("|", 13, "largest"))
                for value, (marker, size, label) in zip(span, looks, strict=True):
                    axis.plot(value, place, marker, color="#0072B2", ms=size, mew=2, label=label)
        dataset_rows(axis, results)
        axis.set_xscale("log")
        axis.set_xlabel("ms per update (CPU)")
    legend(figure, axes)
    return figure


def churn(results: Results) -> Figure | None:
    """Labels changed per update: ours against recomputation and the baselines."""
    figure, axes = panels(["insertion", "deletion"], width=4.4, height=3.2)
    systems = [s for s in results.systems if any(_churned(results, s))]
    for axis, protocol in zip(axes, ("insertion", "deletion"), strict=True):
        for place, name in enumerate(results.datasets):
            for shift, system in enumerate(systems):
                row = results.row(name, system, protocol, kind="churn")
                if row:
                    style = SYSTEM_STYLES[system]
                    y = place + (shift - (len(systems) - 1) / 2) * 0.16
                    mean = row["changed_mean"]
                    axis.plot(mean, y, style.marker, color=style.colour, ms=6, label=style.title)
        dataset_rows(axis, results)
        axis.set_xscale("symlog", linthresh=0.1)
        axis.set_xlim(-0.01, 1.6 * max([1, *(x for at in axis.lines for x in at.get_xdata())]))
        axis.set_xlabel("labels changed per update, mean")
    legend(figure, axes)
    return figure


def _churned(results: Results, system: str) -> list[Row]:
    found = [results.row(d, system, "insertion", kind="churn") for d in results.datasets]
    return [row for row in found if row]


def memory(results: Results) -> Figure:
    """Memory that every system adds to its process."""

    def values(name: str, system: str) -> list[tuple[float, bool]]:
        row = results.row(name, system, "insertion")
        return [(max(row["rss_peak_mb"] - row["rss_input_mb"], 0.1), True)] if row else []

    return dots(results, values, "MB added by the build (peak)", log=True)


def cost_against_points(results: Results) -> Figure | None:
    """Cost of an update by number of points: this run, and growth and scale of benchmarks.cost."""
    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    for name in results.datasets:
        for system in ("dynhac", "static"):
            row = results.row(name, system, "growth")
            at = [c for c in row["checkpoints"] if "ms" in c] if row else []
            if at:
                style = line(SYSTEM_STYLES[system])
                style["label"] = f"{DATASET_TITLES[name]}: {style['label']} (this run)"
                axes.plot([c["points"] for c in at], [c["ms"] for c in at], **style)
    for grown in _published("growth"):
        label = f"{DATASET_TITLES[grown['name']]}: growth.json"
        points = [c["points"] for c in grown["checkpoints"]]
        ms = [c["ms"] for c in grown["checkpoints"]]
        axes.plot(points, ms, "s--", color="#56B4E9", label=f"{label}, update")
        fresh = [c["fresh_build_s"] * 1e3 for c in grown["checkpoints"]]
        axes.plot(points, fresh, "s--", color="#999999", label=f"{label}, bulk build")
    scale = sorted(_published("scale"), key=lambda r: r["size"])
    if scale:
        sizes = [r["size"] for r in scale]
        for kind, marker in (("insert", "^"), ("delete", "v")):
            ms = [r[kind]["engine"] for r in scale]
            label = f"{scale[0]['name']}: scale.json, {kind} in the engine"
            axes.plot(sizes, ms, f"{marker}-", color="#009E73", label=label)
        build = [r["build_s"] * 1e3 for r in scale]
        axes.plot(
            sizes, build, "x:", color="#D55E00", label=f"{scale[0]['name']}: scale.json, build"
        )
    if not axes.lines:
        plt.close(figure)
        return None
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("points")
    axes.set_ylabel("CPU ms")
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return figure


def _published(experiment: str) -> list[Row]:
    file = RESULTS / f"{experiment}.json"
    rows: list[Row] = json.loads(file.read_text())["rows"] if file.exists() else []
    return rows
