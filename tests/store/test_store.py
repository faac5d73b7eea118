"""A durable model is the model without a store, whenever it is closed and opened again."""

import contextlib
import copy
import gc
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from soak import SOAK
from stores import SORTS, everything, plain, rejected, step

import dynhac
from dynhac import DynHAC, GraphHAC, RecoveryWarning, StoreError, StoreLockedError


def new(path, sort, **options):
    kind, parameters = SORTS[sort]
    return dynhac.open(path, kind, **options, **parameters)


@pytest.mark.parametrize("sort", SORTS)
def test_reopened_at_random_moments(tmp_path, sort):
    rng = np.random.default_rng(1)
    for seed in range(SOAK):
        path = tmp_path / str(seed)
        twin, model = plain(sort), new(path, sort, durability="normal")
        for i in range(1, 121):
            step(twin, sort, seed, i)
            step(model, sort, seed, i)
            assert model.update_number == i
            choice = rng.random()
            if choice < 0.05:
                rejected(model)
            elif choice < 0.1:
                model.snapshot()
            elif choice < 0.15:
                model.close()
                model = dynhac.open(path, durability="normal")
            elif choice < 0.25:
                model._writer.release()  # as a crash would: no snapshot
                model = dynhac.open(path, durability="normal", **SORTS[sort][1])
            if choice < 0.3 or i == 120:
                assert everything(model) == everything(twin)
                assert model.update_number == i
        assert model.verify().ok
        model.close()


