"""``exact_hac`` against a second brute force, against scipy, and on small examples."""

import numpy as np
import oracles
import pytest
from strategies import PALETTES, SHAPES, fixed, weighted

from dynhac.reference import exact_hac

scipy_hierarchy = pytest.importorskip("scipy.cluster.hierarchy")


def test_linkage_is_the_mean_with_missing_edges_as_zero():
    merges = exact_hac(4, ([0, 2, 1], [1, 3, 2], [1.0, 0.75, 0.5]))
    assert [(m.left, m.right, m.similarity, m.size) for m in merges] == [
        (0, 1, 1.0, 2),
        (2, 3, 0.75, 2),
        (4, 5, 0.125, 4),
    ]


def test_no_merge_below_the_threshold():
    edges = ([0, 1, 2], [1, 2, 3], [1.0, 0.5, 0.25])
    assert len(exact_hac(4, edges)) == 3
    assert [m.similarity for m in exact_hac(4, edges, threshold=0.25)] == [1.0, 0.25]
    assert [m.similarity for m in exact_hac(4, edges, threshold=0.2500001)] == [1.0]
    assert exact_hac(4, edges, threshold=2.0) == []


def test_ties_go_to_the_first_pair():
    merges = exact_hac(["d", "c", "b", "a"], (["a", "b", "c"], ["b", "c", "d"], [1.0] * 3))
    assert [(m.left, m.right) for m in merges] == [(0, 1), (2, 3), (4, 5)]


def test_edges_in_either_direction_or_both():
    once = exact_hac(3, ([0, 1], [1, 2], [1.0, 0.5]))
    assert exact_hac(3, ([1, 0, 2], [0, 1, 1], [1.0, 1.0, 0.5])) == once


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf"), 2.0**-40, 1e30])
def test_bad_weights(weight):
    with pytest.raises(ValueError, match=r"weight of edge \(0, 1\)"):
        exact_hac(2, ([0], [1], [weight]))


def test_an_empty_graph():
    assert exact_hac(0, ([], [], [])) == []
    assert exact_hac(["a"], ([], [], [])) == []


@pytest.mark.parametrize("palette", PALETTES)
@pytest.mark.parametrize("shape", SHAPES)
def test_second_brute_force(shape, palette):
    columns = weighted(shape, 14, palette)
    merges = exact_hac(14, columns)
    expected, _ = oracles.exact_clusters(14, fixed(columns))
    assert oracles.clusters(14, merges).keys() == expected.keys()
    assert oracles.approximation(14, fixed(columns), merges) == 1.0
    judgement = oracles.full_check(14, fixed(columns), merges, 0.0, 0.0)
    assert judgement.heavy_edges_left == judgement.wrong_similarities == 0


@pytest.mark.parametrize("seed", range(5))
def test_scipy_on_a_complete_graph(seed):
    n = 20
    columns = weighted("clique", n, "many", seed)
    distance = 1.0 - np.array(columns[2])
    expected = scipy_hierarchy.linkage(distance, "average")
    merges = exact_hac(n, columns)
    assert [{m.left, m.right} for m in merges] == [{int(r[0]), int(r[1])} for r in expected]
    np.testing.assert_allclose([1.0 - m.similarity for m in merges], expected[:, 2], rtol=1e-12)
