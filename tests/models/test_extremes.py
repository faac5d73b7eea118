"""Parameters and weights at the edges of what is legal: everything still holds, exactly."""

import math
import sys

import numpy as np
import oracles
import pytest
from models import random_edges

from dynhac import GraphHAC

N, M = 40, 140
LARGEST, TINIEST = sys.float_info.max, 5e-324

# What to construct with, and the largest weight, a multiple of which every weight is.
CASES = {
    "huge epsilon": ({"epsilon": 1e308}, 1.0),
    "largest epsilon": ({"epsilon": LARGEST}, 1.0),
    "largest epsilon, threshold 0": ({"epsilon": LARGEST, "threshold": 0}, 1.0),
    "tiniest epsilon": ({"epsilon": TINIEST}, 1.0),
    "epsilon of one ulp": ({"epsilon": sys.float_info.epsilon}, 1.0),
    "whole weights": ({"resolution": 1.0, "threshold": 0}, 2.0**20),
    "whole weights, exact": ({"resolution": 1.0, "threshold": 0, "epsilon": 0}, 2.0**20),
    "all weights one": ({"resolution": 1.0, "threshold": 0}, 1.0),
    "fine resolution": ({"resolution": 2.0**-60, "threshold": 0}, 2.0**-10),
    "fine resolution, exact": ({"resolution": 2.0**-60, "threshold": 0, "epsilon": 0}, 2.0**-10),
    "finest weights": ({"resolution": 2.0**-60, "threshold": 2.0**-70}, 2.0**-40),
    "finest resolution": ({"resolution": 2.0**-960, "threshold": 0}, 2.0**-930),
    "coarsest resolution": ({"resolution": 2.0**960, "threshold": 0}, 2.0**990),
    "not a power of two": ({"resolution": 1e-7, "threshold": 0}, 0.1048576),
    "tiniest threshold": ({"threshold": TINIEST}, 1.0),
    "threshold above all": ({"threshold": 2.0}, 1.0),
    "largest threshold": ({"threshold": LARGEST}, 1.0),
    "threshold in the middle": ({"threshold": 0.5, "epsilon": 0}, 1.0),
    "sums at the edge": ({"resolution": 2.0**-32, "threshold": 0}, 2.0**23),
    "sums at the edge, exact": ({"resolution": 2.0**-32, "threshold": 0, "epsilon": 0}, 2.0**23),
}


def assert_right(g):
    """The engine's own check and the exact one in plain fractions."""
    report = g.verify()
    assert report, report
    snapshot, u, v, w, _ = g._engine.engine.export()
    edges = dict(zip(zip(u.tolist(), v.tolist(), strict=True), w.tolist(), strict=True))
    merges = oracles.rows(snapshot.children, snapshot.similarity, snapshot.level)
    judged = oracles.full_check(
        len(g), edges, merges, g.epsilon, g.threshold, resolution=g.resolution
    )
    assert judged.ok, judged
    return merges


@pytest.mark.parametrize("case", CASES)
def test_updates(case):
    parameters, top = CASES[case]
    u, v, w = random_edges(N, M)
    w = np.maximum(w * top, parameters.get("resolution", 2.0**-32))
    if top == 1.0 and parameters.get("resolution") == 1.0:
        w = np.ones(M)
    g = GraphHAC(**parameters)
    g.add(range(N), (u, v, w))
    merges = assert_right(g)
    if case in ("threshold above all", "largest threshold"):
        assert not merges
        assert g.labels(LARGEST).tolist() == list(range(N))
    elif case not in ("threshold in the middle", "finest weights"):
        assert len(g.dendrogram().roots) == 1
    rng = np.random.default_rng(1)
    for i in range(30):
        e = int(rng.integers(M))
        if i % 3 == 0:
            g.set_edges(u[e], v[e], w[(e + i) % M])
        elif i % 3 == 1:
            x = int(rng.integers(N))
            there = [(a, b, c) for a, b, c in zip(*g.edges(), strict=True) if x in (a, b)]
            g.remove(x)
            g.add(x, tuple(zip(*there, strict=True)) if there else None)
        else:
            g.update(remove_edges=(u[e], v[e]))
            g.update(edges=(u[e], v[e], w[e]))
        assert_right(g)


