"""What goes wrong in and around an update of ``DynHAC``: all of it is there then, or nothing."""

import copy
from contextlib import contextmanager, nullcontext
from functools import partial

import numpy as np
import pytest
from dynhac.models.attempt import Attempt
from dynhac.models.keyed import KeyedEngine
from interrupts import interrupt_at_line
from points_oracle import BATCHES, GRID, built, edges_of, snapshot, without_answers

from dynhac import DynHAC, _core
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


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("window", [None, 30])
def test_a_graph_that_fails(monkeypatch, error, batch, window):
    def fail(*_, **__):
        raise error("no")

    model, twin = built(max_points=window), built(max_points=window)
    before = snapshot(model)
    with monkeypatch.context() as patch:
        patch.setattr(KeyedEngine, "update_points", fail)
        with pytest.raises(error):
            model.update(**BATCHES[batch])
    assert snapshot(model) == before
    model.update(**BATCHES[batch])
    twin.update(**BATCHES[batch])
    assert snapshot(model) == snapshot(twin)


@pytest.mark.parametrize("allocation", [*range(40), 50, 60])
@pytest.mark.parametrize("text", [False, True])
def test_running_out_of_memory(allocation, text):
    ids = {"ids": [f"q{i}" for i in range(5)], "delete": ["p3", "p4"]} if text else {"delete": 3}
    model, twin = built(text=text), built(text=text)
    before = without_answers(model)
    _core.fail_allocation(allocation)
    try:
        model.update(insert=GRID[30:35], **ids)
    except MemoryError:
        _core.fail_allocation(-1)
        assert without_answers(model) == before
        model.update(insert=GRID[30:35], **ids)
    finally:
        _core.fail_allocation(-1)
    twin.update(insert=GRID[30:35], **ids)
    assert snapshot(model) == snapshot(twin)


class Stream:
    """A model of a window, an update of it, and what can be seen before and after."""

    def __init__(self, text, rows):
        self.text, self.rows = text, rows
        twin = self.start()
        self.before = without_answers(twin)
        self.apply(twin)
        self.after, self.whole = without_answers(twin), snapshot(twin)

    def start(self):
        model = DynHAC(n_neighbors=3, neighbors="exact", max_points=12)
        model.insert(GRID[:12], [f"p{i}" for i in range(12)] if self.text else None)
        model.delete("p1" if self.text else 1)
        return model

    def apply(self, model):
        ids = {"ids": [f"q{i}" for i in range(self.rows)]} if self.text else {}
        model.update(insert=GRID[20 : 20 + self.rows], delete="p5" if self.text else 5, **ids)

    def interrupt(self, line, meanwhile=nullcontext):
        """Return whether the line was reached, and whether the update was made."""
        model = self.start()
        with meanwhile():
            reached = interrupt_at_line(line, partial(self.apply, model))
        found = without_answers(model)
        assert found in (self.before, self.after), line
        if found == self.before:
            self.apply(model)
            assert snapshot(model) == self.whole, line
        model.insert(GRID[30], "z" if self.text else None)
        assert model.verify().ok
        return reached, found == self.after


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
def test_an_interrupt_at_any_line_leaves_all_or_nothing(text, rows):
    stream = Stream(text, rows)
    line, reached, outcomes = 0, True, set()
    while reached:
        line += 1 if line < 400 else 5
        reached, made = stream.interrupt(line)
        outcomes.add(made)
    assert outcomes == {False, True}


@pytest.mark.parametrize("rows", [1, 3])
def test_an_interrupt_while_another_is_dealt_with(monkeypatch, rows):
    stream = Stream(False, rows)
    real, outcomes = Attempt.finish, set()
    for again in (*range(1, 25), *range(25, 500, 7)):
        came = False

        def finish(attempt, points, error, again=again):
            nonlocal came
            if interrupt_at_line(again, partial(real, attempt, points, error)):
                came = True
                raise KeyboardInterrupt

        @contextmanager
        def interrupted_too(finish=finish):
            with monkeypatch.context() as patch:
                patch.setattr(Attempt, "finish", finish)
                yield

        line, reached = again % 19, True
        while reached:
            line += 19
            reached, made = stream.interrupt(line, interrupted_too)
            outcomes.add(made)
        if not came:  # dealing with an interrupt never takes as many lines
            break
    assert outcomes == {False, True}
    assert 30 < again < 499


