"""Interrupts, lack of memory and signals during an update of ``DynHAC``: it is made, or not.

After an interrupt inside a neighbour index the index may be lost. The next update builds another
one, and nobody can tell the difference.
"""

import sys
import time
from functools import partial

import numpy as np
import pytest
from failing_index import exact_in_python
from interrupts import alarms, interrupt_at_line, with_timers
from points_oracle import GRID, snapshot, without_answers

from dynhac import DynHAC, _core
from dynhac.neighbors import ExactIndex

KINDS = ("plain", "window", "str", "age", "str, window", "function")
OPERATIONS = ("insert", "delete", "batch")


class Inverse:
    """A similarity function that can be told to fail."""

    def __init__(self):
        self.fails = self.failed = False

    def __call__(self, distances):
        if self.fails:
            self.failed = True
            raise ZeroDivisionError
        return 1 / (1 + distances)


class Step:
    """A model, one update of it, and the state before and after."""

    def __init__(self, kind, operation, neighbors="exact"):
        self.text, self.timed, self.operation = "str" in kind, "age" in kind, operation
        self.parameters = {"n_neighbors": 3, "neighbors": neighbors}
        self.parameters |= {"max_points": 11} if "window" in kind else {}
        self.parameters |= {"max_age": 11} if "age" in kind else {}
        self.parameters |= {"similarity": Inverse()} if kind == "function" else {}
        model = self.start()
        self.before = without_answers(model)
        self.apply(model)
        self.after = without_answers(model)
        self.go_on(model)
        self.end = snapshot(model)

    def insert(self, model, places, delete=None):
        model.update(
            insert=GRID[places],
            ids=[f"q{i}" for i in places] if self.text else None,
            timestamps=places if self.timed else None,
            delete=delete,
        )

    def start(self):
        model = DynHAC(**self.parameters)
        ids = [f"p{i}" for i in range(12)] if self.text else None
        model.insert(GRID[:12], ids, range(12) if self.timed else None)
        model.delete("p1" if self.text else 1)
        self.insert(model, [12])
        return model

    def apply(self, model):
        if self.operation == "insert":
            time = 14 if self.timed else None
            model.insert(GRID[14], "q14" if self.text else None, time)
        elif self.operation == "delete":
            model.delete(["p8", "p9"] if self.text else [8, 9])  # others need repair then
        else:
            self.insert(model, [14, 15, 16], ["p5"] if self.text else [5])

    def go_on(self, model):
        for place in (17, 18):
            self.insert(model, [place])

    def check(self, model, where):
        """Return whether the update was made; assert that nothing is in between."""
        found = without_answers(model)
        assert found in (self.before, self.after), where
        if found == self.before:
            self.apply(model)
        assert without_answers(model) == self.after, where
        self.go_on(model)
        assert snapshot(model) == self.end, where
        return found == self.after


steps = pytest.mark.parametrize(
    "step", [pytest.param((k, o), id=f"{k}: {o}") for k in KINDS for o in OPERATIONS]
)


@pytest.mark.parametrize("native", [False, True])
@steps
def test_an_interrupt_at_any_line(monkeypatch, step, native):
    if not native:
        exact_in_python(monkeypatch)
    elif step[0] != "plain":
        pytest.skip("as without a compiled index")
    step = Step(*step)
    line, reached, made, lost = 0, True, set(), set()
    while reached:
        line += 1
        model = step.start()
        reached = interrupt_at_line(line, partial(step.apply, model))
        lost.add(model._points.index_lost)
        made.add(step.check(model, line))
    assert made == {False, True}
    assert lost == ({False} if native else {False, True})  # it came inside the index, too


