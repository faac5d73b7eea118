"""Graphs on which few merges can be decided at a time have a last level: costs stay linear.

The levels of smaller graphs, and every failure, are tested in ``core/tests/test_last_level.cc``.
"""

import copy
import random

import numpy as np
import pytest
from strategies import Stream
from watching import Watched, frozen

from dynhac import DynHAC, GraphHAC, _core


@pytest.fixture
def low_bound():
    """Nearly every graph has a last level."""
    _core.bound_levels(1, 0)
    yield
    _core.bound_levels()


def monotone_path(n):
    """A path whose weights fall from edge to edge."""
    g = GraphHAC(epsilon=0.0, threshold=0.0)
    weights = np.linspace(1, 0.5, n - 1)
    g.update(add=np.arange(n), edges=(np.arange(n - 1), np.arange(1, n), weights))
    return g


def vertices(g):
    return sum(size for size, _ in g.level_sizes)


def test_a_monotone_path_has_few_levels():
    g = monotone_path(20_000)
    assert g.n_levels < 40
    assert vertices(g) < 36 * 20_000
    assert g.verify().ok
    for end, weight in ((0, 0.2), (0, 1.0), (19_998, 0.49), (10_000, 0.7)):
        g.set_edges(end, end + 1, weight)
        assert g.verify().ok
        assert g.n_levels < 40


def test_an_update_changes_no_more_of_a_path_than_it_must():
    g = monotone_path(5_000)
    before = frozen(g)
    change = g.set_edges(4_998, 4_999, 0.49)
    assert (change.nodes_created, change.nodes_removed) == (1, 1)
    g.set_edges(4_998, 4_999, 0.5)
    assert frozen(g)[3:] == before[3:]


def test_a_line_whose_gaps_grow():
    model = DynHAC(epsilon=0.0, n_neighbors=4)
    points = np.cumsum(np.linspace(0.1, 1, 1_200))[:, None]
    model.insert(points[:-50])
    for point in points[-50:]:
        model.insert(point[None])
    assert model.graph.n_levels < 100
    assert model.verify().ok
    model.delete(model.ids[::3])
    assert model.verify().ok


def test_it_is_made_and_given_up_as_a_graph_changes():
    g = monotone_path(3_000)
    assert g.n_levels < 50
    rng = np.random.default_rng(0)
    g.set_edges(np.arange(2_999), np.arange(1, 3_000), rng.random(2_999) + 0.1)  # ordinary
    assert vertices(g) < 6 * 3_000
    assert g.verify().ok
    g.set_edges(np.arange(2_999), np.arange(1, 3_000), np.linspace(1, 0.5, 2_999))
    assert g.n_levels < 50
    assert g.verify().ok
    for i in range(3_000, 3_020):
        g.add(i, (i, i - 1, 0.4))
    g.remove(np.arange(100, 3_000))
    assert g.verify().ok


def test_paths_beside_an_ordinary_graph():
    g = monotone_path(4_000)
    rng = np.random.default_rng(1)
    n = 500
    u = np.repeat(np.arange(n), 4) + 10_000
    v = (u - 10_000 + rng.integers(1, n, len(u))) % n + 10_000
    pairs = np.unique(np.sort(np.stack([u, v], 1), 1), axis=0)
    g.add(np.arange(10_000, 10_000 + n), (pairs[:, 0], pairs[:, 1], rng.random(len(pairs)) + 0.1))
    assert g.verify().ok
    for i in range(5):  # joined and cut again, in the middle of the path, too
        g.set_edges(800 * i, 10_000 + i, 0.6)
        g.remove_edges(800 * i + 7, 800 * i + 8)
        assert g.verify().ok


@pytest.mark.usefixtures("low_bound")
@pytest.mark.parametrize("epsilon", [0.0, 0.001, 0.1, 1.0])
@pytest.mark.parametrize("palette", ["few", "close", "many"])
def test_random_updates_with_all_oracles(palette, epsilon):
    rng = random.Random(f"{palette} {epsilon}")
    watched = Watched(Stream(rng, palette, target=30), epsilon, 0.01)
    watched.update(watched.stream.seed_with("path", 30))
    for _ in range(40):
        watched.update(watched.stream.next())
        watched.judge()


@pytest.mark.usefixtures("low_bound")
def test_copies_go_on_alike():
    stream = Stream(random.Random(1), "many", target=60)
    g = GraphHAC(0.0)
    g.update(**stream.seed_with("path", 60))
    for _ in range(10):
        twin = copy.deepcopy(g)
        batch = stream.next()
        g.update(**batch)
        twin.update(**batch)
        assert frozen(twin) == frozen(g)
