"""``plot_persistence``: widths, colours and texts of the condensed tree, in any figure."""

import time

import matplotlib as mpl
import numpy as np
import pytest
from drawings import check_texts, is_readable, overlap
from models import random_edges

from dynhac import Dendrogram, DynHAC, GraphHAC, plot_persistence
from dynhac.dendrogram.sketch import Marked, cluster_nodes
from dynhac.plot.branches import NONE, Layout

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.path import Path
from matplotlib.transforms import Bbox


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def blobs(sizes=(150, 100, 60, 40), k=30, seed=0, apart=12.0):
    rng = np.random.default_rng(seed)
    middles = np.repeat(np.arange(len(sizes)) * apart, sizes)
    model = DynHAC(n_neighbors=k, threshold=1e-4)
    model.insert(rng.normal(np.column_stack([middles, 0 * middles])))
    return model


def random_tree(seed, n=400):
    rng = np.random.default_rng(seed)
    g = GraphHAC(threshold=(0.0, 1e-3)[seed % 2])
    g.add(range(n), random_edges(n, int(rng.integers(1, 5)) * n))
    return g.dendrogram()


def shapes(ax):
    """The outlines of all branches, in pixels, and their colours."""
    (found,) = [c for c in ax.collections if isinstance(c, PolyCollection)]
    outlines = [ax.transData.transform(path.vertices) for path in found.get_paths()]
    return list(zip(outlines, [to_hex(c) for c in found.get_facecolors()], strict=True))


def layout_of(d, least, theta=None):
    labels = d.labels(theta, min_size=least)
    return Layout(d, least, cluster_nodes(d, labels), theta), labels


def across(layout, similarity):
    """The pieces that a horizontal line crosses: their left ends, right ends and clusters."""
    found = []
    for piece in layout.pieces:
        for start, end, width in zip(piece.at, piece.at[1:], piece.width, strict=False):
            if start < similarity <= end:
                found.append((piece.x - width / 2, piece.x + width / 2, piece.cluster))
    return sorted(found)


@pytest.mark.parametrize("seed", range(8))
def test_a_line_crosses_the_clusters_of_its_cut(seed):
    d = random_tree(seed)
    layout, _ = layout_of(d, 5)
    for theta in np.geomspace(layout.low * 1.01, layout.high, 30):
        theta = max(theta, d.threshold)
        labels = d.labels(theta, min_size=5)
        crossed = across(layout, theta)
        sizes = sorted(np.bincount(labels[labels >= 0]).tolist())
        assert sorted(round(b - a) for a, b, _ in crossed) == sizes
        assert all(b <= c + 1e-9 for (_, b, _), (c, _, _) in zip(crossed, crossed[1:]))  # noqa: B905, RUF007


@pytest.mark.parametrize("theta", [None, 0.02])
@pytest.mark.parametrize("seed", range(4))
def test_clusters_have_pieces_of_their_size(seed, theta):
    d = random_tree(seed)
    layout, labels = layout_of(d, 10, theta)
    widest = {}
    for piece in layout.pieces:
        widest[piece.cluster] = max(widest.get(piece.cluster, 0), piece.width[0])
    widest.pop(NONE, None)
    assert widest == dict(enumerate(np.bincount(labels[labels >= 0]).tolist()))
    if theta is not None:
        for piece in layout.pieces:
            assert piece.at[0] >= theta or piece.cluster == NONE
            assert piece.at[-1] <= theta or piece.cluster != NONE


def test_small_clusters_of_a_large_tree_are_drawn():
    g = GraphHAC(threshold=0)
    g.add(range(20_000), random_edges(20_000, 60_000))
    d = g.dendrogram()
    layout, labels = layout_of(d, 5)
    assert layout.drawn_least == 40
    assert {p.cluster for p in layout.pieces} - {NONE} == set(range(labels.max() + 1))


def test_title_and_axes():
    model = blobs()
    d = model.dendrogram()
    ax = plot_persistence(d)
    number = d.labels().max() + 1
    title = " ".join(ax.get_title(loc="left").split())
    assert title.startswith(f"350 leaves in {len(d.roots)} tree")
    assert f"{number} clusters of at least 25 leaves chosen automatically" in title
    assert ax.get_yscale() == "log"
    bottom, top = ax.get_ylim()
    assert bottom > top  # similarity grows downwards
    labels = {text.get_text().split()[0].split("\n")[0] for text in ax.texts if text.get_text()}
    assert labels <= {str(label) for label in range(number)}
    assert len(labels) > number / 2
    ax = d.plot_persistence(theta=0.01, min_size=10)
    assert "at θ = 0.01" in ax.get_title(loc="left")


def test_texts_of_clusters():
    model = blobs((150, 100, 60))
    d = model.dendrogram()
    theta = model.suggest()[0].theta
    clusters = model.clusters(theta, min_size=25)
    assert len(clusters) == 3
    names = clusters.node_labels(text=lambda id: f"p{id}")
    ax = d.plot_persistence(theta=theta, labels=names)
    written = " ".join(text.get_text() for text in ax.texts)
    assert all(name in written for name in names.values())
    called = []

    def describe(ids):
        called.append(len(ids))
        return None if len(ids) == 100 else f"n{len(ids)}$"

    ax = d.plot_persistence(theta=theta, labels=describe)
    assert called == clusters.sizes.tolist()
    written = " ".join(text.get_text() for text in ax.texts).replace("\n", " ")
    assert r"n150\$ (150)" in written
    assert "1 (100)" in written


