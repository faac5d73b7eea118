"""Code that runs during an update or a save, such as a signal handler, does no harm."""

import signal
import time
from contextlib import contextmanager

import numpy as np
import pytest
from interrupts import alarms, at_line, interrupt_at_line, with_timers
from points_oracle import GRID, snapshot

import dynhac
from dynhac import DynHAC, GraphHAC
from dynhac.models.engine import IdEngine
from dynhac.store import StoreError
from dynhac.watch.history import History

NAMES = [f"p{i}" for i in range(40)]


@contextmanager
def meanwhile(monkeypatch, owner, name, action, before=True):
    """Raise a signal when a method is called for the first time; its handler takes an action."""
    real, caught = getattr(owner, name), []

    def handler(signum, frame):
        try:
            action()
            caught.append(None)
        except RuntimeError as error:
            caught.append(str(error))

    def method(self, *arguments):
        if before and not caught:
            signal.raise_signal(signal.SIGINT)
        result = real(self, *arguments)
        if not before and not caught:
            signal.raise_signal(signal.SIGINT)
        return result

    previous = signal.signal(signal.SIGINT, handler)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, method)
            yield caught
    finally:
        signal.signal(signal.SIGINT, previous)


def model_of(text, watched=True):
    model = DynHAC(n_neighbors=3, neighbors="exact")
    model.insert(GRID[:20], NAMES[:20] if text else None)
    model.insert(GRID[20], NAMES[20] if text else None)
    return model, model.watch(0.3) if watched else None


def updates(model, text):
    """Updates of one point and of several."""
    return {
        "insert": lambda: model.insert(GRID[30], "q" if text else None),
        "delete": lambda: model.delete("p5" if text else 5),
        "batch": lambda: model.update(
            insert=GRID[31:33],
            ids=["r", "s"] if text else None,
            delete=["p6"] if text else [6],
        ),
    }


def insert(model):
    model.insert(GRID[35], "other" if isinstance(model.ids[0], str) else None)


ACTIONS = {
    "update": lambda model, watch, path: insert(model),
    "delete": lambda model, watch, path: model.delete(model.ids[3]),
    "save": lambda model, watch, path: model.save(path),
    "save of the graph": lambda model, watch, path: model.graph.save(path),
    "events": lambda model, watch, path: watch.events,
    "timeline": lambda model, watch, path: watch.timeline(),
}


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("kind", ["insert", "delete", "batch"])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(("owner", "name"), [(History, "append"), (IdEngine, "finish_update")])
def test_while_watches_take_their_steps(monkeypatch, tmp_path, owner, name, action, kind, text):
    model, watch = model_of(text)
    twin, _ = model_of(text)
    act = ACTIONS[action]
    with meanwhile(monkeypatch, owner, name, lambda: act(model, watch, tmp_path / "x")) as caught:
        updates(model, text)[kind]()
    updates(twin, text)[kind]()
    (error,) = caught
    if action in ("events", "timeline") and name == "finish_update":
        assert error is None
    else:
        assert "meanwhile" in error
    assert snapshot(model) == snapshot(twin)
    assert watch.labels().tolist() == twin.watches[0].labels().tolist()
    assert [str(e) for e in watch.events] == [str(e) for e in twin.watches[0].events]


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("kind", ["insert", "delete", "batch"])
@pytest.mark.parametrize("action", ["update", "delete", "save", "save of the graph"])
def test_at_any_line_of_an_update(tmp_path, action, kind, text):
    """The action is refused, or done before or after the update; the update is made or refused."""

    def state(*calls):
        model, _ = model_of(text)
        for call in calls:
            call(model)
        return snapshot(model)

    update = lambda model: updates(model, text)[kind]()  # noqa: E731
    act = lambda model: ACTIONS[action](model, None, tmp_path / "x")  # noqa: E731
    if "save" in action:
        before, after = state(), state(update)
        possible = {(True, True): [after], (False, True): [after], (True, False): [before]}
    else:
        possible = {
            (True, True): [state(update, act), state(act, update)],
            (False, True): [state(update)],
            (True, False): [state(act)],
        }
    line, reached, outcomes = 0, True, set()
    while reached:
        line += 1
        model, _ = model_of(text)
        outcome = {}

        def refused(name, call, model=model, outcome=outcome):
            outcome[name] = True
            try:
                call(model)
            except RuntimeError as error:
                message = "meanwhile|updated while an update was read"
                assert any(each in str(error) for each in message.split("|"))  # noqa: PT017
                outcome[name] = False

        reached = at_line(line, lambda: refused("update", update), lambda: refused("action", act))
        if not reached:
            break
        made = outcome["action"], outcome["update"]
        outcomes.add(made)
        assert snapshot(model) in possible[made], line
        if action == "save" and made[0]:
            assert snapshot(DynHAC.load(tmp_path / "x")) in (before, after)
    assert outcomes >= {(False, True), (True, True)}


