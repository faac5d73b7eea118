"""Clusters without a threshold, cuts at a conductance, and noise: against their definitions."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import random_edges
from selection_oracle import TOLERANCE, Selection
from soak import SOAK
from strategies import PALETTES, SHAPES, Stream, weighted

from dynhac import Dendrogram, DynHAC, GraphHAC
from dynhac.dendrogram.selection import DEFAULT_MIN_SIZE

EPSILONS = (0, 0.1, 1)


def graph(shape, n, palette="many", epsilon=0.1, seed=0, threshold=1e-4):
    g = GraphHAC(epsilon, threshold)
    g.add(range(n), weighted(shape, n, palette, seed))
    return g


def oracle(g, min_size):
    """What the definition says, for the present state of a graph."""
    d = g.dendrogram()
    position = {id: i for i, id in enumerate(d.ids.tolist())}
    edges = [
        (position[u], position[v], w)
        for u, v, w in zip(*(column.tolist() for column in g.edges()), strict=True)
    ]
    return Selection(d, edges, min_size)


def assert_right(g, min_size):
    d = g.dendrogram()
    selection = oracle(g, min_size)
    tree = d.condensed(min_size)
    assert tree.level == pytest.approx([selection.level[d.n_leaves + j] for j in range(len(d))])

    branches = {branch.top: branch for branch in selection.branches()}
    assert sorted(branches) == sorted(tree.top.tolist())
    for i, top in enumerate(tree.top.tolist()):
        branch = branches[top]
        assert tree.size[i] == len(selection.leaves[top])
        assert tree.birth[i] == pytest.approx(branch.birth)
        assert tree.death[i] == pytest.approx(selection.level[branch.nodes[-1]])
        assert tree.excess[i] == pytest.approx(branch.excess, abs=TOLERANCE)
        if tree.parent[i] >= 0:
            above = branches[tree.top[tree.parent[i]]]
            assert tree.parent[i] < i
            assert branch in above.below
        else:
            assert branch.is_root

    kept = set(tree.top[tree.kept].tolist())
    labels = d.labels(min_size=min_size)
    assert labels.tolist() == selection.labels(kept)
    for root in selection.trees:
        mine = {top for top in kept if selection.leaves[top] <= selection.leaves[root.top]}
        _, tops, unsure = selection.best(root)
        assert unsure or mine == tops
    given_away = d.labels(min_size=min_size, noise="nearest")
    assert given_away.tolist() == selection.nearest(labels.tolist())
    return labels


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape, palette, epsilon):
    g = graph(shape, 24, palette, epsilon)
    for min_size in (2, 3, 5, 24, 25, 10**30):
        assert_right(g, min_size)


@given(
    seed=st.integers(0, 10**6),
    palette=st.sampled_from(sorted(PALETTES)),
    epsilon=st.sampled_from(EPSILONS),
    min_size=st.integers(2, 5),
)
def test_streams(seed, palette, epsilon, min_size):
    stream = Stream(random.Random(seed), palette, target=20)
    g = GraphHAC(epsilon)
    g.update(**stream.seed_with(random.Random(seed).choice(sorted(SHAPES)), 18))
    for _ in range(4 * SOAK):
        g.update(**stream.next())
        assert_right(g, min_size)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_conductance_cuts(shape, epsilon):
    g = graph(shape, 20, epsilon=epsilon)
    selection = oracle(g, 2)
    values = sorted(selection.conductance(node) for node in selection.children)
    between = [(a + b) / 2 for a, b in pairwise(values) if b - a > 1e-9]
    for least in [1e-12, *between, 1 - 1e-9]:
        for min_size in (None, 1, 2, 4):
            labels = g.labels(conductance=least, min_size=min_size)
            assert labels.tolist() == selection.conductance_cut(least, min_size or 1)
            nearest = g.labels(conductance=least, min_size=min_size, noise="nearest")
            assert nearest.tolist() == selection.nearest(labels.tolist())


def test_a_conductance_does_not_depend_on_the_scale():
    u, v, w = weighted("sparse", 60, "many")
    plain, scaled = GraphHAC(0, 0), GraphHAC(0, 0)
    plain.add(range(60), (u, v, w))
    scaled.add(range(60), (u, v, np.array(w) * 2.0**-8))
    for least in (0.1, 0.3, 0.5, 0.9, 1, 1.0, np.float32(0.25)):
        cut = plain.labels(conductance=least)
        assert cut.tolist() == scaled.labels(conductance=least).tolist()
    assert plain.labels(conductance=1e-9).max() + 1 == len(plain.dendrogram().roots)


@pytest.mark.parametrize("cut", [{"theta": 0.4}, {"n_clusters": 9}, {"conductance": 0.4}])
def test_noise_of_any_cut_goes_to_the_nearest_cluster(cut):
    g = graph("sparse", 30, epsilon=0)
    selection = oracle(g, 2)
    for min_size in (1, 2, 3, 5, 40):
        labels = g.labels(**cut, min_size=min_size)
        nearest = g.labels(**cut, min_size=min_size, noise="nearest")
        assert nearest.tolist() == selection.nearest(labels.tolist())
        assert (nearest >= 0).all() or (labels < 0).all()


def test_noise_stays_in_trees_without_a_cluster():
    g = graph("apart", 24)
    labels = g.labels(min_size=4, noise="nearest")
    for root in g.dendrogram().roots.tolist():
        under = [labels[i] for i in oracle(g, 4).leaves[root]]
        assert all(label < 0 for label in under) == (len(under) < 4)


def test_clusters_are_those_of_labels():
    g = GraphHAC(0)
    g.add(range(200), random_edges(200, 900, 3))
    d = g.dendrogram()
    for arguments in (
        {},
        {"min_size": 5},
        {"min_size": 5, "noise": "nearest"},
        {"conductance": 0.3, "min_size": 3, "noise": "nearest"},
        {"theta": 0.1, "min_size": 3, "noise": "nearest"},
    ):
        expected = g.labels(**arguments).tolist()
        assert d.labels(**arguments).tolist() == expected
        assert g.clusters(**arguments).labels.tolist() == expected
        assert d.clusters(**arguments).labels.tolist() == expected
    own = np.where(d.labels(min_size=5) == 0, 10**12, -1)
    assert set(g.clusters(labels=own, noise="nearest").labels.tolist()) == {10**12}
    assert g.clusters(labels=own).labels.tolist() == own.tolist()


def test_the_default_size():
    assert DEFAULT_MIN_SIZE == 25
    g = GraphHAC(0)
    g.add(range(300), random_edges(300, 3000, 1))
    assert g.labels().tolist() == g.labels(min_size=25).tolist()
    assert g.dendrogram().condensed().min_size == 25
    assert g.labels(0.1).tolist() == g.labels(0.1, min_size=1).tolist()
    two = np.repeat([0.0, 100.0], 30)[:, None] + np.linspace(0, 1, 60)[:, None] % 0.5
    model = DynHAC(n_neighbors=10)
    model.insert(two)
    assert model.labels().tolist() == [0] * 30 + [1] * 30
    assert model.labels(min_size=31).tolist() in ([-1] * 60, [0] * 60)
    assert model.labels(min_size=61).tolist() == [-1] * 60


def test_models_without_clusters():
    for g in (GraphHAC(), graph("path", 1), graph("path", 2), graph("path", 24)):
        assert g.labels().tolist() == [-1] * len(g)
        assert g.labels(noise="nearest").tolist() == [-1] * len(g)
        assert len(g.dendrogram().condensed()) == 0
        assert len(g.clusters()) == 0
        assert len(g.labels(conductance=0.5)) == len(g)
    assert graph("path", 25).labels().tolist() == [0] * 25
    assert graph("path", 2).labels(min_size=2).tolist() == [0, 0]
    g = GraphHAC()
    g.add(range(40))
    assert g.labels(min_size=2).tolist() == [-1] * 40
    assert repr(g.dendrogram().condensed(2)) == (
        "<CondensedTree: 0 branches of at least 2 leaves, 0 of them chosen>"
    )


def test_extreme_similarities():
    rng = np.random.default_rng(5)
    n = 64
    children = np.arange(2 * n - 2).reshape(-1, 2)
    for _ in range(50):
        similarity = rng.choice([5e-324, 1e-300, 1.0, 1e300, 1.7e308], n - 1)
        least = similarity.tolist()
        for j, pair in enumerate(children.tolist()):
            least[j] = min([least[j], *(least[c - n] for c in pair if c >= n)])
        d = Dendrogram(
            np.arange(n), children, similarity, np.array(least), similarity, similarity, 0, 0
        )
        tree = d.condensed(2)
        assert np.isfinite(tree.level).all()
        assert np.isfinite(tree.excess).all()
        labels = d.labels(min_size=2)
        assert labels.max() + 1 == tree.kept.sum()
        assert (labels >= 0).all()
        assert (d.labels(conductance=1e-3) >= 0).all()


@pytest.mark.parametrize("wrong", [math.nan, math.inf, 0.0, -1.0])
def test_similarities_that_are_none(wrong):
    one = np.array([wrong])
    d = Dendrogram(np.arange(2), np.array([[0, 1]]), one, one, np.array([2]), np.array([0]), 0, 0)
    for call in (d.labels, d.condensed, lambda: d.labels(conductance=0.5)):
        with pytest.raises(ValueError, match=r"similarity of node 2 is .*; it must be > 0 and fin"):
            call()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"min_size": 1}, ValueError, "min_size is 1; the automatic choice .* at least 2, since"),
        ({"min_size": 0}, ValueError, "min_size is 0; it must be an integer >= 1"),
        ({"min_size": 2.5}, TypeError, "min_size is 2.5; it must be an integer"),
        ({"theta": 5}, ValueError, r"did you mean n_clusters=5\?"),
        ({"noise": "all"}, ValueError, "noise is 'all'; it must be 'nearest' or None"),
        ({"noise": True}, TypeError, "noise is True; it must be 'nearest' or None"),
        ({"noise": -1, "theta": 0.5}, TypeError, "noise is -1; it must be 'nearest' or None"),
        ({"conductance": 0}, ValueError, "conductance is 0; it must be > 0 and <= 1"),
        ({"conductance": 1.5}, ValueError, "conductance is 1.5; it must be > 0 and <= 1"),
        ({"conductance": math.nan}, ValueError, "conductance is nan; it must be > 0 and <= 1"),
        ({"conductance": "x"}, TypeError, "conductance is 'x'; it must be one number"),
        ({"conductance": [0.5]}, TypeError, r"conductance is \[0.5\]; it must be one number"),
        ({"conductance": 0.5, "min_size": 0}, ValueError, "min_size is 0; it must be"),
        (
            {"conductance": 0.5, "theta": 0.5},
            TypeError,
            "theta is 0.5 and conductance is 0.5; give one of them",
        ),
        (
            {"conductance": 0.5, "n_clusters": 3},
            TypeError,
            "n_clusters is 3 and conductance is 0.5; give one of them",
        ),
    ],
)
def test_wrong_arguments(arguments, error, message):
    g = graph("blobs", 30)
    d = g.dendrogram()
    for call in (g.labels, d.labels, g.clusters, d.clusters):
        with pytest.raises(error, match=message):
            call(**arguments)


def test_wrong_arguments_beside_labels():
    g = graph("blobs", 30)
    for call in (g.clusters, g.dendrogram().clusters):
        with pytest.raises(TypeError, match=r"conductance is 0.5 and labels is .*; give one"):
            call(conductance=0.5, labels=[0] * 30)
        with pytest.raises(ValueError, match="noise is 'x'"):
            call(labels=[0] * 30, noise="x")


def test_a_condensed_tree():
    d = graph("blobs", 36, epsilon=0).dendrogram()
    tree = d.condensed(min_size=4)
    with pytest.raises(ValueError, match="min_size is 1; the automatic choice"):
        d.condensed(1)
    with pytest.raises(ValueError, match="read-only"):
        tree.level[0] = 1
    with pytest.raises(AttributeError):
        tree.level = None
    assert tree.kept.dtype == np.bool_
    frame = tree.to_pandas()
    assert len(frame) == len(tree) == 11
    assert frame["kept"].sum() == d.labels(min_size=4).max() + 1
    assert frame["parent"].tolist() == tree.parent.tolist()


def test_a_deep_tree():
    n = 300_000
    children = np.column_stack([np.arange(1, n), np.r_[0, np.arange(n, 2 * n - 2)]])
    similarity = 1 / np.arange(1.0, n)
    d = Dendrogram(np.arange(n), children, similarity, similarity, similarity, similarity, 0, 0)
    assert (d.labels() == 0).all()
    assert len(d.condensed()) == 1
    assert (d.labels(conductance=1) == 0).all()
    assert (d.labels(0.5, min_size=2, noise="nearest") == 0).all()
