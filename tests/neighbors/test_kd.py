"""The KD-tree; `test_neighbors` has the tests that all indexes share."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dynhac.neighbors import ExactIndex, KDBlocksIndex


def same_answers(one, other, queries, k):
    """Compare the answers of two indexes, bit for bit."""
    for got, wanted in zip(one.query(queries, k), other.query(queries, k), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_additions_one_by_one_and_removal_of_all():
    rng = np.random.default_rng(3)
    vectors = np.round(rng.normal(size=(6000, 2)), 1).astype(np.float32)
    index, twin = KDBlocksIndex(2), ExactIndex()
    index.add(np.arange(3000), vectors[:3000])
    for slot in range(3000, 6000):
        index.add(np.array([slot]), vectors[slot : slot + 1])
    twin.add(np.arange(6000), vectors)
    for part in np.array_split(rng.permutation(6000), 12):
        same_answers(index, twin, vectors[:50], 40)
        index.remove(part)
        twin.remove(part)
    assert len(index) == 0


@pytest.mark.parametrize("queries", [1, 3])
def test_queries_where_all_near_vectors_were_removed(queries):
    x = np.arange(1000, dtype=np.float32)[:, None]
    index = KDBlocksIndex(1)
    index.add(np.arange(1000), x)
    index.remove(np.arange(240))
    slots, distances = index.query(np.zeros((queries, 1), np.float32), 3)
    assert slots.tolist() == [[240, 241, 242]] * queries
    assert distances.tolist() == [[240.0, 241.0, 242.0]] * queries


def test_vectors_that_are_not_finite_or_of_another_shape_are_rejected():
    index = KDBlocksIndex(2)
    index.add(np.array([0]), np.zeros((1, 2), np.float32))
    bad = np.array([[0.0, 1.0], [0.0, np.inf]], np.float32)
    for call in (lambda: index.add(np.array([1, 2]), bad), lambda: index.query(bad, 1)):
        with pytest.raises(ValueError, match="row 1, column 1 is not finite; vectors must be"):
            call()
    for shape in ((1, 3), (2, 2), (2,)):
        with pytest.raises((TypeError, ValueError)):
            index.add(np.array([1]), np.ones(shape, np.float32))
    wrong = np.ones((2, 3), np.float32)  # as many numbers as three vectors have
    for call in (lambda: index.add(np.array([1, 2, 3]), wrong), lambda: index.query(wrong, 0)):
        with pytest.raises(ValueError, match="3 dimensions, but those of the index have 2"):
            call()
    with pytest.raises(ValueError, match="3 slots have 2 vectors; each needs one"):
        index.add(np.array([1, 2, 3]), np.ones((2, 2), np.float32))
    for k in (2**50, 2**62):
        with pytest.raises((MemoryError, ValueError)):
            index.query(np.ones((4, 2), np.float32), k)
    assert index.query(np.ones((1, 2), np.float32), 2)[0].tolist() == [[0, -1]]


def test_arrays_of_any_memory_layout():
    x = np.random.default_rng(16).normal(size=(2, 60)).astype(np.float32)
    index, twin = KDBlocksIndex(2), KDBlocksIndex(2)
    index.add(np.arange(120)[::2], x.T)
    twin.add(np.arange(0, 120, 2), np.ascontiguousarray(x.T))
    index.remove(np.arange(120)[-2::-4])
    twin.remove(np.arange(120)[-2::-4].copy())
    same_answers(index, twin, x.T[::3], 9)


def test_threads_may_share_a_tree():
    rng = np.random.default_rng(15)
    x = rng.normal(size=(4000, 2)).astype(np.float32)
    index = KDBlocksIndex(2)
    index.add(np.arange(2000), x[:2000])

    def change(first):
        part = np.arange(first, first + 1000)
        for _ in range(10):
            index.add(part, x[part])
            index.remove(part)

    def ask():
        for _ in range(10):
            slots, distances = index.query(x[:500], 20)
            assert (slots >= 0).all()
            assert (distances[:, 0] == 0.0).all()

    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(change, 2000), pool.submit(change, 3000)]
        runs += [pool.submit(ask), pool.submit(ask)]
        for run in runs:
            run.result()
    twin = ExactIndex()
    twin.add(np.arange(2000), x[:2000])
    same_answers(index, twin, x[:20], 30)
