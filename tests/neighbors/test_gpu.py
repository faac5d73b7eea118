"""The index for GPUs against float64 distances to all vectors, with NumPy in place of a GPU."""

import copy
import pickle
from importlib.util import find_spec

import numpy as np
import pytest
from nearest import check

from dynhac import DynHAC
from dynhac.neighbors import GpuIndex, gpu, gpu_piles, gpu_search, gpu_table
from dynhac.neighbors import gpu_metrics as gm
from dynhac.neighbors.gpu_arrays import Arrays, arrays_of
from dynhac.neighbors.metrics import METRICS, resolve_metric

BACKENDS = ["numpy"]
if find_spec("torch") is not None:
    import torch

    BACKENDS += ["torch-cpu", *["torch"] * torch.cuda.is_available()]
FLAVOURS = ("spread", "lattice", "duplicates", "far", "clusters", "norms")


@pytest.fixture(params=BACKENDS)
def arrays(request):
    return request.param


def vectors_of(flavour, rng, n, d):
    """Random vectors: spread, with many ties or duplicates, far away, close, of all lengths."""
    x = rng.normal(size=(n, d))
    if flavour == "lattice":
        x = rng.integers(-1, 2, size=(n, d))
    elif flavour == "duplicates":
        x = rng.choice([0.0, 1.0, -2.0], size=(n, 1)) * np.ones(d)
    elif flavour == "far":
        x = 1000 + 0.01 * x
    elif flavour == "clusters":
        x = rng.integers(0, 3, size=(n, 1)) * np.linspace(1, 2, d) + 1e-4 * x
    elif flavour == "norms":
        x *= 10.0 ** rng.uniform(-20, 18, size=(n, 1))
        x[rng.random(n) < 0.1] = 0.0
    return x.astype(np.float32)


def random_life(index, flavour, d, seed, rounds=24):
    """Make random additions, removals and queries."""
    rng = np.random.default_rng(seed)
    held = {}
    for step in range(rounds):
        free = np.setdiff1d(np.arange(400), np.array(list(held), np.int64))
        new = rng.permutation(free)[: rng.integers(0, 60)]
        if step % 3 == 2:
            new = new[:3]  # few are treated in another way
        vectors = vectors_of(flavour, rng, len(new), d)
        index.add(new, vectors)
        held.update(zip(new.tolist(), vectors, strict=True))
        most = len(held) if step % 10 == 9 else min(30, len(held))
        gone = rng.permutation(np.array(list(held), np.int64))[: rng.integers(0, most + 1)]
        index.remove(gone)
        for slot in gone.tolist():
            del held[slot]
        assert len(index) == len(held)
        if step % 2:
            queries = vectors_of(flavour, rng, int(rng.integers(1, 12)), d)
            check(index, held, queries, int(rng.integers(1, 30)))


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("metric", METRICS)
def test_exact_through_adds_and_removes(monkeypatch, arrays, metric, flavour):
    monkeypatch.setattr(gpu_piles, "FIRST_REACH", 4)
    for seed, d in enumerate((1, 3, 20)):
        memory = (None, 1, 2**18)[seed]
        random_life(GpuIndex(metric, d, arrays=arrays, memory=memory), flavour, d, seed)


@pytest.mark.parametrize("metric", METRICS)
def test_exact_among_many_vectors(monkeypatch, arrays, metric):
    monkeypatch.setattr(gpu_search, "FEW_NUMBERS", 2**10)
    rng = np.random.default_rng(1)
    for flavour, d in (("spread", 40), ("lattice", 6), ("clusters", 30), ("norms", 12)):
        x = vectors_of(flavour, rng, 5000, d)
        index = GpuIndex(metric, d, arrays=arrays)
        index.add(np.arange(5000), x)
        check(index, dict(enumerate(x)), x[rng.permutation(5000)[:30]], 20)


@pytest.mark.parametrize("d", [1, 2, 8, 9, 15, 100, 127, 128, 129, 136, 257, 384, 500, 1000])
@pytest.mark.parametrize("metric", METRICS)
def test_distances_have_the_bits_of_the_hosts(arrays, metric, d):
    rng = np.random.default_rng(d)
    xp, rule = arrays_of(arrays), resolve_metric(metric)
    raw = rng.normal(size=(2, 100, d)).astype(np.float32)
    raw[0, :3] = 0.0
    raw[1, 5] = raw[0, 5]
    a, b = (gm.prepare(xp, metric, xp.upload(x)) for x in raw)
    for prepared, x in zip((a, b), raw, strict=True):
        np.testing.assert_array_equal(xp.download(prepared)[0], rule.prepare(x))
    squares = gm.squares(xp, a), gm.squares(xp, b)
    found = xp.download(gm.pair_distances(xp, metric, xp.cast(a, xp.double), b, *squares))[0]
    np.testing.assert_array_equal(
        found, rule.pair_distances(rule.prepare(raw[0]), rule.prepare(raw[1]))
    )


