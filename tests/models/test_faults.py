"""Running out of memory and Ctrl-C in the middle of an update leave the state as it was before.

Allocations of the engine are made to fail one after the other, each in a fresh copy of the state,
until the update succeeds. A failed update must also leave no trace in later ones: tried again, it
gives the very bytes that it gives without any fault.
"""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from strategies import Stream
from watching import frozen

from dynhac import GraphHAC, _core

PATHS = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]


def prepared(operation, palette="many", text=False, epsilon=0.1, threads=1, history=0):
    """A graph that has seen some updates, and a batch to apply to it.

    The first update after a build has to allocate its scratch memory; later ones find it there.
    """
    stream = Stream(random.Random(7), palette, target=40, text=text)
    g = GraphHAC(epsilon, 0.01, threads=threads)
    g.update(**stream.seed_with("sparse", 40))
    for _ in range(history):
        g.update(**stream.next())
    if operation == "bulk":
        stream.most = 150
        return g, stream.add()
    return g, getattr(stream, operation)()


@pytest.fixture(autouse=True)
def _switch_off():
    yield
    _core.fail_allocation(-1)
    _core.bound_levels()


def until_it_succeeds(make, compare):
    """Fail every allocation in turn; returns how many did. Late ones are thinned out."""
    failures, after = 0, 0
    while True:
        g, batch = make()
        before = frozen(g)
        _core.fail_allocation(after)
        try:
            g.update(**batch)
        except MemoryError:
            failures += 1
            _core.fail_allocation(-1)
            assert frozen(g) == before, after
            assert g.verify().ok
            g.update(**batch)
            assert frozen(g) == compare, after
        else:
            _core.fail_allocation(-1)
            assert frozen(g) == compare
            return failures
        after += 1 + after // 40


@pytest.mark.parametrize("operation", [*Stream.OPERATIONS, "bulk"])
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("history", [0, 10])
def test_out_of_memory(operation, text, history):
    def make():
        return prepared(operation, text=text, history=history)

    g, batch = make()
    g.update(**batch)
    failures = until_it_succeeds(make, frozen(g))
    assert failures > 10 or history


@pytest.mark.parametrize(("palette", "epsilon"), [("equal", 0.0), ("few", 1.0)])
def test_out_of_memory_with_ties(palette, epsilon):
    def make():
        return prepared("mixed", palette, epsilon=epsilon)

    g, batch = make()
    g.update(**batch)
    assert until_it_succeeds(make, frozen(g)) > 0


@pytest.mark.parametrize("bound", [0, 1])
def test_out_of_memory_with_a_last_level(bound):
    _core.bound_levels(bound, 0)

    def make():
        return prepared("mixed", epsilon=0.0)

    g, batch = make()
    g.update(**batch)
    assert until_it_succeeds(make, frozen(g)) > 0


def test_out_of_memory_in_the_first_build():
    def make():
        stream = Stream(random.Random(3), "many")
        return GraphHAC(), stream.seed_with("blobs", 60)

    g, batch = make()
    g.update(**batch)
    assert until_it_succeeds(make, frozen(g)) > 0


def test_out_of_memory_with_threads():
    def make():
        return prepared("bulk", threads=4)

    g, batch = make()
    g.update(**batch)
    assert until_it_succeeds(make, frozen(g)) > 0


def test_failures_in_a_row_on_one_object():
    g, batch = prepared("mixed")
    g.update(**batch)
    compare = frozen(g)
    g, batch = prepared("mixed")
    before = frozen(g)
    for after in range(10_000):
        _core.fail_allocation(after)
        try:
            g.update(**batch)
        except MemoryError:
            _core.fail_allocation(-1)
            assert frozen(g) == before
        else:
            break
    _core.fail_allocation(-1)
    assert frozen(g) == compare
    assert g.verify().ok


def test_the_number_counts_allocations_from_now():
    g, batch = prepared("add")
    _core.fail_allocation(10**9)
    g.update(**batch)
    _core.fail_allocation(-1)
    assert g.verify().ok


INTERRUPTED = """
import os, signal, sys, threading, time
sys.path[:0] = {paths!r}
import numpy as np
from dynhac import GraphHAC
from test_faults import prepared
from watching import frozen

delay, threads = {delay}, {threads}
rng = np.random.default_rng(1)
g, batch = prepared("add", threads=threads)
before = frozen(g)
n = 400_000
while True:
    new = np.arange(10**6, 10**6 + n)
    u = np.repeat(new[1:], 5)
    v = 10**6 + (rng.random(u.size) * (u - 10**6)).astype(np.int64)
    low = np.unique(u * 2**31 + v)
    u, v = low // 2**31, low % 2**31
    w = rng.random(u.size) + 0.01
    sent = []
    def send():
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(delay, send)
    try:
        timer.start()
        g.update(add=new, edges=(u, v, w))
        timer.join()
        time.sleep(1)
    except KeyboardInterrupt:
        late = time.process_time() - sent[0]  # of CPU time: the machine may be busy
        if len(g) < n:
            break
    # It was too quick to be interrupted: a larger one.
    g, batch = prepared("add", threads=threads)
    n *= 2
assert frozen(g) == before
assert g.verify().ok
g.update(**batch)
h, batch = prepared("add")
h.update(**batch)
assert frozen(g) == frozen(h)
assert late < 2, late
print("interrupted")
"""


@pytest.mark.parametrize(("delay", "threads"), [(0.02, 1), (0.3, 1), (0.3, 2)])
def test_ctrl_c(delay, threads):
    code = INTERRUPTED.format(paths=PATHS, delay=delay, threads=threads)
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.stdout.strip() == "interrupted", run.stderr
