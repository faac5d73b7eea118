"""How far a long call is: what a function is told, and what is shown where."""

import io
import re
import sys
import threading
import types
from itertools import pairwise

import numpy as np
import pytest
from models import random_edges, state

import dynhac
from dynhac import DynHAC, GraphHAC, Progress, progress
from dynhac.progress import metered

N = 4000


def points(n=N):
    return np.random.default_rng(0).normal(size=(n, 4))


def graph():
    u, v, w = random_edges(2000, 8000)
    return np.arange(2000), (u, v, w)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def at_once(monkeypatch):
    """Show progress from the beginning on."""
    made = progress.Meter
    monkeypatch.setattr(progress, "Meter", lambda start, delay=0.0: made(start, 0.0))
    monkeypatch.delenv("DYNHAC_PROGRESS", raising=False)


def phases(calls):
    """The phases of the calls, after a check that each ended once and went forwards."""
    ended = [call for call in calls if call.ended]
    assert all(call.done == call.total for call in ended if call.total is not None)
    for before, after in pairwise(calls):
        if not before.ended:
            assert after.phase == before.phase
            assert after.done >= before.done
            assert after.seconds >= before.seconds
    return [(call.phase, call.total, call.unit) for call in ended]


def test_a_function_is_told_of_every_phase(tmp_path):
    model, calls = DynHAC(n_neighbors=5, neighbors="kd"), []
    model.insert(points(), progress=calls.append)
    found = phases(calls)
    assert found[:2] == [("indexing", N, "points"), ("searching", N, "points")]
    assert [phase for phase, _, _ in found[2:]] == ["reading", "building"]
    edges = model.graph.level_sizes[0][1]
    assert found[2:] == [("reading", edges, "edges"), ("building", edges, "edges")]
    calls.clear()
    model.verify(progress=calls.append)
    assert [phase for phase, _, _ in phases(calls)] == ["auditing", "verifying"]
    calls.clear()
    model.save(tmp_path / "a", progress=calls.append)
    (saved,) = calls
    size = (tmp_path / "a").stat().st_size
    assert (saved.phase, saved.total, saved.unit) == ("saving", None, "bytes")
    assert size - 100 < saved.done <= size
    calls.clear()
    DynHAC.load(tmp_path / "a", progress=calls.append)
    loaded = [phase for phase, _, _ in phases(calls)]
    assert loaded == ["loading", "restoring", "auditing", "verifying"]
    calls.clear()
    model.delete(range(10), progress=calls.append)
    assert "building" in [phase for phase, _, _ in phases(calls)]


@pytest.mark.parametrize("neighbors", ["exact", "usearch"])
def test_indexes_in_python_report(neighbors):
    if neighbors == "usearch":
        pytest.importorskip("usearch")
    calls = []
    DynHAC(n_neighbors=5, neighbors=neighbors).insert(points(), progress=calls.append)
    assert phases(calls)[:2] == [("indexing", N, "points"), ("searching", N, "points")]


def test_graphs(tmp_path):
    ids, edges = graph()
    calls = []
    g = GraphHAC.from_graph(edges, progress=calls.append)
    assert [phase for phase, _, _ in phases(calls)] == ["reading", "building"]
    for call in (
        lambda: g.set_edges(ids[:2], ids[2:4], [0.5, 0.5], progress=calls.append),
        lambda: g.remove_edges(ids[:2], ids[2:4], progress=calls.append),
        lambda: g.remove(ids[:2], progress=calls.append),
        lambda: g.add(ids[:2], (ids[:2], ids[2:4], [0.5, 0.5]), progress=calls.append),
        lambda: g.verify(progress=calls.append),
        lambda: g.save(tmp_path / "g", progress=calls.append),
        lambda: GraphHAC.load(tmp_path / "g", progress=calls.append),
    ):
        calls.clear()
        call()
        assert phases(calls)


def test_stores(tmp_path):
    calls = []
    with dynhac.open(tmp_path / "s", n_neighbors=5, progress=calls.append) as model:
        assert calls == []  # a new store
        model.insert(points(), progress=calls.append)
        assert "building" in [phase for phase, _, _ in phases(calls)]
        calls.clear()
        reader = dynhac.open(tmp_path / "s", mode="r", progress=calls.append)
        assert [phase for phase, _, _ in phases(calls)] == ["replaying"]
        calls.clear()
        model.snapshot(progress=calls.append)
        assert [phase for phase, _, _ in phases(calls)] == ["saving"]
        model.insert(points(3))
        calls.clear()
        assert reader.refresh(progress=calls.append) == 1
        assert phases(calls) == [("replaying", 1, "updates")]
        model.close()
        calls.clear()
        dynhac.open(tmp_path / "s", progress=calls.append).close()
        assert [phase for phase, _, _ in phases(calls)] == ["loading", "restoring", "replaying"]