def test_one_weight_may_be_as_large_as_fits():
    top = math.nextafter(2.0**62, 0)
    g = GraphHAC(resolution=1.0, threshold=0)
    g.add(["a", "b", "c"], ("a", "b", top))
    assert g.dendrogram().similarity.tolist() == [top]
    with pytest.raises(ValueError, match="too large at resolution 1"):
        g.set_edges("a", "b", math.nextafter(top, math.inf))
    with pytest.raises(ValueError, match=r"\('b', 'c'\) makes the sum of all weights too large"):
        g.set_edges("b", "c", top)
    g.set_edges("b", "c", 511)  # what is left of the sum, which must be below 2**62
    assert_right(g)
    g.update(remove="a", add="d", edges=("d", "c", top))
    assert_right(g)
    g.remove(["b", "c", "d"])
    assert_right(g)


def test_the_lightest_weight():
    g = GraphHAC(resolution=2.0**-60, threshold=0)
    g.add([1, 2, 3], ([1, 2], [2, 3], [2.0**-60, 1.0]))
    assert g.edges()[2].tolist() == [2.0**-60, 1.0]
    assert g.dendrogram().similarity.tolist() == [1.0, 2.0**-61]
    assert_right(g)
    with pytest.raises(ValueError, match="rounds to 0"):
        g.set_edges(1, 3, 2.0**-62)
    g.set_edges(1, 3, 2.0**-61)  # half a unit rounds up
    assert g.edges()[2].tolist() == [2.0**-60, 2.0**-60, 1.0]
    assert_right(g)


@pytest.mark.parametrize("epsilon", [0, 0.25])
def test_weights_at_the_threshold_are_merged(epsilon):
    threshold = 0.625
    least = threshold / (1 + epsilon)  # 0.625 or 0.5
    unit = 2.0**-32
    g = GraphHAC(epsilon, threshold)
    g.add(range(6), ([0, 2, 4], [1, 3, 5], [least, least - unit, least + unit]))
    assert g.dendrogram().similarity.tolist() == [least + unit, least]
    assert_right(g)
    g.update(edges=([0, 2], [1, 3], [least - unit, least]))
    assert g.dendrogram().similarity.tolist() == [least + unit, least]
    assert sorted(g.labels(threshold).tolist()) == (
        [0, 1, 2, 2, 3, 3] if epsilon == 0 else list(range(6))
    )
    assert_right(g)
    g.set_edges([0, 2, 4], [2, 4, 0], [threshold] * 3)  # means of pairs, partly at the threshold
    assert_right(g)


def test_a_cut_at_the_similarity_of_a_merge_makes_it():
    g = GraphHAC(threshold=0)
    u, v, w = random_edges(N, M)
    g.add(range(N), (u, v, w))
    d = g.dendrogram()
    for j, theta in enumerate(d.min_similarity.tolist()):
        assert d.labels(theta).max() + 1 <= N - (j + 1)
        assert d.labels(theta + 2 * g.resolution).max() + 1 >= N - j


def test_an_edge_of_exactly_theta_is_in_the_cut():
    # 0.2, 0.4, 0.7 and 0.9 are rounded down on the way in, 0.1, 0.3 and 0.6 up.
    for tenths in range(1, 10):
        weight = tenths / 10
        g = GraphHAC(epsilon=0, threshold=weight)
        g.add([1, 2], edges=(1, 2, weight))
        assert g.labels(weight).tolist() == [0, 0]
        assert g.verify()


def test_theta_is_not_rounded_at_a_coarse_resolution():
    g = GraphHAC(epsilon=0, threshold=0, resolution=1.0)
    g.add([1, 2, 3, 4], edges=([1, 3, 1], [2, 4, 3], [5, 5, 1]))
    assert g.dendrogram().similarity[-1] == 0.25
    assert g.labels(0.3).max() == 1
    assert g.labels(0.25).max() == 0
