"""A process that forges model files, started by test_forgeries.py.

Every line on standard input is a seed. The seed decides on a model, and on what is changed in its
file; the checksum is made right again. The process answers with the seed before it starts, and then
"refused", "equal" (to the original), "lived" (a model that passed all checks) or "failed" and why.
A crash leaves the seed as the last line. By hand: ``python forger.py SEED ...``
"""

import json
import os
import random
import sys
import tempfile
import traceback
import warnings

import numpy as np
import oracles
from models import edge_set, partition
from points_oracle import Point, Simulation, compare

from dynhac import DynHAC, FileError, GraphHAC, _core
from dynhac.files.format import DIGEST_SIZE, checksum_of, read_file, write_file
from dynhac.neighbors import usearch

UPDATES = 50
MODELS = {
    "graph": (GraphHAC, {"epsilon": 0.2}),
    "named graph": (GraphHAC, {"threshold": 0.05}),
    "exact graph": (GraphHAC, {"epsilon": 0.0, "threshold": 0.0}),
    "last level": (GraphHAC, {"epsilon": 0.0, "threshold": 0.0}),
    "last level of points": (DynHAC, {"epsilon": 0.0, "neighbors": "kd"}),
    "exact": (DynHAC, {"neighbors": "exact"}),
    "kd": (DynHAC, {"neighbors": "kd"}),
    "names": (DynHAC, {"neighbors": "kd"}),
    "cosine": (DynHAC, {"neighbors": "usearch", "metric": "cosine"}),
    "scanned usearch": (DynHAC, {"neighbors": "usearch"}),
    "usearch": (DynHAC, {"neighbors": "usearch"}),
    "cells": (DynHAC, {"neighbors": "cells"}),
    "proved cells": (DynHAC, {"neighbors": "cells:1"}),
    "many cells": (DynHAC, {"neighbors": "cells"}),
    "many proved cells": (DynHAC, {"neighbors": "cells:1"}),
    "equal points": (DynHAC, {"neighbors": "kd"}),
    "window": (DynHAC, {"max_points": 25, "repair": False}),
    "age": (DynHAC, {"max_age": 30, "max_points": 40}),
    "floats": (DynHAC, {"max_age": 2.5}),
    "dates": (DynHAC, {"max_age": np.timedelta64(30, "s")}),
}


def set_up(name):
    """Set what is not part of a model: when usearch has a graph, and graphs have a last level."""
    usearch.MOST_NUMBERS_WITHOUT_GRAPH = 2**18 if scans(name) else 0
    if "last level" in name:
        _core.bound_levels(1, 0)
    else:
        _core.bound_levels()


def scans(name):
    """Whether the usearch index of a model scans its vectors while they are few."""
    return name != "usearch"


class Steps:
    """Random updates of a model, in parallel with plain Python data."""

    def __init__(self, model, seed, name):
        self.model, self.rng = model, random.Random(seed)
        self.text = "name" in name
        self.count = 0

    def check(self, settled=False):
        """Raise unless every merge of the model is good, by two checks, and so are its watches.

        If all is ``settled``, watches with patience tell the clusters that there are.
        """
        graph = self.graph
        report = graph.verify()
        assert report.ok, str(report)
        snapshot, u, v, w, _ = graph._engine.engine.export()
        edges = dict(zip(zip(u.tolist(), v.tolist(), strict=True), w.tolist(), strict=True))
        merges = oracles.rows(snapshot.children, snapshot.similarity, snapshot.level)
        found = oracles.full_check(
            len(graph), edges, merges, graph.epsilon, graph.threshold, graph.resolution
        )
        assert found.ok, found
        for watch in graph.watches:
            if watch.theta is None:
                expected = partition(graph.labels(min_size=watch.min_size))
            else:
                unit = graph.resolution
                theta = min(watch.theta, round(watch.theta / unit) * unit)
                expected = partition(oracles.cut(len(graph), merges, theta))
                expected = {c for c in expected if len(c) >= watch.min_size}
            told = partition(watch.labels())
            assert told == expected or (watch.patience and not settled)
            sizes = sorted(map(len, told))
            assert sorted(watch.clusters().values()) == sizes
            members = (watch.members(cluster) for cluster in watch.clusters())
            assert sorted(map(len, members)) == sizes
            watch.timeline()
            list(map(str, watch.events))

    def fresh(self, taken):
        """An id that is not taken."""
        while True:
            self.count += 1
            id = f"new {self.count} é" if self.text else 10**6 + self.count
            if id not in taken:
                return id