@pytest.mark.parametrize("kind", ["plain", "str, window", "function"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_interrupt_while_the_index_is_put_back_after_another(monkeypatch, kind, operation):
    """The first one comes at any line, and the second one at any line of the undo."""
    exact_in_python(monkeypatch)
    step, twice = Step(kind, operation), 0

    def interrupted(real):
        def method(index, *arguments):
            nonlocal twice
            if sys.gettrace() is not None:  # the first one has not come yet
                real(index, *arguments)
            elif interrupt_at_line(again, partial(real, index, *arguments)):
                twice += 1
                raise KeyboardInterrupt

        return method

    add, remove = ExactIndex.add, ExactIndex.remove
    for again in range(1, 6):
        line, reached = again % 5, True
        while reached:
            line += 5
            model = step.start()
            with monkeypatch.context() as patch:
                patch.setattr(ExactIndex, "add", interrupted(add))
                patch.setattr(ExactIndex, "remove", interrupted(remove))
                reached = interrupt_at_line(line, partial(step.apply, model))
            step.check(model, (line, again))
    if (kind, operation) != ("plain", "insert"):  # which searches before it changes the index
        assert twice > 1


@pytest.mark.parametrize("neighbors", ["exact", "kd"])
@steps
def test_running_out_of_memory(step, neighbors):
    """Every allocation fails in turn, until the update is made."""
    step = Step(*step, neighbors)
    allocation, failed = -1, True
    while failed:
        allocation += 1
        model = step.start()
        _core.fail_allocation(allocation)
        try:
            step.apply(model)
            failed = False
        except MemoryError:
            _core.fail_allocation(-1)
            assert without_answers(model) == step.before, allocation
        finally:
            _core.fail_allocation(-1)
        step.check(model, allocation)
    assert allocation > 20


@pytest.mark.parametrize("neighbors", ["exact", "kd"])
@pytest.mark.parametrize("text", [False, True])
def test_running_out_of_memory_with_the_first_points(text, neighbors):
    ids = ["a", "b", "c", "d"] if text else [1, 2, 3, 4]
    twin = DynHAC(n_neighbors=2, neighbors=neighbors)
    twin.insert(GRID[:4], ids)
    model = DynHAC(n_neighbors=2, neighbors=neighbors)
    before = snapshot(model)
    for allocation in range(1000):  # always on the same model
        _core.fail_allocation(allocation)
        try:
            model.insert(GRID[:4], ids)
            break
        except MemoryError:
            _core.fail_allocation(-1)
            assert snapshot(model) == before
            assert not model._points.text  # the model has no points, and so no type of ids
        finally:
            _core.fail_allocation(-1)
    assert allocation > 20
    assert snapshot(model) == snapshot(twin)


@pytest.mark.parametrize("neighbors", ["exact", "kd"])
def test_running_out_of_memory_while_a_lost_index_is_built_again(neighbors):
    step = Step("plain", "batch", neighbors)
    for allocation in range(1000):
        model = step.start()
        model._points.lose_index()
        _core.fail_allocation(allocation)
        try:
            step.apply(model)
            break
        except MemoryError:
            _core.fail_allocation(-1)
            assert without_answers(model) == step.before
            assert model._points.index_lost
        finally:
            _core.fail_allocation(-1)
        step.check(model, allocation)
    assert allocation > 20
    assert not model._points.index_lost


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError])
@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("undo", ["add", "remove"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_undo_that_fails(monkeypatch, operation, undo, made, error):
    """The update is not made, its first error is raised, and the index is built again."""
    exact_in_python(monkeypatch)
    step = Step("function", operation)
    similarity, model = step.parameters["similarity"], step.start()
    real, failures = getattr(ExactIndex, undo), []

    def fail(index, *arguments):
        if not similarity.failed or made:
            real(index, *arguments)
        if similarity.failed:
            failures.append(undo)
            raise error

    similarity.fails = True
    with monkeypatch.context() as patch:
        patch.setattr(ExactIndex, undo, fail)
        with pytest.raises(ZeroDivisionError):
            step.apply(model)
    similarity.fails = similarity.failed = False
    assert len(failures) == (operation == "batch" or (operation == "delete") == (undo == "add"))
    assert model._points.index_lost == bool(failures)
    assert not step.check(model, undo)
    assert not model._points.index_lost


def test_many_updates_that_fail_do_not_lose_the_index(monkeypatch):
    """An update that a function of the user stops is undone in the index: nothing is rebuilt."""
    step = Step("function", "batch")
    similarity, model = step.parameters["similarity"], step.start()
    whole = snapshot(model)
    index = model._points.index
    similarity.fails = True
    for _ in range(20):
        with pytest.raises(ZeroDivisionError):
            step.apply(model)
        assert snapshot(model) == whole
    similarity.fails = similarity.failed = False
    assert model._points.index is index
    assert not step.check(model, "end")
    assert model._points.index is index


@with_timers
@pytest.mark.parametrize("neighbors", ["exact", "kd"])
@pytest.mark.parametrize("size", [1, 200])
def test_an_update_from_a_signal_handler_is_refused(size, neighbors):
    rng = np.random.default_rng(0)
    model = DynHAC(n_neighbors=4, neighbors=neighbors)
    model.insert(rng.normal(size=(2000, 8)))
    refused, made = [], []

    def update(signum, frame):
        try:
            model.insert(np.zeros(8))
            made.append(signum)
        except RuntimeError as error:
            refused.append(str(error))

    with alarms(update):
        end = time.monotonic() + 30
        while not any("being updated" in each for each in refused) and time.monotonic() < end:
            try:
                ids = model.insert(rng.normal(size=(size, 8)))
                model.delete(ids)
            except RuntimeError as error:  # the handler came while the arguments were read
                assert "updated while an update was read" in str(error)  # noqa: PT017
    assert any("the model is being updated" in each for each in refused)
    assert model.verify().ok
    assert len(model.vectors()) == len(model) >= 2000 + len(made)


@with_timers
@pytest.mark.parametrize("size", [1, 300])
def test_a_watch_made_by_a_signal_handler(size):
    """Also in the middle of an update: it sees all that follows, and nothing waits for itself."""
    rng = np.random.default_rng(0)
    model = DynHAC(n_neighbors=4, neighbors="exact")
    model.insert(rng.normal(size=(2000, 50)).astype(np.float32))
    watches, refused = [], []

    def watch(signum, frame):
        try:
            watches.append(model.watch(0.1 + 0.001 * len(watches)))
        except RuntimeError:  # while the engine is at work
            refused.append(signum)

    with alarms(watch):
        end = time.monotonic() + 30
        while len(watches) < 5 and time.monotonic() < end:
            model.insert(rng.normal(size=(size, 50)) if size > 1 else rng.normal(size=50))
    model.insert(rng.normal(size=50))
    assert len(watches) >= 5
    for each in dict.fromkeys(watches):  # a handler may have interrupted another one
        assert same_clusters(each.labels(), model.labels(each.theta))
        each.close()
    assert model.verify().ok


def same_clusters(a, b):
    """Whether two labelings are the same clustering, with other numbers for the clusters."""
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len({x for x, _ in pairs}) == len({y for _, y in pairs})
