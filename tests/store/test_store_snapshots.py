"""Snapshots beside updates: each is the state of one moment, and no update waits for it."""

import gc
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from interrupts import alarms_interrupt
from soak import SOAK
from stores import everything, new, plain, step

import dynhac
from dynhac import RecoveryWarning, StoreError
from dynhac._core import ForkedColumns, fail_allocation
from dynhac.files.format import read_file
from dynhac.store import snapshots

pytestmark = pytest.mark.skipif(not ForkedColumns.supported(), reason="needs fork")
PATIENCE = 120


def grown(path, sort, updates=12, **options):
    model = new(path, sort, **options)
    for i in range(1, updates + 1):
        step(model, sort, 0, i)
    return model


def arrays(state):
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in state.items()}


class Beside:
    """Calls a function while a snapshot is written, after its moment has passed."""

    def __init__(self, monkeypatch, call):
        self.calls = 0
        write = snapshots.write_file

        def write_file(*arguments, **options):
            self.calls += 1
            call()
            write(*arguments, **options)

        monkeypatch.setattr(snapshots, "write_file", write_file)


def told_in_background(model, number, message):
    """Check that the update after one that makes a snapshot due tells why there is none."""
    model._writer.snapshots._most_bytes = 1
    step(model, "kd", 0, number)
    deadline = time.monotonic() + PATIENCE
    while model._writer.snapshots.failure is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.warns(RecoveryWarning, match=message):
        step(model, "kd", 0, number + 1)


def in_thread(call):
    """Run a function in another thread, and raise if it waits for this one."""
    failed = []

    def run():
        try:
            call()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it waits"
    if failed:
        raise failed[0]


def children():
    """The children of this process, also those that have ended and are not waited for."""
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    return {int(child) for task in tasks for child in (task / "children").read_text().split()}


@pytest.mark.parametrize("sort", ["kd", "usearch", "names", "window", "dates", "named graph"])
def test_updates_beside_a_snapshot(tmp_path, monkeypatch, sort):
    model = grown(tmp_path / "a", sort)

    def update():
        for i in range(13, 25):
            step(model, sort, 0, i)

    with monkeypatch.context() as patched:
        beside = Beside(patched, lambda: in_thread(update))
        assert model.snapshot() == 12
        assert beside.calls == 1
    assert model.update_number == 24
    twin = plain(sort)
    for i in range(1, 13):
        step(twin, sort, 0, i)
    header, found = read_file(tmp_path / "a" / "snapshot-12.dynhac", model._file_kind)
    expected, state = twin._state()
    assert arrays(found) == arrays(state)
    assert {name: header[name] for name in expected} == expected
    now = everything(model)
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == now


@pytest.mark.parametrize("sort", ["kd", "graph"])
def test_without_a_child(tmp_path, monkeypatch, sort):
    def fail(columns):
        raise OSError(11, "Resource temporarily unavailable")

    model = grown(tmp_path / "a", sort)
    fail.supported = lambda: True
    monkeypatch.setattr(snapshots, "ForkedColumns", fail)
    assert model.snapshot() == 12
    step(model, sort, 0, 13)
    fail.supported = lambda: False
    assert model.snapshot() == 13
    a, b = (tmp_path / "a" / f"snapshot-{number}.dynhac" for number in (12, 13))
    assert a.exists()
    assert b.exists()
    now = everything(model)
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == now


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_child_that_is_killed(tmp_path, monkeypatch):
    model = grown(tmp_path / "a", "kd", snapshot_seconds=1e9)
    many = np.random.default_rng(0).normal(size=(5000, 3))  # more than a pipe holds
    model.insert(many, ids=np.arange(-5000, 0))
    before, others = everything(model), children()

    def kill():
        (child,) = children() - others
        os.kill(child, signal.SIGKILL)

    with monkeypatch.context() as patched:
        Beside(patched, kill)
        with pytest.raises(OSError, match="has ended before its time"):
            model.snapshot()
        assert children() == others
        told_in_background(model, 13, "has ended before its time")
        before = everything(model)
        assert not [name for name in os.listdir(tmp_path / "a") if name.endswith(".part")]
    assert everything(model) == before
    assert model.snapshot() == 15
    model.close()


def test_memory_runs_out_in_a_snapshot(tmp_path):
    model = grown(tmp_path / "a", "named graph", snapshot_seconds=1e9)
    before, failures = everything(model), 0
    try:
        for after in range(10_000):
            fail_allocation(after)
            try:
                model.snapshot()
            except MemoryError:
                failures += 1
            else:
                break
    finally:
        fail_allocation(-1)
    assert failures > 20
    assert everything(model) == before
    assert not [name for name in os.listdir(tmp_path / "a") if name.endswith(".part")]
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == before


# An interrupt may come right after a file was opened.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_interrupts_of_a_snapshot(tmp_path):
    model = grown(tmp_path / "a", "kd", snapshot_seconds=1e9)
    before, others, stopped = everything(model), children(), 0
    rng = np.random.default_rng(0)

    with alarms_interrupt():
        for _ in range(100 * SOAK):
            try:
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-5, 2e-2)))
                model.snapshot()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                stopped += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    assert stopped > 10
    model.snapshot()
    assert children() == others
    assert everything(model) == before
    model.close()
    gc.collect()  # what was left open


def test_a_fork_beside_a_snapshot(tmp_path, monkeypatch):
    model = grown(tmp_path / "a", "kd", snapshot_seconds=1e9)

    def fork():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # there are threads
            child = os.fork()
        if not child:
            os._exit(0 if len(model) else 1)
        assert os.waitpid(child, 0)[1] == 0

    Beside(monkeypatch, fork)
    assert model.snapshot() == 12
    model.close()


def test_a_program_that_waits_for_all_its_children(tmp_path, monkeypatch):
    model = grown(tmp_path / "a", "kd", snapshot_seconds=1e9)
    previous = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert model.snapshot() == 12
    finally:
        signal.signal(signal.SIGCHLD, previous)
    model.close()


def test_a_store_is_closed_during_a_snapshot(tmp_path, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def wait():
        begun.set()
        assert go_on.wait(PATIENCE)

    model = grown(tmp_path / "a", "kd", snapshot_bytes=10**9)
    Beside(monkeypatch, wait)
    model._writer.snapshots._most_bytes = 1
    step(model, "kd", 0, 13)  # one is due
    assert begun.wait(PATIENCE)
    step(model, "kd", 0, 14)
    now = everything(model)
    threading.Timer(0.2, go_on.set).start()
    model.close()
    with pytest.raises(StoreError, match="is closed"):
        step(model, "kd", 0, 15)
    with dynhac.open(tmp_path / "a") as model:
        assert model.update_number == 14
        assert everything(model) == now


def test_a_full_disk_beside_updates(tmp_path, monkeypatch):
    model = grown(tmp_path / "a", "kd", snapshot_bytes=10**9)

    def fail():
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        Beside(patched, fail)
        told_in_background(model, 13, "No space left")
    assert model.snapshot() == 14
    model.close()


def test_rows_are_dropped_some_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("dynhac.store.log.MOST_DROPPED", 5)
    model = grown(tmp_path / "a", "graph", updates=23, snapshot_seconds=1e9)
    model.snapshot()
    step(model, "graph", 0, 24)
    model.snapshot()
    assert model.stats()["log_rows"] == 1
    step(model, "graph", 0, 25)
    now = everything(model)
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == now