def test_a_large_update_in_the_log_reports_its_phases(tmp_path, monkeypatch):
    monkeypatch.setattr("dynhac.store.replay.LARGE", 1000)
    with dynhac.open(tmp_path / "s", n_neighbors=5) as model:
        model.insert(points())
        model.insert(points(1))
        model._writer.release()
    calls = []
    dynhac.open(tmp_path / "s", progress=calls.append).close()
    found = phases(calls)
    assert ("searching", N, "points") in found
    assert found[-1] == ("replaying", 1, "updates")


class Stop(Exception):
    pass


def stop_at(count):
    def function(told):
        nonlocal count
        count -= 1
        if count < 0:
            raise Stop(told.phase)

    return function


@pytest.mark.parametrize("count", range(4))
def test_an_exception_in_the_function_undoes_an_update(tmp_path, count):
    with dynhac.open(tmp_path / "s", n_neighbors=5) as durable:
        for model in (DynHAC(n_neighbors=5), durable):
            model.insert(points(100))
            before = state(model.graph)
            with pytest.raises(Stop):
                model.insert(points(), progress=stop_at(count))
            assert state(model.graph) == before
            assert model.verify()
            model.insert(points(200))
            assert len(model) == 300
        assert durable.update_number == 2


@pytest.mark.parametrize("error", [ValueError, RuntimeError, FileNotFoundError, dynhac.FileError])
def test_an_exception_in_the_function_is_no_damage(tmp_path, error):
    """Not of the file, nor of the store, whatever its type."""

    def fail(told):
        raise error("stop")

    with dynhac.open(tmp_path / "s", n_neighbors=5) as model:
        model.insert(points())
        model.save(tmp_path / "file")
        model.watch(0.5)
        before = sorted(p.name for p in tmp_path.rglob("*"))
        with pytest.raises(error, match=r"^stop$"):
            model.save(tmp_path / "file", progress=fail)
        with pytest.raises(error, match=r"^stop$"):
            model.verify(progress=fail)
        assert sorted(p.name for p in tmp_path.rglob("*")) == before
    with pytest.raises(error, match=r"^stop$"):
        DynHAC.load(tmp_path / "file", progress=fail)
    before = {p.name for p in (tmp_path / "s").iterdir()}
    for mode in "wr":
        with pytest.raises(error, match=r"^stop$"):
            dynhac.open(tmp_path / "s", mode=mode, progress=fail)
    assert {p.name for p in (tmp_path / "s").iterdir()} <= {*before, "log.sqlite-shm"}
    with dynhac.open(tmp_path / "s") as model:
        assert len(model) == N


@pytest.mark.parametrize(
    "action",
    [
        lambda model: model.insert(points(1)),
        lambda model: model.save("never"),
        lambda model: model.verify(),
    ],
)
def test_the_function_must_not_use_the_model(action):
    model = DynHAC(n_neighbors=5)
    with pytest.raises(RuntimeError, match="the model is being updated"):
        model.insert(points(), progress=lambda told: action(model))
    assert len(model) == 0


def test_the_function_must_not_read_what_is_being_changed():
    model, seen = DynHAC(n_neighbors=5, neighbors="kd"), []

    def read(told):
        seen.append(told.phase)
        if told.phase == "building":
            model.labels(0.5)

    with pytest.raises(RuntimeError, match="the model is being updated"):
        model.insert(points(), progress=read)
    assert seen[-1] == "building"
    assert len(model) == 0
    model.insert(points())
    with pytest.raises(RuntimeError, match="being updated, saved or searched"):
        model.verify(progress=lambda told: model.insert(points(1)))


