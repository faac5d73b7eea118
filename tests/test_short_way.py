"""Single points take a short way through the model; what comes of it is what the long way gives."""

import signal
import time
from functools import partial

import numpy as np
import pytest
from points_oracle import GRID, edges_of, snapshot
from test_interrupts import interrupt_at_line
from test_model_faults import without_answers

from dynhac import DynHAC, _core
from dynhac.neighbors import ExactIndex
from dynhac.points.attempt import ShortWay


class LongWay(DynHAC):
    """A model whose points never take the short way."""

    __slots__ = ()

    def _by_short_way(self, value, removes):
        return None


def took_short_way(model):
    return isinstance(model._last_change, _core.OnePoint)


def told(change):
    """What a change says, without its times."""
    nodes = [sorted(change.created), sorted(change.removed)]
    columns = (change.inserted, change.deleted, change.expired, change.repaired)
    return [column.tolist() for column in columns], nodes, change.edges_changed, change.levels


def pair(first=12, **parameters):
    """Two models of the same points, one of which takes the long way."""
    models = DynHAC(**parameters), LongWay(**parameters)
    for model in models:
        model.insert(GRID[:first])
    return models


PARAMETERS = {
    "kd": {},
    "exact": {"neighbors": "exact"},
    "usearch": {"neighbors": "usearch"},
    "cosine": {"metric": "cosine", "similarity": "cosine"},
    "dot": {"metric": "inner_product"},
    "gaussian": {"similarity": ("gaussian", 2.0)},
    "no repair": {"repair": False},
    "exact linkage": {"epsilon": 0.0, "threshold": 0.0},
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("seed", range(3))
def test_both_ways_lead_to_the_same(name, seed):
    rng = np.random.default_rng(seed)
    model, twin = pair(n_neighbors=4, **PARAMETERS[name])
    short = 0
    for _ in range(80):
        if len(model) and rng.random() < 0.48:
            id = int(rng.choice(model.ids))
            assert told(model.delete(id)) == told(twin.delete(id))
        else:
            x = GRID[rng.integers(len(GRID))]
            x = [x, x.astype(np.float32), x[::-1], np.repeat(x, 2)[::2]][rng.integers(4)]
            assert model.insert(x) == twin.insert(x)
            short += took_short_way(model)
            assert told(model.last_change) == told(twin.last_change)
        assert snapshot(model) == snapshot(twin)
    assert short > 20
    assert model.verify().ok


def test_the_last_point_and_the_first():
    model, twin = pair(first=1, n_neighbors=4)
    for step in (0, None, None, 1, 2, None):
        for each in (model, twin):
            each.insert(GRID[5]) if step is None else each.delete(step)
        assert snapshot(model) == snapshot(twin)
    assert took_short_way(model)


def test_what_change_says_of_one_point():
    model, _ = pair(n_neighbors=4)
    assert model.insert(GRID[20]) == 12
    change = model.last_change
    assert change.inserted.tolist() == [12]
    assert change.deleted.tolist() == change.expired.tolist() == []
    assert change.seconds_search > 0
    assert change.seconds_engine > 0
    assert change.seconds_graph >= 0
    assert repr(change).startswith("<PointChange: 1 point inserted, 0 deleted;")
    gone = model.delete(12)
    assert gone is model.last_change
    assert gone.deleted.tolist() == [12]
    assert change.inserted.tolist() == [12]  # still


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.0, np.nan, 0.0]),
        np.array([1.0, np.inf, 0.0], np.float32),
        np.array([1.0, 1e39, 0.0]),
        np.array([1.0, 2.0]),
        np.array([[1.0, 2.0, 3.0, 4.0]]),
        np.array(["a", "b", "c"]),
        np.array([1, 2, None]),
        np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
        np.float64(3.0),
        "abc",
        None,
    ],
)
def test_vectors_that_are_wrong(value):
    model, twin = pair(n_neighbors=4)
    before = snapshot(model)
    messages = []
    for each in (model, twin):
        with pytest.raises(ValueError, match=r"X|vector") as caught:
            each.insert(value)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert snapshot(model) == before


