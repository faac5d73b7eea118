"""The published algorithm: guarantee, exactness, and updates against a fresh run."""

import random
from fractions import Fraction

import oracles
import pytest
from strategies import PALETTES, SHAPES, Stream, fixed, weighted

from dynhac.reference import PaperDynHAC
from dynhac.reference.dynamic_dendrogram import DynamicDendrogram, Node
from dynhac.reference.partitions import is_red
from dynhac.reference.subgraph import subgraph_hac

EPSILONS = (0.0, 0.1, 1.0)


def made(p):
    return [(m.left, m.right, m.linkage, m.size, m.level) for m in p.merges()]


def fresh(p):
    """A new instance with the same graph, inserted in one batch."""
    edges = p.edges()
    q = PaperDynHAC(p.epsilon, p.threshold, max_rounds=p.max_rounds)
    q.update(add=p.ids, edges=([e[0] for e in edges], [e[1] for e in edges], [e[2] for e in edges]))
    return q


def judge(p, edges):
    """Assert the invariants of a state, given the edges by position in ``ids``."""
    found = p.verify()
    assert found.ok, found
    n, merges = len(p), p.merges()
    assert found.merges == len(merges)
    assert oracles.approximation(n, edges, merges) <= 1 + p.epsilon
    replayed = oracles.full_check(n, edges, merges, p.epsilon, p.threshold)
    assert replayed.wrong_similarities == replayed.heavy_edges_left == 0
    if p.epsilon == 0:
        oracles.assert_exact(n, edges, merges, p.threshold)
    for theta in (0.4, 0.11):
        if theta >= p.threshold:
            assert p.labels(theta).tolist() == oracles.cut(n, merges, theta)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize("shape", SHAPES)
def test_one_batch(shape, palette, epsilon):
    n = 16
    columns = weighted(shape, n, palette)
    p = PaperDynHAC(epsilon, 0.0)
    p.update(add=range(n), edges=columns)
    judge(p, fixed(columns))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize("seed", range(6))
def test_updates_give_the_state_of_a_fresh_run(seed, palette, epsilon):
    rng = random.Random(seed)
    stream = Stream(rng, palette, target=14, text=seed % 2 == 1)
    threshold = rng.choice((0.0, 0.01, 0.25))
    p = PaperDynHAC(epsilon, threshold, max_rounds=rng.choice((64, 64, 1)))
    p.update(**stream.seed_with(rng.choice(list(SHAPES)), 10))
    for _ in range(25):
        batch, error = stream.bad()
        before = made(p)
        with pytest.raises(error):
            p.update(**batch)
        assert made(p) == before
        p.update(**stream.next())
        assert p.ids == list(stream.model)
        judge(p, stream.indexed())
        assert made(p) == made(fresh(p))


@pytest.mark.parametrize("shape", SHAPES)
def test_insert_one_by_one_and_delete_again(shape):
    n = 12
    u, v, w = weighted(shape, n, "few")
    p = PaperDynHAC(0.1, 0.01)
    states = []
    for x in range(n):
        states.append(made(p))
        late = [i for i in range(len(u)) if max(u[i], v[i]) == x]
        p.update(add=[x], edges=([u[i] for i in late], [v[i] for i in late], [w[i] for i in late]))
        assert p.verify().ok
    for x in reversed(range(n)):
        p.update(remove=[x])
        assert made(p) == states[x]
    assert len(p) == p.rounds == 0


def test_an_edge_between_two_new_vertices_may_be_listed_once():
    for edge in (([1], [2], [0.5]), ([2], [1], [0.5]), ([1, 2], [2, 1], [0.5, 0.5])):
        p = PaperDynHAC()
        p.update(add=[1, 2], edges=edge)
        assert [m.similarity for m in p.merges()] == [0.5]


@pytest.mark.parametrize("n", [2, 3, 17, 40])
def test_equal_weights_terminate(n):
    p = PaperDynHAC(0.0, 0.0)
    p.update(add=range(n), edges=weighted("clique", n, "equal"))
    assert len(p.merges()) == n - 1
    assert {m.similarity for m in p.merges()} == {1.0}