@pytest.mark.parametrize("kind", ["insert", "delete", "batch"])
def test_a_save_after_an_interrupt_before_the_watches_take_their_steps(monkeypatch, tmp_path, kind):
    model, watch = model_of(True)
    twin, _ = model_of(True)
    for each in (model, twin):
        each.delete("p3")
    real = IdEngine.finish_update

    def interrupted(self):
        monkeypatch.setattr(IdEngine, "finish_update", real)
        raise KeyboardInterrupt

    monkeypatch.setattr(IdEngine, "finish_update", interrupted)
    with pytest.raises(KeyboardInterrupt):
        updates(model, True)[kind]()
    updates(twin, True)[kind]()
    model.save(tmp_path / "x")
    assert [str(e) for e in watch.events] == [str(e) for e in twin.watches[0].events]
    for each in (model, twin):
        each.insert(GRID[36], "last")
    assert snapshot(model) == snapshot(twin)
    assert watch.labels().tolist() == twin.watches[0].labels().tolist()
    assert DynHAC.load(tmp_path / "x").verify().ok


@pytest.mark.parametrize("action", ["update", "delete"])
@pytest.mark.parametrize("text", [False, True])
def test_an_update_while_the_model_is_saved(monkeypatch, tmp_path, text, action):
    model, watch = model_of(text)
    before = snapshot(model)
    act = ACTIONS[action]
    for save in (
        lambda: model.save(tmp_path / "x"),
        lambda: model.__reduce__(),
        lambda: model.graph.save(tmp_path / "y"),
    ):
        with meanwhile(
            monkeypatch, IdEngine, "finish_update", lambda: act(model, watch, None)
        ) as caught:
            save()
        assert "meanwhile" in caught[0]
        assert snapshot(model) == before
    assert snapshot(DynHAC.load(tmp_path / "x")) == before


def test_an_update_of_a_graph_while_it_is_saved_or_updated(monkeypatch, tmp_path):
    graph = GraphHAC()
    graph.update(add=["a", "b", "c"], edges=(["a"], ["b"], [0.5]))
    act = lambda: graph.update(add=["x"])  # noqa: E731
    for call in (lambda: graph.save(tmp_path / "x"), lambda: graph.update(add=["d"])):
        with meanwhile(monkeypatch, IdEngine, "finish_update", act) as caught:
            call()
        assert "meanwhile" in caught[0]
    assert graph.ids.tolist() == ["a", "b", "c", "d"]
    assert GraphHAC.load(tmp_path / "x").ids.tolist() == ["a", "b", "c"]
    assert graph.verify().ok


@pytest.mark.parametrize("kind", ["points", "graph"])
def test_an_update_while_a_snapshot_is_taken(monkeypatch, tmp_path, kind):
    with dynhac.open(tmp_path / "s", kind=kind) as model:

        def add(first, last):
            if kind == "points":
                model.insert(GRID[first:last])
            else:
                model.update(add=range(first, last))

        add(0, 10)
        with meanwhile(monkeypatch, IdEngine, "finish_update", lambda: add(10, 11)) as caught:
            model.snapshot()
        assert "meanwhile" in caught[0]
        add(10, 11)
    with dynhac.open(tmp_path / "s") as again:
        assert len(again) == 11
        assert again.verify().ok