@pytest.mark.parametrize(
    "value",
    [
        np.array([1, 2, 3]),
        np.array([1, 2, 3], np.float16),
        np.array([1.0, 2.0, 3.0], ">f8"),
        np.array([1.0, 2.0, 3.0], object),
        np.array([[1.0, 2.0, 3.0]]),
        [1.0, 2.0, 3.0],
        (1, 2, 3),
    ],
)
def test_vectors_that_take_the_long_way(value):
    model, twin = pair(n_neighbors=4)
    assert np.array_equal(model.insert(value), twin.insert(value))
    assert not took_short_way(model)
    assert snapshot(model) == snapshot(twin)


@pytest.mark.parametrize(
    ("id", "error"),
    [
        (99, KeyError),
        (-1, KeyError),
        (2**63, ValueError),
        (-(2**80), ValueError),
        (True, ValueError),
        (1.0, ValueError),
        ("a", ValueError),
        (None, ValueError),
    ],
)
def test_ids_that_are_wrong(id, error):
    model, twin = pair(n_neighbors=4)
    before = snapshot(model)
    messages = []
    for each in (model, twin):
        with pytest.raises(error) as caught:
            each.delete(id)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert snapshot(model) == before


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_points": 50},
        {"neighbors": ExactIndex()},
        {"similarity": lambda d: 1 / (1 + d)},
    ],
)
def test_models_whose_points_take_the_long_way(parameters):
    model = DynHAC(n_neighbors=4, **parameters)
    for row in GRID[:20]:
        model.insert(row)
        assert not took_short_way(model)
    model.delete(3)
    assert model.verify().ok


def test_models_of_texts_and_times_take_the_long_way():
    timed = DynHAC(n_neighbors=4)
    timed.insert(GRID[:5], timestamps=range(5))
    with pytest.raises(ValueError, match="points need timestamps"):
        timed.insert(GRID[5])
    text = DynHAC(n_neighbors=4)
    text.insert(GRID[:2], ids=["a", "b"])
    with pytest.raises(ValueError, match="new points need ids"):
        text.insert(GRID[5])
    text.delete("a")
    assert text.ids.tolist() == ["b"]


def test_ids_that_have_run_out():
    model, _ = pair(n_neighbors=4)
    model.insert(GRID[20], ids=2**63 - 1)
    before = snapshot(model)
    with pytest.raises(ValueError, match="no int id above"):
        model.insert(GRID[21])
    assert snapshot(model) == before
    model.delete(2**63 - 1)


def test_a_graph_that_rejects_the_point():
    model, twin = pair(metric="inner_product", n_neighbors=4)
    large = np.full(3, 3e38)
    before = snapshot(model)
    messages = []
    for each in (model, twin):
        with pytest.raises(ValueError, match="too large at resolution") as caught:
            each.insert(large)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert snapshot(model) == before
    model.insert(GRID[20])
    twin.insert(GRID[20])
    assert took_short_way(model)
    assert snapshot(model) == snapshot(twin)


def test_a_model_that_outgrows_its_index(monkeypatch):
    monkeypatch.setattr("dynhac.points.pointgraph.MOST_NUMBERS_SCANNED", 90)
    monkeypatch.setattr(
        "dynhac.points.pointgraph.choose_backend",
        lambda _, d, n: "exact" if d * n <= 90 else "kd",
    )
    model = DynHAC(n_neighbors=4)
    model.insert(GRID[:10])
    for row in GRID[10:30]:
        model.insert(row)
        assert took_short_way(model)
    assert (model.backend, len(model)) == ("exact", 30)
    model.insert(GRID[30])
    assert not took_short_way(model)
    assert model.backend == "kd"
    model.insert(GRID[31])
    assert took_short_way(model)
    whole = LongWay(n_neighbors=4, neighbors="exact")
    whole.insert(GRID[:10])
    for row in GRID[10:32]:
        whole.insert(row)
    assert edges_of(model.graph) == edges_of(whole.graph)


