"""A model that was saved and loaded goes on as if nothing had happened, bit for bit."""

import copy
import pickle
import random
import threading
from pathlib import Path

import numpy as np
import pytest
from models import edge_set
from soak import SOAK
from strategies import PALETTES, SHAPES, Stream
from watching import frozen

from dynhac import FileError, GraphHAC, _core

FILES = Path(__file__).parent
COUNTERS = (
    "levels",
    "groups_rerun",
    "vertices_rerun",
    "edges_rerun",
    "edges_changed",
    "nodes_created",
    "nodes_removed",
)


def report(change):
    """All that an update says it did, apart from the time it took."""
    nodes = [
        (n.node_ids.tolist(), n.similarity.tolist(), n.size.tolist(), n.passed_on.tolist())
        for n in (change.created, change.removed)
    ]
    return [getattr(change, name) for name in COUNTERS], nodes


def columns(g):
    """The whole inner state as bytes."""
    header, arrays = g._state()
    return header, {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}


def reloaded(g, folder, **options):
    path = folder / "model.dynhac"
    g.save(path)
    return GraphHAC.load(path, **options)


def go_on(g, h, batches):
    """The same updates to both; whatever they say must be the same."""
    for batch in batches:
        assert report(g.update(**batch)) == report(h.update(**batch))
        assert frozen(g) == frozen(h)
    assert columns(g) == columns(h)


@pytest.fixture(autouse=True)
def _switch_off():
    yield
    _core.fail_allocation(-1)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("palette", sorted(PALETTES))
def test_going_on(epsilon, text, palette, tmp_path):
    rng = random.Random(f"{epsilon} {text} {palette}")
    for _ in range(4 * SOAK):
        target = rng.choice((6, 30, 90))
        stream = Stream(rng, palette, target, text, most=rng.choice((3, 12)))
        g = GraphHAC(epsilon, rng.choice((0.0, 0.01, 0.3)))
        g.update(**stream.seed_with(rng.choice(sorted(SHAPES)), target))
        for _ in range(3):
            for _ in range(rng.randrange(12)):
                g.update(**stream.next())
            h = reloaded(g, tmp_path)
            assert h.verify().ok
            assert columns(h) == columns(g)
            first = (tmp_path / "model.dynhac").read_bytes()
            h.save(tmp_path / "model.dynhac")
            assert (tmp_path / "model.dynhac").read_bytes() == first
            go_on(g, h, [stream.next() for _ in range(10)])
            h.save(tmp_path / "other.dynhac")
            g.save(tmp_path / "model.dynhac")
            again = [tmp_path / f"{name}.dynhac" for name in ("model", "other")]
            assert again[0].read_bytes() == again[1].read_bytes()
            g = h


def test_going_on_after_rejected_and_failed_updates(tmp_path):
    stream = Stream(random.Random(5), "few", 40, text=True)
    g = GraphHAC(0.1, 0.01)
    g.update(**stream.seed_with("sparse", 40))
    for _ in range(30):
        before = columns(g)
        batch, error = stream.bad()
        with pytest.raises(error):
            g.update(**batch)
        after = columns(g)
        for _, arrays in (before, after):
            arrays.pop("ids/next_key")  # a key that was never used is not used again
        assert after == before
        go_on(g, reloaded(g, tmp_path), [stream.next()])


@pytest.mark.parametrize("text", [False, True])
def test_empty_models(text, tmp_path):
    fresh = GraphHAC(0.3, 0.2, resolution=2.0**-20)
    stream = Stream(random.Random(1), text=text)
    go_on(fresh, reloaded(fresh, tmp_path), [stream.seed_with("ring", 9)])
    emptied = GraphHAC()
    emptied.update(**Stream(random.Random(1), text=text).seed_with("ring", 9))
    emptied.remove(emptied.ids)
    h = reloaded(emptied, tmp_path)
    assert (len(h), h.version) == (0, 2)
    wrong = [1] if text else ["a"]
    with pytest.raises(TypeError):
        h.add(wrong)  # the kind of the ids outlives them
    go_on(emptied, h, [{"add": ["x", "y"] if text else [1, 2]}])


def test_after_nearly_everything_was_removed(tmp_path):
    stream = Stream(random.Random(2), "many", most=40, target=5)
    g = GraphHAC(0.1, 0)
    g.update(**stream.seed_with("clique", 60))
    for _ in range(3):
        g.update(**stream.remove())
    go_on(g, reloaded(g, tmp_path), [stream.add(), stream.add(), stream.mixed(), stream.remove()])


def test_parameters(tmp_path):
    third = 1 / 3
    g = GraphHAC(third, third / 7, resolution=third * 1e-9, threads=2)
    g.add([5, -(2**63), 2**63 - 1], edges=([5, 5], [-(2**63), 2**63 - 1], [0.5, 0.25]))
    h = reloaded(g, tmp_path)
    assert (h.epsilon, h.threshold, h.resolution, h.threads) == (
        (g.epsilon, g.threshold, g.resolution, 2)
    )
    assert columns(h) == columns(g)
    assert reloaded(g, tmp_path, threads=3).threads == 3
    for threads in (0, 1025, "2"):
        with pytest.raises(ValueError, match="threads is"):
            GraphHAC.load(tmp_path / "model.dynhac", threads=threads)


