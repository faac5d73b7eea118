"""Automatic watches: the clusters that ``labels`` gives without a theta, after every update."""

import itertools
import pickle
import random

import numpy as np
import pytest
from following import Follower, change
from strategies import PALETTES, SHAPES, Stream

from dynhac import DynHAC, GraphHAC, _core
from dynhac.dendrogram.selection import DEFAULT_MIN_SIZE


def run(seed, shape, palette, epsilon, text, steps, size=16):
    rng = random.Random(seed)
    stream = Stream(rng, palette, target=size, text=text, most=4)
    g = GraphHAC(epsilon, 0.0)
    followers = [Follower(g, None, 2)]  # before the first point
    g.update(**stream.seed_with(shape, size))
    followers[0].look()
    followers += [Follower(g, None, least) for least in (3, 4, 25)]
    for _ in range(steps):
        change(g, stream, rng)
        for follower in followers:
            follower.look()
    for follower in followers:
        follower.check_lookups()
    return followers


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("palette", sorted(PALETTES))
def test_the_clusters_are_those_of_a_fresh_computation(shape, palette):
    moved = 0
    for seed, epsilon in enumerate((0.0, 0.1, 1.0)):
        moved += run(seed, shape, palette, epsilon, text=seed == 1, steps=25)[0].moved
        run(seed, shape, palette, epsilon, text=seed == 2, steps=4, size=60)
    assert moved > 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_long_runs(seed):
    for k, (shape, palette) in enumerate(itertools.product(sorted(SHAPES), sorted(PALETTES))):
        run(1000 * seed + k, shape, palette, (0.0, 0.1, 1.0)[k % 3], k % 2 == 0, 60, 12 + seed)


def cliques(sizes, weight=0.9):
    """Cliques of these sizes, one after the other, as ids and columns of edges."""
    ids, u, v = [], [], []
    for size in sizes:
        members = range(len(ids), len(ids) + size)
        ids += members
        pairs = list(itertools.combinations(members, 2))
        u += [a for a, _ in pairs]
        v += [b for _, b in pairs]
    return ids, (u, v, [weight] * len(u))


def test_merges_and_splits_of_automatic_clusters():
    g = GraphHAC(epsilon=0.0)
    watch = g.watch(min_size=4)
    ids, edges = cliques([6, 4, 8])
    g.add(ids, edges=edges)
    g.set_edges(0, 10, 0.01)
    assert watch.clusters() == {0: 8, 1: 6, 2: 4}
    cross = ([a for a in range(6) for _ in range(4)], list(range(6, 10)) * 6)
    g.set_edges(*cross, [0.9] * 24)
    assert [(e.kind, e.cluster, e.others) for e in watch.events] == [
        ("died", 2, (1,)),
        ("merged", 1, (2,)),
    ]
    g.remove_edges(*cross)
    assert [(e.kind, e.cluster, e.others) for e in watch.events] == [
        ("split", 1, (3,)),
        ("born", 3, (1,)),
    ]
    assert watch.labels().tolist() == [1] * 6 + [3] * 4 + [0] * 8
    g.remove([6])
    assert [(e.kind, e.cluster, len(e.points)) for e in watch.events] == [("died", 3, 4)]
    g.add([99])
    assert watch.events == []


def test_parameters_and_words():
    g = GraphHAC()
    watch = g.watch()
    assert (watch.theta, watch.min_size, watch.patience) == (None, DEFAULT_MIN_SIZE, None)
    assert g.watch(None, DEFAULT_MIN_SIZE) is watch
    assert g.watch(min_size=2) is not watch
    assert g.watch(0.5).min_size == 1
    assert repr(watch) == "<Watch of automatic clusters: 0 clusters of at least 25>"
    assert "automatic" in watch._repr_html_()
    watch.close()
    assert repr(watch) == "<Watch of automatic clusters: closed>"
    assert "automatic" in watch._repr_html_()
    with pytest.raises(ValueError, match="the watch of automatic clusters is closed"):
        watch.labels()
    for least in (1, 0, -3, 2**63):
        with pytest.raises(ValueError, match="min_size is"):
            g.watch(min_size=least)
    with pytest.raises(TypeError, match="min_size"):
        g.watch(min_size="x")