@pytest.mark.parametrize("wrong", [1, 0, "yes", []])
def test_wrong_values(tmp_path, wrong):
    model = DynHAC()
    message = re.escape(f"progress is {wrong!r}; it must be None, True, False or a function")
    for call in (
        lambda: model.insert([0.0], progress=wrong),
        lambda: model.verify(progress=wrong),
        lambda: model.save(tmp_path / "a", progress=wrong),
        lambda: dynhac.open(tmp_path / "s", progress=wrong),
        lambda: GraphHAC.from_graph(([1], [2], [0.5]), progress=wrong),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    assert len(model) == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", [None, True, False])
def test_quick_calls_show_nothing(monkeypatch, option):
    monkeypatch.setattr(sys, "stderr", Terminal())
    model = DynHAC(n_neighbors=5)
    model.insert(points(100), progress=option)
    model.verify(progress=option)
    assert sys.stderr.getvalue() == ""


def verified(option, stream, monkeypatch):
    """What a call writes to a stream."""
    g = GraphHAC.from_graph(graph()[1])
    monkeypatch.setattr(sys, "stderr", stream)
    assert g.verify(progress=option)
    return stream.getvalue()


@pytest.mark.usefixtures("at_once")
def test_where_progress_is_shown(monkeypatch):
    assert verified(None, io.StringIO(), monkeypatch) == ""
    assert verified(False, Terminal(), monkeypatch) == ""
    assert "\r" in verified(None, Terminal(), monkeypatch)
    lines = verified(True, io.StringIO(), monkeypatch).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["auditing", "verifying"]
    assert re.fullmatch(r"verifying: 1,9\d\d merges, [\d,]+ merges/s, \d\.\d s", lines[1])
    monkeypatch.setenv("DYNHAC_PROGRESS", "1")
    assert len(verified(None, io.StringIO(), monkeypatch).splitlines()) == 2
    assert verified(False, io.StringIO(), monkeypatch) == ""
    monkeypatch.setenv("DYNHAC_PROGRESS", "0")
    assert verified(None, Terminal(), monkeypatch) == ""
    monkeypatch.setattr(sys, "stderr", None)
    assert GraphHAC().verify(progress=True)


@pytest.mark.usefixtures("at_once")
def test_a_line_is_overwritten_and_removed(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "30")
    display = progress.start_display()
    display("searching", 1, 10**9, "points", 0.5, False)
    display("searching", 10**8, 10**9, "points", 1.0, False)
    display("x", 1, 2, "y", 1.0, False)
    display("x", 2, 2, "y", 2.0, True)
    first, second, third, empty, end = stream.getvalue().split("\r")[1:]
    assert first == "searching: 1 of 1,000,000,000"
    assert len(second) == 29
    assert third.rstrip() == "x: 1 of 2 y, 50%, 1 y/s, 1 s "[:29].rstrip()
    assert len(third) == 29
    assert (empty.strip(), len(empty), end) == ("", 29, "")


@pytest.mark.usefixtures("at_once")
def test_a_failed_call_removes_its_line(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with metered(None) as meter:
        meter.begin("working", "steps", 10)
        threading.Event().wait(0.06)
        meter.advance(1)  # and that is all
    shown = stream.getvalue().split("\r")
    assert shown[1].startswith("working: 1 of 10 steps")
    assert shown[2].strip() == ""
    assert progress._in_use.acquire(blocking=False)
    progress._in_use.release()


@pytest.mark.usefixtures("at_once")
def test_a_closed_stream_does_not_stop_the_work(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with metered(True) as meter:
        meter.begin("working", "steps", 2)
        stream.close()
        threading.Event().wait(0.06)
        meter.advance(1)
        meter.end()


@pytest.mark.usefixtures("at_once")
def test_one_call_is_shown_at_a_time(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with metered(True) as outer:
        outer.begin("outer", "steps", 2)
        threading.Event().wait(0.06)
        outer.advance(1)
        GraphHAC.from_graph(graph()[1]).verify(progress=True)
        outer.end()
    assert "outer" in stream.getvalue()
    assert "verifying" not in stream.getvalue()


@pytest.mark.usefixtures("at_once")
def test_notebooks(monkeypatch):
    shown = []

    class Handle:
        def update(self, data, raw):
            shown.append(data["text/plain"])

    def display(data, raw, display_id):
        shown.append(data["text/plain"])
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: shell
    module.display = types.SimpleNamespace(display=display)
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert GraphHAC.from_graph(graph()[1]).verify()
    first, second = shown[-1].splitlines()
    assert first.startswith("auditing: ")
    assert second.startswith("verifying: ")
    assert sys.stderr.getvalue() == ""
    shell = None  # IPython in a terminal, or not in use
    shown.clear()
    assert GraphHAC.from_graph(graph()[1]).verify()
    assert shown == []


def test_text():
    half = Progress("loading", 50 * 10**6, 100 * 10**6, "bytes", 100.0)
    assert str(half) == "loading: 50.0 of 100.0 MB, 50%, 0.5 MB/s, 1:40 left"
    assert str(half._replace(done=0)) == "loading: 0.0 of 100.0 MB, 0%"
    assert str(half._replace(seconds=20_000)).endswith("5:33:20 left")
    assert half.rate == 5e5
    assert half._replace(seconds=0.0).rate is None
    assert half._replace(total=None).seconds_left is None