@pytest.mark.parametrize("max_rounds", [0, 1, 5, 64])
def test_rounds_are_bounded(max_rounds):
    n = 90  # weights that rise along a path: with epsilon 0 the merges form one long chain
    p = PaperDynHAC(0.0, 0.0, max_rounds=max_rounds)
    p.update(add=range(n), edges=(range(n - 1), range(1, n), [1.0 + i for i in range(n - 1)]))
    assert p.rounds <= max_rounds + 1
    assert len(p.merges()) == n - 1
    p.update(remove=[n // 2], edges=([0], [n - 1], [0.5]))
    assert p.verify().ok
    assert made(p) == made(fresh(p))


def test_edges_between_old_vertices():
    p = PaperDynHAC(0.0, 0.0)
    p.update(add="abc", edges=(["a"], ["b"], [1.0]))
    p.update(edges=(["b"], ["c"], [2.0]))
    assert p.ids == ["a", "b", "c"]
    assert [(m.left, m.right, m.similarity) for m in p.merges()] == [(1, 2, 2.0), (0, 3, 0.5)]
    p.update(edges=(["c"], ["b"], [0.5]))
    assert [(m.left, m.right, m.similarity) for m in p.merges()] == [(0, 1, 1.0), (3, 2, 0.25)]
    p.update(remove_edges=(["b"], ["a"]))
    assert p.edges() == [("b", "c", 0.5)]
    assert [(m.left, m.right, m.similarity) for m in p.merges()] == [(1, 2, 0.5)]


def test_unaffected_clusters_keep_their_handles():
    p = PaperDynHAC(0.1, 0.0)
    p.update(add=range(60), edges=weighted("apart", 60, "many"))
    before = dict(p._dendrogram.nodes)
    p.update(remove=[59])
    after = p._dendrogram.nodes
    kept = sum(before[h] is after.get(h) for h in before)
    assert kept > len(before) - 12


def test_an_edge_is_heavy_from_threshold_over_one_plus_epsilon():
    for weight, merges in ((0.25, 1), (0.25 - 2**-20, 0)):
        p = PaperDynHAC(1.0, 0.5)
        p.update(add=[0, 1], edges=([0], [1], [weight]))
        assert len(p.merges()) == merges


def test_a_weak_merge_of_an_earlier_round_counts():
    graph = {0: {1: 100}, 1: {0: 100, 2: 108}, 2: {1: 108}}
    for min_merge, steps in ((100, 1), (95, 0)):
        clusters = {0: Node((0, ""), min_merge=min_merge), 1: Node((1, "")), 2: Node((2, ""))}
        assert len(subgraph_hac(graph, [0, 1], clusters, Fraction(1, 10), Fraction(0))) == steps


def test_min_merge_is_passed_to_the_parent():
    d = DynamicDendrogram()
    a, b, c = (d.add_leaf(v) for v in "abc")
    ab = d.join(a, b, Fraction(2))
    assert d.nodes[d.join(c, ab, Fraction(3))].min_merge == 2


def test_coins_are_fair_and_differ_between_levels():
    tosses = [[is_red((v, ""), level) for v in range(2000)] for level in (0, 1)]
    assert all(900 < sum(row) < 1100 for row in tosses)
    assert 900 < sum(a != b for a, b in zip(*tosses, strict=True)) < 1100


@pytest.mark.parametrize(
    ("batch", "error", "word"),
    [
        ({"remove": [9]}, KeyError, "9"),
        ({"remove": [1, 1]}, ValueError, "1"),
        ({"add": [1]}, ValueError, "1"),
        ({"add": [5, 5]}, ValueError, "5"),
        ({"add": ["x"]}, TypeError, "x"),
        ({"add": [1.5]}, TypeError, "1.5"),
        ({"edges": ([1], [9], [1.0])}, KeyError, "9"),
        ({"edges": ([1], [1], [1.0])}, ValueError, "self loop"),
        ({"edges": ([1], [2], [float("nan")])}, ValueError, "nan"),
        ({"edges": ([1], [2], [0.0])}, ValueError, "0"),
        ({"edges": ([1, 2], [2, 1], [1.0, 2.0])}, ValueError, "two different weights"),
        ({"edges": ([1], [2], [])}, ValueError, "zip"),
        ({"remove_edges": ([1], [3])}, KeyError, "no such edge"),
        ({"remove_edges": ([1], [9])}, KeyError, "9"),
        ({"remove": [2], "remove_edges": ([1], [2])}, KeyError, "2"),
    ],
)
def test_a_rejected_batch_changes_nothing(batch, error, word):
    p = PaperDynHAC()
    p.update(add=[1, 2, 3], edges=([1, 2], [2, 3], [1.0, 0.5]))
    before = made(p), p.edges(), p.ids
    with pytest.raises(error, match=word):
        p.update(**batch)
    assert (made(p), p.edges(), p.ids) == before
    p.update(remove=[3])
    assert p.verify().ok


@pytest.mark.parametrize("bad", [{"epsilon": -0.1}, {"epsilon": float("nan")}, {"threshold": -1}])
def test_bad_parameters(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        PaperDynHAC(**bad)


def test_no_cut_below_the_threshold():
    with pytest.raises(ValueError, match="threshold"):
        PaperDynHAC(threshold=0.5).labels(0.4)
