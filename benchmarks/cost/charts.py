"""Draws the charts of the documentation from results/*.json.

python -m benchmarks.cost.charts
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from benchmarks import ROOT
from benchmarks.cost.jobs import RESULTS
from benchmarks.cost.tables import INDEXES, neighbor_rows, points_title

# Of indexes.
COLOURS = ("#0f766e", "#2563eb", "#7c3aed", "#475569", "#64748b", "#94a3b8", "#cbd5e1")


def growth(row: dict[str, Any], file: Path) -> None:
    """Draw the cost of an update and of a rebuild while a graph grows."""
    points = [at["points"] for at in row["checkpoints"]]
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    rebuild = [at["fresh_build_s"] * 1000 for at in row["checkpoints"]]
    axes.plot(points, rebuild, "o-", color="#94a3b8", label="build afresh")
    axes.plot(
        points, [at["ms"] for at in row["checkpoints"]], "o-", color="#2563eb", label="update"
    )
    axes.set_yscale("log")
    axes.set_xlabel("points in the graph")
    axes.set_ylabel("CPU milliseconds")
    axes.set_title(f"{row['name']}: one point more", fontsize=10, loc="left")
    axes.grid(color="#e2e8f0", lw=0.7)
    axes.legend(frameon=False)
    for side in ("right", "top"):
        axes.spines[side].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def neighbors(rows: list[dict[str, Any]], file: Path) -> None:
    """Draw what all neighbours and a single insertion cost, by index."""
    sets = list(dict.fromkeys(points_title(row) for row in neighbor_rows(rows)))
    figure, both = plt.subplots(1, 2, figsize=(9, 0.62 * len(sets) + 1), layout="constrained")
    cost = {
        "build and search of all, CPU seconds": lambda row: row["build_s"] + row["search_s"],
        "single insertion, CPU milliseconds": lambda row: row["insert_ms"],
    }
    for axes, (title, of) in zip(both, cost.items(), strict=True):
        for number, (name, label) in enumerate(INDEXES.items()):
            own = [row for row in rows if row["variant"] == name]
            places = [sets.index(points_title(row)) + 0.12 * (number - 3) for row in own]
            values = [of(row) for row in own]
            axes.barh(places, values, height=0.11, color=COLOURS[number], label=label)
        axes.set_xscale("log")
        axes.set_yticks(range(len(sets)), sets if axes is both[0] else [""] * len(sets), fontsize=8)
        axes.invert_yaxis()
        axes.set_title(title, fontsize=10, loc="left")
        axes.grid(axis="x", color="#e2e8f0", lw=0.7)
        axes.set_axisbelow(True)
        for side in ("right", "top", "left"):
            axes.spines[side].set_visible(False)
    both[1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(file, dpi=120)
    plt.close(figure)


def threads(rows: list[dict[str, Any]], file: Path) -> None:
    """Draw how many times faster each part is than with one thread."""
    parts: dict[str, dict[int, float]] = {}
    for row in rows:
        if row["part"] != "many points":
            size = f" of {row['size']:,}" if "size" in row else ""
            parts.setdefault(row["part"] + size, {})[row["threads"]] = row["seconds"]
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    counts = sorted({count for seconds in parts.values() for count in seconds})
    axes.plot(counts, counts, color="#94a3b8", lw=0.7, label="perfect")
    colors = iter(plt.get_cmap("tab10").colors)
    color_of: dict[str, Any] = {}  # insertions and deletions of one size have one colour
    for name, seconds in parts.items():
        faster = [seconds[min(seconds)] / seconds[count] for count in sorted(seconds)]
        kind = name.replace("delete", "insert")
        color = color_of[kind] if kind in color_of else color_of.setdefault(kind, next(colors))
        line = "o--" if "delete" in name else "o-"
        axes.plot(sorted(seconds), faster, line, ms=3, lw=1, color=color, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.set_xlabel("threads")
    axes.set_ylabel("times faster than one thread")
    axes.grid(color="#e2e8f0", lw=0.7)
    axes.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    for side in ("right", "top"):
        axes.spines[side].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def main() -> None:
    """Draw the charts that there are results for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--images", type=Path, default=ROOT / "docs" / "images")
    options = parser.parse_args()
    file = options.results / "growth.json"
    if file.exists():
        growth(json.loads(file.read_text())["rows"][0], options.images / "growth.png")
    file = options.results / "neighbors.json"
    if file.exists():
        neighbors(json.loads(file.read_text())["rows"], options.images / "neighbors.png")
    file = options.results / "threads.json"
    if file.exists():
        threads(json.loads(file.read_text())["rows"], options.images / "threads.png")


if __name__ == "__main__":
    main()