def test_no_cluster_is_large_enough():
    g = GraphHAC()
    watch = g.watch(min_size=2**40)
    ids, edges = cliques([6, 4])
    g.add(ids, edges=edges)
    assert watch.labels().tolist() == [-1] * 10
    assert watch.events == []
    g.remove(ids)
    assert len(watch) == 0


def test_summary_and_timeline():
    g = GraphHAC(epsilon=0.0)
    ids, edges = cliques([6, 4])
    g.add(ids, edges=edges)
    watch = g.watch(min_size=3)
    assert watch.summary().sizes.tolist() == [6, 4]
    g.remove([0])
    assert watch.timeline().size.tolist() == [6, 4, 5]
    assert len(watch.cluster(0)) == 5


def test_a_failed_allocation_does_not_change_the_watch():
    rng = random.Random(5)
    stream = Stream(rng, "few", target=20, most=6)
    g = GraphHAC(0.1, 0.0)
    g.update(**stream.seed_with("blobs", 18))
    followers = [Follower(g, None, 2), Follower(g, None, 3)]
    failures = 0
    for _ in range(6):
        batch = stream.mixed()
        for after in itertools.count():
            _core.fail_allocation(after)
            try:
                g.update(**batch)
            except MemoryError:
                failures += 1
                continue
            finally:
                _core.fail_allocation(-1)
            break
        for follower in followers:
            follower.look()
    assert failures > 30


def test_a_loaded_watch_behaves_like_the_saved_one(tmp_path):
    for seed, text in ((1, False), (2, True)):
        rng = random.Random(seed)
        stream = Stream(rng, "few", target=16, text=text, most=4)
        g = GraphHAC(0.1, 0.0)
        g.watch(min_size=2)
        g.update(**stream.seed_with("blobs", 16))
        g.watch(min_size=3, patience=2)
        for _ in range(10):
            change(g, stream, rng)
        g.save(tmp_path / "g")
        copies = [GraphHAC.load(tmp_path / "g"), pickle.loads(pickle.dumps(g))]
        for again in copies:
            assert [(w.theta, w.min_size) for w in again.watches] == [(None, 2), (None, 3)]
        for _ in range(10):
            batch = change(g, stream, rng)
            for again in copies:
                again.update(**batch)
                for one, other in zip(g.watches, again.watches, strict=True):
                    assert list(map(str, one.events)) == list(map(str, other.events))
                    assert one.labels().tolist() == other.labels().tolist()


@pytest.mark.parametrize("window", [{}, {"max_points": 60}, {"max_age": 30}])
def test_points(window):
    rng = np.random.default_rng(3)
    model = DynHAC(n_neighbors=5, threshold=1e-4, **window)
    followers = [Follower(model, None, least) for least in (2, 4, 25)]
    for i in range(60):
        rows = rng.normal(size=(int(rng.integers(1, 6)), 2)) + 5 * rng.integers(3, size=(1, 2))
        times = None if "max_age" not in window else [i] * len(rows)
        gone = rng.choice(model.ids, min(len(model), int(rng.integers(3))), replace=False)
        model.update(rows, delete=gone, timestamps=times)
        for follower in followers:
            follower.look()
    assert len(followers[0].watch) > 1
    with pytest.raises(ValueError, match="predict needs a watch at a sim"):
        model.predict([[0.0, 0.0]], watch=followers[0].watch)


def test_the_cost_depends_on_what_changed():
    """Events of a small change do not list the cluster, however large it is."""
    n = 3000
    rng = np.random.default_rng(0)
    model = DynHAC(n_neighbors=10, threshold=1e-4)
    watch = model.watch()
    model.insert(rng.normal(size=(n, 2)) + 12 * rng.integers(2, size=(n, 1)))
    told = []
    for row in rng.normal(size=(100, 2)):
        model.insert(row)
        told.append(sum(len(e.points) for e in watch.events))
    assert np.median(told) < 5


def test_two_runs_give_the_same_events_with_any_number_of_threads():
    def events(threads):
        told = []
        stream = Stream(random.Random(3), "few", target=30, most=8)
        g = GraphHAC(0.1, 0.0, threads=threads)
        watch = g.watch(min_size=3)
        g.update(**stream.seed_with("blobs", 30))
        for _ in range(20):
            g.update(**stream.mixed())
            told += [(e.kind, e.cluster, e.points.tolist(), e.others) for e in watch.events]
        return told

    assert events(1) == events(1) == events(3)
