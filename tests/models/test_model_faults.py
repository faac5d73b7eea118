"""Updates of ``DynHAC`` that fail, through functions of the user or the engine, change nothing."""

import copy
import pickle

import numpy as np
import pytest
from points_oracle import BATCHES, GRID, built, edges_of, snapshot

from dynhac import DynHAC
from dynhac.neighbors import ExactIndex


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda d: 1 / 0, "division"),
        (lambda d: np.full_like(d, np.nan), "nan"),
        (lambda d: -d - 1, "similarities must be finite and >= 0"),
        (lambda d: d[:-1], "shape"),
        (lambda d: None, "similarity function returned"),
        (lambda d: np.ma.array(1 / (1 + d)), "masked array"),
    ],
)
@pytest.mark.parametrize("batch", ["one", "some", "both"])
@pytest.mark.parametrize("neighbors", ["exact", "kd"])
def test_a_similarity_that_fails(wrong, message, batch, neighbors):
    broken = False
    model = built(similarity=lambda d: wrong(d) if broken else 1 / (1 + d), neighbors=neighbors)
    twin = built(neighbors=neighbors)
    before = snapshot(model)
    broken = True
    with pytest.raises((ValueError, ZeroDivisionError), match=message):
        model.update(**BATCHES[batch])
    assert snapshot(model) == before
    broken = False
    model.update(**BATCHES[batch])
    twin.update(**BATCHES[batch])
    assert snapshot(model) == snapshot(twin)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("window", [None, 30])
@pytest.mark.parametrize("neighbors", ["exact", "kd"])
def test_a_graph_that_rejects_an_update(batch, text, window, neighbors):
    """A weight is too large for the engine, which is the last step of an update to fail."""
    weight, changes = 1.0, dict(BATCHES[batch])
    if batch == "delete":
        changes["delete"] = range(20)  # others need repair, which adds edges
    if text:
        if "insert" in changes:
            changes["ids"] = [f"q{i}" for i in range(len(np.atleast_2d(changes["insert"])))]
        if "delete" in changes:
            changes["delete"] = [f"p{i}" for i in changes["delete"]]
    models = [
        built(
            text=text,
            similarity=lambda d: weight / (1 + d),
            neighbors=neighbors,
            max_points=window,
        )
        for _ in range(2)
    ]
    model, twin = models
    before = snapshot(model)
    weight = 1e300
    with pytest.raises(ValueError, match=r"edge \(.*too large at resolution"):
        model.update(**changes)
    assert snapshot(model) == before
    assert len(model._engine.ids) == (30 if text else 0)
    weight = 1.0
    for each in models:
        each.update(**changes)
    assert snapshot(model) == snapshot(twin)


def test_a_model_that_outgrows_its_index(monkeypatch):
    monkeypatch.setattr("dynhac.models.index_choice.MOST_NUMBERS_SCANNED", 90)
    monkeypatch.setattr(
        "dynhac.models.index_choice.choose_backend",
        lambda _, d, n: "exact" if d * n <= 90 else "cells",
    )
    names = []

    def make(backend, metric, dimension, expected_points, *, threads):
        names.append(backend)
        return ExactIndex(metric)

    monkeypatch.setattr("dynhac.models.index_choice.make_index", make)
    weight = 1.0
    similarity = lambda d: weight * np.maximum(1 - d, 0)  # noqa: E731
    model = DynHAC(n_neighbors=4, metric="cosine", similarity=similarity)
    model.insert(GRID[:25])
    assert model.backend == "exact"
    before = snapshot(model)
    with pytest.raises(ValueError, match="nan"):
        model.insert([np.nan, 0, 0])
    weight = 1e300
    with pytest.raises(ValueError, match="too large at resolution"):
        model.insert(GRID[25:])
    weight = 1.0
    assert model.backend == "exact"
    assert snapshot(model) == before
    model.insert(GRID[25:])
    assert model.backend == "cells"
    model.delete(list(range(30)))
    assert model.backend == "cells"  # it stays with fewer points
    assert names == ["exact", "cells", "cells"]  # one for the batch that failed
    assert model.verify().ok
    whole = DynHAC(n_neighbors=4, metric="cosine", similarity=similarity, neighbors="exact")
    whole.insert(GRID[:25])
    whole.insert(GRID[25:])
    whole.delete(list(range(30)))
    assert edges_of(whole.graph) == edges_of(model.graph)


class Calling(ExactIndex):
    """An index of the user's own that calls a function in one of its methods."""

    __slots__ = ("call", "method")

    def __init__(self):
        super().__init__()
        self.method = None

    def add(self, slots, vectors):
        self._maybe_call("add")
        super().add(slots, vectors)

    def remove(self, slots):
        self._maybe_call("remove")
        super().remove(slots)

    def query(self, vectors, k):
        self._maybe_call("query")
        return super().query(vectors, k)

    def _maybe_call(self, method):
        if self.method == method:
            self.method = None  # an undo calls nothing
            self.call()


