"""The same updates give the same bytes: with any number of threads, and in any process."""

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from strategies import Stream
from watching import frozen

from dynhac import GraphHAC

PATHS = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]


def digest(g):
    return hashlib.sha256(repr(frozen(g)).encode()).hexdigest()


def digests(palette, text, threads, epsilon=0.1, steps=40):
    """The state after every batch of a seeded stream."""
    stream = Stream(random.Random(11), palette, target=60, text=text)
    g = GraphHAC(epsilon, 0.01, threads=threads)
    found = []
    for step in range(steps):
        g.update(**(stream.next() if step else stream.seed_with("sparse", 80)))
        found.append(digest(g))
    return found


def bulk(threads, epsilon, kind):
    """A graph large enough to be built in parallel, then changed in large batches."""
    rng = np.random.default_rng(3)
    n, degree = 6000, 8
    u = np.repeat(np.arange(n), degree)
    v = (u + rng.integers(1, 400, u.size)) % n
    w = {"many": rng.random(u.size) + 0.01, "equal": np.ones(u.size)}[kind]
    low, high = np.minimum(u, v), np.maximum(u, v)
    _, once = np.unique(low * n + high, return_index=True)
    u, v, w = low[once], high[once], w[once]
    g = GraphHAC(epsilon, 1e-3, threads=threads)
    g.update(add=np.arange(n), edges=(u, v, w))
    states = [frozen(g)]
    g.update(remove=np.arange(0, n, 5))
    states.append(frozen(g))
    stays = (u % 5 != 0) & (v % 5 != 0)
    g.update(edges=(u[stays][::3], v[stays][::3], w[stays][::3] * 0.75))
    states.append(frozen(g))
    assert g.verify().ok
    return states


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["many", "equal"])
def test_threads_in_bulk(epsilon, kind):
    expected = bulk(1, epsilon, kind)
    for threads in (2, 4):
        assert bulk(threads, epsilon, kind) == expected


@pytest.mark.parametrize("palette", ["few", "many"])
def test_threads_in_small_updates(palette):
    expected = digests(palette, False, 1)
    assert len(set(expected)) > 20  # the digests do see the state
    for threads in (2, 4):
        assert digests(palette, False, threads) == expected


@pytest.mark.parametrize("text", [False, True])
def test_processes(text):
    expected = digests("few", text, 1)
    code = (
        f"import sys; sys.path[:0] = {PATHS!r}\n"
        "from test_determinism import digests\n"
        f"print(*digests('few', {text}, 1))"
    )
    for seed in ("0", "1", "4242"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        assert run.stdout.split() == expected


def test_reading_changes_nothing():
    expected = digests("many", False, 1)
    stream = Stream(random.Random(11), "many", target=60)
    g = GraphHAC(0.1, 0.01)
    for step, before in enumerate(expected):
        g.update(**(stream.next() if step else stream.seed_with("sparse", 80)))
        g.labels(0.2), g.verify(), g.edges(), g.dendrogram().roots, len(g), 3 in g
        assert digest(g) == before


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_in_a_large_batch_of_equal_weights(threads):
    """A quarter of a grid is replaced at once: many ties, and the pieces of several threads."""
    side = 95
    ids = np.arange(side * side)
    right, down = ids[ids % side < side - 1], ids[:-side]
    u, v = np.concatenate([right, down]), np.concatenate([right + 1, down + side])
    w = np.full(len(u), 0.5)
    gone = np.random.default_rng(0).choice(ids, len(ids) // 4, replace=False)
    lost = np.isin(u, gone) | np.isin(v, gone)
    models = [GraphHAC(threshold=0, threads=k) for k in (1, threads)]
    for g in models:
        g.add(ids, (u, v, w))
        g.update(remove=gone, add=gone, edges=(u[lost], v[lost], w[lost]))
    assert digest(models[0]) == digest(models[1])
    assert models[1].verify()