class GraphSteps(Steps):
    def __init__(self, model, seed, name):
        super().__init__(model, seed, name)
        self.graph = model
        self.text = bool(len(model)) and isinstance(model.ids[0], str)
        self.ids, self.edges = model.ids.tolist(), edge_set(model)

    def step(self):
        rng, ids = self.rng, self.ids
        gone = rng.sample(ids, min(len(ids), rng.randrange(4 if len(ids) < 40 else 12)))
        add = [self.fresh(ids) for _ in range(rng.randrange(4))]
        stay = [id for id in ids if id not in gone] + add
        new = {}
        for _ in range(rng.randrange(6)):
            if len(stay) > 1:
                new[tuple(sorted(rng.sample(stay, 2)))] = rng.randrange(1, 2**20) * 2.0**-20
        columns = ([pair[0] for pair in new], [pair[1] for pair in new], list(new.values()))
        self.model.update(add=add, edges=columns, remove=gone)
        self.ids = stay
        self.edges = {p: w for p, w in self.edges.items() if not {*p} & {*gone}} | new
        assert self.model.ids.tolist() == self.ids
        found = edge_set(self.model)
        assert found.keys() == self.edges.keys()
        assert all(abs(found[p] - w) <= self.model.resolution for p, w in self.edges.items())

    def settle(self):
        """Let watches tell all that they wait for, by updates that change no cluster."""
        longest = max((watch.patience or 0 for watch in self.model.watches), default=0)
        if longest > 20:
            return False
        for _ in range(longest):
            id = self.fresh(self.ids)
            self.model.add([id])
            self.model.remove([id])
        return True


class PointSteps(Steps):
    def __init__(self, model, seed, name):
        super().__init__(model, seed, name)
        self.graph = model.graph
        points, parameters = model._points, model._parameters
        self.text, self.kind = points.text, points.time_kind
        self.dimension = points.dimension or 3
        self.equal = name == "equal points"
        self.compared = model.similarity == "inverse" and (
            points.backend not in ("usearch", "cells")
            or (points.backend == "usearch" and scans(name) and holds_its_vectors(points))
            or (points.backend == "cells" and "proved" in name)
        )
        self.simulation = Simulation(
            model.n_neighbors,
            model.metric,
            repair=model.repair,
            max_points=model.max_points,
            max_age=parameters.max_age,
            resolution=model.resolution,
        )
        self.simulation.clock = points.clock
        if points.dimension is None:
            return
        _, arrival, vectors, times, arrivals, next_id = points.save()
        slots = np.flatnonzero(arrival >= 0)
        slots = slots[np.argsort(arrival[slots])].tolist()
        for id, slot in zip(model.ids.tolist(), slots, strict=True):
            time = 0 if times is None else times[slot].item()
            place = arrival[slot].item()
            self.simulation.points[id] = Point(tuple(vectors[slot].tolist()), slot, time, place)
        self.simulation.arrivals, self.simulation.next_id = arrivals, next_id
        for (a, b), w in edge_set(model.graph).items():
            self.simulation.edges[a, b] = self.simulation.edges[b, a] = w

    def times(self, count):
        """Timestamps about the clock, as the model and the simulation take them."""
        if self.kind is None:
            return None, None
        now = self.simulation.clock or 0
        if self.kind == "float":
            times = [float(now) + self.rng.randrange(-3, 6) / 4 for _ in range(count)]
            return times, times
        unit = 10**9 if self.kind == "date" else 1
        limit = 2**62
        now = max(-limit, min(limit, int(now)))
        times = [now + self.rng.randrange(-3, 6) * unit for _ in range(count)]
        dates = np.array(times, "i8").view("M8[ns]") if self.kind == "date" else times
        return dates, times

    def step(self):
        rng, simulation = self.rng, self.simulation
        ids = list(simulation.points)
        gone = rng.sample(ids, min(len(ids), rng.randrange(4 if len(ids) < 40 else 12)))
        count = rng.randrange(4)
        values = range(2) if self.equal else [i / 4 for i in range(-9, 10)]
        X = [[rng.choice(values) for _ in range(self.dimension)] for _ in range(count)]
        new = [self.fresh(ids) for _ in range(count)]
        given, plain = self.times(count)
        self.model.update(insert=X, ids=new, delete=gone, timestamps=given)
        if self.compared:
            vectors = [tuple(map(float, x)) for x in X]
            simulation.update(insert=vectors, ids=new, delete=gone, times=plain)
            compare(self.model, simulation)
        else:
            simulation.points = dict.fromkeys(self.model.ids.tolist())
            simulation.clock = self.model._points.clock
            windowed = self.model.max_age or self.model.max_points
            assert {*self.model.ids.tolist()} >= ({*ids} - {*gone}) or windowed


