"""The engine's check and the plain oracle judge each other, on dendrograms right and wrong."""

import random

import numpy as np
import oracles
import pytest
from strategies import PALETTES, RESOLUTION, SHAPES, fixed, weighted

from dynhac import GraphHAC, _core


def both(n, edges, merges, epsilon, threshold):
    """What the two say of the same dendrogram."""
    u, v = (np.array([pair[end] for pair in edges], np.int64) for end in (0, 1))
    found = _core.check(
        n,
        u,
        v,
        np.array(list(edges.values()), np.int64),
        np.array([(m.left, m.right) for m in merges], np.int64).reshape(-1, 2),
        np.array([m.similarity for m in merges], np.float64),
        np.array([m.level for m in merges], np.int32),
        epsilon,
        threshold,
        RESOLUTION,
    )
    return found, oracles.full_check(n, edges, merges, epsilon, threshold)


def assert_agree(n, edges, merges, epsilon, threshold=0.01):
    found, expected = both(n, edges, merges, epsilon, threshold)
    assert found.worst_goodness == pytest.approx(expected.worst_goodness, rel=1e-9)
    assert tuple(found[:2] + found[3:]) == tuple(expected[:2] + expected[3:])
    return expected


def built(shape, palette, epsilon, threshold=0.01, n=18):
    columns = weighted(shape, n, palette)
    g = GraphHAC(epsilon, threshold)
    g.update(add=range(n), edges=columns)
    s = g._engine.engine.snapshot()
    return n, fixed(columns), oracles.rows(s.children, s.similarity, s.level)


def cases():
    return [(shape, palette) for shape in SHAPES for palette in PALETTES]


@pytest.mark.parametrize(("shape", "palette"), cases())
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_right_ones(shape, palette, epsilon):
    n, edges, merges = built(shape, palette, epsilon)
    assert assert_agree(n, edges, merges, epsilon).ok


def test_other_weights():
    rng = random.Random(1)
    bad = heavy = wrong = 0
    for shape, palette in cases():
        n, edges, merges = built(shape, palette, 0.1)
        for _ in range(4):
            other = dict(edges)
            for pair in rng.sample(sorted(edges), min(len(edges), 3)):
                other[pair] = int(edges[pair] * rng.choice((0.3, 0.75, 1.4, 5)))
            found = assert_agree(n, other, merges, 0.1)
            bad, wrong = bad + found.bad_merges, wrong + found.wrong_similarities
            del other[rng.choice(sorted(edges))]
            assert_agree(n, other, merges, 0.1)
            heavy += assert_agree(n, edges, merges[: rng.randrange(n)], 0.1).heavy_edges_left
    assert min(bad, wrong, heavy) > 100


def test_other_levels():
    bad = 0
    for shape, palette in cases():
        n, edges, merges = built(shape, palette, 0.1)
        flat = [m._replace(level=0) for m in merges]
        bad += assert_agree(n, edges, flat, 0.1).bad_merges
        steep = [m._replace(level=j) for j, m in enumerate(merges)]
        assert_agree(n, edges, steep, 0.1)
    assert bad > 20


def test_other_similarities():
    n, edges, merges = built("blobs", "many", 0.1)
    for j in range(len(merges)):
        other = list(merges)
        other[j] = merges[j]._replace(similarity=merges[j].similarity * 1.001)
        assert assert_agree(n, edges, other, 0.1).wrong_similarities == 1


@pytest.mark.parametrize("seed", range(30))
def test_any_merges(seed):
    """Merges that nobody would make, some between clusters that share no edge."""
    rng = random.Random(seed)
    n = 14
    edges = fixed(weighted(rng.choice(sorted(SHAPES)), n, rng.choice(sorted(PALETTES))))
    roots, merges = dict.fromkeys(range(n), 0), []
    for j in range(rng.randrange(n)):
        left, right = rng.sample(sorted(roots), 2)
        level = max(roots.pop(left), roots.pop(right)) + rng.randrange(2)
        merges.append(oracles.Row(left, right, rng.random(), level))
        roots[n + j] = level
    # The order among merges is free as long as children come first; levels may go up and down.
    assert_agree(n, edges, merges, rng.choice((0.0, 0.1, 1.0)))
