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


def main() -> None:
    """Draw the charts that there are results for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--images", type=Path, default=ROOT / "docs" / "images")
    options = parser.parse_args()
    file = options.results / "growth.json"
    if file.exists():
        growth(json.loads(file.read_text())["rows"][0], options.images / "growth.png")


if __name__ == "__main__":
    main()
