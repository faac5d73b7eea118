"""A model of points that was saved and loaded goes on as if nothing had happened."""

import copy
import os
import pickle

import numpy as np
import pytest
from points_oracle import GRID, snapshot
from soak import SOAK

from dynhac import DynHAC, FileError
from dynhac.neighbors import ExactIndex


def quarter(distances):
    """A similarity of the user's own, at module level so that it can be pickled."""
    return 0.25 / (1 + distances)


class OwnIndex(ExactIndex):
    """An index of the user's own."""


CASES = {
    "exact": {"neighbors": "exact"},
    "kd": {"neighbors": "kd"},
    "usearch": {"neighbors": "usearch"},
    "cosine": {"metric": "cosine", "similarity": "cosine"},
    "inner product": {"metric": "inner_product"},
    "gaussian": {"similarity": ("gaussian", 2.5)},
    "function": {"similarity": quarter},
    "window": {"max_points": 25},
    "age": {"max_age": 7, "max_points": 40},
    "dates": {"max_age": np.timedelta64(30, "s")},
    "no repair": {"repair": False, "resolution": 2.0**-20, "threads": 2},
}


class Walk:
    """Random batches that do not depend on the model they are for."""

    def __init__(self, seed, text=False, times=None):
        self.rng = np.random.default_rng(seed)
        self.text, self.times = text, times
        self.count = 0
        self.clock = 0

    def batch(self, model):
        rng = self.rng
        n = int(rng.integers(0, 6)) if self.count else 20
        batch = {"insert": rng.integers(-3, 4, size=(n, 3)) + rng.integers(0, 2, (n, 3)) / 4}
        first, self.count = self.count, self.count + n
        if self.text:
            batch["ids"] = [f"p{first + i}" for i in range(n)]
        gone = rng.integers(0, 4) if len(model) > 12 else 0
        if gone:
            batch["delete"] = rng.choice(model.ids, int(gone), replace=False).tolist()
        if self.times:
            self.clock += int(rng.integers(0, 4))
            stamps = self.clock - rng.integers(0, 3, n)
            if self.times == "dates":
                stamps = np.datetime64("2026-01-01", "s") + stamps.astype("timedelta64[s]")
            batch["timestamps"] = stamps
        return batch


def walk_for(name, seed, text=False):
    times = "dates" if name == "dates" else "numbers" if name == "age" else None
    return Walk(seed, text, times)


def columns(model):
    """The whole inner state as bytes."""
    header, arrays = model._state()
    return header, {n: (a.dtype.str, a.shape, a.tobytes()) for n, a in arrays.items()}


def given(parameters):
    """What a file does not hold."""
    function = parameters.get("similarity")
    return {"similarity": function} if callable(function) else {}


def go_on(model, other, walk, steps):
    for _ in range(steps):
        batch = walk.batch(model)
        one, two = model.update(**batch), other.update(**batch)
        for name in ("inserted", "deleted", "expired", "repaired"):
            assert getattr(one, name).tolist() == getattr(two, name).tolist()
        assert snapshot(model) == snapshot(other)
        assert model.version == other.version
    assert columns(model) == columns(other)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("name", sorted(CASES))
def test_it_goes_on_as_if_it_had_never_been_saved(name, text, tmp_path):
    for seed in range(2 * SOAK):
        walk = walk_for(name, seed, text)
        model = DynHAC(n_neighbors=5, **CASES[name])
        model.watch(0.3, min_size=2)
        for _ in range(8):
            model.update(**walk.batch(model))
        model.save(tmp_path / "m")
        again = DynHAC.load(tmp_path / "m", **given(CASES[name]))
        assert snapshot(model) == snapshot(again)
        assert repr(model) == repr(again)
        go_on(model, again, walk, 8)
        assert again.verify().ok
        labels = [m.graph.watches[0].labels().tolist() for m in (model, again)]
        assert labels[0] == labels[1]
        again.save(tmp_path / "n")
        model.save(tmp_path / "m")
        assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
