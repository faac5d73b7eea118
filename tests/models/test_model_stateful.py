"""All updates of ``DynHAC`` in any order, on few points with many ties and duplicates: after every
step the graph is the one that the documented rules give, and the hierarchy verifies.
"""

import copy
import random

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from placement_oracle import predicted_labels, state_bytes
from points_oracle import Simulation, compare, judge_change, snapshot, without_answers
from soak import SOAK

from dynhac import DynHAC
from dynhac.dendrogram.cuts import snap

SIMILARITIES = {
    "inverse": (None, lambda d: 1 / (1 + d)),
    "steps": (lambda d: np.floor(4 / (1 + d)), lambda d: float(np.floor(4 / (1 + d)))),
    "tiny": (lambda d: np.exp2(-31.0 - d), lambda d: 2.0 ** (-31.0 - d)),
}


class PointMachine(RuleBasedStateMachine):
    """One model; every rule is one batch."""

    @initialize(
        k=st.sampled_from((1, 2, 3, 5, 50)),
        metric=st.sampled_from(("euclidean", "euclidean", "cosine", "inner_product")),
        similarity=st.sampled_from(sorted(SIMILARITIES)),
        backend=st.sampled_from(("exact", "auto")),
        repair=st.booleans(),
        max_points=st.sampled_from((None, None, 1, 4, 9)),
        max_age=st.sampled_from((None, None, 0, 3, 2.5)),
        timed=st.booleans(),
        text=st.booleans(),
        dimension=st.integers(1, 3),
        epsilon=st.sampled_from((0.0, 0.1)),
        n=st.integers(0, 12),
        seed=st.integers(0, 2**32),
    )
    def begin(
        self, k, metric, similarity, backend, repair, max_points, max_age, timed, text, dimension,
        epsilon, n, seed,
    ):  # fmt: skip
        given, rule = SIMILARITIES[similarity]
        if metric == "inner_product":
            given, rule = None, lambda d: max(-d, 0.0)
        self.model = DynHAC(
            epsilon,
            0.01,
            k,
            metric,
            similarity=given,
            neighbors=backend,
            repair=repair,
            max_points=max_points,
            max_age=max_age,
        )
        self.simulation = Simulation(k, metric, rule, repair, max_points, max_age)
        self.timed = timed or max_age is not None
        self.text = text
        self.dimension = dimension
        self.count = 0
        self.now = 0
        self.aged = max_age is not None
        self.rng = random.Random(seed)
        self.insert(n)

    def vectors(self, rng, n):
        """Few different vectors, so that there are many ties and duplicates."""
        return [tuple(float(rng.randint(-1, 2)) for _ in range(self.dimension)) for _ in range(n)]

    def times(self, rng, n):
        if not self.timed:
            return None
        self.now += rng.randint(0, 2)
        halves = rng.random() < 0.2
        return [self.now - rng.randint(0, 4) + (0.5 if halves else 0) for _ in range(n)]

    def fresh(self, rng, n):
        """Ids that are not in the model; None for ints that the model chooses."""
        if not self.text and rng.random() < 0.7:
            return None
        first, self.count = self.count, self.count + n
        if self.text:
            return [f"p{i}" for i in range(first, self.count)]
        above = [self.simulation.next_id + 2 * i for i in range(n)]
        ids = above if rng.random() < 0.5 else [-1 - i for i in range(first, self.count)]
        return rng.sample(ids, n)

    def apply(self, vectors, ids, delete, times):
        expected = self.simulation.update(vectors, ids, delete, times)
        kwargs = {}
        if vectors:
            kwargs = {"insert": np.array(vectors), "ids": ids, "timestamps": times}
        change = self.model.update(delete=delete, **kwargs)
        self.judge_change(change, expected)

    def judge_change(self, change, expected):
        judge_change(change, expected)
        assert self.model.last_change is change

    def has_points(self):
        return bool(self.simulation.points)

    @rule()
    def insert_one(self):
        rng = self.rng
        (vector,) = self.vectors(rng, 1)
        ids, times = self.fresh(rng, 1), self.times(rng, 1)
        expected = self.simulation.update([vector], ids, (), times)
        given = rng.choice((list, np.array))(vector)
        found = self.model.insert(given, ids and ids[0], None if times is None else times[0])
        assert found == expected[0][0]
        assert type(found) is (str if self.text else int)
        self.judge_change(self.model.last_change, expected)

    @rule(n=st.integers(0, 6))
    def insert(self, n):
        rng = self.rng
        self.apply(self.vectors(rng, n), self.fresh(rng, n) if n else None, [], self.times(rng, n))

    @rule(n=st.integers(2, 6))
    def insert_more(self, n):
        if len(self.simulation.points) < 16:
            self.insert(n)

    @rule()
    @precondition(has_points)
    def delete(self):
        rng = self.rng
        ids = list(self.simulation.points)
        self.apply([], None, rng.sample(ids, rng.randint(1, min(3, len(ids)))), None)

    @rule()
    @precondition(has_points)
    def delete_one(self):
        id = self.rng.choice(list(self.simulation.points))
        expected = self.simulation.update([], None, [id], None)
        self.judge_change(self.model.delete(id), expected)

    @rule()
    @precondition(has_points)
    def delete_most(self):
        rng = self.rng
        ids = list(self.simulation.points)
        self.apply([], None, rng.sample(ids, len(ids) - len(ids) // 3), None)

    @rule(n=st.integers(1, 4))
    @precondition(has_points)
    def mixed(self, n):
        rng = self.rng
        ids = list(self.simulation.points)
        delete = rng.sample(ids, rng.randint(0, min(3, len(ids))))
        new = self.fresh(rng, n)
        if delete and new and rng.random() < 0.5:
            new[-1] = delete[0]
        self.apply(self.vectors(rng, n), new, delete, self.times(rng, n))

    @rule()
    def expire(self):
        rng = self.rng
        if not self.aged:
            with pytest.raises(ValueError, match="no max_age"):
                self.model.expire(3)
            return
        self.now += rng.randint(-2, 3)
        now = self.now + rng.choice((0, 0, 0.5))
        self.judge_change(self.model.expire(now), self.simulation.expire(now))

    @rule()
    @precondition(has_points)
    def rejected(self):
        rng = self.rng
        before = snapshot(self.model)
        vectors = np.array(self.vectors(rng, 3))
        times = None if not self.timed else [0] * 3
        present = rng.choice(list(self.simulation.points))
        fresh = ["q1", "q2", "q3"] if self.text else [10**6, -(10**6), 10**6 + 1]
        bad = vectors.copy()
        bad[1, 0] = rng.choice((np.nan, np.inf, -np.inf, 1e39))
        faults = [
            (ValueError, {"insert": bad, "ids": fresh}),
            (ValueError, {"insert": vectors, "ids": fresh[:2]}),
            (ValueError, {"insert": vectors, "ids": [*fresh[:2], present]}),
            (ValueError, {"insert": vectors, "ids": [*fresh[:2], fresh[0]]}),
            (ValueError, {"insert": np.ones((3, 9)), "ids": fresh}),
            (TypeError, {"insert": vectors, "ids": [1, 2, 3] if self.text else ["a", "b", "c"]}),
            (KeyError, {"insert": vectors, "ids": fresh, "delete": fresh[:1]}),
            (ValueError, {"insert": vectors, "ids": fresh, "delete": [present, present]}),
        ]
        error, batch = rng.choice(faults)
        with pytest.raises(error):
            self.model.update(**batch, timestamps=times)
        assert snapshot(self.model) == before

    @rule(k=st.integers(1, 8))
    def ask(self, k):
        """Neighbours are those of brute force, predictions follow the rule, nothing changes."""
        rng, simulation, model = self.rng, self.simulation, self.model
        before = state_bytes(model)
        (vector,) = self.vectors(rng, 1)
        single = rng.random() < 0.5
        given = list(vector) if single else [vector, vector]
        nearest = sorted(
            (simulation.distance(vector, p.vector), p.slot, id)
            for id, p in simulation.points.items()
        )
        found = model.neighbors(given, k)
        if not single:
            found = type(found)(*(column[1] for column in found))
        count = min(k, len(nearest))
        missing = [None if self.text and model.dimension is not None else -1] * (k - count)
        assert found.ids.tolist() == [id for *_, id in nearest[:k]] + missing
        assert found.distances[:count] == pytest.approx([d for d, *_ in nearest[:k]], abs=1e-6)
        assert np.isinf(found.distances[count:]).all()
        assert not found.similarities[count:].any()
        for distance, similarity in zip(*(column[:count] for column in found[1:]), strict=True):
            assert similarity == pytest.approx(simulation.similarity(distance), abs=1e-12)

        theta = rng.choice((0.01, 0.2, 0.35, 0.5, 0.75, 1.0))
        nearby = model.neighbors(vector)
        weights = {
            id: w
            for id, w in zip(nearby.ids.tolist(), nearby.similarities.tolist(), strict=True)
            if w >= model.resolution / 2
        }
        score, labels = predicted_labels(
            model, weights, model.labels(theta), snap(theta, model.resolution)
        )
        label, given_score, neighbors = model.predict(vector, theta)
        assert given_score == score
        assert label in labels
        assert neighbors.ids.tolist() == nearby.ids.tolist()
        assert state_bytes(model) == before

    @rule()
    @precondition(has_points)
    def saved_state(self):
        """A model that is made from the saved state has the same state, and takes its place."""
        before = self.model
        self.model = copy.copy(before)
        assert without_answers(self.model) == without_answers(before)
        assert self.model._header() == before._header()
        saved, again = dict(before._columns()), dict(self.model._columns())
        assert again.keys() == saved.keys()
        for name, array in again.items():
            assert array.dtype == saved[name].dtype
            assert array.tolist() == saved[name].tolist()

    @rule()
    @precondition(has_points)
    def lost_index(self):
        """The next update builds the index again."""
        self.model._points.lose_index()

    @invariant()
    def all_is_right(self):
        compare(self.model, self.simulation)
        assert self.model.verify().ok


TestPoints = PointMachine.TestCase
TestPoints.settings = settings(max_examples=60 * SOAK, stateful_step_count=20)


STEPS = (
    *("insert_one", "insert", "insert_more", "delete", "delete", "delete_most", "mixed", "mixed"),
    *("expire", "rejected", "saved_state", "lost_index", "ask", "ask"),
)


@pytest.mark.parametrize("seed", range(60 * SOAK))
def test_long_walk(seed):
    """The same rules, with more points and steps than hypothesis tries."""
    rng = random.Random(seed)
    machine = PointMachine()
    windows = rng.random() < 0.5
    machine.begin(
        k=rng.choice((1, 2, 3, 4, 5, 7, 50)),
        metric=rng.choice(("euclidean", "euclidean", "cosine", "inner_product")),
        similarity=rng.choice(sorted(SIMILARITIES)),
        backend=rng.choice(("exact", "auto")),
        repair=rng.random() < 0.8,
        max_points=rng.choice((None, 4, 9)) if windows else None,
        max_age=rng.choice((None, 0, 3, 2.5)) if windows else None,
        timed=rng.random() < 0.5,
        text=rng.random() < 0.5,
        dimension=rng.randint(1, 3),
        epsilon=rng.choice((0.0, 0.1)),
        n=rng.randint(0, 20),
        seed=seed,
    )
    for _ in range(25):
        name = rng.choice(STEPS)
        if name.startswith("insert"):
            arguments = () if name == "insert_one" else (rng.randint(2, 6),)
        elif not machine.has_points():
            continue
        else:
            arguments = (rng.randint(1, 4),) if name in ("mixed", "ask") else ()
        getattr(machine, name)(*arguments)
        machine.all_is_right()
