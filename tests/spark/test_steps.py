"""The steps of a round, without Spark."""

import random

import numpy as np
import oracles
import pytest
import spark_rounds
import strategies
import subgraph_oracle
from hypothesis import given
from hypothesis import strategies as st

from dynhac.spark import blocks, work

RESOLUTION = strategies.RESOLUTION
SHAPES = ("path", "star", "clique", "grid", "ring", "apart", "blobs", "sparse")


def shape(name, n, palette, seed=0):
    rng = random.Random(seed)
    weight = strategies.PALETTES[palette]
    pairs = getattr(strategies, name)(n)
    return {pair: int(weight(rng) / RESOLUTION) for pair in pairs}


@pytest.mark.parametrize("native", [True, False], ids=["native", "oracle"])
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("palette", strategies.PALETTES)
def test_any_parts_give_a_good_hierarchy(name, palette, native, monkeypatch):
    if not native:
        monkeypatch.setattr("dynhac.subgraph.subgraph_round", subgraph_oracle.subgraph_round)
    edges = shape(name, 24, palette)
    for seed, epsilon in enumerate((0.0, 0.1, 1.0)):
        threshold = 0.2 if seed == 1 else 0.0
        rng = random.Random(seed)
        merges = spark_rounds.build(edges, epsilon, threshold, RESOLUTION, rng, rounds=3)
        rows = spark_rounds.assert_good(24, edges, merges, epsilon, threshold, RESOLUTION)
        if epsilon == 0:
            oracles.assert_exact(24, edges, rows)
        assert len(merges) >= (len(edges) > 0)


@given(
    st.lists(
        st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=40), max_size=4
    )
)
def test_packed_columns_come_back(columns):
    arrays = [np.array(column, np.int64) for column in columns]
    back = blocks.unpack(blocks.pack(*arrays))
    assert [column.tolist() for column in back] == columns


def test_packed_floats_and_groups_come_back():
    values = np.array([0.1, np.inf, -0.0, 5e-324])
    to = np.array([3, 0, 3, 3])
    packed = dict(blocks.packed_by(to, np.arange(4), values))
    ids, floats = blocks.unpack_all([packed[3], packed[0]], 2)
    assert ids.tolist() == [0, 2, 3, 1]
    assert floats.view(float).tolist() == [0.1, -0.0, 5e-324, np.inf]


def test_a_packed_edge_is_small():
    rng = np.random.default_rng(0)
    near = np.sort(rng.integers(0, 10**6, 10**5))
    far, w = rng.integers(0, 10**6, 10**5), rng.integers(2**30, 2**32, 10**5)
    assert len(blocks.pack(near, far, w, np.ones(10**5, np.int64))) < 10 * 10**5


@pytest.mark.parametrize("resolution", [2.0**-32, 2.0**-10, 0.3])
def test_weights_are_rounded_as_the_engine_rounds_them(resolution):
    from dynhac import GraphHAC

    weights = np.random.default_rng(0).random(200) + resolution
    ends = np.arange(200)
    g = GraphHAC.from_graph((ends, ends + 1, weights), resolution=resolution)
    rounded = dict(zip(g.edges()[0].tolist(), g.edges()[2].tolist(), strict=True))
    units = work.fixed_point(weights, resolution)
    assert [rounded[i] for i in range(200)] == (units * resolution).tolist()


def test_spread_lists_positions():
    starts, lengths = np.array([5, 0, 9]), np.array([2, 3, 0])
    assert blocks.spread(starts, lengths).tolist() == [5, 6, 0, 1, 2]