def holds_its_vectors(points):
    """Whether the index has the very vectors of the points, without differences of rounding."""
    slots, vectors = points.slots_and_vectors()
    return points.index.object.has_vectors(slots, vectors, far=0.0)


def steps_of(model, seed, name):
    return (GraphSteps if isinstance(model, GraphHAC) else PointSteps)(model, seed, name)


def original(name, folder):
    """Write the file of a model, and return its path and its state."""
    cls, parameters = MODELS[name]
    parameters = dict(parameters)
    set_up(name)
    if cls is DynHAC:
        parameters["n_neighbors"] = 4
    model = cls(**parameters)
    if cls is DynHAC:
        rng = np.random.default_rng(1)
        for part in range(2):
            count = 350 if "many" in name else 14
            X = rng.integers(-9, 10, (count, 3)) / 4
            if name == "equal points":
                X = X.clip(0, 1).round()
            ids = [f"p{part}.{i}" for i in range(14)] if name == "names" else None
            times = {
                "age": np.arange(14) + 10,
                "floats": np.arange(14) / 4,
                "dates": np.datetime64("2024-01-01") + np.arange(14).astype("m8[s]"),
            }
            model.insert(X, ids=ids, timestamps=times.get(name))
            model.delete(model.ids[::5])
        model.watch(0.4, min_size=2)
        longest = {"age": 4.0, "floats": 1.0, "dates": np.timedelta64(4, "s")}
        model.watch(0.3, min_size=2, patience=longest.get(name, 3))
        model.watch(min_size=3, patience=2)
    else:
        ids = [f"v{i}" for i in range(12)] if "named" in name else list(range(12))
        rng = random.Random(1)
        model.add(ids, edges=(ids[1:], ids[:-1], [rng.random() for _ in ids[1:]]))
        model.watch(0.4, min_size=2)
        model.watch(0.3, patience=3)
        model.watch(min_size=2)
    steps = steps_of(model, 1, name)
    for _ in range(6):
        steps.step()
    path = os.path.join(folder, name.replace(" ", "_"))
    model.save(path)
    return path, cls, state(model)


def state(model):
    header, arrays = model._state()
    return header, {n: (a.dtype.str, a.shape, a.tobytes()) for n, a in arrays.items()}


def forge_value(rng, flat, place):
    """Return another value for one entry of an array."""
    value = flat[place]
    if flat.dtype.kind == "f":
        other = [0.0, -1.0, 1e-300, 1e300, np.inf, np.nan, float(value) * 1.5, -float(value)]
        other.append(np.nextafter(value, np.inf, dtype=flat.dtype))
        other.append(flat[rng.randrange(flat.size)])
        return rng.choice(other)
    limits = np.iinfo(flat.dtype) if flat.dtype.kind != "b" else np.iinfo(np.uint8)
    other = [0, 1, 2, 7, 100, limits.max, limits.min, limits.max - 1]
    other += [int(value) + 1, int(value) - 1, int(value) ^ (1 << rng.randrange(8 * flat.itemsize))]
    other += [int(flat[rng.randrange(flat.size)])] * 4
    number = rng.choice(other) % 2 ** (8 * flat.itemsize)
    return np.array([number], f"u{flat.itemsize}").view(flat.dtype)[0]