def test_strange_names(tmp_path):
    names = ["", "\0", "\x1b[0m", "é", "e\u0301", "名", "a" * 5000, "a\n"]
    g = GraphHAC()
    g.add(names, edges=(names[:-1], names[1:], [0.5] * 7))
    g.remove("é")
    h = reloaded(g, tmp_path)
    assert h.ids.tolist() == g.ids.tolist() == [name for name in names if name != "é"]
    go_on(g, h, [{"add": "é", "edges": ("é", "\x1b[0m", 0.75)}])


@pytest.mark.parametrize("text", [False, True])
def test_pickles_and_copies(text):
    class Mine(GraphHAC):
        pass

    stream = Stream(random.Random(3), "few", 30, text)
    g = GraphHAC(0.1, 0.01, threads=2)
    g.update(**stream.seed_with("blobs", 30))
    twins = [copy.copy(g), copy.deepcopy(g), copy.deepcopy([g])[0]]
    twins += [pickle.loads(pickle.dumps(g, protocol)) for protocol in (2, 4, 5)]
    batch = stream.mixed()
    told = report(g.update(**batch))
    for h in twins:
        assert h.threads == 2
        assert report(h.update(**batch)) == told
        assert columns(h) == columns(g)
    mine = Mine()
    assert type(copy.deepcopy(mine)) is Mine


def test_a_save_is_one_moment(tmp_path):
    """Updates go on while other threads save: every file is a state that there was."""
    stream = Stream(random.Random(4), "few", 60, text=True, most=8)
    g = GraphHAC(0.1, 0.01)
    g.update(**stream.seed_with("sparse", 60))
    states, found, done = {g.version: frozen(g)}, [], threading.Event()

    def keep_saving(name):
        while not done.is_set():
            found.append(reloaded(g, tmp_path / name))

    threads = []
    for name in "ab":
        (tmp_path / name).mkdir()
        threads.append(threading.Thread(target=keep_saving, args=(name,)))
        threads[-1].start()
    for _ in range(60):
        g.update(**stream.next())
        states[g.version] = frozen(g)
    done.set()
    for thread in threads:
        thread.join()
    assert len({h.version for h in found}) > 1
    for h in found:
        assert frozen(h) == states[h.version]


def test_out_of_memory(tmp_path):
    stream = Stream(random.Random(6), "few", 40)
    g = GraphHAC()
    g.update(**stream.seed_with("sparse", 40))
    path = tmp_path / "model.dynhac"
    g.save(path)
    old, state = path.read_bytes(), columns(g)
    g.update(**stream.mixed())
    for call in (lambda: g.save(path), lambda: GraphHAC.load(path), lambda: copy.deepcopy(g)):
        failures = 0
        while True:
            _core.fail_allocation(failures)
            try:
                call()
            except MemoryError:
                assert path.read_bytes() == old
                assert [file.name for file in tmp_path.iterdir()] == [path.name]
            else:
                break
            failures += 1
        _core.fail_allocation(-1)
        assert failures > 20
        old, state = path.read_bytes(), columns(g)
    assert columns(GraphHAC.load(path)) == state
    g.update(**stream.mixed())  # nobody holds the lock


def test_a_state_of_wrong_parts_is_refused():
    g = GraphHAC()
    g.add(["a", "b"], edges=("a", "b", 0.5))
    header, arrays = g._state()
    assert columns(GraphHAC._from_state(header, arrays)) == columns(g)
    for name in arrays:
        with pytest.raises(FileError, match="the model is damaged"):
            GraphHAC._from_state(header, {k: a for k, a in arrays.items() if k != name})
        for wrong in (arrays[name].astype(np.float32), np.append(arrays[name], 1), np.eye(2)):
            with pytest.raises(FileError, match="the model is damaged"):
                GraphHAC._from_state(header, {**arrays, name: wrong})
    parameters = header["parameters"]
    for name, wrong in [("epsilon", -1), ("threshold", "0.1"), ("resolution", 0), ("threads", 0)]:
        others = {k: v for k, v in parameters.items() if k != name}
        for forged in (others | {name: wrong}, others, parameters | {"more": 1}):
            with pytest.raises(FileError):
                GraphHAC._from_state({**header, "parameters": forged}, arrays)
    for wrong in ({**header, "state": 2}, {"state": header["state"]}, {"parameters": parameters}):
        with pytest.raises(FileError):
            GraphHAC._from_state(wrong, arrays)
    with pytest.raises(FileError, match="the model is damaged"):
        GraphHAC._from_state(header, {**arrays, "\ud800": arrays["counts"]})
    with pytest.raises(FileError, match="number of columns"):
        GraphHAC._from_state(header, {**arrays, "more": arrays["counts"]})


def test_a_file_of_an_earlier_day_is_read():
    """It was made by the updates of this stream; an engine may decide otherwise today."""
    stream = Stream(random.Random(20), "few", 20, text=True)
    stream.seed_with("blobs", 20)
    for _ in range(10):
        stream.next()
    g = GraphHAC.load(FILES / "graph-3.dynhac")
    assert (g.epsilon, g.threshold, g.version) == (0.25, 0.05, 11)
    assert g.ids.tolist() == list(stream.model)
    assert edge_set(g) == {
        (u, v): w for u, row in stream.model.items() for v, w in row.items() if u < v
    }
    assert g.verify().ok
    for _ in range(10):
        g.update(**stream.next())
    assert g.verify().ok
