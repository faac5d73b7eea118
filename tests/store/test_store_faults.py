"""What goes wrong while a store is at work: full disks, failures, interrupts.

Never a crash, and never silently wrong: a store that opens is as it was after some acknowledged
update, and if that is not the last one, it says so.
"""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from contextlib import closing

import numpy as np
import pytest
from interrupts import alarms_interrupt
from soak import SOAK
from stores import everything, new, overwrite, plain, small_files, step

import dynhac
from dynhac import RecoveryWarning, StoreError
from dynhac.neighbors import ExactIndex

pytest.importorskip("resource")


def test_the_first_snapshot_is_damaged(tmp_path):
    with new(tmp_path / "a", "kd") as model:
        for i in range(1, 6):
            step(model, "kd", 0, i)
        before = everything(model)
    overwrite(tmp_path / "a" / "snapshot-5.dynhac", 1000, b"damaged")
    with pytest.warns(RecoveryWarning, match="an empty model and 5 updates"):
        model = dynhac.open(tmp_path / "a")
    assert everything(model) == before
    model.close()


def test_a_rejected_row_that_is_still_there(tmp_path, monkeypatch):
    model = new(tmp_path / "a", "graph")
    for i in range(1, 4):
        step(model, "graph", 0, i)
    before = everything(model)
    monkeypatch.setattr(model._writer.log, "retract", lambda after: None)
    rejected_once(model)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    model._writer.release()
    with closing(sqlite3.connect(tmp_path / "b" / "log.sqlite")) as log:
        assert log.execute("SELECT MAX(number) FROM log").fetchone() == (4,)
    with dynhac.open(tmp_path / "b") as model:
        assert model.update_number == 3
        assert everything(model) == before
        step(model, "graph", 0, 4)
        assert [change["number"] for change in model.changes()] == [1, 2, 3, 4]


def rejected_once(model):
    with pytest.raises(KeyError):
        model.remove([10**15])


def test_a_broken_store_refuses(tmp_path, monkeypatch):
    def fail(after):
        raise sqlite3.OperationalError("disk I/O error")

    model = new(tmp_path / "a", "graph")
    step(model, "graph", 0, 1)
    before = everything(model)
    monkeypatch.setattr(model._writer.log, "retract", fail)
    rejected_once(model)
    for call in (lambda: step(model, "graph", 0, 2), model.snapshot, lambda: enter(model.batch())):
        with pytest.raises(StoreError, match=r"could not be taken from the log.*open it again"):
            call()
    assert everything(model) == before
    assert model.stats()["broken"]
    model.close()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == before
        step(model, "graph", 0, 2)


