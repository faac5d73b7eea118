"""Cells against the exact index: recall, determinism, files and models."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynhac
from dynhac import DynHAC, FileError
from dynhac.neighbors import CellsIndex, ExactIndex, make_index

METRICS = ("euclidean", "cosine", "inner_product")


def clustered(rng, n, d, classes=20, first=0):
    """Return points around centres; ``first``: the number of the first centre."""
    centres = np.random.default_rng(5).normal(size=(200, d)) * 2
    X = centres[first + rng.integers(classes, size=n)] + rng.normal(size=(n, d))
    X[rng.integers(n, size=n // 20)] = X[rng.integers(n, size=n // 20)]
    return X.astype(np.float32)


def recall(index, X, slots, queries, k):
    """Return the recall of an index that holds rows of X, and check what it answers."""
    exact = ExactIndex(index.metric)
    exact.add(slots, X)
    found, distances = index.query(queries, k)
    nearest, limits = exact.query(queries, k)
    assert ((found >= 0) == (nearest >= 0)).all()
    assert np.isin(found[found >= 0], slots).all()
    assert (distances[:, 1:] >= distances[:, :-1]).all()
    assert all(len(set(row)) == len(row) for row in found[nearest.min(axis=1) >= 0].tolist())
    for row, query in enumerate(queries):  # distances are exact
        held = found[row][found[row] >= 0]
        own = ExactIndex(index.metric)
        own.add(held, X[np.searchsorted(slots, held)])
        assert np.array_equal(own.query(query[None], len(held))[1][0], distances[row, : len(held)])
    return float((distances <= limits[:, -1:]).mean())


@pytest.mark.parametrize(
    ("metric", "wanted"), [("euclidean", 0.99), ("cosine", 0.9), ("inner_product", 0.95)]
)
def test_recall_through_turnovers_and_new_classes(metric, wanted):
    rng, d, window = np.random.default_rng(1), 24, 2400
    index = CellsIndex(metric, d, recall=wanted)
    held = np.empty((0, d), np.float32)
    slots = np.empty(0, np.int64)
    for turn in range(10):
        for _ in range(8):
            new = clustered(rng, window // 8, d, first=15 * turn)
            free = np.setdiff1d(np.arange(window + window // 8), slots)[: len(new)]
            index.add(free, new)
            held, slots = np.concatenate([held, new]), np.concatenate([slots, free])
            if len(slots) > window:
                index.remove(slots[:-window])
                held, slots = held[-window:], slots[-window:]
        order = np.argsort(slots)
        queries = held[rng.integers(window, size=50)]
        assert recall(index, held[order], slots[order], queries, 20) > wanted - 0.03
        assert index.measured_recall >= wanted
    assert len(index) == window


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    metric=st.sampled_from(METRICS),
    d=st.integers(1, 6),
    sizes=st.lists(st.integers(1, 900), min_size=1, max_size=5),
    grid=st.booleans(),
)
def test_any_updates_with_recall_1_are_exact(seed, metric, d, sizes, grid):
    rng = np.random.default_rng(seed)
    index, held, top = CellsIndex(metric, d, recall=1), {}, 0
    for size in sizes:
        new = rng.integers(-3, 4, size=(size, d)) if grid else rng.normal(size=(size, d))
        new = new.astype(np.float32)
        index.add(np.arange(top, top + size), new)
        held.update(zip(range(top, top + size), new, strict=True))
        top += size
        leaving = [slot for slot in held if rng.random() < 0.3]
        index.remove(np.array(leaving, np.int64))
        for slot in leaving:
            del held[slot]
        if held:
            X, slots = np.array(list(held.values())), np.array(list(held))
            assert recall(index, X, slots, X[:3] + np.float32(0.1), 12) == 1


def test_threads_and_saving_change_nothing():
    rng = np.random.default_rng(2)
    X = clustered(rng, 3000, 10)
    first, second = (CellsIndex("euclidean", 10, recall=0.9, threads=t) for t in (1, 3))
    for index in (first, second):
        index.add(np.arange(2000), X[:2000])
    second = pickle.loads(pickle.dumps(second))
    for begin in range(2000, 3000, 100):
        for index in (first, second):
            index.add(np.arange(begin, begin + 100), X[begin : begin + 100])
            index.remove(np.arange(begin - 2000, begin - 1900))
    a, b = first.save(), second.save()
    assert a.keys() == b.keys()
    assert all(np.array_equal(a[name], b[name]) for name in a)
    for ours, theirs in zip(first.query(X, 9), second.query(X, 9), strict=True):
        assert np.array_equal(ours, theirs)


def test_a_model_goes_on_the_same_after_it_was_saved(tmp_path):
    rng = np.random.default_rng(3)
    X = clustered(rng, 2600, 12)
    model = DynHAC(n_neighbors=8, neighbors="cells:0.9", max_points=2300)
    model.insert(X[:2000])
    assert model.backend == "cells"
    assert 0.9 <= model.recall <= 1
    model.save(tmp_path / "a")
    loaded = DynHAC.load(tmp_path / "a")
    assert loaded.recall == model.recall
    for begin in range(2000, 2600, 50):
        for each in (model, loaded):
            each.insert(X[begin : begin + 50])
    model.save(tmp_path / "b")
    loaded.save(tmp_path / "c")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    assert loaded.verify()


def test_auto_goes_on_to_cells(monkeypatch):
    monkeypatch.setattr("dynhac.models.index_choice.MOST_NUMBERS_SCANNED", 9000)
    monkeypatch.setattr("dynhac.neighbors.choose.MOST_NUMBERS_SCANNED", 9000)
    X = clustered(np.random.default_rng(4), 1200, 10)
    model = DynHAC(n_neighbors=5)
    model.insert(X[:800])
    assert (model.backend, model.recall) == ("exact", 1.0)
    model.insert(X[800:])
    assert model.backend == "cells"
    model.delete(list(range(1000)))
    assert model.backend == "cells"


def test_a_store_with_cells_recovers_the_same(tmp_path):
    X = clustered(np.random.default_rng(6), 1500, 6)
    with dynhac.open(tmp_path / "s", n_neighbors=5, neighbors="cells:0.9") as model:
        for begin in range(0, 1500, 300):
            model.insert(X[begin : begin + 300])
            with pytest.raises(KeyError):
                model.update(X[:900], delete=[10**6])
        model.delete(list(range(0, 1500, 3)))
        before = model.dendrogram().linkage().tobytes(), model.recall
    with dynhac.open(tmp_path / "s") as model:
        assert (model.dendrogram().linkage().tobytes(), model.recall) == before
        model.insert(X[:100])


@pytest.mark.parametrize("wrong", ["cells:", "cells:0", "cells:1.5", "cells:x", "cells:nan"])
def test_wrong_recall(wrong):
    with pytest.raises(ValueError, match="the recall after 'cells:' must be > 0 and <= 1"):
        DynHAC(neighbors=wrong)
    assert make_index("cells:0.9", "cosine", 3, 10).recall == 0.9


@pytest.mark.parametrize("name", ["cells", "slots", "centres", "extents", "coder", "needed"])
def test_damaged_cells_in_a_file_are_an_error(name):
    model = DynHAC(n_neighbors=5, neighbors="cells")
    model.insert(clustered(np.random.default_rng(7), 1000, 4))
    make, (header, arrays, given_again) = model.__reduce__()
    damaged = arrays[f"index/{name}"].copy()
    damaged[-1] = np.nan if damaged.dtype.kind == "f" else -7
    arrays[f"index/{name}"] = damaged
    with pytest.raises((FileError, ValueError, KeyError)):
        make(header, arrays, given_again)
