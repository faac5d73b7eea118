"""What goes wrong on the short way of single points: all of the update is there, or nothing."""

import signal
import time
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
from dynhac.models.attempt import ShortWay
from dynhac.models.names import Names
from interrupts import interrupt_at_line
from points_oracle import GRID, snapshot, without_answers

from dynhac import DynHAC, _core


class Step:
    """A model, an update of one point, and what can be seen before and after."""

    def __init__(self, kind, removes):
        self.text, self.timed, self.removes = "str" in kind, "age" in kind, removes
        self.parameters = {"max_points": 11} if "window" in kind else {}
        self.parameters |= {"max_age": 11} if "age" in kind else {}
        model = self.start()
        self.before = without_answers(model)
        self.apply(model)
        self.after, self.whole = without_answers(model), snapshot(model)
        self.go_on(model)
        self.end = snapshot(model)

    def insert(self, model, place):
        model.insert(GRID[place], f"q{place}" if self.text else None, self.time(place))

    def time(self, place):
        return place if self.timed else None

    def start(self):
        model = DynHAC(n_neighbors=3, neighbors="exact", **self.parameters)
        ids = [f"p{i}" for i in range(12)] if self.text else None
        model.insert(GRID[:12], ids, range(12) if self.timed else None)
        model.delete("p1" if self.text else 1)
        if self.parameters:
            self.insert(model, 12)
        return model

    def apply(self, model):
        if self.removes:
            model.delete("p5" if self.text else 5)
        else:
            self.insert(model, 14)

    def go_on(self, model):
        for place in (15, 16):
            self.insert(model, place)

    def check(self, model, line):
        """Whether the update was made; that nothing is in between."""
        found = without_answers(model)
        assert found in (self.before, self.after), line
        if found == self.before:
            self.apply(model)
        assert without_answers(model) == self.after
        self.go_on(model)
        assert snapshot(model) == self.end, line
        return found == self.after


KINDS = ("plain", "window", "str", "age", "str, window")
steps = pytest.mark.parametrize("step", [Step(k, r) for k in KINDS for r in (False, True)])


@steps
def test_an_interrupt_at_any_line(step):
    line, reached, made = 0, True, set()
    while reached:
        line += 1
        model = step.start()
        reached = interrupt_at_line(line, partial(step.apply, model))
        made.add(step.check(model, line))
    assert made == {False, True}


@steps
def test_an_interrupt_while_another_is_dealt_with(monkeypatch, step):
    real, twice = ShortWay.finish, 0

    def finish(self, points, error):
        nonlocal twice
        if interrupt_at_line(again, partial(real, self, points, error)):
            twice += 1
            raise KeyboardInterrupt

    for again in (*range(1, 16), *range(16, 60, 9)):
        line, reached = again % 5, True
        while reached:
            line += 5
            model = step.start()
            with monkeypatch.context() as patch:
                patch.setattr(ShortWay, "finish", finish)
                reached = interrupt_at_line(line, partial(step.apply, model))
            step.check(model, (line, again))
    assert twice > 20


@pytest.mark.parametrize("allocation", range(40))
@steps
def test_running_out_of_memory(allocation, step):
    model = step.start()
    _core.fail_allocation(allocation)
    try:
        step.apply(model)
    except MemoryError:
        _core.fail_allocation(-1)
        assert without_answers(model) == step.before
        step.apply(model)
    finally:
        _core.fail_allocation(-1)
    assert snapshot(model) == step.whole


@pytest.mark.parametrize("text", [False, True])
def test_a_failure_before_anything_has_begun(monkeypatch, text):
    """It is no longer about the update before, whose point has gone by the long way."""
    names = [f"p{i}" for i in range(12)] if text else range(12)
    model = DynHAC(n_neighbors=2, max_points=None if text else 4)
    model.insert(GRID[:4], names[:4])
    model.insert(GRID[4], names[4])
    model.update(delete=[names[4]])
    before = snapshot(model)
    if text:
        with monkeypatch.context() as patch:
            patch.setattr(Names, "claim", lambda *_: signal.raise_signal(signal.SIGINT))
            with pytest.raises(KeyboardInterrupt):
                model.insert(GRID[5], names[5])
    else:
        _core.fail_allocation(0)
        with pytest.raises(MemoryError):
            model.insert(GRID[5])
        _core.fail_allocation(-1)
    assert snapshot(model) == before
    for row, name in zip(GRID[5:12], names[5:], strict=True):
        model.insert(row, name)
    assert model.ids.tolist()[-4:] == list(names[8:])
    assert model.verify().ok


def test_an_update_from_within_is_refused(monkeypatch):
    """Also where the vector has been read, and nothing else has begun."""
    model = DynHAC(n_neighbors=2)
    model.insert(GRID[:4], ["a", "b", "c", "d"])
    model.insert(GRID[4], "e")
    refused = []
    real = Names.claim

    def claim(self, name):
        for update in (lambda: model.insert(GRID[5], "g"), lambda: model.delete("a")):
            with pytest.raises(RuntimeError, match="is being updated") as caught:
                update()
            refused.append(caught)
        return real(self, name)

    monkeypatch.setattr(Names, "claim", claim)
    model.insert(GRID[6], "f")
    assert len(refused) == 2
    assert model.vectors("f").tolist() == [GRID[6].astype(np.float32).tolist()]
    assert model.verify().ok


@contextmanager
def alarms(handler):
    """Every millisecond, a signal."""
    previous = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


with_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")


@with_timers
def test_an_update_from_a_signal_handler_is_refused():
    model = DynHAC(n_neighbors=4, neighbors="exact")
    model.insert(np.random.default_rng(0).normal(size=(2000, 50)).astype(np.float32))
    refused = []

    def update(signum, frame):
        try:
            model.insert(np.zeros(50))
        except RuntimeError as error:
            refused.append(str(error))

    with alarms(update):
        end = time.monotonic() + 30
        while not refused and time.monotonic() < end:
            model.insert(np.ones(50))
            model.delete(int(model.ids[-1]))
    assert "the model is being updated" in refused[0]
    assert model.verify().ok
    assert len(model.vectors()) == len(model)


@with_timers
@pytest.mark.parametrize("size", [1, 300])
def test_a_watch_made_by_a_signal_handler(size):
    """In the middle of an update, too: it sees all that comes, and nobody waits for himself."""
    rng = np.random.default_rng(0)
    model = DynHAC(n_neighbors=4, neighbors="exact")
    model.insert(rng.normal(size=(2000, 50)).astype(np.float32))
    watches, refused = [], []

    def watch(signum, frame):
        try:
            watches.append(model.watch(0.1))
        except RuntimeError:  # while the engine is at work
            refused.append(signum)

    with alarms(watch):
        end = time.monotonic() + 30
        while len(watches) < 5 and time.monotonic() < end:
            model.insert(rng.normal(size=(size, 50)) if size > 1 else rng.normal(size=50))
    model.insert(rng.normal(size=50))
    assert len(watches) >= 5
    fresh = model.watch(0.1)
    for each in watches:
        assert same_clusters(each.labels(), fresh.labels())
        each.close()
    assert model.verify().ok


def same_clusters(a, b):
    """Whether two labelings are one clustering under other names."""
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len({x for x, _ in pairs}) == len({y for _, y in pairs})
