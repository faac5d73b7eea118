"""``suggest()``: the definition of persistence, and properties of the suggested cuts."""

import copy
import pickle
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynhac import Dendrogram, DynHAC, GraphHAC, Suggestion, Suggestions
from dynhac.dendrogram.suggest import APART, BELOW

SHAPES = ("star", "path", "clique", "two cliques", "sparse", "random")
WEIGHTS = ("equal", "few", "many")


def graph(shape, weights, n, epsilon, threshold, seed=0):
    rng = np.random.default_rng(seed)
    u, v = np.triu_indices(n, 1)
    if shape == "star":
        u, v = np.zeros(n - 1, int), np.arange(1, n)
    elif shape == "path":
        u, v = np.arange(n - 1), np.arange(1, n)
    elif shape == "two cliques":
        kept = (u < n // 2) == (v < n // 2)
        u, v = u[kept], v[kept]
    elif shape in ("sparse", "random"):
        kept = rng.random(len(u)) < {"sparse": 0.08, "random": 0.3}[shape]
        u, v = u[kept], v[kept]
    size = len(u)
    w = {
        "equal": lambda: np.full(size, 0.5),
        "few": lambda: rng.integers(1, 5, size) / 4,
        "many": lambda: rng.random(size) + 1e-3,
    }[weights]()
    g = GraphHAC(epsilon=epsilon, threshold=threshold)
    g.add(range(n), edges=(u, v, w))
    return g


def tree_parents(d):
    parent = {}
    for merge, (a, b) in enumerate(d.children.tolist()):
        parent[a] = parent[b] = d.n_leaves + merge
    return parent


def persistence(d, theta, least):
    """The definition, leaf by leaf; a root with more than half of all leaves counts as 0."""
    n = d.n_leaves
    parent = tree_parents(d)
    size = [1] * n + d.size.tolist()
    at = [np.inf] * n + d.min_similarity.tolist()

    def up(node):
        above = parent.get(node)
        return None if above is None or at[above] < d.threshold else above

    def is_split(node):
        return node >= n and all(size[c] >= least for c in d.children[node - n])

    total = 0.0
    for leaf in range(n):
        path = [leaf]
        while (above := up(path[-1])) is not None and at[above] >= theta:
            path.append(above)
        cluster = path[-1]
        if size[cluster] < least:
            continue
        # Where the leaf joins the branch that the cluster is in: after the last split below.
        branch = [node for node in path if size[node] >= least]
        splits = [i for i, node in enumerate(branch) if is_split(node)]
        joined = at[branch[splits[-1] if splits else 0]]
        top, divided = cluster, bool(splits)
        while (above := up(top)) is not None and not is_split(above):
            top = above
        below = [top]
        while below:  # whether anything below the top divides
            node = below.pop()
            divided = divided or is_split(node)
            below += [c for c in d.children[node - n].tolist() if c >= n] if node >= n else []
        if (above := up(top)) is not None:
            end = at[above]
        elif divided and 2 * size[top] > n:
            continue
        else:
            end = BELOW * d.threshold
        total += max(0.0, 1 - end / joined)
    return total / n


def check(d, suggestions, least):
    """What holds for all suggestions."""
    assert suggestions.min_size == least
    assert suggestions.n_points == d.n_leaves
    for cut in suggestions:
        labels = d.labels(cut.theta)
        large = d.labels(cut.theta, min_size=least)
        assert labels.max() + 1 == cut.n_all
        assert large.max() + 1 == cut.n_clusters >= 1
        assert cut.noise == pytest.approx((large < 0).mean())
        assert 0 <= cut.persistence <= 1
        assert cut.theta >= d.threshold
    order = [cut.persistence for cut in suggestions]
    assert order == sorted(order, reverse=True)
    numbers = sorted(cut.n_clusters for cut in suggestions)
    assert all(b >= APART * a for a, b in pairwise(numbers))
    labels = d.labels(min_size=least)
    assert suggestions.automatic.n_clusters == labels.max(initial=-1) + 1
    assert suggestions.automatic.noise == pytest.approx((labels < 0).mean() if len(labels) else 0)


@pytest.mark.parametrize("epsilon", [0, 0.1, 1])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_suggestions_give_what_they_say(shape, weights, epsilon):
    for threshold in (0.0, 0.01):
        d = graph(shape, weights, 40, epsilon, threshold).dendrogram()
        for least in (2, 3, 8, 25, 41):
            found = d.suggest(min_size=least)
            check(d, found, least)
            assert found == d.suggest(min_size=least)
            assert len(d.suggest(1, min_size=least)) <= 1
            assert d.suggest(1, min_size=least)[:] == found[:1]
            assert bool(found) == (d.labels(max(threshold, 1e-9), min_size=least).max() >= 0)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(SHAPES),
    st.sampled_from(WEIGHTS),
    st.integers(3, 45),
    st.sampled_from([0, 0.1, 1]),
    st.sampled_from([0.0, 0.01, 0.2]),
    st.integers(2, 6),
    st.integers(0, 1000),
)
def test_persistence_is_as_defined(shape, weights, n, epsilon, threshold, least, seed):
    d = graph(shape, weights, n, epsilon, threshold, seed).dendrogram()
    found = d.suggest(min_size=least)
    check(d, found, least)
    thetas = np.unique(d.min_similarity[d.min_similarity >= threshold])
    best = max((persistence(d, theta, least) for theta in thetas), default=0)
    if best > 1e-9:  # otherwise the roots count
        for cut in found:
            assert cut.persistence == pytest.approx(persistence(d, cut.theta, least), abs=1e-9)
        assert found[0].persistence >= 0.98 * best - 1e-9