@pytest.mark.parametrize("precision", [gm.HALF, gm.DOUBLE])
@pytest.mark.parametrize("metric", METRICS)
def test_a_product_is_an_upper_bound(metric, precision):
    xp = Arrays()
    rng = np.random.default_rng(7)
    for flavour in FLAVOURS:
        for d in (1, 5, 64):
            table = gpu_table.Table(xp, metric, d, None)
            x = vectors_of(flavour, rng, 200, d)
            table.reserve(200)
            table.write(x)
            table.count = 200
            queries = np.concatenate([x[:20], vectors_of(flavour, rng, 20, d) * np.float32(3)])
            formed = table.form(gm.prepare(xp, metric, queries))
            scale = table.scale_of(precision)
            wide, (factor, shift) = gm.widen_queries(xp, metric, formed, scale, precision)
            rows = table.wide if precision.half else table.widened(slice(0, 1024))
            product = xp.product(wide, rows[:200]).astype(np.longdouble)
            f_x = table.form(table.vectors[:200]).astype(np.longdouble)
            s = formed.astype(np.longdouble) @ f_x.T
            if metric == "euclidean":
                s -= (f_x * f_x).sum(axis=1) / 2
            product += np.abs(product) * precision.rounding + precision.tiny
            told = factor > 0
            assert told.any()
            bound = (product - shift[:, None]) / np.where(told, factor, 1)[:, None]
            slack = 1e-13 * np.abs(np.where(told, shift / np.where(told, factor, 1), 0))[:, None]
            assert (bound + slack >= s)[told].all()


@pytest.mark.skipif("torch-cpu" not in BACKENDS, reason="needs PyTorch")
def test_products_are_not_summed_in_half_precision_whatever_the_settings(monkeypatch):
    settings, seen = torch.backends.cuda.matmul, []
    names = ("allow_fp16_reduced_precision_reduction", "allow_fp16_accumulation")
    names = [name for name in names if hasattr(settings, name)]

    def product(a, b):
        seen.extend(getattr(settings, name) for name in names)
        return a @ b

    xp = arrays_of("torch-cpu")
    xp.on_gpu = True
    monkeypatch.setattr(torch, "mm", product)
    before = [getattr(settings, name) for name in names]
    try:
        for name in names:
            setattr(settings, name, True)
        xp.product(*(torch.ones(2, 3, dtype=torch.half) for _ in range(2)))
        assert seen == [False] * len(names)
        assert all(getattr(settings, name) is True for name in names)
    finally:
        for name, value in zip(names, before, strict=True):
            setattr(settings, name, value)


def test_products_tell_near_vectors_from_far_ones(monkeypatch):
    """Half precision proves the answers of ordinary data, and float64 those of very close ones."""
    tried = []
    real = gpu_search.Search._find

    def spy(self, vectors, slots, distances, wanted, precision):
        proven = real(self, vectors, slots, distances, wanted, precision)
        tried.append((precision.half, len(vectors), int(proven.sum())))
        return proven

    monkeypatch.setattr(gpu_search.Search, "_find", spy)
    rng = np.random.default_rng(3)
    for metric in METRICS:
        for spread, easy in ((0.7, True), (1e-4, False)):
            x = rng.normal(size=(10, 32))[rng.integers(0, 10, 4000)]
            x = (5 + x + spread * rng.normal(size=x.shape)).astype(np.float32)
            index = GpuIndex(metric, 32, arrays="numpy")
            index.add(np.arange(4000), x)
            tried.clear()
            check(index, dict(enumerate(x)), x[:40], 10)
            if easy:
                assert tried == [(True, 40, 40)]
            elif metric != "inner_product":
                assert [half for half, *_ in tried] == [True, True, False]


def test_more_candidates_than_any_first_try(arrays):
    """Thousands of vectors at the same distance: the smallest slots come first."""
    rng = np.random.default_rng(4)
    x = np.zeros((3000, 12), np.float32)
    x[np.arange(3000), rng.integers(0, 12, 3000)] = rng.choice([-1.0, 1.0], 3000)
    x[:, :3] *= np.arange(3000)[:, None] % 500  # few equal ones
    index = GpuIndex("euclidean", 12, arrays=arrays)
    index.add(np.arange(3000), x)
    check(index, dict(enumerate(x)), np.zeros((20, 12), np.float32), 7)
    check(index, dict(enumerate(x)), np.zeros((1, 12), np.float32), 2999)


