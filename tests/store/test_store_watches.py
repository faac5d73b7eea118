"""Watches of durable models: in the log like any update, found again, followed by readers."""

import gc
import shutil
import sqlite3
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from stores import everything, everything_of

import dynhac
from dynhac import StoreError

CROSS = ([0, 0, 1, 1, 2, 2], [3, 4] * 3)


def build(path, **options):
    model = dynhac.open(path, "graph", durability="normal", epsilon=0.0, **options)
    model.add(range(5), edges=([0, 0, 1, 3], [1, 2, 2, 4], [0.9] * 4))
    return model


def abandoned(model, path, copy):
    """Open a copy of a store as a crash would leave it."""
    shutil.copytree(path, copy)
    model._writer.release()
    return dynhac.open(copy)


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_watch_is_there_after_a_crash(tmp_path, snapshot):
    model = build(tmp_path / "a")
    watch = model.watch(0.3, 2, patience=3)
    other = model.watch(0.5)
    model.watch(0.6).close()
    assert model.update_number == 5
    model.set_edges(*CROSS, [0.8] * 6)
    if snapshot:
        model.snapshot()
    expected = everything(model)
    with abandoned(model, tmp_path / "a", tmp_path / "b") as again:
        assert everything(again) == expected
        assert again.watch(0.3, 2, patience=3) is again.watches[0]
        assert again.watch(0.5) is again.watches[1]
        assert again.update_number == 6  # finding a watch is no update
        for i in range(3):
            again.add([10 + i])
        assert [str(e) for e in again.watches[0].events] == [
            "cluster 1 died with 2 points, absorbed by 0; size 0",
            "cluster 0 merged with 1: 2 points; size 5",
        ]
    with pytest.raises(StoreError, match="is closed"):
        model.watch(0.7)
    with pytest.raises(StoreError, match="is closed"):
        watch.close()
    assert sum(other.clusters().values()) == 5  # what it shows can still be read


@pytest.mark.parametrize("snapshot", [False, True])
def test_automatic_watches_are_there_after_a_crash(tmp_path, snapshot):
    model = build(tmp_path / "a")
    watch = model.watch(min_size=2)
    model.watch(min_size=2, patience=3)
    model.watch(min_size=3).close()
    model.set_edges(*CROSS, [0.8] * 6)
    if snapshot:
        model.snapshot()
    model.remove([3])
    expected = everything(model)
    labels = watch.labels().tolist()
    with abandoned(model, tmp_path / "a", tmp_path / "b") as again:
        assert everything(again) == expected
        assert [(w.theta, w.min_size) for w in again.watches] == [(None, 2), (None, 2)]
        found = again.watch(min_size=2)
        assert found is again.watches[0]
        assert found.labels().tolist() == labels
        with dynhac.open(tmp_path / "b", mode="r") as reader:
            assert everything_of(reader.watches[0]) == everything_of(found)
            with pytest.raises(StoreError, match="the watch of automatic clusters belongs to the"):
                reader.watches[0].close()


def test_killed_at_once(tmp_path):
    """The process dies right after a watch was made."""
    program = """
        import os, signal, sys, dynhac
        model = dynhac.open(sys.argv[1], "graph")
        model.add(range(4), edges=([0, 2], [1, 3], [0.9, 0.9]))
        watch = model.watch(0.5)
        model.remove_edges(0, 1)
        print(watch.clusters(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    arguments = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "a")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode < 0
    with dynhac.open(tmp_path / "a") as model:
        assert str(model.watch(0.5).clusters()) == done.stdout.strip()
        assert len(model.watches) == 1


def test_a_full_disk_makes_no_watch(tmp_path, monkeypatch):
    model = build(tmp_path / "a")
    kept = model.watch(0.4)
    before = everything(model)

    def fail(row):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(model._writer.log, "append", fail)
        with pytest.raises(StoreError, match="disk is full; nothing changed"):
            model.watch(0.5)
        with pytest.raises(StoreError, match="disk is full; nothing changed"):
            kept.close()
    assert everything(model) == before
    assert model._engine.engine.watch_handles() == [kept._handle]
    assert model.watch(0.5).clusters() == {0: 3, 1: 2}
    with abandoned(model, tmp_path / "a", tmp_path / "b") as again:
        assert [w.theta for w in again.watches] == [0.4, 0.5]


def test_readers_see_the_watches_of_the_writer(tmp_path):
    with build(tmp_path / "a") as model:
        watch = model.watch(0.3, patience=2)
        with dynhac.open(tmp_path / "a", mode="r") as reader:
            (seen,) = reader.watches
            assert reader.watch(0.3, patience=2) is seen
            own = reader.watch(0.5)
            assert reader.watches == (seen, own)
            assert model.watches == (watch,)
            model.set_edges(*CROSS, [0.8] * 6)
            theirs = model.watch(0.5)
            assert reader.refresh() == 2
            assert everything_of(seen) == everything_of(watch)
            first, private, durable = reader.watches
            assert (first, private) == (seen, own)
            assert reader.watch(0.5) is durable
            assert everything_of(durable) == everything_of(theirs)
            with pytest.raises(StoreError, match="belongs to the writer"):
                durable.close()
            own.close()
            theirs.close()
            reader.refresh()
            assert reader.watches == (seen,)
            with pytest.raises(ValueError, match="is closed"):
                durable.labels()


def test_the_log_lists_watches(tmp_path):
    with dynhac.open(tmp_path / "a", max_age=np.timedelta64(1, "D")) as model:
        model.watch(0.3, 5, patience=np.timedelta64(90, "m")).close()
        with model.batch():
            watch = model.watch(0.4)
            model.insert([[0.0]], timestamps=np.datetime64("2025-01-01"))
        listed = [(c["op"], list(c["inserted"])) for c in model.changes()]
        assert listed == [("watch", []), ("close watch", []), ("watch", []), ("points", [0])]
        expected = everything_of(watch)
        graph = model.graph.watch(0.6)
        assert graph in model.watches
    with dynhac.open(tmp_path / "a") as model:
        assert everything_of(model.watches[0]) == expected
        assert [w.theta for w in model.watches] == [0.4, 0.6]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_watch_does_not_keep_the_store_open(tmp_path):
    model = build(tmp_path / "a")
    watch = model.watch(0.3)
    del model
    with dynhac.open(tmp_path / "a") as again:
        assert len(again.watches) == 1
    with pytest.raises(StoreError, match="the model of this watch is gone"):
        watch.close()
    del watch
    gc.collect()  # what it leaves behind complains now, not in the middle of another test