ACTIONS = {
    "insert": lambda model, path: model.insert(GRID[0], timestamps=31),
    "delete": lambda model, path: model.delete(7),
    "empty update": lambda model, path: model.update(),
    "expire": lambda model, path: model.expire(3),
    "save": lambda model, path: model.save(path),
    "save of the graph": lambda model, path: model.graph.save(path),
    "copy": lambda model, path: copy.copy(model),
    "pickle": lambda model, path: pickle.dumps(model),
    "neighbors": lambda model, path: model.neighbors(GRID[0]),
    "predict": lambda model, path: model.predict(GRID[0], 0.5),
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("caught", [False, True])
@pytest.mark.parametrize("where", ["similarity", "add", "remove", "query"])
def test_functions_of_the_user_cannot_update_or_search_the_model(tmp_path, where, caught, action):
    """They get a RuntimeError. If they do not catch it, the update fails and changes nothing."""
    index, armed = Calling(), False

    def act():
        if caught:
            with pytest.raises(RuntimeError, match="being updated, saved or searched"):
                ACTIONS[action](model, tmp_path / "m")
        else:
            ACTIONS[action](model, tmp_path / "m")

    def similarity(distances):
        nonlocal armed
        if armed:
            armed = False
            act()
        return 1 / (1 + distances)

    index.call = act
    model, twin = (
        DynHAC(n_neighbors=4, similarity=similarity, neighbors=neighbors, max_age=90)
        for neighbors in (index, "exact")
    )
    for each in (model, twin):
        each.insert(GRID[:30], timestamps=range(30))
    update = BATCHES["both"] | {"timestamps": 30}
    before = snapshot(model)
    armed = where == "similarity"
    index.method = None if armed else where
    if not caught:
        with pytest.raises(RuntimeError, match="being updated, saved or searched"):
            model.update(**update)
        assert snapshot(model) == before
    assert (index.method, armed) == (None, False) or caught
    model.update(**update)
    assert (index.method, armed) == (None, False)
    twin.update(**update)
    assert snapshot(model) == snapshot(twin)
    assert not (tmp_path / "m").exists()


def test_functions_of_the_user_can_read_the_model():
    """They see the state before the update."""
    index, seen = Calling(), []

    def read():
        labels = model.labels(0.5)
        assert len(labels) == len(model) == len(model.ids) == len(model.vectors())
        assert model.verify().ok
        seen.append((model.ids.tolist(), model.vectors().tolist(), labels.tolist()))

    index.call = read
    model = built(neighbors=index)
    before = (model.ids.tolist(), model.vectors().tolist(), model.labels(0.5).tolist())
    for method in ("remove", "add", "query"):
        index.method = method
        model.update(**BATCHES["both"] | {"ids": range(3, 7)} | {"insert": GRID[3:7]})
        assert seen.pop() == before
        before = (model.ids.tolist(), model.vectors().tolist(), model.labels(0.5).tolist())
    assert model.ids.tolist()[-4:] == [3, 4, 5, 6]


class Meddler:
    """An array that calls a function when it is read."""

    def __init__(self, call, array):
        self.call, self.array = call, array

    def __array__(self, dtype=None, copy=None):
        self.call()
        return self.array


READ = "updated while an update was read"


def test_vectors_that_update_the_model():
    """What was checked before the inner update need not hold after it: nothing is applied."""
    model = DynHAC(n_neighbors=2)
    model.insert(GRID[:5])

    def replace():
        model.delete(3)
        model.insert(GRID[20], 9)

    with pytest.raises(RuntimeError, match=READ):
        model.update(insert=Meddler(replace, GRID[30:31]), delete=[3])
    assert model.ids.tolist() == [0, 1, 2, 4, 9]
    assert model.verify().ok


@pytest.mark.parametrize(
    "first",
    [
        {"insert": GRID[:3]},
        {"insert": GRID[:3, :2]},
        {"insert": GRID[:3], "ids": ["a", "b", "c"]},
        {"insert": GRID[:3], "timestamps": [1, 2, 3]},
    ],
)
@pytest.mark.parametrize("column", ["insert", "ids", "timestamps"])
def test_arrays_that_insert_the_first_points(column, first):
    """The first points decide on dimension, type of the ids and timestamps."""
    model = DynHAC(n_neighbors=2)
    update = {"insert": GRID[30:31], "ids": np.array([7])}
    if column == "timestamps":
        update["timestamps"] = np.array([5])
    update[column] = Meddler(lambda: model.update(**first), update[column])
    with pytest.raises(
        (RuntimeError, ValueError), match=f"{READ}|first points of this model|ids of this model"
    ):
        model.update(**update)
    assert len(model) == 3
    assert model.verify().ok


def test_ids_and_times_that_update_the_model():
    model = DynHAC(n_neighbors=2, max_age=50)
    model.insert(GRID[:5], timestamps=range(5))
    meddle = lambda: model.insert(GRID[20], timestamps=6)  # noqa: E731
    with pytest.raises(RuntimeError, match=READ):
        model.delete(Meddler(meddle, np.array([3])))
    with pytest.raises(RuntimeError, match=READ):
        model.expire(Meddler(meddle, np.array(7)))
    assert len(model) == 7
    assert model.verify().ok


def test_vectors_that_read_save_or_copy_the_model(tmp_path):
    """Nothing has changed by then, and nothing is lost."""
    model, twin = built(), built()
    copies = []

    def use():
        model.labels(0.5)
        model.save(tmp_path / "m")
        copies.append(copy.copy(model))

    before = snapshot(model)
    assert model.insert(Meddler(use, GRID[30:31])).tolist() == [30]
    twin.insert(GRID[30:31])
    assert snapshot(model) == snapshot(twin)
    assert snapshot(copies[0]) == snapshot(DynHAC.load(tmp_path / "m")) == before


def test_a_lost_index_that_the_next_update_outgrows(monkeypatch):
    """It is replaced by what suits the points, as in a model that did not lose its index."""
    monkeypatch.setattr("dynhac.models.index_choice.MOST_NUMBERS_SCANNED", 90)
    monkeypatch.setattr(
        "dynhac.models.index_choice.choose_backend",
        lambda _, d, n: "exact" if d * n <= 90 else "cells",
    )
    model = DynHAC(n_neighbors=4)
    model.insert(GRID[:25])
    model._points.lose_index()
    model.insert(GRID[25:])
    assert model.backend == "cells"
    assert model.verify().ok
