"""``plot_dendrogram``: truncation, cuts, labels, and texts without overlaps in any figure."""

import time
import warnings

import matplotlib as mpl
import numpy as np
import pytest
from drawings import check_inside, check_texts, is_readable
from models import random_edges

from dynhac import Dendrogram, GraphHAC
from dynhac.plot.colours import PALETTE
from dynhac.plot.dendrogram import plot_dendrogram

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def rows(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def inside(ax):
    return {text.get_text() for text in ax.texts}


def from_merges(n, children, similarity, size, threshold=0.0):
    similarity = np.asarray(similarity, dtype=float)
    m = len(similarity)
    return Dendrogram(
        np.arange(n), np.reshape(children, (m, 2)), similarity, similarity,
        np.asarray(size), np.arange(m), 0.1, threshold,
    )  # fmt: skip


def chain(m, similarity=None):
    n = m + 1
    children = np.stack([np.r_[0, np.arange(n, n + m - 1)], np.arange(1, n)], axis=1)
    values = np.geomspace(0.9, 1e-4, m) if similarity is None else similarity
    return from_merges(n, children, values, np.arange(2, n + 1))


def model(n, m, **options):
    g = GraphHAC(**({"threshold": 0} | options))
    g.add(range(n), random_edges(n, m))
    return g.dendrogram()


def random_dendrogram(seed):
    """A tree or several with names of any length; similarities of one of four distributions."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 200))
    m = int(rng.integers(1, 6)) * n
    u, v = rng.integers(0, n, (2, m))
    w = (rng.random(m), rng.random(m) ** 6 + 1e-6, np.full(m, 0.5), 0.98 + 0.02 * rng.random(m))[
        seed % 4
    ]
    names = [f"{'Größe ' * int(rng.integers(0, 9))}{i}" for i in range(n)]
    g = GraphHAC(threshold=(0.0, 1e-3)[seed % 2])
    edges = {(min(a, b), max(a, b)): x for a, b, x in zip(u, v, w, strict=True) if a != b}
    pairs = [(names[a], names[b], x) for (a, b), x in edges.items()]
    g.add(names, tuple(zip(*pairs, strict=True)) if pairs else None)
    return g.dendrogram()


def test_a_small_tree_is_drawn_completely():
    g = GraphHAC(threshold=1e-4)
    g.add(["a", "b", "c$d$"], (["a", "b"], ["b", "c$d$"], [0.9, 0.3]))
    ax = g.dendrogram().plot()
    assert sorted(rows(ax)) == ["a", "b", r"c\$d\$"]
    assert ax.get_title(loc="left") == "3 leaves in 1 tree"
    assert ax.get_xlabel() == "similarity (in brackets: number of leaves)"
    assert inside(ax) == {"0.9 (2)", "0.15 (3)", "threshold 0.0001"}


def test_a_large_tree_is_truncated():
    d = model(1200, 5000)
    ax = plot_dendrogram(d, 25, min_size=1)
    assert len(rows(ax)) == 25
    closed = [int(r.strip("()").replace(",", "")) for r in rows(ax) if r.startswith("(")]
    open_leaves = sum(not r.startswith("(") for r in rows(ax))
    assert sum(closed) + open_leaves == 1200 or "left out" in ax.get_title(loc="left")


@pytest.mark.parametrize("seed", range(16))
def test_no_text_touches_a_line_or_another_text(seed):
    rng = np.random.default_rng(seed)
    d = random_dendrogram(seed)
    size = rng.uniform(4, 12), rng.uniform(3, 10)
    theta = float(rng.choice(d.min_similarity)) if seed % 3 and len(d) else None
    if theta is not None:
        theta = max(theta, d.threshold)
    with plt.rc_context({"font.size": rng.uniform(6, 15)}):
        ax = plt.subplots(figsize=size, layout="constrained")[1] if seed % 5 else None
        ax = d.plot(
            int(rng.integers(1, 50)),
            theta=theta,
            scale=("auto", "linear", "log", "rank")[seed // 4 % 4],
            ax=ax,
        )
        check_texts(ax)
        check_inside(ax)


def test_ticks_stay_within_the_figure():
    with plt.rc_context({"font.size": 13}):
        _, ax = plt.subplots(figsize=(6.6, 9.9), layout="constrained")
        check_texts(random_dendrogram(8).plot(40, ax=ax))


@pytest.mark.parametrize("max_leaves", [12, 60])
def test_most_merges_are_labelled(max_leaves):
    d = model(1200, 5000)
    ax = d.plot(max_leaves)
    check_texts(ax)
    check_inside(ax)
    merges = {
        f"{similarity:.2g} ({size:,})"
        for similarity, size in zip(d.min_similarity.tolist(), d.size.tolist(), strict=True)
    }
    assert len(ax.texts) > max_leaves // 3
    assert inside(ax) & merges


@pytest.mark.parametrize("scale", ["linear", "log", "rank"])
@pytest.mark.parametrize("inches", [3, 8])
def test_ticks_are_plain_numbers(inches, scale):
    _, ax = plt.subplots(figsize=(inches, 4), layout="constrained")
    chain(12).plot(ax=ax, scale=scale)
    check_texts(ax)
    low, high = ax.get_xlim()
    ticks = zip(ax.get_xticks().tolist(), ax.get_xticklabels(), strict=True)
    ticks = [(x, label.get_text()) for x, label in ticks if low <= x <= high]
    assert all(float(text) == pytest.approx(x, rel=0.05) for x, text in ticks)
    assert not any("e" in text for _, text in ticks)
    assert len(ticks) >= (2 if inches < 4 else 3)


def places(ax, similarities):
    """Where similarities are on the axis, as parts of its width."""
    points = np.column_stack([similarities, np.zeros(len(similarities))])
    return ax.transAxes.inverted().transform(ax.transData.transform(points))[:, 0]


def test_auto_is_the_scale_with_the_longer_branches():
    assert chain(12, np.linspace(0.9, 0.1, 12)).plot().get_xscale() == "linear"
    assert chain(12, np.linspace(0.99, 0.95, 12)).plot().get_xscale() == "linear"
    assert chain(12, np.geomspace(0.2, 0.01, 12)).plot().get_xscale() == "log"
    skewed = 0.01 + 0.13 * np.linspace(1, 0, 12) ** 4  # as merges of embeddings often are
    assert chain(12, skewed).plot().get_xscale() == "log"
    ax = chain(12, skewed).plot(scale="linear")
    assert np.median(places(ax, skewed)) < 0.2
    assert np.median(places(chain(12, skewed).plot(), skewed)) > 0.2


def test_ranks_are_equally_spaced():
    similarity = np.r_[0.9, 0.899, 0.5, 0.0001, 0.00009]
    ax = chain(5, similarity).plot(scale="rank")
    assert np.diff(places(ax, similarity)) == pytest.approx(
        places(ax, [0.899])[0] - places(ax, [0.9])[0]
    )


@pytest.mark.parametrize("scale", ["auto", "linear", "log", "rank"])
def test_similarities_of_zero(scale):
    ax = chain(4, [0.5, 0.1, 0.0, 0.0]).plot(scale=scale)
    check_texts(ax)
    check_inside(ax)
    x = places(ax, [0.0, 0.1, 0.5])
    assert np.all(np.diff(x) > 0.05)
    assert np.all((x > 0.01) & (x < 0.99))
    for similarity in ([0.0, 0.0], [0.0], [0.3, 0.3]):
        ax = chain(len(similarity), similarity).plot(scale=scale)
        check_texts(ax)
        assert np.all((places(ax, similarity) > 0.01) & (places(ax, similarity) < 0.99))


def colours_of(ax):
    """The colours of the lines of each similarity, by the right end of the line."""
    found = {}
    for collection in ax.collections:
        if isinstance(collection, LineCollection):
            for segment, colour in zip(
                collection.get_segments(), collection.get_colors(), strict=True
            ):
                found.setdefault(tuple(np.round(segment[:, 0], 6)), set()).add(
                    to_hex(colour).upper()
                )
    return found


def test_a_cut_colours_clusters_to_the_right_of_its_line():
    # Two pairs that merge at 0.8 and 0.9, a pair at 0.3 that the cut separates, a root at 0.1.
    d = from_merges(
        6, [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]], [0.9, 0.8, 0.3, 0.2, 0.1], [2, 2, 2, 4, 6]
    )
    ax = d.plot(theta=0.5)
    check_texts(ax)
    check_inside(ax)
    assert "θ = 0.5" in inside(ax)
    assert ax.get_title(loc="left") == "6 leaves in 1 tree; 4 clusters at θ = 0.5"
    found = colours_of(ax)
    assert len(found[0.5, 0.9] | found[0.5, 0.8]) == 2
    assert (found[0.5, 0.9] | found[0.5, 0.8]) <= set(PALETTE)
    (ink,) = found[0.2, 0.5]  # the lines left of the cut
    assert ink not in PALETTE
    assert found[0.1, 0.3] == {ink}


def test_merges_above_the_cut_are_opened_first():
    # A large cluster, and three small ones that are far from each other.
    u, v, w = [], [], []
    for start, end, weight in ((0, 300, 0.9), (300, 310, 0.9), (310, 320, 0.9), (320, 330, 0.9)):
        a, b = np.triu_indices(end - start, 1)
        u, v, w = [*u, *(a + start)], [*v, *(b + start)], [*w, *[weight] * len(a)]
    for a, b in ((0, 300), (300, 310), (310, 320)):
        u, v, w = [*u, a], [*v, b], [*w, 0.5]
    g = GraphHAC(threshold=0)
    g.add(range(330), (u, v, w))
    d = g.dendrogram()
    assert rows(d.plot(4)) != ["(300)", "(10)", "(10)", "(10)"]
    assert sorted(rows(d.plot(4, theta=0.5))) == ["(10)", "(10)", "(10)", "(300)"]


def test_a_cluster_with_outliers_is_coloured():
    u, v = np.triu_indices(120, 1)
    weights = [*[0.9] * len(u), *[0.5] * 5]
    g = GraphHAC(threshold=0)
    g.add(range(125), ([*u, *range(5)], [*v, *range(120, 125)], weights))
    d = g.dendrogram()
    ax = d.plot(1, theta=0.5, min_size=10)
    assert rows(ax) == ["(120)"]
    assert to_hex(ax.patches[0].get_facecolor()).upper() in PALETTE
    ax = d.plot(1, theta=0.99)
    assert to_hex(ax.patches[0].get_facecolor()).upper() not in PALETTE


def test_the_threshold_is_drawn_if_it_is_near_the_merges():
    g = GraphHAC(threshold=0.05)
    g.add(range(6), ([0, 2, 4, 1], [1, 3, 5, 2], [0.9, 0.8, 0.7, 0.3]))
    ax = g.dendrogram().plot()
    assert "threshold 0.05" in inside(ax)
    low, high = ax.get_xlim()
    assert low < 0.05 < high
    g = GraphHAC(threshold=1e-9)
    g.add(range(4), ([0, 1, 2], [1, 2, 3], [0.9, 0.8, 0.7]))
    assert not any("threshold" in text for text in inside(g.dendrogram().plot()))


def test_labels_by_a_function_of_the_ids():
    d = model(300, 1500)
    seen = []

    def label(ids):
        seen.append(ids.tolist())
        return f"from {ids[0]}" if len(ids) > 1 else None

    ax = d.plot(12, min_size=1, labels=label)
    wanted = [f"from {ids[0]} ({len(ids)})" if len(ids) > 1 else str(ids[0]) for ids in seen]
    assert rows(ax) == wanted
    assert ax.get_yticks().tolist() == sorted(ax.get_yticks())
    assert sum(len(ids) for ids in seen) == 300 or "left out" in ax.get_title(loc="left")


def test_labels_by_node_id():
    g = GraphHAC.from_graph(([1, 2, 3], [2, 3, 4], [0.9, 0.3, 0.8]))
    g.remove(4)
    g.add(4, edges=(4, 3, 0.8))  # now stable ids are not the numbers of merges
    d = g.dendrogram()
    assert sorted(d.node_ids.tolist()) != [0, 1, 2]
    names = dict(zip(d.node_ids.tolist(), ["low", "high", "all"], strict=True))
    ax = d.plot(2, labels=names)
    assert sorted(rows(ax)) == ["high (2)", "low (2)"]
    assert inside(ax) >= {"all (4)"}
    ax = d.plot(labels=names, text={1: "one", 2: "two", 3: "three", 4: "four"}.__getitem__)
    assert sorted(rows(ax)) == ["four", "one", "three", "two"]
    assert inside(ax) >= {"low (2)", "high (2)", "all (4)"}


@pytest.mark.parametrize("kind", [int, str])
def test_labels_of_clusters(kind):
    """The texts of `Clusters.node_labels` are at the branches of the clusters."""
    rng = np.random.default_rng(5)
    g = GraphHAC(threshold=0.01)
    u, v = np.triu_indices(40, 1)
    w = np.where(u // 8 == v // 8, 0.9, 0.05) * rng.uniform(0.9, 1, len(u))
    g.add([kind(i) for i in range(43)], edges=([kind(i) for i in u], [kind(i) for i in v], w))
    g.remove([kind(i) for i in (3, 11)])  # 40 to 42 are single points
    clusters = g.clusters(0.3)
    labels = clusters.node_labels(text="m{}".format)
    ax = g.dendrogram().plot(8, theta=0.3, labels=labels, text=ascii)
    wanted = [f"m{c.medoid} ({c.size})" for c in clusters.largest(5)]
    assert sorted(rows(ax)) == sorted(wanted + [ascii(kind(i)) for i in (40, 41, 42)])
    g.add(kind(99), edges=(kind(99), kind(40), 0.5))
    ax = g.dendrogram().plot(8, theta=0.3, labels=labels)  # the ids are stable
    assert {*wanted} < {*rows(ax)}
    labels = g.watch(0.3).summary().node_labels(text="m{}".format)
    assert {*wanted} < {*rows(g.dendrogram().plot(8, theta=0.3, labels=labels))}


def test_wrong_labels():
    d = model(20, 60)
    with pytest.raises(TypeError, match=r"labels is .*; it must map node_ids to texts"):
        d.plot(labels=["a"])
    with pytest.raises(TypeError, match=r"text is .*; it must be a function from the id"):
        d.plot(text={})


@pytest.mark.parametrize(
    "text", ["$\\frac$" * 30, "长的名字" * 20, "two\nlines " * 9, "x", ""], ids=range(5)
)
def test_labels_of_any_kind(text):
    d = model(300, 1500)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the font does not have all of them
        ax = d.plot(12, labels=lambda ids: text)
        check_texts(ax)
    assert all(row.endswith(")") for row in rows(ax) if row not in ("x", ""))
    assert ax.get_window_extent().width > 0.3 * ax.figure.bbox.width


def test_several_trees():
    g = GraphHAC()
    g.add(range(30), (range(0, 20, 2), range(1, 20, 2), [0.5] * 10))
    ax = g.dendrogram().plot(8)
    assert len(rows(ax)) == 8
    assert ax.get_title(loc="left") == "30 leaves in 20 trees; 16 more trees (22 leaves) left out"
    assert len(rows(g.dendrogram().plot(100))) == 30


@pytest.mark.parametrize("theta", [None, 0.5])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_no_or_few_leaves(n, theta):
    g = GraphHAC()
    g.add(range(n))
    ax = g.dendrogram().plot(theta=theta)
    check_texts(ax)
    assert len(rows(ax)) == n


def test_equal_similarities():
    g = GraphHAC()
    g.add([1, 2, 3, 4], ([1, 3], [2, 4], [0.5, 0.5]))
    ax = g.dendrogram().plot()
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    assert low < 0.5 < high


@pytest.mark.parametrize("theta", [None, 0.01])
def test_a_chain_of_a_million_merges(theta):
    d = chain(1_000_000)
    start = time.process_time()
    ax = d.plot(12, theta=theta)
    assert time.process_time() - start < 15
    assert 1 <= len(rows(ax)) <= 12
    assert "branches below 2,000 leaves not drawn" in ax.get_title(loc="left")


def test_drawing_on_given_axes():
    _, axes = plt.subplots(1, 2)
    d = model(50, 200)
    assert d.plot(10, ax=axes[1]) is axes[1]
    assert len(plt.get_fignums()) == 1
    assert not axes[0].collections


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_lines_are_visible_on_their_background(style):
    with plt.style.context(style):
        ax = model(200, 800).plot(20, theta=0.01)
        colours = [c for lines in ax.collections for c in lines.get_colors()]
        colours += [text.get_color() for text in ax.texts]
        assert all(is_readable(colour, ax.get_facecolor()) for colour in colours)


def test_a_long_title_is_broken_into_lines():
    g = GraphHAC()
    g.add(range(3000), (range(0, 20, 2), range(1, 20, 2), [0.5] * 10))
    _, ax = plt.subplots(figsize=(4, 4), layout="constrained")
    title = g.dendrogram().plot(8, ax=ax).get_title(loc="left")
    assert title.count("\n") >= 1
    assert title.replace("\n", " ").startswith("3,000 leaves in 2,990 trees; branches below 6 ")
    check_texts(ax)


def test_drawing_on_a_subfigure():
    part = plt.figure(layout="constrained").subfigures(1, 2)[0]
    ax = model(50, 200).plot(10, ax=part.subplots())
    ax.figure.canvas.draw()
    assert len(rows(ax)) == 10


@pytest.mark.parametrize("options", [{"max_leaves": 0}, {"max_leaves": 2.5}, {"min_size": 0}])
def test_bad_options(options):
    with pytest.raises(ValueError, match="must be an integer >= 1"):
        model(10, 20).plot(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "sqrt"}, "scale is 'sqrt'; it must be one of auto, linear, log, rank"),
        ({"scale": None}, "scale is None; it must be one of"),
        ({"labels": ["a"]}, "labels is"),
        ({"theta": 1e-5}, "0.01"),
        ({"theta": "a"}, "theta is 'a'"),
        ({"theta": float("inf")}, "theta is inf"),
    ],
)
def test_wrong_values(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model(10, 20, threshold=0.01).plot(**options)
