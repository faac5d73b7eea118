"""Watches against the cut, against their own events, and against the rules for ids."""

import copy
import itertools
import pickle
import random
import threading

import numpy as np
import pytest
from following import Follower, change
from strategies import PALETTES, SHAPES, Stream

from dynhac import FileError, GraphHAC, _core
from dynhac.models.engine import IdEngine


def run(seed, shape, palette, epsilon, text, steps, threads=1):
    rng = random.Random(seed)
    stream = Stream(rng, palette, target=14, text=text, most=4)
    g = GraphHAC(epsilon, 0.0, threads=threads)
    followers = [Follower(g, 0.2, 1)]
    g.update(**stream.seed_with(shape, 13))
    followers += [Follower(g, 0.4, 2), Follower(g, 0.05, 3), Follower(g, 0.0, 1)]
    followers[0].look()
    for _ in range(steps):
        change(g, stream, rng)
        for follower in followers:
            follower.look()
    for follower in followers:
        follower.check_lookups()
    return g, followers


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("palette", sorted(PALETTES))
def test_watches_and_their_events_match_the_cut(shape, palette):
    for seed, epsilon in enumerate((0.0, 0.1, 1.0)):
        run(seed, shape, palette, epsilon, text=seed == 1, steps=25)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_watches_in_long_runs(seed):
    shapes, palettes = sorted(SHAPES), sorted(PALETTES)
    for k, (shape, palette) in enumerate(itertools.product(shapes, palettes)):
        run(1000 * seed + k, shape, palette, (0.0, 0.1, 1.0)[k % 3], k % 2 == 0, 60, 1 + k % 2)


def test_the_largest_part_keeps_the_id_in_merges_and_splits():
    g = GraphHAC(epsilon=0.0)
    g.add(range(5), edges=([0, 0, 1, 3], [1, 2, 2, 4], [0.9, 0.9, 0.9, 0.9]))
    watch = g.watch(0.3)
    assert watch.clusters() == {0: 3, 1: 2}
    cross = ([0, 0, 1, 1, 2, 2], [3, 4] * 3)
    g.set_edges(*cross, [0.8] * 6)
    assert [(e.kind, e.cluster, e.others, sorted(e.points)) for e in watch.events] == [
        ("died", 1, (0,), [3, 4]),
        ("merged", 0, (1,), [3, 4]),
    ]
    g.remove_edges(*cross)
    assert [(e.kind, e.cluster, e.others, sorted(e.points)) for e in watch.events] == [
        ("split", 0, (2,), [3, 4]),
        ("born", 2, (0,), [3, 4]),
    ]
    timeline = watch.timeline()
    assert timeline.events == [
        (1, "born", 0, ()),
        (1, "born", 1, ()),
        (2, "died", 1, (0,)),
        (2, "merged", 0, (1,)),
        (3, "born", 2, (0,)),
        (3, "split", 0, (2,)),
    ]
    rows = zip(timeline.update, timeline.cluster, timeline.size, strict=True)
    assert [tuple(map(int, row)) for row in rows] == [
        (1, 0, 3),
        (1, 1, 2),
        (2, 0, 5),
        (2, 1, 0),
        (3, 0, 3),
        (3, 2, 2),
    ]
    assert timeline.last_update == 3


def test_a_point_that_is_replaced_in_place_has_not_moved():
    g = GraphHAC()
    g.add(["a", "b", "c"], edges=(["a", "a", "b"], ["b", "c", "c"], [0.9, 0.9, 0.9]))
    watch = g.watch(0.5)
    g.update(remove=["c"], add=["c"], edges=(["c", "c"], ["a", "b"], [0.8, 0.8]))
    assert watch.events == []
    g.update(remove=["c"], add=["c"])
    assert [(e.kind, e.points.tolist()) for e in watch.events] == [
        ("split", ["c"]),
        ("born", ["c"]),
    ]


def test_events_name_removed_points_by_their_string_ids():
    g = GraphHAC()
    g.add(["x", "y", "z"], edges=(["x", "y"], ["y", "z"], [0.9, 0.9]))
    watch = g.watch(0.4)
    g.remove(["x"])
    assert [(e.kind, e.points.tolist()) for e in watch.events] == [("shrank", ["x"])]


