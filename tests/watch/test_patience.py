"""Watches with patience: against an oracle from scratch, their own events, and saved copies."""

import pickle
import random
from datetime import timedelta

import numpy as np
import pytest
from following import change
from patience_oracle import PatienceOracle
from soak import SOAK
from strategies import PALETTES, SHAPES, Stream

from dynhac import DynHAC, FileError, GraphHAC, _core, replay


def labels_of(model, watch):
    return dict(zip(model.ids.tolist(), watch.labels().tolist(), strict=True))


class Reported:
    """A patient watch beside one without patience, compared after every update."""

    def __init__(self, model, theta, min_size, patience, length=None, clock=None):
        self.model = model
        self.clock = clock or (lambda: model.version)
        self.raw = model.watch(theta, min_size)
        self.watch = model.watch(theta, min_size, patience=patience)
        self.oracle = PatienceOracle(labels_of(model, self.raw), length or patience)
        self.replayed, self.seen = {}, -1
        self.version = model.version
        self.reported = 0
        self.check()

    def check(self):
        model, watch = self.model, self.watch
        if model.version != self.version:
            self.oracle.update(labels_of(model, self.raw), self.clock())
            self.version = model.version
        shown = labels_of(model, watch)
        assert shown == self.oracle.reported
        events = [e for e in watch.events if e.update != self.seen]
        before = set(self.replayed.values())
        replay(events, self.replayed)
        self.seen = events[0].update if events else self.seen
        assert self.replayed == {p: c for p, c in shown.items() if c >= 0}
        after = set(self.replayed.values())
        assert {e.cluster for e in events if e.kind == "born"} == after - before
        assert {e.cluster for e in events if e.kind == "died"} == before - after
        self.reported += bool(events)
        sizes = watch.clusters()
        for event in events:
            assert event.size == sizes.get(event.cluster, 0)
        assert sum(sizes.values()) == len(self.replayed)
        assert set(sizes) == after

    def check_lookups(self):
        inside = {}
        for point, cluster in labels_of(self.model, self.watch).items():
            assert self.watch.cluster_of(point) == cluster
            inside.setdefault(cluster, []).append(point)
        for cluster in self.watch.clusters():
            assert self.watch.members(cluster).tolist() == inside[cluster]

    def partition_is_raw(self):
        shown, raw = (labels_of(self.model, w) for w in (self.watch, self.raw))
        pairs = {(shown[p], raw[p]) for p in shown}
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
        assert all((a < 0) == (b < 0) for a, b in pairs)


def twin_of(model):
    return pickle.loads(pickle.dumps(model))


def run(seed, shape, palette, epsilon, text, steps):
    rng = random.Random(seed)
    stream = Stream(rng, palette, target=14, text=text, most=4)
    g = GraphHAC(epsilon, 0.0)
    early = Reported(g, 0.2, 1, 3)
    g.update(**stream.seed_with(shape, 13))
    early.check()
    followers = [early, Reported(g, 0.4, 2, 2), Reported(g, 0.05, 3, 7), Reported(g, 0.2, 2, 1)]
    followers += [Reported(g, None, 2, 2), Reported(g, None, 3, 5)]
    twin = None
    for i in range(steps):
        batch = change(g, stream, rng)
        for follower in followers:
            follower.check()
        if twin is not None:
            twin.update(**batch)
            assert as_bytes(twin) == as_bytes(g)
        if i % 9 == 4:
            twin = twin_of(g)
    for follower in followers:
        follower.check_lookups()
    # Updates that change no cluster: everything is reported.
    for i in range(8):
        for update in (g.add, g.remove):
            update(f"far {i}" if text else 10**9 + i)
            for follower in followers:
                follower.check()
    for follower in followers[1:]:
        follower.partition_is_raw()
    return followers


def as_bytes(model):
    header, arrays = model.__reduce__()[1]
    return header, {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("palette", sorted(PALETTES))
def test_against_the_oracle(shape, palette):
    reported = 0
    for seed, epsilon in enumerate((0.0, 0.1)):
        reported += sum(f.reported for f in run(seed, shape, palette, epsilon, seed == 1, 20))
    assert reported > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40 if SOAK == 1 else 10 * SOAK))
def test_long_runs(seed):
    for k, shape in enumerate(sorted(SHAPES)):
        palette = sorted(PALETTES)[(seed + k) % len(PALETTES)]
        run(1000 * seed + k, shape, palette, (0.0, 0.1, 1.0)[k % 3], k % 2 == 0, 80)


