"""Interrupts and lack of memory: at any moment of an update the model is as before, or as after."""

import signal
import threading
import time
from functools import partial

import numpy as np
import pytest
from interrupts import alarms, alarms_interrupt, interrupt_at_line, with_timers
from models import random_edges, state
from points_oracle import Simulation, compare, judge_change, without_answers

from dynhac import DynHAC, GraphHAC, _core

KINDS = {"int": int, "str": lambda i: f"v{i}"}
N, M = 200, 500


@pytest.fixture(params=KINDS)
def name(request):
    return KINDS[request.param]


def built(name):
    g = GraphHAC()
    u, v, w = random_edges(N, M)
    ids = [name(i) for i in range(N)]
    g.add(ids, ([ids[i] for i in u], [ids[i] for i in v], w))
    return g


def apply(g, name):
    """A batch of everything: 40 vertices go, 20 of them come back, 100 are new."""
    new = [name(i) for i in (*range(1000, 1100), *range(20))]
    return g.update(
        remove=[name(i) for i in range(40)],
        add=new,
        edges=([*new[:-1], name(150)], [*new[1:], name(1050)], [0.5] * len(new)),
        remove_edges=cut_of(name),
    )


def cut_of(name):
    u, v, _ = random_edges(N, M)
    return [name(i) for i in u[-30:].tolist()], [name(i) for i in v[-30:].tolist()]


def check_alive(g, name):
    """The model still works, and its names are those of the engine."""
    assert g.verify()
    assert all(id in g for id in g.ids.tolist())
    assert name(77777) not in g
    g.add(name(77777), (name(77777), g.ids[0], 0.5))
    assert name(77777) in g
    g.remove(name(77777))


@pytest.mark.parametrize("allocation", [*range(12), 20, 40, 80, 160, 320])
def test_running_out_of_memory_changes_nothing(name, allocation):
    g, twin = built(name), built(name)
    _core.fail_allocation(allocation)
    try:
        apply(g, name)
    except MemoryError:
        _core.fail_allocation(-1)
        assert state(g) == state(twin)
        assert name(1000) not in g
        assert name(5) in g
        assert g.verify()
        apply(g, name)
    finally:
        _core.fail_allocation(-1)
    apply(twin, name)
    assert state(g) == state(twin)
    check_alive(g, name)


def test_an_interrupt_at_any_line_leaves_all_or_nothing(name):
    before, twin = state(built(name)), built(name)
    apply(twin, name)
    after = state(twin)
    outcomes = set()
    line = 0
    reached = True
    while reached:
        line += 1 if line < 60 else 7  # loops over ids make many lines alike
        g = built(name)
        reached = interrupt_at_line(line, partial(apply, g, name))
        found = state(g)
        assert found in (before, after)
        outcomes.add(found == after)
        if found == before:
            apply(g, name)
        assert state(g) == after
        check_alive(g, name)
    assert outcomes == {False, True}


def interrupted(call, seconds):
    """Call, with a Ctrl-C after ``seconds``; return whether it came before the end."""
    timer = threading.Timer(seconds, signal.raise_signal, (signal.SIGINT,))
    finished = False
    try:
        timer.start()
        call()
        finished = True
        timer.join()
        time.sleep(1)
    except KeyboardInterrupt:
        timer.join()
    return not finished