def test_watches_see_what_happens():
    model, twin = pair(n_neighbors=4)
    watches = [each.watch(0.4, min_size=2) for each in (model, twin)]
    for row in GRID[12:30]:
        for each in (model, twin):
            each.insert(row)
    for id in (3, 15, 4, 20):
        for each in (model, twin):
            each.delete(id)
    events = [[str(event) for event in watch.events] for watch in watches]
    assert events[0] == events[1]
    labels = [watch.labels().tolist() for watch in watches]
    assert labels[0] == labels[1]


def test_a_copy_goes_on():
    model, twin = pair(n_neighbors=4)
    for each in (model, twin):
        each.insert(GRID[20])
    again = DynHAC._from_state(*model.__reduce__()[1])
    for each in (model, twin, again):
        each.insert(GRID[21])
        each.delete(2)
        each.insert(GRID[22])
    assert took_short_way(again)
    assert snapshot(model) == snapshot(twin) == snapshot(again)


STEPS = {"insert": lambda model: model.insert(GRID[30]), "delete": lambda model: model.delete(5)}


def start():
    model = DynHAC(n_neighbors=3, neighbors="exact")
    model.insert(GRID[:12])
    model.delete(1)
    return model


def outcomes(step):
    """What can be seen before and after a step."""
    model = start()
    before = without_answers(model)
    STEPS[step](model)
    return before, without_answers(model), snapshot(model)


def check_interrupted(model, step, line, before, after, whole):
    found = without_answers(model)
    assert found in (before, after), line
    if found == before:
        STEPS[step](model)
        assert snapshot(model) == whole, line
    model.insert(GRID[31])
    assert model.verify().ok
    return found == after


@pytest.mark.parametrize("step", STEPS)
def test_an_interrupt_at_any_line(step):
    before, after, whole = outcomes(step)
    line, reached, made = 0, True, set()
    while reached:
        line += 1
        model = start()
        reached = interrupt_at_line(line, partial(STEPS[step], model))
        made.add(check_interrupted(model, step, line, before, after, whole))
    assert made == {False, True}


@pytest.mark.parametrize("step", STEPS)
def test_an_interrupt_while_another_is_dealt_with(monkeypatch, step):
    before, after, whole = outcomes(step)
    real, twice = ShortWay.finish, 0

    def finish(self, points, error):
        nonlocal twice
        if interrupt_at_line(again, partial(real, self, points, error)):
            twice += 1
            raise KeyboardInterrupt

    for again in range(1, 40):
        line, reached = 0, True
        while reached:
            line += 1
            model = start()
            with monkeypatch.context() as patch:
                patch.setattr(ShortWay, "finish", finish)
                reached = interrupt_at_line(line, partial(STEPS[step], model))
            check_interrupted(model, step, (line, again), before, after, whole)
    assert twice > 100


@pytest.mark.parametrize("allocation", range(40))
@pytest.mark.parametrize("step", STEPS)
def test_running_out_of_memory(allocation, step):
    before, _, whole = outcomes(step)
    model = start()
    _core.fail_allocation(allocation)
    try:
        STEPS[step](model)
    except MemoryError:
        _core.fail_allocation(-1)
        assert without_answers(model) == before
        STEPS[step](model)
    finally:
        _core.fail_allocation(-1)
    assert snapshot(model) == whole


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_an_update_from_a_signal_handler_is_refused():
    model = DynHAC(n_neighbors=4, neighbors="exact")
    model.insert(np.random.default_rng(0).normal(size=(2000, 50)).astype(np.float32))
    refused = []

    def update(signum, frame):
        try:
            model.insert(np.zeros(50))
        except RuntimeError as error:
            refused.append(str(error))

    previous = signal.signal(signal.SIGALRM, update)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
        end = time.monotonic() + 30
        while not refused and time.monotonic() < end:
            model.insert(np.ones(50))
            model.delete(int(model.ids[-1]))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert "the model is being updated" in refused[0]
    assert model.verify().ok
    assert len(model.vectors()) == len(model)