@pytest.mark.parametrize("name", ["exact", "function", "age", "usearch"])
def test_copies_go_on_by_themselves(name, way):
    walk = walk_for(name, 3)
    model = DynHAC(n_neighbors=4, **CASES[name])
    for _ in range(5):
        model.update(**walk.batch(model))
    before = snapshot(model)
    other = way(model)
    other.insert([9.0, 9.0, 9.0], timestamps=walk.clock if walk.times else None)
    assert snapshot(model) == before
    other = way(model)
    go_on(model, other, walk, 5)


def test_an_empty_model(tmp_path):
    DynHAC(max_points=3).save(tmp_path / "m")
    again = DynHAC.load(tmp_path / "m", threads=2)
    assert (len(again), again.dimension, again.threads) == (0, None, 2)
    again.insert(np.eye(5))
    assert len(again) == 3
    again.delete(again.ids)
    again.save(tmp_path / "m")
    again = DynHAC.load(tmp_path / "m")
    assert (len(again), again.dimension) == (0, 5)
    assert again.insert(np.zeros(5)) == 5


def test_an_index_and_a_function_of_the_users_own_are_given_again(tmp_path):
    model = DynHAC(n_neighbors=3, neighbors=OwnIndex("euclidean"), similarity=quarter)
    walk = Walk(0)
    for _ in range(5):
        model.update(**walk.batch(model))
    model.save(tmp_path / "m")
    for other in (copy.copy(model), pickle.loads(pickle.dumps(model))):
        other.insert([5.0, 5.0, 5.0])
        assert len(other) == len(model) + 1
    with pytest.raises(FileError, match="an index of your own as neighbors; give it to load"):
        DynHAC.load(tmp_path / "m", similarity=quarter)
    own = OwnIndex("euclidean")
    with pytest.raises(FileError, match="a function of your own as similarity; give it to load"):
        DynHAC.load(tmp_path / "m", neighbors=own)
    again = DynHAC.load(tmp_path / "m", neighbors=own, similarity=quarter)
    go_on(model, again, walk, 5)
    DynHAC().save(tmp_path / "n")
    with pytest.raises(FileError, match="the model has its own similarity, 'inverse'; give none"):
        DynHAC.load(tmp_path / "n", similarity=quarter)


def small_model(**parameters):
    model = DynHAC(n_neighbors=3, **parameters)
    model.watch(0.5)
    walk = Walk(1)
    for _ in range(4):
        model.update(**walk.batch(model))
    return model


def test_random_damage_is_always_found(tmp_path):
    model = small_model(max_points=20)
    path = tmp_path / "m"
    model.save(path)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    for round in range(2_000 * SOAK):
        bad = bytearray(good)
        place = int(rng.integers(len(bad)))
        if round % 3 == 0:
            bad[place] ^= 1 << int(rng.integers(8))
        elif round % 3 == 1:
            del bad[place:]
        else:
            length = int(rng.integers(1, 200))
            bad[place : place + length] = rng.bytes(length)
        if bad == good:
            continue
        path.write_bytes(bad)
        with pytest.raises(FileError):
            DynHAC.load(path)
    path.write_bytes(good)
    assert snapshot(DynHAC.load(path)) == snapshot(model)


@pytest.mark.parametrize("backend", ["exact", "kd", "cells"])
def test_forgeries_with_a_right_checksum_do_no_harm(backend):
    """What is consistent may load; then it must work. What is not is refused."""
    model = small_model(neighbors=backend)
    header, arrays = model._state()
    names = [n for n in arrays if not n.startswith("graph/")]
    rng = np.random.default_rng(0)
    refused = 0
    for round in range(600 * SOAK):
        name = names[round % len(names)]
        array = arrays[name].copy()
        flat = array.reshape(-1)
        if round % 4 == 0 and flat.size:
            array = array[:-1]
        elif round % 11 == 0:
            array = array.astype(np.float64)
        elif flat.size:
            forged = rng.choice([-1, 0, 1, 2, 7, 100, 2**31 - 1])
            flat[rng.integers(flat.size)] = forged if array.dtype != np.uint8 else forged % 256
        try:
            again = DynHAC._from_state(header, arrays | {name: array})
        except FileError:
            refused += 1
            continue
        try:
            again.insert([[0.0, 0.0, 1.0]])
            again.delete(again.ids[:2])
        except (ValueError, KeyError, RuntimeError, OverflowError):
            pass
        assert again.verify().ok
    assert refused > 100
    for key in header:
        with pytest.raises(FileError):
            DynHAC._from_state({k: v for k, v in header.items() if k != key}, arrays)