@pytest.mark.parametrize("saves", [(), (20, 50), (30, 50, 80)])
def test_a_large_approximate_index(tmp_path, saves):
    """Usearch draws levels at random, and a snapshot begins the draws anew: the log knows when."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 400)).astype(np.float32)
    path = tmp_path / "a"
    model = dynhac.open(path, neighbors="usearch", n_neighbors=5, durability="normal")
    model.insert(X[:700])
    for begin in (0, 100):
        for i in range(begin, begin + 100):
            model.update(insert=X[700 + i], delete=[i])
            if i - begin in saves:
                model.snapshot()
            if i == begin + 90:
                model.save(tmp_path / "file")
        model._writer.release()
        before = everything(model)
        shutil.copytree(path, tmp_path / "copy")
        kept = sorted((tmp_path / "copy").glob("snapshot*"), key=lambda p: int(p.stem[9:]))
        if len(kept) == 2:  # replay everything since the one before
            kept[1].unlink()
        with dynhac.open(tmp_path / "copy") as model:
            assert everything(model) == before
        shutil.rmtree(tmp_path / "copy")
        model = dynhac.open(path, durability="normal")
        assert everything(model) == before
    model.close()


def test_batches_reach_the_log_together(tmp_path):
    twin = plain("kd")
    with new(tmp_path / "a", "kd") as model:
        with model.batch():
            for i in range(1, 30):
                step(model, "kd", 0, i)
                step(twin, "kd", 0, i)
                if i % 10 == 0:
                    rejected(model)
            with dynhac.open(tmp_path / "a", mode="r") as reader:
                assert reader.update_number == 0
            with model.batch():
                step(model, "kd", 0, 30)
                step(twin, "kd", 0, 30)
            with pytest.raises(StoreError, match="middle of a batch"):
                model.snapshot()
        assert reader.update_number == 0
        with dynhac.open(tmp_path / "a", mode="r") as reader:
            assert reader.update_number == 30
            assert everything(reader) == everything(twin)
        step(twin, "kd", 0, 31)
        with contextlib.suppress(ZeroDivisionError), model.batch():
            step(model, "kd", 0, 31)
            1 / 0  # noqa: B018
        model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert model.update_number == 31
        assert everything(model) == everything(twin)


def test_rejected_updates_leave_no_row(tmp_path):
    for sort in ("kd", "graph"):
        with new(tmp_path / sort, sort) as model:
            for i in range(1, 5):
                step(model, sort, 0, i)
                before = everything(model)
                rejected(model)
                assert everything(model) == before
                assert [change["number"] for change in model.changes()] == list(range(1, i + 1))


def test_snapshots_in_the_background(tmp_path):
    with new(tmp_path / "a", "graph", snapshot_bytes=2000, durability="normal") as model:
        twin = plain("graph")
        i, deadline = 0, time.monotonic() + 60
        # A writer that never pauses must not keep the snapshot waiting.
        while model.stats()["snapshot_number"] is None or i < 200:
            assert time.monotonic() < deadline
            i += 1
            step(model, "graph", 3, i)
            step(twin, "graph", 3, i)
        stats = model.stats()
        assert stats["snapshot_number"] > 0
        assert stats["log_rows"] <= i
        model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == everything(twin)
        model.snapshot()  # the one that was being written when the writer ended may be a third
    assert len([n for n in os.listdir(tmp_path / "a") if n.startswith("snapshot")]) == 2


def test_snapshots_by_time(tmp_path):
    with new(tmp_path / "a", "graph", snapshot_seconds=0.05) as model:
        step(model, "graph", 0, 1)
        deadline = time.monotonic() + 20
        while model.stats()["snapshot_number"] is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_old_snapshots_and_rows_go(tmp_path):
    with new(tmp_path / "a", "graph") as model:
        for i in range(1, 51):
            step(model, "graph", 0, i)
            if i % 10 == 0:
                assert model.snapshot() == i
        names = sorted(n for n in os.listdir(tmp_path / "a") if n.startswith("snapshot"))
        assert names == ["snapshot-40.dynhac", "snapshot-50.dynhac"]
        assert [change["number"] for change in model.changes()] == list(range(41, 51))
        assert [change["number"] for change in model.changes(48)] == [49, 50]


def test_changes(tmp_path):
    with dynhac.open(tmp_path / "a", max_age=10) as model:
        model.insert([[0.0], [1.0]], ids=[5, 6], timestamps=[1, 2])
        model.update(insert=[[2.0]], ids=[5], delete=[5], timestamps=3)
        model.expire(now=20)
        listed = list(model.changes())
    assert [c["op"] for c in listed] == ["points", "points", "expire"]
    assert [list(c["inserted"]) for c in listed] == [[5, 6], [5], []]
    assert [list(c["deleted"]) for c in listed] == [[], [5], []]
    with dynhac.open(tmp_path / "b", "graph") as model:
        model.add(["a", "b"], edges=("a", "b", 0.5))
        model.remove("a")
        listed = list(model.changes())
    assert [c["op"] for c in listed] == ["graph", "graph"]
    assert [list(c["inserted"]) for c in listed] == [["a", "b"], []]
    assert [list(c["deleted"]) for c in listed] == [[], ["a"]]


def test_watches_are_part_of_snapshots(tmp_path):
    with dynhac.open(tmp_path / "a", "graph") as model:
        model.add([1, 2, 3], edges=([1, 2], [2, 3], [0.9, 0.8]))
        model.watch(0.5)
    with dynhac.open(tmp_path / "a") as model:
        (watch,) = model.watches
        model.remove_edges(1, 2)
        split = [str(event) for event in watch.events]
        assert split
        model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        (watch,) = model.watches
        assert [str(event) for event in watch.events] == split


def test_a_reader_follows(tmp_path):
    for sort in ("kd", "named graph", "usearch"):
        path = tmp_path / sort
        with new(path, sort, durability="normal") as model:
            step(model, sort, 0, 1)
            reader = dynhac.open(path, mode="r")
            assert everything(reader) == everything(model)
            assert reader.refresh() == 0
            for i in range(2, 60):
                step(model, sort, 0, i)
                if i % 7 == 0:
                    model.snapshot()
                if i < 20 or i == 59:
                    before = reader.update_number
                    assert reader.refresh() == i - before
                    assert everything(reader) == everything(model)
            with pytest.raises(StoreError, match="open for reading"):
                step(reader, sort, 0, 60)
            for method in (reader.snapshot, reader.batch):
                with pytest.raises(StoreError, match="open for reading"):
                    method()
            assert model.refresh() == 0
        assert reader.refresh() == 0
        files = {name: os.stat(path / name).st_mtime_ns for name in os.listdir(path)}
        with dynhac.open(path, mode="r") as late:
            assert everything(late) == everything(reader)
            assert late.stats()["mode"] == "r"
        assert files == {name: os.stat(path / name).st_mtime_ns for name in os.listdir(path)}
        reader.close()
        with pytest.raises(StoreError, match="closed"):
            reader.refresh()


def test_readers_and_snapshots_beside_a_busy_writer(tmp_path):
    twin, states = plain("graph"), [everything(plain("graph"))]
    for i in range(1, 201):
        step(twin, "graph", 0, i)
        states.append(everything(twin))
    done = threading.Event()
    seen, errors = set(), []

    def read():
        try:
            while not done.is_set():
                with dynhac.open(tmp_path / "a", mode="r") as reader:
                    assert everything(reader) == states[reader.update_number]
                    reader.refresh()
                    assert everything(reader) == states[reader.update_number]
                    seen.add(reader.update_number)
        except BaseException as error:
            errors.append(error)

    with new(tmp_path / "a", "graph", durability="normal", snapshot_bytes=1000) as model:
        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for i in range(1, 201):
            step(model, "graph", 0, i)
        time.sleep(0.2)
        done.set()
        for thread in threads:
            thread.join()
    assert not errors, errors
    assert seen


def test_one_writer(tmp_path):
    with new(tmp_path / "a", "kd") as model:
        with pytest.raises(StoreLockedError, match=f"process {os.getpid()}"):
            dynhac.open(tmp_path / "a")
        step(model, "kd", 0, 1)
    other = subprocess.Popen(
        [sys.executable, "-c",
         "import sys, dynhac; m = dynhac.open(sys.argv[1]); print(m.update_number, flush=True); "
         "sys.stdin.read()", str(tmp_path / "a")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdout.readline() == "1\n"
    with pytest.raises(StoreLockedError, match=f"process {other.pid}"):
        dynhac.open(tmp_path / "a")
    with dynhac.open(tmp_path / "a", mode="r") as reader:
        assert reader.update_number == 1
        other.kill()
        other.communicate()
        assert reader.refresh() == 0
    with dynhac.open(tmp_path / "a") as model:
        assert model.update_number == 1


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_model_left_behind_does_not_keep_the_lock(tmp_path):
    model = new(tmp_path / "a", "kd")
    step(model, "kd", 0, 1)
    del model
    with dynhac.open(tmp_path / "a") as model:
        assert model.update_number == 1
    gc.collect()  # what it leaves behind complains now, not in the middle of another test


def test_parameters(tmp_path):
    given = {
        "epsilon": 0.2,
        "n_neighbors": 3,
        "metric": "cosine",
        "max_age": np.timedelta64(1, "h"),
    }
    dynhac.open(tmp_path / "a", **given).close()
    with dynhac.open(tmp_path / "a", **given, similarity="inverse", threads=2) as model:
        assert (model.epsilon, model.n_neighbors, model.metric) == (0.2, 3, "cosine")
        assert model.threads == 2
    for name, value in (("epsilon", 0.1), ("n_neighbors", 4), ("max_age", 3600), ("repair", False)):
        with pytest.raises(ValueError, match=f"{name} is .* but the store was made with"):
            dynhac.open(tmp_path / "a", **{name: value})
    with pytest.raises(ValueError, match="kind is 'graph', but the store holds"):
        dynhac.open(tmp_path / "a", "graph")
    with pytest.raises(TypeError):
        dynhac.open(tmp_path / "a", colour="red")
    for wrong in ({"mode": "x"}, {"durability": "none"}, {"kind": "tree"}, {"snapshot_bytes": 0}):
        with pytest.raises(ValueError, match="it must be"):
            dynhac.open(tmp_path / "b", **wrong)
    with pytest.raises(ValueError, match="epsilon"):
        dynhac.open(tmp_path / "b", epsilon=-1)
    assert not os.path.exists(tmp_path / "b")


def test_functions_and_indices_are_given_again(tmp_path):
    def similarity(distances):
        return 1 / (1 + distances**2)

    with dynhac.open(tmp_path / "a", similarity=similarity, n_neighbors=3) as model:
        model.insert([[0.0], [1.0], [5.0]])
        model.snapshot()
        model.insert([2.0])
        before = everything(model)
        model._writer.release()
    with pytest.raises(ValueError, match="a function of your own as similarity"):
        dynhac.open(tmp_path / "a")
    with dynhac.open(tmp_path / "a", similarity=similarity) as model:
        assert everything(model) == before
    from dynhac.neighbors import ExactIndex

    with dynhac.open(tmp_path / "b", neighbors=ExactIndex("euclidean")) as model:
        model.insert([[0.0], [1.0], [5.0]])
        before = everything(model)
    with pytest.raises(ValueError, match="an index of your own as neighbors"):
        dynhac.open(tmp_path / "b")
    with dynhac.open(tmp_path / "b", neighbors=ExactIndex("euclidean")) as model:
        assert everything(model) == before
        model.insert([2.0])


def test_copies_and_files_are_plain_models(tmp_path):
    for sort, plain_type in (("kd", DynHAC), ("graph", GraphHAC)):
        with new(tmp_path / sort, sort) as model:
            for i in range(1, 10):
                step(model, sort, 0, i)
            model.save(tmp_path / "file")
            others = [
                copy.copy(model),
                copy.deepcopy(model),
                pickle.loads(pickle.dumps(model)),
                type(model).load(tmp_path / "file"),
                plain_type.load(tmp_path / sort / f"snapshot-{model.snapshot()}.dynhac"),
            ]
            for other in others:
                assert type(other) is plain_type
                assert everything(other) == everything(model)
                step(other, sort, 0, 10)
            step(model, sort, 0, 10)
            assert all(everything(other) == everything(model) for other in others)
            with pytest.raises(TypeError, match="made by dynhac"):
                type(model)()


def test_closed(tmp_path):
    model = new(tmp_path / "a", "kd")
    step(model, "kd", 0, 1)
    model.close()
    model.close()
    assert len(model.labels(0.5)) == len(model)
    for call in (lambda: model.insert([1.0, 2.0, 3.0]), model.snapshot, model.stats):
        with pytest.raises(StoreError, match="closed"):
            call()


def test_progress(tmp_path):
    with new(tmp_path / "a", "graph", durability="normal") as model:
        for i in range(1, 21):
            step(model, "graph", 0, i)
        model._writer.release()
    calls = []
    dynhac.open(tmp_path / "a", progress=calls.append).close()
    (last,) = calls
    assert last[:4] == ("replaying", 20, 20, "updates")
    assert last.ended


def test_large_rows_are_split(tmp_path, monkeypatch):
    monkeypatch.setattr("dynhac.store.log.PART", 100)
    twin = plain("kd")
    model = new(tmp_path / "a", "kd")
    for i in range(1, 40):
        step(model, "kd", 0, i)
        step(twin, "kd", 0, i)
        rejected(model)
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == everything(twin)


def test_durability(tmp_path):
    for durability in ("full", "normal"):
        with new(tmp_path / durability, "kd", durability=durability) as model:
            step(model, "kd", 0, 1)
            assert model.durability == model.stats()["durability"] == durability
            (level,) = model._writer.log.connection.execute("PRAGMA synchronous").fetchone()
            assert level == {"full": 2, "normal": 1}[durability]
            assert repr(str(tmp_path / durability)) in repr(model)


def test_updates_from_many_threads(tmp_path):
    with new(tmp_path / "a", "kd", durability="normal", snapshot_bytes=2000) as model:

        def work(t):
            for i in range(30):
                model.insert([[float(t), float(i), 0.0]], ids=[1000 * t + i])
                if i % 10 == 5:
                    with contextlib.suppress(RecoveryWarning):
                        model.snapshot()

        threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert model.update_number == 120
        before = everything(model)
        model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == before
        assert model.verify().ok