def test_groups_of_groups_are_found_at_both_scales():
    rng = np.random.default_rng(0)
    middles = np.array([[0, 0], [5, 0], [2, 5]])[None] + 40 * np.arange(3)[:, None, None]
    model = DynHAC(n_neighbors=80, threshold=1e-5)
    model.insert(rng.normal(np.repeat(middles.reshape(-1, 2), 100, axis=0)))
    found = model.suggest()
    assert sorted(cut.n_clusters for cut in found) == [3, 9]
    assert all(cut.persistence > 0.9 and cut.noise == 0 for cut in found)
    for cut in found:
        assert float(f"{cut.theta:.2g}") == cut.theta  # a round number
        labels = model.labels(cut.theta).reshape(cut.n_clusters, -1)
        usual = np.median(labels, axis=1)
        assert (labels == usual[:, None]).mean() > 0.98
        assert len(np.unique(usual)) == cut.n_clusters
    assert model.suggest() == model.dendrogram().suggest()


def test_numbers_of_clusters_may_differ_by_a_factor_of_two():
    u, v = np.triu_indices(120, 1)
    w = np.where(u // 30 == v // 30, 0.5, np.where(u // 60 == v // 60, 0.005, 0.00005))
    g = GraphHAC.from_graph((u, v, w), threshold=1e-6)
    assert [cut.n_clusters for cut in g.suggest()] == [2, 4]


def test_groups_that_join_at_different_similarities_are_found_at_both_scales():
    # With three clusters, one pair joined, persistence is between that of two and that of four.
    for seed in range(5):
        middles = np.repeat([[0, 0], [5, 0], [30, 30], [35, 30]], 100, axis=0)
        model = DynHAC(n_neighbors=50)
        model.insert(np.random.default_rng(seed).normal(middles))
        assert [cut.n_clusters for cut in model.suggest()] == [2, 4]


@pytest.mark.parametrize(
    ("dimension", "low", "high"), [(2, 0.65, 0.82), (3, 0.65, 0.8), (32, 0.4, 0.55)]
)
def test_persistence_of_evenly_spread_points(dimension, low, high):
    model = DynHAC(n_neighbors=30, threshold=1e-4)
    model.insert(np.random.default_rng(0).random((2000, dimension)))
    assert low < model.suggest()[0].persistence < high


def test_outliers_do_not_hide_clusters():
    rng = np.random.default_rng(1)
    u, v = np.triu_indices(90, 1)
    clique = u // 30 == v // 30
    w = np.where(clique, 0.8, 0.001)
    lone = np.arange(90, 140)  # each with an edge of its own weight to some clique
    to, weight = rng.integers(0, 90, 50), np.geomspace(0.1, 0.7, 50)
    g = GraphHAC(threshold=1e-5)
    g.add(range(140), edges=(np.r_[u, to], np.r_[v, lone], np.r_[w, weight]))
    best = g.suggest()[0]
    assert best.n_clusters == 3
    assert best.persistence > 0.8
    assert len({labels.max() for labels in g.cut(np.geomspace(0.001, 0.02, 9))}) > 5
    for theta in np.geomspace(0.001, 0.02, 9):
        assert g.labels(theta, min_size=25).max() + 1 == 3


def test_nothing_to_suggest():
    for n, edges in ((0, None), (1, None), (30, None), (3, ([0, 1], [1, 2], [0.5, 0.5]))):
        g = GraphHAC()
        if n:
            g.add(range(n), edges=edges)
        found = g.suggest()
        assert len(found) == 0
        assert not found
        assert found.automatic.n_clusters == 0
        assert "no cut has a cluster of at least 25 points; try a smaller min_size" in repr(found)
        check(g.dendrogram(), found, 25)


def test_one_cluster_is_suggested_if_there_is_nothing_else():
    d = graph("clique", "equal", 60, 0, 1e-4).dendrogram()
    (only,) = d.suggest()
    assert (only.n_clusters, only.n_all, only.noise) == (1, 1, 0)
    trees = graph("two cliques", "equal", 60, 0, 0.0).dendrogram().suggest()
    assert [(cut.n_clusters, cut.persistence) for cut in trees] == [(2, 1.0)]


def test_sequence():
    d = graph("two cliques", "many", 80, 0.1, 1e-4).dendrogram()
    found = d.suggest(min_size=5)
    assert isinstance(found, Suggestions)
    assert all(isinstance(cut, Suggestion) for cut in found)
    assert list(found) == [found[i] for i in range(len(found))] == list(found.cuts)
    assert found[-1] == found[len(found) - 1]
    assert found[0] in found
    for same in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert same == found
        assert hash(same) == hash(found)
    lines = repr(found).splitlines()
    assert lines[0].startswith("<Suggestions: ")
    assert lines[1].split() == ["theta", "clusters", "all", "noise", "persistence"]
    assert len(lines) == len(found) + 3
    assert lines[-1].split()[0] == "automatic"
    with pytest.raises(IndexError):
        found[len(found)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n is 0"),
        ({"n": 1.5}, "n is 1.5"),
        ({"min_size": 1}, "min_size is 1"),
        ({"min_size": "a"}, "min_size is 'a'"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        graph("path", "many", 5, 0, 0.0).suggest(**arguments)


@pytest.mark.parametrize("shape", ["chain", "balanced"])
def test_large_trees_are_quick(shape):
    n = 2**16
    m = n - 1
    if shape == "chain":
        children = np.stack([np.r_[0, np.arange(n, n + m - 1)], np.arange(1, n)], axis=1)
        size = np.arange(2, n + 1)
    else:
        children = np.arange(2 * m).reshape(m, 2)
        size = np.concatenate([np.full(n >> i, 2**i) for i in range(1, 17)])
    similarity = np.geomspace(0.9, 1e-4, m)
    d = Dendrogram(np.arange(n), children, similarity, similarity, size, np.arange(m), 0.1, 0.0)
    start = time.perf_counter()
    found = d.suggest()
    assert time.perf_counter() - start < 1.0  # 0.06 s and 0.12 s on a quiet machine
    check(d, found, 25)