def check_no_overlap(ax):
    """Texts overlap neither each other nor the edge of a branch; below branches they touch none."""
    check_texts(ax)
    pieces = shapes(ax)
    texts = [text for text in ax.texts if text.get_text()]
    for text in texts:
        box = text.get_window_extent()
        corners = [(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)]
        for outline, colour in pieces:
            extent = Bbox([outline.min(axis=0), outline.max(axis=0)])
            if not overlap(box, extent):
                continue
            path = Path(outline, closed=False)
            if path.contains_points(corners).all():
                assert is_readable(text.get_color(), colour)
            else:
                assert not path.intersects_bbox(box.padded(-0.5), filled=True), text
    for leader in ax.texts:
        if leader.get_text() == "":
            line = leader.arrow_patch.get_window_extent()
            line = Bbox([[line.x0, line.y0 + 2], [line.x1, line.y1 - 3]])  # without its two ends
            assert not any(overlap(line.padded(1), text.get_window_extent()) for text in texts)
            for outline, _ in pieces:
                assert not Path(outline, closed=False).intersects_bbox(line, filled=True)


@pytest.mark.parametrize("seed", range(12))
def test_no_text_overlaps(seed):
    rng = np.random.default_rng(seed)
    d = random_tree(seed) if seed % 2 else blobs(rng.integers(20, 120, 9), seed=seed).dendrogram()
    theta = float(np.quantile(d.min_similarity, 0.2)) if seed % 3 == 0 else None
    names = (None, lambda ids: "Größe " * int(rng.integers(1, 9)))[seed // 2 % 2]
    with plt.rc_context({"font.size": rng.uniform(6, 14)}):
        size = rng.uniform(4, 12), rng.uniform(3, 9)
        ax = plt.subplots(figsize=size, layout="constrained")[1] if seed % 4 else None
        ax = d.plot_persistence(
            min_size=int(rng.integers(2, 20)),
            theta=None if theta is None else max(theta, d.threshold),
            labels=names,
            ax=ax,
        )
        check_no_overlap(ax)


@pytest.mark.parametrize("seed", range(5))
def test_texts_of_narrow_clusters_have_lines_to_them(seed):
    sizes = np.random.default_rng(seed).integers(25, 40, 30)
    d = blobs(sizes, k=15, seed=seed, apart=9.0).dendrogram()
    ax = d.plot_persistence()
    check_no_overlap(ax)
    assert any(text.get_text() == "" for text in ax.texts)


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_themes(style):
    with plt.style.context(style):
        ax = blobs().dendrogram().plot_persistence()
        check_no_overlap(ax)
        assert all(is_readable(c, ax.get_facecolor()) for _, c in shapes(ax))


@pytest.mark.parametrize("n", [0, 1, 2, 30])
def test_few_leaves(n):
    g = GraphHAC()
    if n:
        g.add(range(n), edges=(0, 1, 0.5) if n > 1 else None)
    for least in (2, 25):
        ax = g.dendrogram().plot_persistence(min_size=least)
        check_texts(ax)
        shown = n > 1 and least == 2
        assert len(shapes(ax)) == shown
        assert f"{int(shown)} cluster" in ax.get_title(loc="left")


def test_equal_weights_and_several_trees():
    u, v = np.triu_indices(80, 1)
    kept = u // 40 == v // 40
    g = GraphHAC.from_graph((u[kept], v[kept], np.full(kept.sum(), 0.5)))
    ax = g.dendrogram().plot_persistence()
    check_no_overlap(ax)
    assert "80 leaves in 2 trees" in ax.get_title(loc="left")
    assert len(shapes(ax)) >= 2


def test_a_chain_of_many_merges_is_quick():
    n = 100_000
    m = n - 1
    children = np.stack([np.r_[0, np.arange(n, n + m - 1)], np.arange(1, n)], axis=1)
    s = np.geomspace(0.9, 1e-4, m)
    d = Dendrogram(np.arange(n), children, s, s, np.arange(2, n + 1), np.arange(m), 0.1, 0.0)
    start = time.perf_counter()
    ax = d.plot_persistence()
    ax.figure.canvas.draw()
    assert time.perf_counter() - start < 6.0
    (only,) = shapes(ax)
    assert len(only[0]) < 5000  # steps that cannot be seen are left out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"min_size": 1}, "min_size is 1"),
        ({"theta": "a"}, "theta is 'a'"),
        ({"theta": 1e-9}, "theta is 1e-09"),
        ({"labels": 7}, "labels"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        blobs((30, 30)).dendrogram().plot_persistence(**arguments)


def test_dendrograms_show_the_automatic_clusters():
    model = blobs()
    d = model.dendrogram()
    labels = d.labels()
    number = labels.max() + 1
    ax = d.plot(200, min_size=1)
    assert f"{number} automatic clusters of at least 25" in ax.get_title(loc="left")
    lines = ax.collections[0]
    colours = {to_hex(c) for c in lines.get_colors()}
    assert len(colours) >= number
    small = blobs((10, 10)).dendrogram()
    assert "cluster" not in small.plot().get_title(loc="left")


@pytest.mark.parametrize("seed", range(6))
def test_marked_merges(seed):
    d = random_tree(seed, 120)
    labels = d.labels(min_size=4)
    marked = Marked.by_labels(d, labels)
    leaves = [{i} for i in range(d.n_leaves)]
    for merge, (a, b) in enumerate(d.children.tolist()):
        leaves.append(leaves[a] | leaves[b])
        found = {int(labels[i]) for i in leaves[-1]}
        inside = len(found) == 1 and NONE not in found
        assert marked.inside[merge] == inside
        assert marked.above[merge] == (not inside and found != {NONE})
    cut = Marked.by_cut(d, 0.1)
    assert cut.inside == [not above for above in cut.above] == (d.min_similarity >= 0.1).tolist()
