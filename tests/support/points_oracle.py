"""The documented rules of ``DynHAC`` in plain Python: every point and edge in a dict, all searches
by sorting all points.
"""

import math
from dataclasses import dataclass

import numpy as np

from dynhac import DynHAC
from dynhac.neighbors.metrics import resolve_metric


@dataclass
class Point:
    vector: tuple
    slot: int
    time: object
    arrival: int


class Simulation:
    """A model that follows the rules and nothing else."""

    def __init__(
        self,
        k,
        metric="euclidean",
        similarity=lambda d: 1 / (1 + d),
        repair=True,
        max_points=None,
        max_age=None,
        resolution=2.0**-32,
    ):
        self.k, self.metric, self.similarity, self.repair = k, metric, similarity, repair
        self.max_points, self.max_age, self.resolution = max_points, max_age, resolution
        self.points = {}  # by id, in order of insertion
        self.edges = {}  # {(a, b): weight}, in both directions
        self.clock = None
        self.arrivals = 0
        self.next_id = 0

    def distance(self, a, b):
        if self.metric == "euclidean":
            return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))
        metric = resolve_metric(self.metric)
        rows = metric.prepare(np.array([a, b], np.float32))
        return float(metric.pair_distances(rows[:1], rows[1:])[0])

    def nearest(self, id):
        own = self.points[id]
        others = [
            (self.distance(own.vector, p.vector), p.slot, other)
            for other, p in self.points.items()
            if other != id
        ]
        found = sorted(others)[: self.k]
        if len(found) < self.k or any(self.points[o].vector != own.vector for _, _, o in found):
            return found
        equals = [
            (p.arrival > own.arrival, abs(p.arrival - own.arrival), (found[0][0], p.slot, other))
            for other, p in self.points.items()
            if other != id and p.vector == own.vector
        ]
        return [entry for *_, entry in sorted(equals)[: self.k]]

    def join(self, id):
        """Return the edges of a point to its nearest neighbours."""
        found = {}
        for distance, _, other in self.nearest(id):
            weight = self.similarity(distance)
            if weight >= self.resolution / 2:
                found[id, other] = found[other, id] = weight
        return found

    def degree(self, id):
        return sum(a == id for a, _ in self.edges)

    def expire(self, now):
        return self.update(now=now)

    def update(self, insert=(), ids=None, delete=(), times=None, now=None):
        """Apply a batch; return inserted, deleted, expired and the set of repaired ids."""
        if ids is None:
            ids = list(range(self.next_id, self.next_id + len(insert)))
        self.next_id = max([self.next_id, *(i + 1 for i in ids if isinstance(i, int))])
        if times is None:
            times = [0] * len(insert)
        seen = [t for t in (self.clock, now, *times) if t is not None]
        self.clock = max(seen) if seen else None

        taken = {p.slot for p in self.points.values()}
        leaving = {id: self.points[id] for id in delete}
        for id in delete:
            del self.points[id]
        queue = [(p.time, p.arrival, id, None) for id, p in self.points.items()]
        for vector, id, time in zip(insert, ids, times, strict=True):
            queue.append((time, self.arrivals, id, vector))
            self.arrivals += 1
        queue.sort(key=lambda entry: entry[:2])
        expired = []
        if self.max_age is not None and self.clock is not None:
            while queue and queue[0][0] < self.clock - self.max_age:
                expired.append(queue.pop(0))
        if self.max_points is not None:
            while len(queue) > self.max_points:
                expired.append(queue.pop(0))
        for _, _, id, vector in expired:
            if vector is None:
                leaving[id] = self.points.pop(id)
        lonely = {b for a, b in self.edges if a in leaving and b not in leaving}
        self.edges = {pair: w for pair, w in self.edges.items() if not set(pair) & leaving.keys()}

        stay = sorted((entry for entry in queue if entry[3] is not None), key=lambda e: e[1])
        for time, arrival, id, vector in stay:
            slot = next(s for s in range(10**6) if s not in taken)
            taken.add(slot)
            self.points[id] = Point(vector, slot, time, arrival)
        for _, _, id, _ in stay:
            self.edges.update(self.join(id))
        repaired = set()
        if self.repair:
            repaired = {
                id
                for id in lonely
                if self.degree(id) < self.k / 2 and self.degree(id) < len(self.points) - 1
            }
            more = [self.join(id) for id in repaired]
            for found in more:
                self.edges.update(found)
        return list(ids), list(delete), [entry[2] for entry in expired], repaired


def edges_of(graph):
    """Return ``{(u, v): weight}``, with every edge in both directions."""
    u, v, w = (column.tolist() for column in graph.edges())
    there = dict(zip(zip(u, v, strict=True), w, strict=True))
    assert len(there) == len(u), "an edge is listed twice"
    return there | {(b, a): weight for (a, b), weight in there.items()}


def compare(model, simulation):
    """Whether a model holds exactly what the simulation does."""
    assert model.ids.tolist() == list(simulation.points)
    assert len(model) == len(simulation.points)
    vectors = [list(p.vector) for p in simulation.points.values()]
    assert model.vectors().tolist() == vectors
    found = edges_of(model.graph)
    assert found.keys() == simulation.edges.keys()
    unit = simulation.resolution
    for pair, weight in found.items():
        assert abs(weight - simulation.edges[pair]) <= 0.5 * unit + 1e-12 * weight, pair


def judge_change(change, expected):
    """Whether a change says what `Simulation.update` returned."""
    inserted, deleted, expired, repaired = expected
    assert change.inserted.tolist() == inserted
    assert change.deleted.tolist() == deleted
    assert change.expired.tolist() == expired
    assert sorted(change.repaired.tolist()) == sorted(repaired)


def snapshot(model):
    """Return everything that a failed update must leave as it was, neighbours included."""
    d = model.dendrogram()
    points = model._points
    state = {}
    answers = None
    if points.dimension is not None:
        names = ("keys", "arrival", "vectors", "times", "next_arrival", "next_id")
        state = dict(zip(names, points.save(), strict=True))
        if points.text:
            del state["keys"]  # they go on counting when an update fails; ids are compared below
        index = points.index
        if index is not None and len(model) and not points.index_lost:
            index = getattr(index, "object", index)
            answers = [a.tolist() for a in index.query(points.slots_and_vectors()[1], 4)]
    return {
        "version": model.version,
        "ids": model.ids.tolist(),
        "vectors": model.vectors().tolist(),
        "edges": edges_of(model.graph),
        "tree": (d.children.tolist(), d.similarity.tolist(), d.node_ids.tolist()),
        "answers": answers,
        "dimension": model.dimension,
        "clock": points.clock,
        "points": {n: a.tolist() if hasattr(a, "tolist") else a for n, a in state.items()},
    }


def without_answers(model):
    """Return the snapshot without the answers of the index, which an interrupt may lose."""
    return {key: value for key, value in snapshot(model).items() if key != "answers"}


GRID = np.random.default_rng(0).integers(-3, 4, (40, 3)).astype(float)

BATCHES = {
    "one": {"insert": GRID[30]},
    "some": {"insert": GRID[30:35]},
    "delete": {"delete": [3, 4, 5, 6]},
    "both": {"insert": GRID[30:35], "delete": [3, 4, 5, 6]},
}
"""Updates of a model that `built` returned."""


def built(n=30, text=False, **parameters):
    """Return a model of points with many ties and duplicates."""
    model = DynHAC(n_neighbors=4, **parameters)
    model.insert(GRID[:n], [f"p{i}" for i in range(n)] if text else None)
    return model