def forge_array(rng, array):
    array = np.array(array)
    if rng.random() < 0.06:
        choice = rng.randrange(5)
        if choice == 0 and array.ndim:
            return array[:-1]
        if choice == 1 and array.ndim:
            return np.concatenate((array, array[:1]))
        if choice == 2:
            return array.astype(rng.choice(["f8", "i8", "u4", "u1", "f4", "?"]))
        if choice == 3:
            return array.reshape(array.shape[::-1])
        return array[:0]
    flat = array.reshape(-1)
    if not flat.size:
        return np.array([rng.randrange(5)], array.dtype)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        place = rng.randrange(flat.size)
        if rng.random() < 0.2:
            other = rng.randrange(flat.size)
            flat[[place, other]] = flat[[other, place]]
        else:
            flat[place] = forge_value(rng, flat, place)
    return array


def forge_header(rng, header):
    """Change one value, which may be inside of another."""
    header = json.loads(json.dumps(header))
    inside = header
    key = rng.choice(sorted(inside))
    while isinstance(inside[key], dict) and inside[key]:
        inside = inside[key]
        key = rng.choice(sorted(inside))
    value = inside[key]
    other = [None, True, False, 0, 1, -1, 3, 2**70, 0.5, 1e300, "", "x", [], {}, [value]]
    other += ["kd", "exact", "usearch", "int", "float", "date", "cosine", "inner_product"]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        other += [value * 2, value + 1, value / 2, -value] * 2
    if rng.random() < 0.1:
        del inside[key]
    else:
        inside[key] = rng.choice(other)
    return header


def forge(rng, path, cls, target):
    """Write a file that differs from another in a few values, with a right checksum."""
    choice = rng.random()
    if choice < 0.15:  # any byte
        with open(path, "rb") as file:
            data = bytearray(file.read()[:-DIGEST_SIZE])
        for _ in range(rng.choice((1, 1, 3))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with open(target, "wb") as file:
            file.write(data + checksum_of(data))
        return
    header, arrays = read_file(path, cls._file_kind)
    if choice < 0.25:
        header = forge_header(rng, header)
    else:
        for _ in range(rng.choice((1, 1, 1, 2))):
            groups = sorted({name.split("/")[0] for name in arrays})
            group = rng.choice(groups)
            name = rng.choice([name for name in arrays if name.split("/")[0] == group])
            if rng.random() < 0.02:
                del arrays[name]
            else:
                arrays[name] = forge_array(rng, arrays[name])
    write_file(target, cls._file_kind, header, arrays)


def run(seed, originals, folder):
    rng = random.Random(seed)
    name = rng.choice(sorted(MODELS))
    if name not in originals:
        originals[name] = original(name, folder)
    path, cls, before = originals[name]
    set_up(name)
    target = os.path.join(folder, "forged")
    try:
        forge(rng, path, cls, target)
    except (ValueError, TypeError, OverflowError):
        return "refused"  # it cannot even be written
    try:
        model = cls.load(target)
    except FileError:
        return "refused"
    if state(model) == before:
        return "equal"
    steps = steps_of(model, seed, name)
    steps.check()
    for _ in range(UPDATES):
        steps.step()
    steps.check()
    if isinstance(steps, GraphSteps):
        steps.check(settled=steps.settle())
    return "lived"


def main(seeds):
    warnings.simplefilter("ignore")
    originals = {}
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        for line in seeds:
            print(int(line), flush=True)
            try:
                answer = run(int(line), originals, folder)
            except Exception:
                answer = "failed " + json.dumps(traceback.format_exc())
            print(answer, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or sys.stdin)