@pytest.mark.parametrize("dates", [False, True])
def test_time_against_the_oracle(dates):
    rng = np.random.default_rng(3)
    model = DynHAC(n_neighbors=4)
    hour = np.timedelta64(1, "h") if dates else 1.0
    start = np.datetime64("2024-01-01", "ns") if dates else 0.5
    reported = None
    clock = [start]
    for i in range(120):
        time = start + int(rng.integers(0, 3) + 2 * i) * hour
        clock[0] = max(clock[0], time)
        x = rng.integers(4, size=(3, 1)) * 4 + rng.normal(size=(3, 2))
        model.update(insert=x, timestamps=[time] * 3, delete=model.ids[: max(0, len(model) - 40)])
        if reported is None:
            reported = Reported(model, 0.4, 3, 10 * hour, 10 * hour, lambda: clock[0])
        reported.check()
    assert reported.reported > 20
    reported.check_lookups()


CROSS = ([0, 0, 1, 1, 2, 2], [3, 4] * 3)


def two_clusters():
    g = GraphHAC(epsilon=0.0)
    g.add(range(5), edges=([0, 0, 1, 3], [1, 2, 2, 4], [0.9, 0.9, 0.9, 0.9]))
    return g


def test_a_merge_that_does_not_last_is_never_reported():
    g = two_clusters()
    watch = g.watch(0.3, patience=2)
    for _ in range(3):
        g.set_edges(*CROSS, [0.8] * 6)
        assert watch.events == []
        g.add([9])
        assert watch.clusters() == {0: 3, 1: 2}
        g.remove_edges(*CROSS)
        g.remove([9])
        assert (watch.events, watch.clusters()) == ([], {0: 3, 1: 2})
    g.set_edges(*CROSS, [0.8] * 6)
    g.add([9])
    assert watch.labels().tolist() == [0, 0, 0, 1, 1, -1]
    g.add([8])
    assert [(e.kind, e.cluster, e.others) for e in watch.events] == [
        ("died", 1, (0,)),
        ("merged", 0, (1,)),
    ]
    g.remove_edges(*CROSS)  # point 9 is reported now
    assert [(e.kind, e.cluster) for e in watch.events] == [("born", 2)]
    g.add([7])  # and now point 8
    g.add([6])
    assert watch.labels().tolist() == [0, 0, 0, 4, 4, 2, 3, -1, -1]
    assert [(e.kind, e.cluster) for e in watch.events] == [("split", 0), ("born", 4)]


def test_single_points_are_reported_at_once():
    g = two_clusters()
    watch = g.watch(0.3, 2, patience=100)
    g.add([5], edges=([5, 5], [3, 4], [0.9, 0.9]))
    assert [str(e) for e in watch.events] == ["cluster 1 grew by 1 point; size 3"]
    g.remove([0])
    assert [str(e) for e in watch.events] == ["cluster 0 shrank by 1 point; size 2"]
    g.remove([1, 2])
    assert [str(e) for e in watch.events] == ["cluster 0 died with 2 points; size 0"]


def test_a_merge_is_reported_although_the_larger_part_changes():
    g = GraphHAC(epsilon=0.0)
    pairs = [(i, j) for i in range(8) for j in range(i)]
    inner = [p for p in pairs if (p[0] < 4) == (p[1] < 4)]
    g.add(range(8), edges=([p[0] for p in inner], [p[1] for p in inner], [0.9] * len(inner)))
    watch = g.watch(0.3, 2, patience=4)
    rest = [p for p in pairs if p not in inner]
    g.set_edges([p[0] for p in rest], [p[1] for p in rest], [0.8] * len(rest))
    assert watch.clusters() == {0: 4, 1: 4}
    for gone in (0, 4, 5):  # now one and now the other is larger
        g.remove([gone])
        assert len(watch) == 2
    g.remove([1])
    assert len(watch) == 1


def test_no_patience_is_as_before():
    g = two_clusters()
    assert g.watch(0.3, patience=0) is g.watch(0.3)
    assert g.watch(0.3).patience is None
    assert repr(g.watch(0.3, patience=7)) == (
        "<Watch at 0.3: 2 clusters, 5 points, largest 3, patience 7 updates>"
    )
    assert g.watch(0.3, patience=7) is g.watches[1]