def test_a_model_that_outgrows_its_index(monkeypatch):
    monkeypatch.setattr("dynhac.models.pointgraph.MOST_NUMBERS_SCANNED", 90)
    monkeypatch.setattr(
        "dynhac.models.pointgraph.choose_backend",
        lambda _, d, n: "exact" if d * n <= 90 else "usearch",
    )
    names = []

    def make(backend, metric, dimension, expected_points):
        names.append(backend)
        return ExactIndex(metric)

    monkeypatch.setattr("dynhac.models.pointgraph.make_index", make)
    model = DynHAC(n_neighbors=4, metric="cosine", similarity="cosine")
    model.insert(GRID[:25])
    assert model.backend == "exact"
    before = snapshot(model)
    with pytest.raises(ValueError, match="nan"):
        model.insert([np.nan, 0, 0])
    with monkeypatch.context() as patch:
        patch.setattr(KeyedEngine, "update_points", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.insert(GRID[25:])
    assert model.backend == "exact"
    assert snapshot(model) == before
    model.insert(GRID[25:])
    assert model.backend == "usearch"
    model.delete(list(range(30)))
    assert model.backend == "usearch"  # it never goes back
    assert names == ["exact", "usearch", "usearch"]  # one for the batch that failed
    assert model.verify().ok
    whole = DynHAC(n_neighbors=4, metric="cosine", similarity="cosine", neighbors="exact")
    whole.insert(GRID[:25])
    whole.insert(GRID[25:])
    whole.delete(list(range(30)))
    assert edges_of(whole.graph) == edges_of(model.graph)


def test_a_model_that_has_to_go_on_with_a_scan_asks_once(monkeypatch):
    asked = []
    monkeypatch.setattr("dynhac.models.pointgraph.MOST_NUMBERS_SCANNED", 90)
    monkeypatch.setattr(
        "dynhac.models.pointgraph.choose_backend",
        lambda *arguments: asked.append(arguments) or "exact",
    )
    model = DynHAC()
    for row in GRID:
        model.insert(row)
    assert len(asked) == 2
    assert model.backend == "exact"


def test_an_update_inside_an_update_is_refused():
    model = DynHAC(n_neighbors=2, similarity=lambda d: model.insert([0.0]))
    with pytest.raises(RuntimeError, match="being updated"):
        model.insert([[1.0], [2.0]])
    assert len(model) == 0


def test_a_similarity_cannot_save_or_copy_the_model_on_its_way(tmp_path):
    def similarity(distances):
        if len(model):
            with pytest.raises(RuntimeError, match="what is called meanwhile"):
                model.save(tmp_path / "m")
            with pytest.raises(RuntimeError, match="what is called meanwhile"):
                copy.copy(model)
        return 1 / (1 + distances)

    model = DynHAC(similarity=similarity)
    model.insert([[0.0], [1.0]])
    model.insert([2.0])
    assert not (tmp_path / "m").exists()


class Meddler:
    """Vectors that update the model when they are looked at."""

    def __init__(self, update):
        self.update = update

    def __array__(self, dtype=None, copy=None):
        self.update()
        return GRID[30:31]


def test_vectors_that_update_the_model():
    """The slot of a deleted point may have become that of another by then."""
    model = DynHAC(n_neighbors=2)
    model.insert(GRID[:5])

    def replace():
        model.delete(3)
        model.insert(GRID[20], 9)

    with pytest.raises(RuntimeError, match="updated while an update was read"):
        model.update(insert=Meddler(replace), delete=[3])
    assert model.ids.tolist() == [0, 1, 2, 4, 9]
    assert model.verify().ok
    empty = DynHAC(n_neighbors=2)
    with pytest.raises(RuntimeError, match="updated while an update was read"):
        empty.insert(Meddler(lambda: empty.insert(GRID[:3])))
    assert len(empty) == 3
    assert empty.insert(Meddler(lambda: empty.labels(0.5))).tolist() == [3]