def test_ctrl_c_in_the_middle_of_the_engine(name):
    n = 8_000
    rng = np.random.default_rng(0)
    pairs = np.sort(rng.integers(0, n, (20 * n, 2)), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    new = [name(i) for i in range(n)]
    u, v = ([new[i] for i in column] for column in pairs.T.tolist())
    w = rng.integers(1, 2**20, len(u)) * 2.0**-20
    if isinstance(new[0], int):
        new, u, v = (np.array(column) for column in (new, u, v))

    g, whole = GraphHAC(), GraphHAC()
    for h in (g, whole):
        h.add([name(-1), name(-2)], (name(-1), name(-2), 0.5))
    before = state(g)
    start = time.perf_counter()
    whole.add(new, (u, v, w))
    seconds = time.perf_counter() - start

    for part in (0.05, 0.2, 0.4, 0.6, 0.8):
        came = interrupted(lambda: g.add(new, (u, v, w)), part * seconds)
        assert came or part > 0.4
        if len(g) == len(whole):  # it was faster than the first time
            break
        assert state(g) == before
        assert name(3) not in g
        assert g.verify()
    else:
        g.add(new, (u, v, w))
    assert g.dendrogram() == whole.dendrogram()


@pytest.mark.parametrize("neighbors", ["exact", "kd"])
@pytest.mark.parametrize("text", [False, True])
def test_ctrl_c_in_the_middle_of_an_update_of_points(text, neighbors):
    """In the search and in the engine."""
    n = 6_000
    vectors = np.random.default_rng(0).normal(size=(n, 3))
    batch = {
        "insert": vectors,
        "ids": [f"q{i}" for i in range(n)] if text else None,
        "delete": ["p3", "p4"] if text else [3, 4],
    }

    def start():
        model = DynHAC(n_neighbors=20, neighbors=neighbors)
        model.insert(vectors[:50], [f"p{i}" for i in range(50)] if text else None)
        return model

    model, whole = start(), start()
    before = without_answers(model)
    begin = time.perf_counter()
    whole.update(**batch)
    seconds = time.perf_counter() - begin
    for part in (0.05, 0.2, 0.4, 0.6, 0.8):
        came = interrupted(lambda: model.update(**batch), part * seconds)
        assert came or part > 0.4
        if len(model) == len(whole):  # it was faster than the first time
            break
        assert without_answers(model) == before
        assert ("q3" if text else n) not in model
        assert model.verify()
    else:
        model.update(**batch)
    assert model.dendrogram() == whole.dendrogram()


@with_timers
@pytest.mark.parametrize("neighbors", ["exact", "kd"])
def test_interrupts_at_random_moments(neighbors):
    """Every update is made or not, also after many that were interrupted."""
    rng = np.random.default_rng(0)
    model = DynHAC(n_neighbors=3, neighbors=neighbors, max_points=40)
    simulation = Simulation(3, max_points=40)
    outcomes = {False: 0, True: 0}

    with alarms_interrupt():
        for i in range(400):
            vectors = rng.integers(-3, 4, (int(rng.integers(1, 4)), 2)).astype(float)
            ids = [f"p{i}-{j}" for j in range(len(vectors))]
            delete = [str(model.ids[0])] if len(model) and i % 3 == 0 else []
            count = model._points.version
            try:
                signal.setitimer(signal.ITIMER_REAL, 10 ** rng.uniform(-6, -2.7))
                try:
                    model.update(insert=vectors, ids=ids, delete=delete)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            made = model._points.version > count
            outcomes[made] += 1
            if made:
                simulation.update(list(map(tuple, vectors.tolist())), ids, delete)
            assert model.ids.tolist() == list(simulation.points)
            if i % 20 == 0:
                compare(model, simulation)
                assert model.verify()
    assert min(outcomes.values()) > 5, outcomes
    expected = simulation.update([(0.0, 0.0)], ["last"])
    judge_change(model.update(insert=[[0.0, 0.0]], ids=["last"]), expected)
    compare(model, simulation)


def longest_wait(call):
    """The longest part of a call, from 0 to 1, in which no signal is handled."""
    times = [time.perf_counter()]
    with alarms(lambda signum, frame: times.append(time.perf_counter()), 5e-3):
        call()
    times.append(time.perf_counter())
    assert times[-1] - times[0] > 0.2, "too little work to tell"
    return max(np.diff(times)) / (times[-1] - times[0])


@with_timers
@pytest.mark.parametrize("neighbors", ["kd", "exact", "usearch"])
def test_signals_are_handled_throughout_an_insertion(neighbors):
    """A Ctrl-C must not wait for the end of a phase: the search takes most of the time."""
    if neighbors == "usearch":
        pytest.importorskip("usearch")
    dimension, n = {"kd": (8, 20_000), "exact": (32, 20_000), "usearch": (32, 5000)}[neighbors]
    vectors = np.random.default_rng(0).normal(size=(n, dimension))
    model = DynHAC(neighbors=neighbors)
    assert longest_wait(lambda: model.insert(vectors)) < 0.35


@with_timers
def test_signals_are_handled_throughout_other_long_calls(tmp_path):
    n, rng = 60_000, np.random.default_rng(0)
    pairs = np.sort(rng.integers(0, n, (15 * n, 2)), axis=1)
    u, v = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0).T.copy()
    w = rng.integers(1, 2**20, len(u)) * 2.0**-20
    g = GraphHAC()
    assert longest_wait(lambda: g.add(np.arange(n), (u, v, w))) < 0.35
    assert longest_wait(g.verify) < 0.35
    g.save(tmp_path / "g")
    assert longest_wait(lambda: GraphHAC.load(tmp_path / "g")) < 0.35