def test_no_events_of_unrelated_or_rejected_updates():
    g = GraphHAC()
    g.add(range(4), edges=([0, 2], [1, 3], [0.9, 0.8]))
    watch = g.watch(0.5)
    with pytest.raises(KeyError):
        g.remove([99])
    assert len(watch.events) == 2  # still those of its creation
    g.set_edges(0, 1, 0.95)
    assert watch.events == []
    g.update()
    assert watch.events == []


def test_a_failed_allocation_does_not_change_the_watch():
    rng = random.Random(5)
    stream = Stream(rng, "few", target=20, most=6)
    g = GraphHAC(0.1, 0.0)
    g.update(**stream.seed_with("blobs", 18))
    followers = [Follower(g, 0.2, 1), Follower(g, 0.5, 2)]
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


def test_the_cost_of_a_watch_depends_on_what_changed():
    """Events of a small change do not list the cluster, however large it is."""
    n = 20_000
    g = GraphHAC(threshold=1e-4)
    ids = np.arange(n)
    g.add(ids, edges=(ids[:-1], ids[1:], np.full(n - 1, 0.5)))
    watch = g.watch(1e-4)
    before = watch.clusters()
    g.add([n], edges=(n, n // 2, 0.5))
    events = watch.events
    assert sum(len(e.points) for e in events) < 2_000
    assert sum(watch.clusters().values()) == sum(before.values()) + 1


def test_two_runs_give_the_same_events_with_any_number_of_threads():
    def events(threads):
        told = []
        rng = random.Random(3)
        stream = Stream(rng, "few", target=30, most=8)
        g = GraphHAC(0.1, 0.0, threads=threads)
        watch = g.watch(0.3)
        g.update(**stream.seed_with("blobs", 30))
        for _ in range(20):
            g.update(**stream.mixed())
            told += [(e.kind, e.cluster, e.points.tolist(), e.others) for e in watch.events]
        return told

    assert events(1) == events(1) == events(3)


def test_a_closed_watch_raises():
    g = GraphHAC()
    watch = g.watch(0.5)
    assert g.watches == (watch,)
    watch.close()
    watch.close()
    assert g.watches == ()
    assert "closed" in repr(watch)
    for call in (watch.labels, watch.clusters, lambda: watch.events, watch.timeline):
        with pytest.raises(ValueError, match="closed"):
            call()
    g.add([1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1e-5,), "theta is 1e-05; it must be a similarity >= 0.0001"),
        ((float("nan"),), "theta is nan"),
        ((5,), "theta is 5, an int above 1, .*; for a similarity of 5 give a float"),
        (("x",), "theta is 'x'"),
        ((0.5, 0), "min_size is 0"),
        ((0.5, 10**30), "min_size is 1000"),
    ],
)
def test_wrong_parameters(arguments, message):
    g = GraphHAC(threshold=1e-4)
    with pytest.raises(ValueError, match=message):
        g.watch(*arguments)
    assert g.watches == ()


def test_unknown_points_and_clusters():
    g = GraphHAC()
    g.add([1, 2], edges=(1, 2, 0.9))
    watch = g.watch(0.5)
    with pytest.raises(KeyError, match="id 3 is not in the graph"):
        watch.cluster_of(3)
    with pytest.raises(KeyError, match="cluster 7 does not exist"):
        watch.members(7)


def test_a_loaded_watch_behaves_like_the_saved_one(tmp_path):
    for seed, text in ((1, False), (2, True)):
        rng = random.Random(seed)
        stream = Stream(rng, "few", target=16, text=text, most=4)
        g = GraphHAC(0.1, 0.0)
        first = g.watch(0.3, 2)
        g.update(**stream.seed_with("blobs", 16))
        g.watch(0.1)
        for _ in range(10):
            g.update(**stream.mixed())
        g.save(tmp_path / "g")
        again = GraphHAC.load(tmp_path / "g")
        assert [(w.theta, w.min_size) for w in again.watches] == [(0.3, 2), (0.1, 1)]
        assert list(map(str, again.watches[0].events)) == list(map(str, first.events))
        for _ in range(10):
            batch = stream.mixed()
            g.update(**batch)
            again.update(**batch)
            for one, other in zip(g.watches, again.watches, strict=True):
                told = [
                    [(*e[:2], e.points.tolist(), *e[3:]) for e in w.events] for w in (one, other)
                ]
                assert told[0] == told[1]
                assert one.labels().tolist() == other.labels().tolist()
        timelines = first.timeline(), again.watches[0].timeline()
        assert timelines[0].events == timelines[1].events
        for a, b in zip(timelines[0][:3], timelines[1][:3], strict=True):
            assert a.tolist() == b.tolist()


