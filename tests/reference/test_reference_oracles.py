"""Tests of the oracles: each must detect the errors that it is meant to detect."""

import math
from fractions import Fraction

import oracles
import pytest
from oracles import Row
from strategies import fixed, weighted

from dynhac.reference import Merge, PaperDynHAC
from dynhac.reference.replay import replay

UNIT = 2.0**-32
ONE = 2**32
PATH = {(0, 1): ONE, (1, 2): ONE // 2, (2, 3): ONE}
RIGHT = [Row(0, 1, 1.0, 0), Row(2, 3, 1.0, 0), Row(4, 5, 0.125, 1)]


def test_a_correct_dendrogram():
    found = oracles.full_check(4, PATH, RIGHT, 0.0, 0.0)
    assert found == (3, 0, 1.0, 0, 0)
    assert found.ok


def test_a_merge_that_is_not_good():
    wrong = [Row(1, 2, 0.5, 0), Row(0, 4, 0.5, 1), Row(3, 5, 1 / 3, 2)]
    found = oracles.full_check(4, PATH, wrong, 0.0, 0.0)
    assert found.bad_merges == 1
    assert found.worst_goodness == 2.0
    assert oracles.approximation(4, PATH, wrong) == 2.0
    assert oracles.full_check(4, PATH, wrong, 1.0, 0.0).ok


def test_a_merge_above_a_much_weaker_one_is_not_good():
    triangle = {(0, 1): ONE, (0, 2): ONE, (1, 2): ONE // 2}
    wrong = [Row(1, 2, 0.5, 0), Row(0, 3, 1.0, 1)]
    assert oracles.full_check(3, triangle, wrong, 0.0, 0.0).bad_merges == 2
    assert oracles.full_check(3, triangle, wrong, 1.0, 0.0).ok


def test_a_merge_must_be_good_without_other_merges_of_its_level():
    # 0-1 is good next to the merged {2, 3}, but not next to 2 alone.
    edges = {(0, 1): ONE, (1, 2): ONE + ONE // 2, (2, 3): 2 * ONE}
    same = [Row(2, 3, 2.0, 0), Row(0, 1, 1.0, 0), Row(4, 5, 0.375, 1)]
    assert oracles.full_check(4, edges, same, 0.0, 0.0).bad_merges == 1
    later = [Row(2, 3, 2.0, 0), Row(0, 1, 1.0, 1), Row(4, 5, 0.375, 2)]
    assert oracles.full_check(4, edges, later, 0.0, 0.0).ok


def test_a_merge_must_be_good_without_other_merges_of_its_group():
    # The last merge makes one group of both pairs; 0-1 is still compared with 2 alone.
    edges = {(0, 1): ONE, (1, 2): ONE + ONE // 2, (2, 3): 2 * ONE}
    same = [Row(2, 3, 2.0, 0), Row(0, 1, 1.0, 0), Row(4, 5, 0.375, 0)]
    assert oracles.full_check(4, edges, same, 0.0, 0.0).bad_merges == 1


def test_wrong_similarity():
    wrong = [*RIGHT[:2], Row(4, 5, 0.126, 1)]
    assert oracles.full_check(4, PATH, wrong, 0.0, 0.0).wrong_similarities == 1


def test_heavy_edges_left():
    assert oracles.full_check(4, PATH, RIGHT[:2], 0.0, 0.0).heavy_edges_left == 1
    assert oracles.full_check(4, PATH, RIGHT[:2], 0.0, 0.125).heavy_edges_left == 1
    assert oracles.full_check(4, PATH, RIGHT[:2], 0.0, 0.126).heavy_edges_left == 0
    assert oracles.full_check(4, PATH, RIGHT[:2], 1.0, 0.25).heavy_edges_left == 1


def test_a_merge_below_the_threshold():
    assert oracles.full_check(4, PATH, RIGHT, 0.0, 0.125).ok
    assert oracles.full_check(4, PATH, RIGHT, 0.0, 0.126).bad_merges == 1
    assert oracles.full_check(4, PATH, RIGHT, 1.0, 0.25).ok


def test_a_merge_without_an_edge():
    wrong = [*RIGHT[:2], Row(4, 5, 0.0, 1)]
    found = oracles.full_check(4, {(0, 1): ONE, (2, 3): ONE}, wrong, 0.1, 0.0)
    assert found.bad_merges == 1
    assert math.isinf(found.worst_goodness)


def test_a_parent_on_a_lower_level_than_its_child_is_rejected():
    with pytest.raises(AssertionError):
        oracles.full_check(4, PATH, [*RIGHT[:1], Row(2, 4, 0.25, -1)], 0.0, 0.0)


def test_assert_exact():
    edges = {(0, 1): ONE, (1, 2): ONE // 2, (2, 3): ONE - 1}
    assert oracles.assert_exact(4, edges, [RIGHT[0], Row(2, 3, 1 - 2**-32, 0), RIGHT[2]])
    assert not oracles.assert_exact(4, PATH, [])  # a tie: nothing to compare
    with pytest.raises(AssertionError):
        oracles.assert_exact(4, edges, RIGHT[:2])
    with pytest.raises(AssertionError):
        oracles.assert_exact(4, edges, [RIGHT[0], Row(4, 2, 0.25, 0), Row(5, 3, 1 / 3, 1)])
    with pytest.raises(AssertionError):
        oracles.assert_exact(4, edges, [RIGHT[0], Row(2, 3, 0.5, 0), RIGHT[2]])


def test_a_cut_needs_all_merges_of_a_subtree():
    rising = [Row(0, 1, 0.5, 0), Row(4, 2, 0.6, 0), Row(5, 3, 0.4, 0)]
    assert oracles.cut(4, rising, 0.55) == [0, 1, 2, 3]
    assert oracles.cut(4, rising, 0.5) == [0, 0, 0, 1]
    assert oracles.cut(4, rising, 0.4) == [0, 0, 0, 0]
    assert oracles.cut(4, [Row(3, 1, 1.0, 0)], 1.0) == [0, 1, 2, 1]


def test_the_replay_of_the_reference_finds_errors():
    p = PaperDynHAC(0.0, 0.0)
    columns = weighted("blobs", 18, "many")
    p.update(add=range(18), edges=columns)
    merges = p.merges()
    edges = fixed(columns)

    def judge(changed_edges, changed_merges):
        graph = oracles.adjacency(18, changed_edges)
        return replay(list(graph.values()), changed_merges, 0, 0, Fraction(UNIT))

    assert judge(edges, merges).ok
    assert judge(edges, merges[:-1]).heavy_edges_left == 1
    halved = {pair: w // 2 if i == 0 else w for i, (pair, w) in enumerate(edges.items())}
    assert judge(halved, merges).wrong_similarities > 0
    raised = {pair: 2**40 if w == min(edges.values()) else w for pair, w in edges.items()}
    assert judge(raised, merges).bad_merges > 0
    row = next(row for row in p._levels[1].graph.values() if row)
    row[next(iter(row))] += 1
    assert p.verify().faults
    assert not p.verify().ok


def test_the_replay_compares_with_weak_merges_in_the_subtree():
    graph = [{1: 95, 2: 100}, {0: 95, 2: 100}, {0: 100, 1: 100, 3: 108}, {2: 108}]
    linkages = (Fraction(95), Fraction(100), Fraction(36))
    pairs = ((0, 1), (4, 2), (5, 3))
    merges = [
        Merge(*pair, float(x), 2 + j, j, x)
        for j, (pair, x) in enumerate(zip(pairs, linkages, strict=True))
    ]
    found = replay(graph, merges, Fraction(1, 10), Fraction(0), Fraction(1))
    assert (found.bad_merges, found.wrong_similarities) == (1, 0)
    assert found.worst_goodness == 108 / 95
    edges = {(u, v): w for u, row in enumerate(graph) for v, w in row.items() if u < v}
    assert oracles.full_check(4, edges, merges, 0.1, 0.0, resolution=1).bad_merges == 1