@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
def test_nothing_is_computed_for_zero_vectors(monkeypatch, arrays, metric):
    rng = np.random.default_rng(14)
    x = rng.normal(size=(3000, 6)).astype(np.float32)
    x[::3] = 0.0
    index = GpuIndex(metric, 6, arrays=arrays)
    index.add(np.arange(3000), x)
    index.remove(np.arange(5))
    held = dict(enumerate(x[5:], 5))
    check(index, held, x[:30], 8)
    check(index, held, x[:1], 3000)
    monkeypatch.setattr(gpu_search.Search, "_products", None)
    check(index, held, x[:30:3], 8)


def test_few_rows_for_many_equal_vectors(arrays):
    rng = np.random.default_rng(5)
    slots = rng.permutation(5000)[:2000]
    point = rng.normal(size=9).astype(np.float32)
    index = GpuIndex("cosine", 9, arrays=arrays)
    index.add(slots[:1000], np.tile(point, (1000, 1)))
    for slot in slots[1000:1100]:
        index.add(slots[slots == slot], 2 * point[None])  # equal, once prepared
    index.add(slots[1100:], np.tile(point, (900, 1)))
    index.add(np.array([7000, 7001]), np.stack([point + 1, point - 1]))
    assert index._table.count == gpu_piles.FIRST_REACH + 2
    ascending = np.sort(slots)
    for k in (1, 50, 300):  # the last makes the reach larger
        assert index.query(point[None], k)[0][0].tolist() == ascending[:k].tolist()
        assert index.query(np.tile(point, (20, 1)), k)[0][19].tolist() == ascending[:k].tolist()
    assert index._table.count == 302
    index.remove(ascending[10:1500])
    assert index.query(point[None], 50)[0][0].tolist() == [*ascending[:10], *ascending[1500:1540]]
    saved = index.save()
    assert saved["slots"].tolist() == [*ascending[:10], *ascending[1500:], 7000, 7001]
    assert (saved["vectors"][:-2] == resolve_metric("cosine").prepare(point[None])).all()
    index.remove(np.array(saved["slots"][:-2]))
    assert index._table.count == 2
    assert sorted(index.query(point[None], 3)[0][0].tolist()) == [-1, 7000, 7001]


def test_equal_hashes_of_different_vectors(monkeypatch, arrays):
    def hashes(xp, vectors, weights):
        return xp.total(xp.bits(vectors) * 0, 1)

    monkeypatch.setattr(gpu_table, "hashes_of", hashes)
    monkeypatch.setattr(gpu_piles, "FIRST_REACH", 3)
    for flavour in ("duplicates", "lattice"):
        random_life(GpuIndex("euclidean", 2, arrays=arrays), flavour, 2, 3)


@pytest.mark.parametrize("scale", [1e-44, 1e-30, 1e18, 3e38])
@pytest.mark.parametrize("metric", METRICS)
def test_very_small_and_very_large_vectors(arrays, metric, scale):
    rng = np.random.default_rng(6)
    x = (rng.uniform(-1, 1, size=(300, 12)) * scale).astype(np.float32)
    index = GpuIndex(metric, 12, arrays=arrays)
    for part in np.array_split(np.arange(300), 4):
        index.add(part, x[part])
    check(index, dict(enumerate(x)), x[:20], 10)
    check(index, dict(enumerate(x)), np.ones((3, 12), np.float32), 10)


def test_vectors_that_become_longer_and_longer(arrays):
    rng = np.random.default_rng(8)
    for metric in METRICS:
        index = GpuIndex(metric, 4, arrays=arrays)
        held = {}
        for slot in range(60):
            held[slot] = (rng.normal(size=4) * 3.0**slot).astype(np.float32)
            index.add(np.array([slot]), held[slot][None])
            if slot % 9 == 0:
                check(index, held, held[slot][None], 5)
        check(index, held, np.array(list(held.values())), 5)


@pytest.mark.parametrize("metric", METRICS)
def test_an_empty_index(arrays, metric):
    index = GpuIndex(metric, 3, arrays=arrays)
    nothing = np.empty(0, np.int64), np.empty((0, 3), np.float32)
    for _ in range(2):
        index.add(*nothing)
        index.remove(nothing[0])
        assert len(index) == 0
        slots, distances = index.query(np.ones((2, 3), np.float32), 2)
        assert slots.tolist() == [[-1, -1]] * 2
        assert (distances == np.inf).all()
        assert index.query(nothing[1], 2)[0].shape == (0, 2)
        assert index.query(np.ones((2, 3), np.float32), 0)[0].shape == (2, 0)
        assert index.save()["vectors"].shape == (0, 3)
        index.add(np.array([4]), np.ones((1, 3), np.float32))
        index.remove(np.array([4]))


