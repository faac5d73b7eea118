"""The pictures of the tutorial, the guide and the mathematics, each drawn from a model.

The timeline of made-up news is drawn by examples/news_stream.py.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

from dynhac import DynHAC, GraphHAC
from dynhac.plot.colours import PALETTE, colours_of

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
LONE, EDGE, INK = "#cbd5e1", "#94a3b8", "#334155"


def draw_tutorial(file: Path) -> None:
    """Draw the dendrogram of docs/tutorial.md."""
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    model = DynHAC(n_neighbors=10)
    model.insert(X[:1500])

    def describe(ids: NDArray[np.int64]) -> str:
        counts = np.bincount(digit[ids])
        return f"{counts.max() / len(ids):.0%} are {counts.argmax()}"

    axes = model.dendrogram().plot(20, labels=describe)
    axes.figure.savefig(file, dpi=110)
    plt.close(axes.figure)


def plain(axes: Any) -> None:
    """Remove ticks and frame."""
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color("#e2e8f0")


def draw_cuts(file: Path) -> None:
    """Draw points in the plane, coloured by two cuts, beside their hierarchy."""
    rng = np.random.default_rng(4)
    middles = np.array([[0.0, 0.0], [1.4, 0.3], [4.2, 0.2], [4.4, 1.7], [2.2, 3.4], [3.2, 4.2]])
    points = np.concatenate([m + rng.normal(0, 0.22, (6, 2)) for m in middles])
    model = DynHAC(n_neighbors=20, threshold=1e-3, epsilon=0.0)
    model.insert(points)
    dendrogram = model.dendrogram()

    figure, grid = plt.subplots(
        2, 2, figsize=(9.5, 7.5), layout="constrained", width_ratios=(1.35, 1)
    )
    u, v, _ = model.graph.edges()
    for (left, right), theta in zip(grid, (0.5, 0.25), strict=True):
        rows: list[int] = []  # points from the top down, as the dendrogram has them

        def no_text(ids: NDArray[np.int64], rows: list[int] = rows) -> str:
            rows.extend(ids.tolist())
            return ""

        dendrogram.plot(36, theta=theta, labels=no_text, ax=left)
        labels = dendrogram.labels(theta)
        for a, b in zip(u.tolist(), v.tolist(), strict=True):
            right.plot(*points[[a, b]].T, color="#e2e8f0", lw=0.6, zorder=0)
        # The same colours: the dendrogram numbers clusters of two or more from the top down.
        clusters = [c for c in dict.fromkeys(labels[rows].tolist()) if (labels == c).sum() > 1]
        for label in range(labels.max() + 1):
            colour = PALETTE[clusters.index(label)] if label in clusters else LONE
            right.scatter(*points[labels == label].T, s=26, color=colour, zorder=1)
        right.set_title(f"θ = {theta:g}: {labels.max() + 1} clusters", fontsize=9, loc="left")
        right.set_aspect("equal")
        plain(right)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def unequal_points() -> NDArray[np.float64]:
    """Return three dense groups, two sparse ones, and some points everywhere."""
    rng = np.random.default_rng(3)
    dense = [rng.normal(middle, 0.35, (150, 2)) for middle in ([0, 0], [2.2, 0.4], [0.9, 2.2])]
    sparse = [rng.normal(middle, 1.7, (300, 2)) for middle in ([10, -1], [7.5, 9])]
    return np.concatenate([*dense, *sparse, rng.uniform([-4, -7], [16, 15], (60, 2))])


def draw_how_many(file: Path) -> None:
    """Draw points in the plane, coloured by the automatic choice, beside the condensed tree."""
    points = unequal_points()
    model = DynHAC(n_neighbors=50)
    model.insert(points)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9.5, 4.6), layout="constrained", width_ratios=(1.25, 1)
    )
    model.dendrogram().plot_persistence(ax=left)
    labels = model.labels()
    colours = colours_of(range(labels.max() + 1))
    right.scatter(*points.T, s=9, color=[colours.get(label, LONE) for label in labels.tolist()])
    for label in range(labels.max() + 1):
        x, y = np.median(points[labels == label], axis=0)
        style: dict[str, Any] = {"fc": "white", "ec": "none", "pad": 1, "alpha": 0.8}
        right.text(x, y, str(label), ha="center", va="center", color=INK, bbox=style)
    right.set_aspect("equal")
    plain(right)
    figure.savefig(file, dpi=100)
    plt.close(figure)


def draw_digits(file: Path) -> None:
    """Draw the condensed tree of the digits, with the digits in every cluster."""
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    model = DynHAC(n_neighbors=50)
    model.insert(X)

    def most(ids: NDArray[np.int64]) -> str:
        counts = np.bincount(digit[ids])
        return f"{counts.max() / len(ids):.0%} are {counts.argmax()}"

    axes = model.dendrogram().plot_persistence(theta=model.suggest()[0].theta, labels=most)
    axes.figure.savefig(file, dpi=100)
    plt.close(axes.figure)


def draw_drift(file: Path) -> None:
    """Draw how many clusters there are while ten groups of points grow."""
    rng = np.random.default_rng(0)
    middles = rng.uniform(0, 40, (10, 2))
    points = middles[rng.permutation(np.repeat(np.arange(10), 800))] + rng.normal(0, 1.3, (8000, 2))
    model = DynHAC(n_neighbors=20)
    cuts: dict[str, dict[str, float]] = {
        "θ = 0.03": {"theta": 0.03},
        "θ = 0.01": {"theta": 0.01},
        "conductance = 0.1": {"conductance": 0.1},
        "conductance = 0.02": {"conductance": 0.02},
        "automatic": {},
    }
    sizes = [500, 1000, 2000, 4000, 8000]
    found: dict[str, list[int]] = {name: [] for name in cuts}
    for start, end in pairwise([0, *sizes]):
        model.insert(points[start:end])
        for name, cut in cuts.items():
            found[name].append(int(model.labels(**cut, min_size=25).max()) + 1)
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    for name, colour in zip(cuts, PALETTE, strict=False):
        width = 1.5 if cuts[name] else 3
        axes.plot(sizes, found[name], "o-", color=colour, label=name, ms=4, lw=width)
    axes.axhline(10, color=LONE, lw=1, ls="--", zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="points", ylabel="clusters of at least 25")
    for axis, ticks in ((axes.xaxis, sizes), (axes.yaxis, [10, 20, 50, 100])):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(file, dpi=100)
    plt.close(figure)


def draw_merges(file: Path) -> None:
    """Draw three small graphs and which of their merges are good."""
    triples = (
        ("mutual best: good for any ε", 0.9, 0.6),
        ("v has a slightly better one: good for ε = 0.1", 0.6, 0.64),
        ("v has a much better one: not good", 0.6, 0.9),
    )
    figure, grid = plt.subplots(1, 3, figsize=(9, 1.6), layout="constrained")
    place = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    for axes, (title, first, second) in zip(grid, triples, strict=True):
        good = max(first, second) <= 1.1 * first  # the rule for two single points u and v
        if good and first > second:  # what the engine itself does with the mutual best pair
            g = GraphHAC.from_graph((["u", "v"], ["v", "x"], [first, second]), epsilon=0.1)
            assert g.dendrogram().ids[g.dendrogram().children[0]].tolist() == ["u", "v"]
        colour = PALETTE[2] if good else PALETTE[5]
        for (i, j), weight, ink in (((0, 1), first, colour), ((1, 2), second, EDGE)):
            axes.plot(*place[[i, j]].T, color=ink, lw=1 + 5 * weight, zorder=0)
            axes.text((i + j) / 2, 0.16, f"{weight:g}", ha="center")
        axes.scatter(*place.T, s=380, color="white", edgecolor=INK, lw=1.5)
        for name, (x, y) in zip("uvx", place, strict=True):
            axes.text(x, y, name, ha="center", va="center_baseline", color=INK)
        axes.set_xlim(-0.4, 2.4)
        axes.set_ylim(-0.45, 0.6)
        axes.set_title(title, fontsize=8.5, loc="left")
        plain(axes)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def draw_news(file: Path) -> None:
    """Draw the timeline of the news example on its made-up data."""
    sys.path.insert(0, str(ROOT / "examples"))
    import generated
    import news_stream

    topics = news_stream.Topics(generated.news(), window=100, theta=0.2, min_size=8)
    for start in range(0, len(topics.data["X"]), 10):
        topics.insert(np.arange(start, min(start + 10, len(topics.data["X"]))))
    topics.draw(file)


if __name__ == "__main__":
    IMAGES.mkdir(parents=True, exist_ok=True)
    draw_tutorial(IMAGES / "tutorial.png")
    draw_cuts(IMAGES / "cuts.png")
    draw_how_many(IMAGES / "how-many.png")
    draw_digits(IMAGES / "persistence.png")
    draw_drift(IMAGES / "drift.png")
    draw_merges(IMAGES / "merges.png")
    draw_news(IMAGES / "news.png")
