"""``plot_dendrogram``: truncation, labels without overlaps, trees of any size."""

import time
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from models import random_edges

from dynhac import Dendrogram, GraphHAC
from dynhac.plot.dendrogram import plot_dendrogram

mpl.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def rows(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def chain(m):
    n = m + 1
    children = np.stack([np.r_[0, np.arange(n, n + m - 1)], np.arange(1, n)], axis=1)
    similarity = np.geomspace(0.9, 1e-4, m)
    return Dendrogram(
        np.arange(n),
        children,
        similarity,
        similarity,
        np.arange(2, n + 1),
        np.arange(m),
        0.1,
        0.0,
    )


def model(n, m):
    g = GraphHAC(threshold=0)
    g.add(range(n), random_edges(n, m))
    return g.dendrogram()


def test_a_small_tree_is_drawn_completely():
    g = GraphHAC()
    g.add(["a", "b", "c$d$"], (["a", "b"], ["b", "c$d$"], [0.9, 0.3]))
    ax = g.dendrogram().plot()
    assert sorted(rows(ax)) == ["a", "b", r"c\$d\$"]
    assert ax.get_title(loc="left") == "3 leaves in 1 tree"
    assert ax.get_xlabel() == "similarity (in brackets: number of leaves)"
    assert {text.get_text() for text in ax.texts} == {"0.9 (2)", "0.15 (3)"}


def test_a_large_tree_is_truncated():
    d = model(1200, 5000)
    ax = plot_dendrogram(d, 25, min_size=1)
    assert len(rows(ax)) == 25
    closed = [int(r.strip("()").replace(",", "")) for r in rows(ax) if r.startswith("(")]
    open_leaves = sum(not r.startswith("(") for r in rows(ax))
    assert sum(closed) + open_leaves == 1200 or "left out" in ax.get_title(loc="left")


def test_labels_do_not_overlap():
    for d, max_leaves in ((model(20, 60), 40), (model(1200, 5000), 40), (model(1200, 5000), 120)):
        ax = d.plot(max_leaves)
        ax.figure.canvas.draw()
        boxes = sorted(
            (label.get_window_extent() for label in ax.get_yticklabels()), key=lambda b: b.y0
        )
        assert all(low.y1 <= high.y0 + 1 for low, high in pairwise(boxes))
        assert all(box.x1 <= ax.figure.bbox.x1 + 1 for box in boxes)


def pixels(ax, line):
    """The bounding box of a horizontal or vertical line."""
    ends = ax.transData.transform(np.column_stack(line.get_data()))
    return (*ends.min(axis=0), *ends.max(axis=0))


@pytest.mark.parametrize("max_leaves", [12, 40, 120])
def test_texts_at_merges_do_not_overlap(max_leaves):
    d = model(1200, 5000)
    ax = d.plot(max_leaves)
    ax.figure.canvas.draw()
    merges = {
        f"{similarity:.2g} ({size:,})"
        for similarity, size in zip(d.min_similarity.tolist(), d.size.tolist(), strict=True)
    }
    assert len(ax.texts) > max_leaves // 3
    assert {text.get_text() for text in ax.texts} & merges
    boxes = [text.get_window_extent().extents for text in ax.texts]
    others = [pixels(ax, line) for line in ax.lines] + boxes
    for i, box in enumerate(boxes):
        assert ax.bbox.x0 <= box[0]
        assert box[2] <= ax.bbox.x1
        for j, other in enumerate(others):
            apart = np.r_[other[:2] >= box[2:] - 1, other[2:] <= box[:2] + 1]
            assert apart.any() or j == i + len(ax.lines)


@pytest.mark.parametrize("inches", [3, 5, 9])
def test_ticks_of_a_logarithmic_axis_are_plain_numbers(inches):
    _, ax = plt.subplots(figsize=(inches, 4), layout="constrained")
    chain(50).plot(ax=ax)
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    ticks = zip(ax.get_xticks().tolist(), ax.get_xticklabels(), strict=True)
    ticks = [(x, label) for x, label in ticks if low <= x <= high]
    assert all(float(label.get_text()) == pytest.approx(x) for x, label in ticks)
    boxes = [label.get_window_extent() for _, label in ticks]
    assert len(boxes) >= 3
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


def test_labels_of_the_user():
    d = model(300, 1500)
    seen = []

    def label(ids):
        seen.append(ids.tolist())
        return f"{len(ids)} from {ids[0]}"

    ax = d.plot(12, min_size=1, label=label)
    assert rows(ax) == [f"{len(ids)} from {ids[0]}" for ids in seen]
    assert ax.get_yticks().tolist() == sorted(ax.get_yticks())
    assert sum(len(ids) for ids in seen) == 300 or "left out" in ax.get_title(loc="left")


def test_labels_of_the_user_are_shortened_and_escaped():
    d = model(300, 1500)
    ax = d.plot(12, label=lambda ids: "$\\frac$" + "x" * len(ids))
    ax.figure.canvas.draw()
    assert all(0 < len(text) <= 60 and text.startswith(r"\$") for text in rows(ax))


def test_several_trees():
    g = GraphHAC()
    g.add(range(30), (range(0, 20, 2), range(1, 20, 2), [0.5] * 10))
    ax = g.dendrogram().plot(8)
    assert len(rows(ax)) == 8
    assert ax.get_title(loc="left") == "30 leaves in 20 trees; 16 more trees (22 leaves) left out"
    assert len(rows(g.dendrogram().plot(100))) == 30


@pytest.mark.parametrize("n", [0, 1, 2])
def test_no_or_few_leaves(n):
    g = GraphHAC()
    g.add(range(n))
    ax = g.dendrogram().plot()
    ax.figure.canvas.draw()
    assert len(rows(ax)) == n


def test_equal_similarities():
    g = GraphHAC()
    g.add([1, 2, 3, 4], ([1, 3], [2, 4], [0.5, 0.5]))
    ax = g.dendrogram().plot()
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    assert low < 0.5 < high


def test_a_chain_of_a_million_merges():
    d = chain(1_000_000)
    start = time.process_time()
    ax = d.plot(30)
    assert time.process_time() - start < 15
    assert 1 <= len(rows(ax)) <= 30
    assert "branches below 2,000 leaves not drawn" in ax.get_title(loc="left")
    assert len(rows(chain(1000).plot(30, min_size=1))) == 30


def test_drawing_on_given_axes():
    _, axes = plt.subplots(1, 2)
    d = model(50, 200)
    assert d.plot(10, ax=axes[1]) is axes[1]
    assert len(plt.get_fignums()) == 1
    assert not axes[0].lines


def test_a_long_title_is_broken_into_lines():
    g = GraphHAC()
    g.add(range(3000), (range(0, 20, 2), range(1, 20, 2), [0.5] * 10))
    _, ax = plt.subplots(figsize=(4, 4), layout="constrained")
    title = g.dendrogram().plot(8, ax=ax).get_title(loc="left")
    assert title.count("\n") >= 1
    assert title.replace("\n", " ").startswith("3,000 leaves in 2,990 trees; branches below 6 ")
    ax.figure.canvas.draw()
    assert ax._left_title.get_window_extent().x1 <= ax.figure.bbox.x1


def test_drawing_on_a_subfigure():
    part = plt.figure(layout="constrained").subfigures(1, 2)[0]
    ax = model(50, 200).plot(10, ax=part.subplots())
    ax.figure.canvas.draw()
    assert len(rows(ax)) == 10


@pytest.mark.parametrize("options", [{"max_leaves": 0}, {"max_leaves": 2.5}, {"min_size": 0}])
def test_bad_options(options):
    with pytest.raises(ValueError, match="must be an integer >= 1"):
        model(10, 20).plot(**options)
