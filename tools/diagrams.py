"""The diagram of docs/how-it-works.md: the levels of a small graph before and after an update.

Nothing in it is drawn by hand: the levels are those of a model, recovered from its dendrogram and
the level on which the engine made each merge.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import matplotlib
import numpy as np
from numpy.typing import NDArray

from dynhac import GraphHAC

matplotlib.use("Agg")
from matplotlib import pyplot as plt

IMAGES = Path(__file__).parent.parent / "docs" / "images"
EDGE, CLUSTER, GROUP = "#94a3b8", "#334155", "#dbeafe"
CHANGED, CHANGED_GROUP = "#ea580c", "#ffedd5"


Cluster: TypeAlias = frozenset[int]


class Level(NamedTuple):
    """The clusters of a level, their linkages, and what they become on the next one."""

    image: dict[Cluster, Cluster | None]  # None: finished
    linkage: dict[tuple[Cluster, Cluster], float]


def levels_of(g: GraphHAC, weights: NDArray[np.float64]) -> list[Level]:
    """Return the levels of a model, recovered from its merges."""
    s = g._engine.engine.snapshot()
    leaves = [frozenset([key]) for key in s.keys.tolist()]
    made: list[list[Cluster]] = [[] for _ in range(int(s.level.max()) + 2)]
    for (a, b), level in zip(s.children.tolist(), s.level.tolist(), strict=True):
        leaves.append(leaves[a] | leaves[b])
        made[level].append(leaves[-1])
    clusters = leaves[: len(s.keys)]
    levels = []
    for merges in made:
        between = {
            (a, b): float(weights[np.ix_(sorted(a), sorted(b))].mean())
            for i, a in enumerate(clusters)
            for b in clusters[:i]
        }
        linkage = {pair: value for pair, value in between.items() if value > 0}
        active = {c for pair in linkage for c in pair}
        image = {
            # The largest merge of this level that holds it, or itself.
            c: max((m for m in [c, *merges] if c <= m), key=len) if c in active else None
            for c in clusters
        }
        levels.append(Level(image, linkage))
        clusters = [c for c in dict.fromkeys(image.values()) if c is not None]
    return levels


def draw_level(
    axes: Any, level: Level, place: NDArray[np.float64], before: set[Cluster | None]
) -> None:
    """Draw one level; clusters that did not exist ``before`` the update have another colour."""
    centre = {c: place[sorted(c)].mean(axis=0) for c in level.image}
    for group in dict.fromkeys(level.image.values()):
        members = [c for c in level.image if level.image[c] == group]
        if group is None or len(members) == 1:
            continue
        colour = GROUP if not before or group in before else CHANGED_GROUP
        middle = np.mean([centre[c] for c in members], axis=0)
        for c in members:
            spoke = np.stack([centre[c], middle])
            axes.plot(*spoke.T, color=colour, lw=19, solid_capstyle="round", zorder=0)
    for (a, b), value in level.linkage.items():
        line = np.stack([centre[a], centre[b]])
        axes.plot(*line.T, color=EDGE, lw=0.4 + 3 * value, zorder=1)
    for c, image in level.image.items():
        colour = CLUSTER if not before or c in before else CHANGED
        size = 22 * len(c) ** 0.75
        face = "white" if image is None else colour
        axes.scatter(*centre[c], s=size, facecolor=face, edgecolor=colour, lw=1.5, zorder=2)
    axes.set_aspect("equal")
    axes.set_xlim(place[:, 0].min() - 0.6, place[:, 0].max() + 0.6)
    axes.set_ylim(place[:, 1].min() - 0.6, place[:, 1].max() + 0.6)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color("#e2e8f0")


def draw_levels(file: Path) -> None:
    """Draw the levels before and after one insertion."""
    rng = np.random.default_rng(11)
    middles = np.array([[0, 0], [1.9, 0.2], [0.2, 1.8], [2.2, 2.0]])
    place = np.concatenate([m + rng.normal(0, 0.42, (5, 2)) for m in middles])
    place = np.concatenate([place, [[2.4, 0.7]]])
    n = len(place)
    distance = np.linalg.norm(place[:, None] - place, axis=2)
    weights = np.zeros((n, n))
    for i in range(n):
        for j in np.argsort(distance[i])[1:5]:
            weights[i, j] = weights[j, i] = 1 / (1 + 3 * distance[i, j])
    u, v = np.nonzero(np.triu(weights))
    old = (u < n - 1) & (v < n - 1)

    g = GraphHAC(epsilon=0.1, threshold=0)
    g.add(range(n - 1), (u[old], v[old], weights[u, v][old]))
    rows = [levels_of(g, weights)]
    g.add(n - 1, (u[~old], v[~old], weights[u, v][~old]))
    rows.append(levels_of(g, weights))
    before: set[Cluster | None] = {c for level in rows[0] for c in level.image}

    columns = max(map(len, rows))
    figure, grid = plt.subplots(
        2, columns, figsize=(2.1 * columns, 4.6), layout="constrained", squeeze=False
    )
    for row, (levels, title) in enumerate(zip(rows, ("before", "one point more"), strict=True)):
        for column, axes in enumerate(grid[row]):
            if column >= len(levels):
                axes.set_axis_off()
                continue
            draw_level(axes, levels[column], place, before if row else set())
            if row == 0:
                axes.set_title(f"level {column}", fontsize=9)
        grid[row][0].set_ylabel(title, fontsize=9)
    figure.savefig(file, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    IMAGES.mkdir(parents=True, exist_ok=True)
    draw_levels(IMAGES / "levels.png")
