"""Watches under test: their clusters, ids and events after every update."""

import itertools

from strategies import Stream

from dynhac import replay
from dynhac.watch.events import JOINING, LEAVING


class Follower:
    """Follows a watch by its events alone, and compares the result with the labels of the model."""

    def __init__(self, g, theta, min_size):
        self.g = g
        self.watch = g.watch(theta, min_size)
        self.moved = 0  # points in events
        self.labels = {}
        self.ever = set()
        self.seen = -1
        self.clusters = {}
        self.look()

    def truth(self):
        """The clusters of a fresh computation, as sets of points."""
        labels = self.g.labels(self.watch.theta, min_size=self.watch.min_size)
        sets = {}
        for point, label in zip(self.g.ids.tolist(), labels.tolist(), strict=True):
            if label >= 0:
                sets.setdefault(label, set()).add(point)
        return [frozenset(s) for s in sets.values()]

    def look(self):
        events = [e for e in self.watch.events if e.update != self.seen]
        before, old_labels = self.clusters, dict(self.labels)
        replay(events, self.labels)
        self.moved += sum(len(e.points) for e in events)
        if events:
            self.seen = events[0].update
        shown = dict(zip(self.g.ids.tolist(), self.watch.labels().tolist(), strict=True))
        assert self.labels == {p: c for p, c in shown.items() if c >= 0}
        now = {}
        for point, cluster in self.labels.items():
            now.setdefault(cluster, set()).add(point)
        self.clusters = {c: frozenset(s) for c, s in now.items()}
        assert sorted(map(sorted, self.clusters.values())) == sorted(map(sorted, self.truth()))
        assert self.watch.clusters() == {c: len(s) for c, s in self.clusters.items()}
        self.check_ids(before, self.clusters)
        self.check_events(events, before, old_labels)

    def check_ids(self, before, now):
        """Greedy by the number of shared points, the older id first."""
        pairs = [
            (-len(old & new), a, b != a, b)
            for (a, old), (b, new) in itertools.product(before.items(), now.items())
            if old & new
        ]
        taken, heir = set(), {}
        for _, a, _, b in sorted(pairs):
            if a not in taken and b not in heir:
                taken.add(a)
                heir[b] = a
        for b in now:
            assert heir.get(b, b) == b
        fresh = now.keys() - heir.keys()
        assert not fresh & self.ever, "an id was used again"
        assert not self.ever or not fresh or min(fresh) > max(self.ever)
        self.ever |= now.keys()

    def check_events(self, events, before, old_labels):
        now = self.clusters
        by_kind = {}
        for e in events:
            assert (e.kind, e.cluster) not in by_kind
            by_kind[e.kind, e.cluster] = e
            assert e.size == len(now.get(e.cluster, ()))
            assert len(e.points)
            assert str(e.cluster) in str(e)
        born = {c for kind, c in by_kind if kind == "born"}
        died = {c for kind, c in by_kind if kind == "died"}
        assert born == now.keys() - before.keys()
        assert died == before.keys() - now.keys()
        for kinds, present in ((JOINING, True), (LEAVING, False)):
            moved = {}
            for e in events:
                if e.kind in kinds:
                    points = e.points.tolist()
                    assert len(set(points)) == len(points)
                    assert not moved.get(e.cluster, set()) & set(points)
                    moved.setdefault(e.cluster, set()).update(points)
            for c in before.keys() | now.keys():
                came = now.get(c, frozenset()) - before.get(c, frozenset())
                left = before.get(c, frozenset()) - now.get(c, frozenset())
                assert moved.get(c, set()) == (came if present else left)
        for (kind, c), e in by_kind.items():
            if kind == "merged":
                assert e.others
                assert set(e.others) <= died
                assert all(by_kind["died", x].others == (c,) for x in e.others)
                assert {old_labels[p] for p in e.points.tolist()} == set(e.others)
            elif kind == "split":
                assert e.others
                assert set(e.others) <= born
                assert all(by_kind["born", x].others == (c,) for x in e.others)
                assert {self.labels[p] for p in e.points.tolist()} == set(e.others)
            elif kind in ("grew", "shrank"):
                assert e.others == ()
            else:
                assert len(e.others) <= 1

    def check_lookups(self):
        for c, inside in self.clusters.items():
            assert set(self.watch.members(c).tolist()) == inside
        for point in self.g.ids.tolist():
            assert self.watch.cluster_of(point) == self.labels.get(point, -1)


def change(model, stream, rng):
    """Apply a random batch; return it."""
    operations = [
        o
        for o in Stream.OPERATIONS
        if (stream.model or o in ("add", "mixed"))
        and (any(stream.model.values()) or o != "cut_edges")
    ]
    batch = getattr(stream, rng.choice(operations))()
    model.update(**batch)
    return batch