def test_damaged_watches_are_rejected(tmp_path):
    g = GraphHAC()
    g.watch(0.5)
    g.add([1, 2, 3, 4], edges=([1, 3], [2, 4], [0.9, 0.8]))
    header, arrays = g.__reduce__()[1]
    rng = np.random.default_rng(0)
    names = [name for name in arrays if name.startswith("watch/")]
    refused = 0
    for round in range(600):
        name = names[round % len(names)]
        column = arrays[name].copy()
        if round % 5 == 0:
            column = column[:-1]
        elif round % 7 == 0:
            column = column.astype(np.float32)
        elif len(column):
            column[rng.integers(len(column))] = rng.choice([-1, 0, 1, 2, 5, 2**40, -(2**62)])
        try:
            again = GraphHAC._from_state(header, arrays | {name: column})
        except FileError:
            refused += 1
        else:
            again.remove([1])
            assert again.verify().ok
            again.watches[0].labels()
    assert refused > 100
    with pytest.raises(FileError, match="missing"):
        GraphHAC._from_state(header, {n: a for n, a in arrays.items() if n != names[0]})


def test_steps_after_a_failure_are_read_later(monkeypatch):
    g = GraphHAC()
    watch = g.watch(0.5)
    g.add(["a", "b"], edges=("a", "b", 0.9))
    with monkeypatch.context() as patch:

        def fail(*_):
            raise MemoryError

        patch.setattr(IdEngine, "ids_of", fail)
        g.add(["c"], edges=(["c", "c"], ["a", "b"], [0.9, 0.9]))
        g.remove(["b"])
    assert [(e.kind, e.points.tolist()) for e in watch.events] == [("shrank", ["b"])]
    assert watch.timeline().size.tolist() == [2, 3, 2]
    g.remove(["a"])
    assert [(e.kind, e.points.tolist()) for e in watch.events] == [("shrank", ["a"])]


def test_a_watch_cannot_be_copied_without_its_model():
    g = GraphHAC()
    watch = g.watch(0.5)
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled by itself"):
            way(watch)


def test_closing_while_others_read():
    g = GraphHAC()
    g.add(range(100), edges=(range(99), range(1, 100), [0.5] * 99))
    for _ in range(50):
        watch = g.watch(0.3)
        closer = threading.Thread(target=watch.close)
        closer.start()

        def read_for_ever(watch=watch):
            while True:
                watch.clusters()

        with pytest.raises(ValueError, match="is closed"):
            read_for_ever()
        closer.join()


def test_a_long_history_is_summarised(monkeypatch):
    """The history stays short, and its sizes stay correct."""
    monkeypatch.setattr("dynhac.watch.history.KEPT", 10)
    rng = random.Random(4)
    stream = Stream(rng, "few", target=14, most=3)
    g = GraphHAC(0.1, 0.0)
    watch = g.watch(0.3)
    changes = 0
    for _ in range(120):
        g.update(**stream.mixed())
        changes += bool(watch.events)
    assert changes > 60
    again = pickle.loads(pickle.dumps(g)).watches[0]
    for one in (watch, again):
        timeline = one.timeline()
        assert len(set(timeline.update.tolist())) <= 21
        sizes = dict(zip(timeline.cluster.tolist(), timeline.size.tolist(), strict=True))
        assert {c: n for c, n in sizes.items() if n} == watch.clusters()
        first = timeline.update[0]
        assert not [e for e in timeline.events if e[0] <= first]
        for cluster, update in zip(timeline.cluster, timeline.update, strict=True):
            born = [e[0] for e in timeline.events if e[1] == "born" and e[2] == cluster]
            assert born == [] or born[0] <= update


def test_a_timeline_as_a_frame():
    g = GraphHAC()
    watch = g.watch(0.5, min_size=2)
    assert watch.timeline().to_pandas().empty
    g.add([1, 2, 3], edges=([1, 2], [2, 3], [0.9, 0.9]))
    g.remove(1)
    timeline = watch.timeline()
    frame = timeline.to_pandas()
    assert frame.columns.tolist() == ["update", "cluster", "size"]
    for name in frame:
        assert frame[name].tolist() == getattr(timeline, name).tolist()
        assert frame[name].dtype == np.int64