def test_wrong_patience():
    g = two_clusters()
    for wrong, message in (
        (-1, "patience is -1; it must be an integer >= 0"),
        (True, "patience is True; it must be an int"),
        ("1h", "patience is '1h'; it must be an int, a number of updates, or a time"),
        (float("nan"), "patience is nan"),
        (1.5, "patience is 1.5, a time, and a graph has no timestamps"),
        (np.timedelta64(1, "M"), "which has no fixed length"),
        (10**30, "patience is 1000"),
    ):
        with pytest.raises(ValueError, match=message):
            g.watch(0.3, patience=wrong)
    model = DynHAC()
    model.insert([[0.0], [1.0]])
    with pytest.raises(ValueError, match="the points of this model have no timestamps"):
        model.watch(0.3, patience=timedelta(hours=1))
    dated = DynHAC(max_age=np.timedelta64(1, "D"))
    with pytest.raises(ValueError, match="must be a timedelta64, since its timestamps are dates"):
        dated.watch(0.3, patience=60.0)
    empty = DynHAC()
    watch = empty.watch(0.3, patience=timedelta(hours=1))
    assert watch.patience == np.timedelta64(1, "h")
    assert "patience 1 hours" in repr(watch)
    for times in (None, 5):
        with pytest.raises(ValueError, match="points need timestamps that are dates, since"):
            empty.insert([[0.0]], timestamps=times)
    empty.insert([[0.0]], timestamps=np.datetime64("2024-01-01"))
    assert len(empty) == 1


def test_damaged_columns_are_refused():
    g = two_clusters()
    g.watch(0.3, patience=5)
    g.set_edges(*CROSS, [0.8] * 6)
    g.add([7])
    header, arrays = g.__reduce__()[1]
    names = [name for name in arrays if name.startswith("watch/")]
    rng = np.random.default_rng(0)
    refused = 0
    for round in range(800 * SOAK):
        name = names[round % len(names)]
        column = arrays[name].copy()
        if round % 5 == 0:
            column = column[:-1]
        elif len(column):
            column[rng.integers(len(column))] = rng.choice([-1, 0, 1, 2, 5, 2**40])
        try:
            again = GraphHAC._from_state(header, arrays | {name: column})
        except FileError:
            refused += 1
            continue
        for i in range(8):
            again.add([100 + i])
            assert again.watches[0].labels().min() >= -1
            assert len(again.watches[0].events) >= 0
    assert refused > 200


def waiting_clusters():
    """A graph of five pairs and its state: two pairs are one cluster, which is not reported yet."""
    g = GraphHAC(epsilon=0.0)
    g.add(range(10), edges=(range(0, 10, 2), range(1, 10, 2), [0.9] * 5))
    g.watch(0.3, patience=5)
    g.set_edges([0, 0, 1, 1], [2, 3, 2, 3], [0.8] * 4)
    return g, *g.__reduce__()[1]


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("usual", [0, 3, 4, 2]),  # reported clusters in a circle
        ("reported", [0, 3, 4, 2]),
        ("usual", [1, 2, 3, 4]),  # all points of a cluster are in one that ends
        ("usual", [2, 2, 3, 4]),
        ("held_reported", [2, 2]),
        ("held_reported", [-1, -1]),
        ("since", [3]),
        ("since", [-1]),
        ("since", [-(2**63)]),
        ("kind", [1]),
    ],
)
def test_points_reported_to_be_where_no_rule_puts_them(name, column):
    g, header, arrays = waiting_clusters()
    prefix = "watch/0/reported/"
    assert arrays[prefix + "usual"].tolist() == [0, 2, 3, 4]
    assert arrays[prefix + "reported"].tolist() == [0, 2, 3, 4]
    assert arrays[prefix + "held_reported"].tolist() == [1, 1]
    assert (arrays[prefix + "since"].tolist(), g.version) == ([2], 2)
    with pytest.raises(FileError, match="damaged"):
        GraphHAC._from_state(header, arrays | {prefix + name: np.array(column)})


def test_running_out_of_memory_changes_nothing():
    """Every allocation of an update fails in turn, with changes that wait."""
    rng = random.Random(5)
    stream = Stream(rng, "few", target=20, most=5)
    g = GraphHAC(0.1, 0.0)
    g.watch(0.3, 2, patience=3)
    g.update(**stream.seed_with("blobs", 20))
    g.watch(0.1, patience=1)
    for _ in range(12):
        change(g, stream, rng)
    before, batch, failures = as_bytes(g), stream.mixed(), 0
    assert len(before[1]["watch/0/reported/waiting"])
    twin = twin_of(g)
    twin.update(**batch)
    for after in range(10_000):
        again = twin_of(g)
        _core.fail_allocation(after)
        try:
            again.update(**batch)
        except MemoryError:
            failures += 1
        finally:
            _core.fail_allocation(-1)
        if again.version == g.version:
            assert as_bytes(again) == before
            again.update(**batch)
            assert as_bytes(again) == as_bytes(twin)
        else:
            break
    assert failures > 50