@pytest.mark.parametrize("read", [lambda watch: watch.events, lambda watch: watch.timeline()])
@pytest.mark.parametrize("text", [False, True])
def test_an_update_while_a_watch_is_read(monkeypatch, tmp_path, text, read):
    """It is made; the watch takes its steps later."""
    model, watch = model_of(text)
    twin, _ = model_of(text)
    monkeypatch.setattr(IdEngine, "finish_update", lambda self: None)
    updates(model, text)["delete"]()
    monkeypatch.undo()
    updates(twin, text)["delete"]()
    with meanwhile(
        monkeypatch, History, "append", lambda: updates(model, text)["insert"]()
    ) as caught:
        read(watch)
    updates(twin, text)["insert"]()
    assert caught == [None]
    assert snapshot(model) == snapshot(twin)
    assert [str(e) for e in watch.events] == [str(e) for e in twin.watches[0].events]
    model.save(tmp_path / "x")
    for each in (model, twin):
        updates(each, text)["batch"]()
    assert snapshot(model) == snapshot(twin)
    assert watch.labels().tolist() == twin.watches[0].labels().tolist()


@pytest.mark.parametrize("text", [False, True])
def test_an_interrupt_while_a_watch_is_made_or_closed(text):
    line, reached, made = 0, True, set()
    while reached:
        line += 1
        model, watch = model_of(text)
        others = []

        def both(model=model, watch=watch, others=others):
            others.append(model.watch(0.45))
            watch.close()

        reached = interrupt_at_line(line, both)
        engine = model._engine.engine
        watch.close()
        for other in others:
            fresh = model.watch(0.45, patience=1)
            assert other.labels().tolist() == fresh.labels().tolist()
        made.add(len(others))
        for update in updates(model, text).values():
            update()
        for each in model.watches:
            each.close()
        assert engine.watch_handles() == []
        assert model.verify().ok
    assert made == {0, 1}


@pytest.mark.parametrize("where", ["batch", "update"])
def test_a_snapshot_in_the_middle_of_something(tmp_path, where):
    """It is refused at once, though a snapshot in the background waits for the same lock."""
    asked = []

    def similarity(distances):
        if where == "update" and len(model) > 20 and not asked:
            time.sleep(0.1)
            with pytest.raises(RuntimeError, match="meanwhile"):
                model.snapshot()
            asked.append(True)
        return 1 / (1 + distances)

    with dynhac.open(
        tmp_path / "s", n_neighbors=3, similarity=similarity, snapshot_bytes=1
    ) as model:
        if where == "batch":
            with model.batch():
                model.insert(GRID)
                time.sleep(0.1)
                with pytest.raises(StoreError, match="in the middle of a batch"):
                    model.snapshot()
        else:
            for row in GRID:
                model.insert(row)
            assert asked
        assert model.snapshot() > 0


@with_timers
def test_random_signals(tmp_path):
    """A handler updates, saves and reads the model at any moment of updates and saves."""
    rng = np.random.default_rng(0)
    model = DynHAC(n_neighbors=4, neighbors="exact", max_points=60)
    model.insert(rng.normal(size=(50, 8)), [f"a{i}" for i in range(50)])
    watch = model.watch(0.2)
    made, refused = [], []

    def handler(signum, frame):
        for action in (
            lambda: model.insert(rng.normal(size=8), f"h{len(made)}"),
            lambda: model.delete(model.ids[0]),
            lambda: model.save(tmp_path / "h"),
            lambda: watch.events,
        ):
            try:
                action()
                made.append(1)
            except (RuntimeError, KeyError) as error:
                refused.append(str(error))

    with alarms(handler, 1.7e-3):
        for i in range(400):
            try:
                model.insert(rng.normal(size=8), f"b{i}")
            except RuntimeError as error:  # the handler came while the arguments were read
                assert "updated while an update was read" in str(error)  # noqa: PT017
            if i % 40 == 0:
                model.save(tmp_path / "x")
                assert DynHAC.load(tmp_path / "x").verify().ok
    model.insert(rng.normal(size=(5, 8)), [f"c{i}" for i in range(5)])  # the handler deleted last
    assert refused
    assert model.verify().ok
    assert len(model.vectors()) == len(model) == 60
    assert sum(watch.clusters().values()) == 60
    model.insert(rng.normal(size=8), "last")
    model.update()  # forgets the text ids of points that have left
    assert len(model._engine.ids) == 60