def test_an_interrupt_while_an_update_is_taken_back(tmp_path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    model = new(tmp_path / "a", "graph")
    step(model, "graph", 0, 1)
    before = everything(model)
    monkeypatch.setattr(model._writer, "_take_back", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.remove([10**15])
    with pytest.raises(StoreError, match="stopped half-way"):
        step(model, "graph", 0, 2)
    model.close()
    with dynhac.open(tmp_path / "a") as model:
        assert model.update_number == 1
        assert everything(model) == before


def test_an_interrupt_at_the_start_of_a_batch(tmp_path):
    model = new(tmp_path / "a", "graph")
    step(model, "graph", 0, 1)
    before = everything(model)
    model._writer.log.begin()  # and the interrupt came before anything was noted
    with pytest.raises(StoreError, match="a batch was stopped half-way"):
        step(model, "graph", 0, 2)
    model.close()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == before


def enter(context):
    with context:
        pass


class Stopped:
    """Raises in the middle of an update, before or after the graph has changed."""

    def __init__(self, monkeypatch, model, error, after):
        apply, self.error, self.on = type(model)._apply, error, True

        def stop(self_, *update):
            if not self.on or self_ is not model:
                return apply(self_, *update)
            if after:
                apply(self_, *update)
            raise self.error

        monkeypatch.setattr(type(model), "_apply", stop)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("sort", ["kd", "usearch", "exact", "named graph"])
def test_stopped_in_the_middle(tmp_path, monkeypatch, sort, error, after):
    model = new(tmp_path / "a", sort)
    for i in range(1, 10):
        step(model, sort, 0, i)
    before = everything(model)
    stopped = Stopped(monkeypatch, model, error, after)
    with pytest.raises(error):
        step(model, sort, 0, 10)
    stopped.on = False
    assert (everything(model) != before) is after
    assert model.update_number == 9 + after
    for i in range(11, 20):
        step(model, sort, 0, i)
    now, number = everything(model), model.update_number
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == now
        assert model.update_number == number == 18 + after


def test_a_failed_update_of_a_large_approximate_index(tmp_path, monkeypatch):
    """The index takes the failed points out again, but is not quite what it was."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 400)).astype(np.float32)
    model = dynhac.open(tmp_path / "a", neighbors="usearch", n_neighbors=5)
    model.insert(X[:700])
    stopped = Stopped(monkeypatch, model, MemoryError, False)
    with pytest.raises(MemoryError):
        model.insert(X[700:800])
    stopped.on = False
    for i in range(800, 1000):
        model.update(insert=X[i], delete=model.ids[:1])
    before = everything(model)
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == before


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.parametrize("sort", ["kd", "window", "named graph"])
def test_real_interrupts(tmp_path, sort):
    rng = np.random.default_rng(0)
    model = new(tmp_path / "a", sort)
    stopped = 0

    with alarms_interrupt():
        for _ in range(100 * SOAK):
            number = model.update_number
            try:
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-5, 2e-3)))
                for _ in range(3):
                    step(model, sort, 0, model.update_number + 1)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                stopped += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert number <= model.update_number <= number + 3
            if model.stats()["broken"]:
                model.close()
                model = dynhac.open(tmp_path / "a", durability="normal")
    assert stopped > 10
    now, number = everything(model), model.update_number
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert model.update_number == number
        assert everything(model) == now
        assert model.verify().ok


@pytest.mark.parametrize("sort", ["kd", "graph"])
def test_no_room_for_the_log(tmp_path, sort):
    model, twin = new(tmp_path / "a", sort, durability="full"), plain(sort)
    number = 0
    message = None
    with small_files(60_000):
        while message is None and number < 999:
            before = everything(model)
            try:
                step(model, sort, 0, number + 1)
            except StoreError as error:
                message = str(error)
            else:
                number += 1
                step(twin, sort, 0, number)
    assert re.search("the log cannot be written: .*; nothing changed", message)
    assert everything(model) == before
    assert 3 < number < 999
    assert model.update_number == number
    for i in range(number + 1, number + 5):
        step(model, sort, 0, i)
        step(twin, sort, 0, i)
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert model.update_number == number + 4
        assert everything(model) == everything(twin)


def test_no_room_for_a_snapshot(tmp_path):
    model = new(tmp_path / "a", "kd")
    for i in range(1, 40):
        step(model, "kd", 0, i)
    before = everything(model)
    with small_files(4000):
        with pytest.raises(OSError, match="File too large"):
            model.snapshot()
        with pytest.warns(RecoveryWarning, match="snapshot could not be written.*the log has all"):
            model.close()
    assert not [name for name in os.listdir(tmp_path / "a") if name.endswith(".part")]
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == before


def test_no_room_for_a_snapshot_in_the_background(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    model = new(tmp_path / "a", "kd", snapshot_bytes=1)
    with monkeypatch.context() as patched:
        patched.setattr("dynhac.store.snapshots.write_file", fail)
        step(model, "kd", 0, 1)
        deadline = time.monotonic() + 20
        while model._writer.snapshots.failure is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with pytest.warns(RecoveryWarning, match="No space left"):
            step(model, "kd", 0, 2)
    assert model.update_number == 2
    model.close()
    assert (tmp_path / "a" / "snapshot-2.dynhac").exists()


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs to mount")
@pytest.mark.parametrize("seed", range(SOAK))
def test_a_full_disk(tmp_path, seed):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("cannot mount")
    try:
        model, twin, full = new(disk / "a", "graph", snapshot_bytes=20_000), plain("graph"), 0
        (disk / "ballast").write_bytes(bytes(200_000))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecoveryWarning)
            i = 1
            while i < 400 and full < 20:
                try:
                    step(model, "graph", seed, i)
                except StoreError:
                    full += 1
                    if full == 10:
                        (disk / "ballast").unlink()
                    if model.stats()["broken"]:
                        model.close()
                        model = dynhac.open(disk / "a")
                        assert model.update_number == i - 1
                else:
                    step(twin, "graph", seed, i)
                    i += 1
            model.close()
        assert full >= 10
        shutil.copytree(disk / "a", tmp_path / "copy")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    with dynhac.open(tmp_path / "copy") as model:
        assert everything(model) == everything(twin)


def test_a_rejected_update_does_not_cost_the_index(tmp_path):
    """The index is built again only after an update that had begun to change it."""
    with dynhac.open(tmp_path / "a", neighbors="usearch", n_neighbors=3) as model:
        model.insert(np.eye(5))
        for wrong in (lambda: model.delete(77), lambda: model.insert(np.zeros(5), 3)):
            with pytest.raises((KeyError, ValueError)):
                wrong()
            assert not model._points.index_lost
        assert model.update_number == 1


def pruned(path, **index):
    """A store whose log no longer reaches back to the reader that was opened first."""
    writer = dynhac.open(path, n_neighbors=3, **index)
    writer.insert(np.eye(5))
    writer.snapshot()
    return writer


def test_a_reader_with_an_own_index_cannot_load_a_snapshot_twice(tmp_path):
    with pruned(tmp_path / "a", neighbors=ExactIndex()) as writer:
        reader = dynhac.open(tmp_path / "a", mode="r", neighbors=ExactIndex())
        for row in (6.0, 7.0):
            writer.insert(np.full(5, row))
            writer.snapshot()
        for _ in range(2):
            with pytest.raises(StoreError, match="open the store again with a new, empty index"):
                reader.refresh()
        again = dynhac.open(tmp_path / "a", mode="r", neighbors=ExactIndex())
        assert everything(again) == everything(writer)


def test_an_interrupt_while_a_reader_loads_a_snapshot(tmp_path, monkeypatch):
    with pruned(tmp_path / "a") as writer:
        reader = dynhac.open(tmp_path / "a", mode="r")
        for row in (6.0, 7.0):
            writer.insert(np.full(5, row))
            writer.snapshot()

        def interrupt(self, other):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(type(reader), "_adopt", interrupt)
            with pytest.raises(KeyboardInterrupt):
                reader.refresh()
        writer.insert(np.full(5, 8.0))
        reader.refresh()
        assert everything(reader) == everything(writer)