def test_a_rejected_change_does_not_change_the_index(arrays):
    x = np.random.default_rng(8).normal(size=(20, 4)).astype(np.float32)
    index = GpuIndex("euclidean", 4, arrays=arrays)
    index.add(np.arange(10), x[:10])
    rejected = [
        (index.add, (np.array([10, 3]), x[:2]), "slot 3 is held already; remove it first"),
        (index.add, (np.array([11, 10, 11]), x[:3]), "slot 11 is listed twice; list it once"),
        (index.add, (np.array([-1]), x[:1]), "slot -1 is negative; slots must be >= 0"),
        (index.remove, (np.array([2, 10]),), "slot 10 is not held"),
        (index.remove, (np.array([2, 10**12]),), "slot 1000000000000 is not held"),
        (index.remove, (np.array([2, 4, 2]),), "slot 2 is listed twice; list it once"),
    ]
    for method, arguments, message in rejected:
        with pytest.raises(KeyError) as error:
            method(*arguments)
        assert error.value.args == (message,)
        assert index.intact
    with pytest.raises(ValueError, match="the vectors have dimension 3; the index has dimension 4"):
        index.add(np.array([12]), x[:1, :3])
    check(index, dict(enumerate(x[:10])), x, 5)


@pytest.mark.parametrize("how", ["load", "pickle", "copy"])
@pytest.mark.parametrize("metric", METRICS)
def test_a_loaded_index_gives_the_same_answers(arrays, metric, how):
    rng = np.random.default_rng(9)
    x = np.round(rng.normal(size=(700, 5)), 1).astype(np.float32)
    x[::5] = x[0]
    index = GpuIndex(metric, 5, arrays=arrays, memory=2**20)
    index.add(np.arange(600), x[:600])
    index.remove(np.arange(0, 600, 3))
    if how == "load":
        other = GpuIndex(metric, 5, arrays=arrays)
        other.load({name: array.copy() for name, array in index.save().items()})
    else:
        other = pickle.loads(pickle.dumps(index)) if how == "pickle" else copy.deepcopy(index)
    held = {i: x[i] for i in range(600) if i % 3}
    for twin in (index, other):
        twin.add(np.arange(600, 700), x[600:])
        check(twin, held | dict(enumerate(x[600:], 600)), x[:40], 20)
        assert twin.query(x[:1], 700)[0].shape == (1, 700)


def test_a_model_is_that_of_a_scan(monkeypatch, tmp_path):
    monkeypatch.setattr(gpu, "arrays_of", lambda backend: arrays_of("numpy"))
    rng = np.random.default_rng(13)
    x = rng.normal(size=(10, 16))[rng.integers(0, 10, 900)] + rng.normal(size=(900, 16))
    x[::7] = x[3]
    for metric in METRICS:
        models = [
            DynHAC(metric=metric, n_neighbors=8, neighbors=name, max_points=800)
            for name in ("gpu", "exact")
        ]
        for model in models:
            model.insert(x[:500])
            for row in x[500:520]:
                model.insert(row)
            model.delete(np.arange(0, 200, 3))
            model.save(tmp_path / "model")
            loaded = DynHAC.load(tmp_path / "model")
            assert loaded.backend == model.backend
            for each in (model, loaded):
                each.insert(x[520:])
            assert np.array_equal(loaded.dendrogram().children, model.dendrogram().children)
        one, other = (model.dendrogram() for model in models)
        assert np.array_equal(one.children, other.children)
        assert np.array_equal(one.similarity, other.similarity)
        assert (
            models[0].neighbors(x[:3], 4)[0].tolist() == models[1].neighbors(x[:3], 4)[0].tolist()
        )


def test_arrays_that_there_are_not(monkeypatch):
    with pytest.raises(
        ValueError, match="arrays is 'jax'; it must be 'auto', 'torch', 'torch-cpu'"
    ):
        arrays_of("jax")
    with pytest.raises(TypeError, match="arrays is 3; it must be"):
        arrays_of(3)
    if "torch" in BACKENDS:
        pytest.skip("there is a GPU")
    wanted = r"needs a GPU with CUDA: .*torch .*cupy .*pip install dynhac\[gpu\]"
    with pytest.raises((ImportError, RuntimeError), match=wanted):
        DynHAC(neighbors="gpu")
    with pytest.raises((ImportError, RuntimeError), match="cupy"):
        arrays_of("cupy")


def test_wrong_settings():
    with pytest.raises(ValueError, match="memory"):
        GpuIndex("cosine", 3, arrays="numpy", memory=0)
    with pytest.raises(ValueError, match="dimension"):
        GpuIndex("cosine", 0, arrays="numpy")
    with pytest.raises(ValueError, match="metric"):
        GpuIndex("manhattan", 3, arrays="numpy")
