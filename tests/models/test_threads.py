"""Readers and a writer in several threads see consistent states."""

import contextlib
import sys
import threading
import time

import numpy as np
import pytest

from dynhac import GraphHAC

KINDS = {"int": int, "str": lambda i: f"v{i}"}
PATIENCE = 30  # seconds; what it bounds takes a fraction of one, or, with an unfair lock, minutes


@pytest.fixture(autouse=True)
def _switch_often():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def run_all(*jobs):
    """Run jobs in threads; raise the first exception of any."""
    errors = []

    def guarded(job):
        try:
            job()
        except BaseException as error:  # whatever it is, the test must see it
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("kind", KINDS)
def test_readers_beside_a_writer(kind):
    """A window of 100 vertices in ten cliques of ten moves on; every state read is one of them."""
    name = KINDS[kind]
    g = GraphHAC()
    done = threading.Event()
    seen = set()

    def clique(c):
        ids = [name(10 * c + i) for i in range(10)]
        pairs = [(a, b, 0.5) for i, a in enumerate(ids) for b in ids[:i]]
        return ids, tuple(zip(*pairs, strict=True))

    for c in range(10):
        g.add(*clique(c))

    def write():
        try:
            for c in range(10, 10_000):
                ids, edges = clique(c)
                g.update(add=ids, edges=edges, remove=[name(10 * (c - 10) + i) for i in range(10)])
                if len(seen) >= 50:
                    break
        finally:
            done.set()

    def read():
        while not done.is_set():
            d = g.dendrogram()
            labels = d.labels(0.4)
            assert d.n_leaves == 100
            assert labels.tolist() == np.repeat(np.arange(10), 10).tolist()
            ids = d.ids.tolist()
            first = int(str(ids[0]).lstrip("v"))
            assert ids == [name(first + i) for i in range(100)]
            seen.add(d.version)

    def look():
        while not done.is_set():
            assert len(g) == 100
            assert len(g.ids) == 100
            u, v, w = g.edges()
            assert len(u) == len(v) == len(w) == 450
            assert name(10**6) not in g
            assert g.verify()
            assert "100 vertices" in repr(g)

    run_all(write, read, read, look)
    assert len(seen) >= 50
    assert g.verify()


@pytest.mark.parametrize("kind", KINDS)
def test_several_writers(kind):
    name = KINDS[kind]
    g = GraphHAC()

    def writer(k):
        def write():
            for i in range(60):
                a, b = name(1000 * k + 2 * i), name(1000 * k + 2 * i + 1)
                g.add([a, b], (a, b, 0.5))
                if i % 3 == 0:
                    g.remove(a)

        return write

    run_all(*(writer(k) for k in range(4)))
    assert len(g) == 4 * (120 - 20)
    assert len(g.edges()[0]) == 4 * 40
    assert g.verify()
    assert name(3000 + 119) in g


def test_rejected_updates_beside_readers():
    g = GraphHAC()
    g.add(["a", "b"], ("a", "b", 0.5))
    done = threading.Event()

    def write():
        try:
            for i in range(500):
                with pytest.raises(ValueError, match="nan"):
                    g.update(add=[f"x{i}"], remove=["a"], edges=(f"x{i}", "b", float("nan")))
        finally:
            done.set()

    def read():
        while not done.is_set():
            assert "a" in g
            assert g.ids.tolist() == ["a", "b"]
            assert g.dendrogram().ids.tolist() == ["a", "b"]
            assert not any(f"x{i}" in g for i in range(0, 500, 50))

    run_all(write, read, read)


def test_reads_go_on_during_a_bulk_build():
    """The interpreter lock is released: another thread runs while the engine works."""
    n = 8_000
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, n, (2, 20 * n))
    u, v = np.unique(np.sort(np.stack([u, v])[:, u != v], axis=0), axis=1)
    w = rng.integers(1, 2**20, len(u)) * 2.0**-20
    g = GraphHAC()
    done = threading.Event()
    ticks = []

    def build():
        try:
            g.add(np.arange(n), (u, v, w))
        finally:
            done.set()

    def tick():
        while not done.wait(0.001):
            ticks.append(1)

    run_all(build, tick)
    assert len(g) == n
    assert len(ticks) >= 5


def sparse_model(n):
    rng = np.random.default_rng(0)
    u, v = np.arange(1, n), rng.integers(0, np.arange(1, n))
    g = GraphHAC()
    g.add(np.arange(n), (u, v, rng.integers(1, 2**20, n - 1) * 2.0**-20))
    return g


def test_readers_do_not_starve_a_writer():
    """Readers that overlap all the time, each for long, leave no gap to wait for."""
    n = 20_000
    g = sparse_model(n)
    done = threading.Event()
    begin = threading.Barrier(5)

    def read():
        begin.wait(PATIENCE)
        while not done.is_set():
            assert (
                len(g._engine.engine.snapshot().keys) >= n
            )  # dendrogram() may answer from its cache
            assert g.dendrogram().n_leaves >= n

    def write():
        try:
            begin.wait(PATIENCE)
            time.sleep(0.05)  # by now they all read
            start = time.monotonic()
            for i in range(20):
                g.add(n + i, (n + i, i, 0.5))
                assert time.monotonic() - start < PATIENCE
        finally:
            done.set()

    run_all(write, read, read, read, read)
    assert len(g) == n + 20
    assert g.verify()


def test_a_writer_does_not_starve_readers():
    """A writer that never pauses lets every reader through between two updates."""
    n = 2_000
    g = sparse_model(n)
    begin = threading.Barrier(4)
    left = [3]
    lock = threading.Lock()

    def write():
        begin.wait(PATIENCE)
        start, i = time.monotonic(), 0
        while left[0]:
            g.set_edges(i % (n - 1), n - 1, 0.25 + (i % 7) / 16)
            i += 1
            assert time.monotonic() - start < PATIENCE

    def read():
        begin.wait(PATIENCE)
        try:
            for _ in range(20):
                assert len(g._engine.engine.snapshot().keys) == n
                assert g.dendrogram().n_leaves == len(g.ids) == n
        finally:
            with lock:
                left[0] -= 1

    run_all(write, read, read, read)
    assert g.verify()


def test_an_array_that_changes_while_it_is_read_does_not_split_the_state():
    """Whatever the engine read, it must have read one thing."""
    n = 60_000
    half = np.arange(n // 2)
    low, high, column = half.copy(), half + n // 2, half.copy()
    stop = threading.Event()

    def scribble():
        while not stop.is_set():
            column[:] = low
            column[:] = high

    scribbler = threading.Thread(target=scribble)
    scribbler.start()
    try:
        for _ in range(8):
            g = GraphHAC()
            ends = np.arange(n - 1)
            g.add(np.arange(n), edges=(ends, ends + 1, np.full(n - 1, 0.5)))
            with contextlib.suppress(ValueError, KeyError):
                g.remove(column)
            ids = set(g.ids.tolist())
            assert len(ids) == len(g)
            assert {i for i in range(n) if i in g} == ids
            assert g.verify().ok
    finally:
        stop.set()
        scribbler.join()