def test_wrong_files(tmp_path):
    model = small_model()
    model.graph.save(tmp_path / "g")
    with pytest.raises(FileError, match="it holds a GraphHAC, not a DynHAC"):
        DynHAC.load(tmp_path / "g")
    with pytest.raises(FileNotFoundError):
        DynHAC.load(tmp_path / "nothing")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(FileError, match=r"text: it is not a file of dynhac"):
        DynHAC.load(tmp_path / "text")
    with pytest.raises(FileError, match="state version 4"):
        DynHAC._from_state(model._header() | {"state": 4}, {})


def test_an_index_of_the_users_own_that_has_become_empty():
    model = DynHAC(n_neighbors=2, neighbors=OwnIndex("euclidean"))
    model.insert([[0.0], [1.0]])
    model.delete([0, 1])
    for other in (copy.copy(model), pickle.loads(pickle.dumps(model))):
        assert other.insert([5.0]) == 2


def test_only_a_new_index_is_taken(tmp_path):
    own = OwnIndex("euclidean")
    model = DynHAC(n_neighbors=2, neighbors=own)
    model.insert([[0.0], [1.0]])
    model.save(tmp_path / "m")
    with pytest.raises(FileError, match="neighbors must be a new, empty index"):
        DynHAC.load(tmp_path / "m", neighbors=own)
    for wrong in ("kd", 5):
        with pytest.raises(TypeError, match="neighbors is"):
            DynHAC.load(tmp_path / "m", neighbors=wrong)


def test_what_is_not_a_regular_file_stays_what_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="not a regular file"):
        DynHAC().save(tmp_path / "pipe")


def test_the_largest_id_there_is(tmp_path):
    model = DynHAC(n_neighbors=2)
    model.insert(GRID[:3], [1, 2**63 - 1, 5])
    model.save(tmp_path / "x")
    again = DynHAC.load(tmp_path / "x")
    assert again.ids.tolist() == [1, 2**63 - 1, 5]
    with pytest.raises(ValueError, match="no int id above"):
        again.insert(GRID[3])
    state = list(model.__reduce__()[1])
    state[1]["points/counters"] = state[1]["points/counters"].copy()
    state[1]["points/counters"][1] = 2**63 - 2
    with pytest.raises(FileError, match="next id has been used"):
        DynHAC._from_state(*state)


def test_a_forged_next_id():
    """Ids that are given out are never below 0."""
    model = DynHAC(n_neighbors=2)
    model.insert(GRID[:3], [-9, -8, -7])
    state = list(model.__reduce__()[1])
    state[1]["points/counters"] = state[1]["points/counters"].copy()
    state[1]["points/counters"][1] = -5
    with pytest.raises(FileError, match="next id has been used"):
        DynHAC._from_state(*state)


@pytest.mark.parametrize("arrivals", [-1, 2**63 - 1])
def test_a_forged_number_of_arrivals(arrivals):
    model = DynHAC(n_neighbors=2)
    model.insert(GRID[:3])
    model.delete([0, 1, 2])
    header, arrays = model._state()
    counters = np.array([arrivals, 3])
    with pytest.raises(FileError, match="number of arrivals is out of range"):
        DynHAC._from_state(header, arrays | {"points/counters": counters})


class Interrupted(OwnIndex):
    """An index of the user's own whose next removal is interrupted."""

    def remove(self, slots):
        raise KeyboardInterrupt


def test_a_copy_of_a_model_whose_own_index_was_lost():
    model = DynHAC(n_neighbors=2, neighbors=Interrupted("euclidean"))
    model.insert(GRID[:5])
    with pytest.raises(KeyboardInterrupt):
        model.delete(1)
    for other in (copy.copy(model), pickle.loads(pickle.dumps(model))):
        with pytest.raises(RuntimeError, match="make a new model"):
            other.insert(GRID[6])
        assert other.ids.tolist() == [0, 1, 2, 3, 4]
