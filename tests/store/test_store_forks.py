"""Processes that fork while a store is open: the parent keeps it, and the child lets go of it."""

import gc
import os
import signal
import threading
import time
import traceback
import warnings

import numpy as np
import pytest
from soak import SOAK
from stores import everything, new, plain, step

import dynhac
from dynhac import StoreError, StoreLockedError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(autouse=True)
def _forks_with_threads():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the thread of the snapshots
        yield


def in_child(call):
    """Run a function in a forked child; raise what it raises."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            call()
        except BaseException:
            os.write(write, traceback.format_exc().encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    assert (status, said) == (0, "")


def sleeping_child():
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
    return child


def end(child):
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_child_does_not_keep_the_lock(tmp_path):
    model = new(tmp_path / "a", "kd")
    child = sleeping_child()
    try:
        with pytest.raises(StoreLockedError, match=f"process {os.getpid()}"):
            dynhac.open(tmp_path / "a")
        model.close()
        dynhac.open(tmp_path / "a").close()
    finally:
        end(child)


def test_the_lock_ends_with_its_process_though_a_child_lives(tmp_path):
    read, write = os.pipe()
    parent = os.fork()
    if not parent:
        model = new(tmp_path / "a", "kd")
        step(model, "kd", 0, 1)
        if not os.fork():
            os.write(write, str(os.getpid()).encode())  # it has let go of the store
            time.sleep(60)
            os._exit(0)
        time.sleep(60)
        os._exit(0)
    child = int(os.read(read, 20))
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    try:
        with dynhac.open(tmp_path / "a") as model:
            assert model.update_number == 1
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(read)
        os.close(write)


@pytest.mark.parametrize("sort", ["kd", "named graph"])
def test_what_a_child_can_do(tmp_path, sort):
    model, twin = new(tmp_path / "a", sort, snapshot_bytes=10**9), plain(sort)
    for i in range(1, 6):
        step(model, sort, 0, i)
        step(twin, sort, 0, i)
    before = {file.name: file.read_bytes() for file in (tmp_path / "a").iterdir()}

    def child():
        assert everything(model) == everything(twin)
        calls = (lambda: step(model, sort, 0, 6), model.snapshot, model.stats, model.batch)
        for call in calls:
            with pytest.raises(StoreError, match=r"opened by process \d+, and this is another"):
                call().__enter__() if call == model.batch else call()
        with dynhac.open(tmp_path / "a", mode="r") as reader:
            assert everything(reader) == everything(twin)
        with pytest.raises(StoreLockedError):
            dynhac.open(tmp_path / "a")
        model.close()
        model._writer = None
        gc.collect()

    in_child(child)
    assert {file.name: file.read_bytes() for file in (tmp_path / "a").iterdir()} == before
    for i in range(6, 10):
        step(model, sort, 0, i)
        step(twin, sort, 0, i)
    model.close()

    def late_child():
        with pytest.raises(StoreError, match="use spawn, or close the store before"):
            dynhac.open(tmp_path / "a")
        with dynhac.open(tmp_path / "a", mode="r") as reader:
            assert everything(reader) == everything(twin)

    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == everything(twin)
        read, write = os.pipe()
        closed = threading.Event()

        def wait_then_open():
            os.read(read, 1)
            late_child()

        closer = threading.Timer(0.3, lambda: (model.close(), os.write(write, b"x"), closed.set()))
        closer.start()
        in_child(wait_then_open)
        closer.join()
        assert closed.is_set()
    in_child(lambda: dynhac.open(tmp_path / "a").close())  # closed before the fork


def test_leaving_a_batch_in_a_child(tmp_path):
    model, twin = new(tmp_path / "a", "graph"), plain("graph")
    step(model, "graph", 0, 1)
    step(twin, "graph", 0, 1)
    block = model.batch()
    block.__enter__()
    step(model, "graph", 0, 2)
    step(twin, "graph", 0, 2)

    def child():
        with pytest.raises(StoreError, match="another one, forked from it"):
            step(model, "graph", 0, 3)
        with pytest.raises(StoreError, match="another one, forked from it"):
            block.__exit__(None, None, None)
        gc.collect()

    in_child(child)
    step(model, "graph", 0, 3)
    step(twin, "graph", 0, 3)
    block.__exit__(None, None, None)
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert everything(model) == everything(twin)


def test_a_fork_within_an_update(tmp_path):
    children = []

    def similarity(distances):
        if not children:
            children.append(os.fork())
        return 1 / (1 + distances)

    model = dynhac.open(tmp_path / "a", n_neighbors=3, similarity=similarity)
    try:
        model.insert(np.eye(4))
    except BaseException as error:
        if children == [0]:
            os._exit(0 if isinstance(error, StoreError) else 1)
        raise
    if children == [0]:
        os._exit(2)
    assert os.waitpid(children[0], 0)[1] == 0
    model.insert(np.eye(4) * 2)
    before = everything(model)
    model._writer.release()
    with dynhac.open(tmp_path / "a", similarity=similarity) as model:
        assert everything(model) == before


@pytest.mark.parametrize("sort", ["kd", "graph"])
def test_forks_at_any_moment(tmp_path, sort):
    """One thread updates and the store takes snapshots, while another one forks."""
    model, twin = new(tmp_path / "a", sort, snapshot_bytes=2000), plain(sort)
    stop, children, errors = threading.Event(), [], []

    def update():
        i = 0
        try:
            while not stop.is_set():
                i += 1
                if i % 7:
                    step(model, sort, 0, i)
                else:
                    with model.batch():
                        step(model, sort, 0, i)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=update)
    thread.start()
    rng = np.random.default_rng(0)
    try:
        for _ in range(15 * SOAK):
            time.sleep(float(rng.uniform(0, 0.01)))
            child = os.fork()
            if not child:
                answer = 1
                try:
                    model.insert([0.0, 0.0, 0.0]) if sort == "kd" else model.add([-5])
                except StoreError:
                    model.close()
                    model._writer = None
                    gc.collect()
                    answer = 0
                finally:
                    os._exit(answer)
            children.append(child)
        statuses = [os.waitpid(child, 0)[1] for child in children]
    finally:
        stop.set()
        thread.join()
    assert not errors
    assert statuses == [0] * len(children)
    number = model.update_number
    for i in range(1, number + 1):
        step(twin, sort, 0, i)
    assert everything(model) == everything(twin)
    model._writer.snapshots.stop()
    model._writer.release()
    with dynhac.open(tmp_path / "a") as model:
        assert model.update_number == number
        assert everything(model) == everything(twin)
