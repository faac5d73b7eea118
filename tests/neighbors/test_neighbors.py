"""Every neighbour index against plain float64 distances, through additions and removals."""

import builtins
from importlib.util import find_spec

import numpy as np
import pytest

from dynhac.neighbors import (
    CellsIndex,
    ExactIndex,
    KDBlocksIndex,
    NeighborIndex,
    UsearchIndex,
    choose_backend,
    kd_tree,
    make_index,
    metrics,
    usearch,
    vector_index,
)
from dynhac.neighbors.metrics import METRICS, resolve_metric

FLAVOURS = ("spread", "lattice", "duplicates", "far", "line")


def vectors_of(flavour, rng, n, d):
    """Random vectors: in general position, with many ties, or with many duplicates."""
    if flavour == "spread":
        x = rng.normal(size=(n, d))
    elif flavour == "lattice":
        x = rng.integers(-1, 2, size=(n, d))
    elif flavour == "duplicates":
        x = rng.choice([0.0, 1.0], size=(n, 1)) * np.ones(d)
    elif flavour == "far":
        x = 1000 + 0.01 * rng.normal(size=(n, d))
    else:
        x = np.outer(rng.integers(0, 9, n), np.arange(d) == 0)
    return x.astype(np.float32)


def plain_distances(metric, query, vectors):
    """The distances by definition, computed independently of the package."""
    a, b = query.astype(np.float64), vectors.astype(np.float64)
    if metric == "euclidean":
        return np.linalg.norm(b - a, axis=1)
    if metric == "inner_product":
        return -(b @ a)
    lengths = np.linalg.norm(a) * np.linalg.norm(b, axis=1)
    return 1.0 - np.divide(b @ a, lengths, out=np.zeros(len(b)), where=lengths > 0)


def all_distances(rule, queries, vectors):
    """The distances of all queries (rows) from all vectors (columns)."""
    a, b = rule.prepare(queries), rule.prepare(vectors)
    return np.array([rule.pair_distances(np.tile(row, (len(b), 1)), b) for row in a])


def check(index, metric, held, queries, k):
    """Compare the answer of an exact index with a full sort by distance and slot, bit for bit."""
    slots, distances = index.query(queries, k)
    assert slots.shape == distances.shape == (len(queries), k)
    assert (slots.dtype, distances.dtype) == (np.int64, np.float64)
    known = np.array(sorted(held), np.int64)
    n = min(k, len(known))
    assert (slots[:, n:] == -1).all()
    assert (distances[:, n:] == np.inf).all()
    if n == 0:
        return
    vectors = np.array([held[s] for s in known.tolist()])
    exactly = all_distances(METRICS[metric], queries, vectors)
    for i, query in enumerate(queries):
        plain = plain_distances(metric, query, vectors)
        np.testing.assert_allclose(exactly[i], plain, rtol=1e-6, atol=1e-6)
        order = np.lexsort((known, exactly[i]))[:n]
        np.testing.assert_array_equal(slots[i, :n], known[order])
        np.testing.assert_array_equal(distances[i, :n], exactly[i, order])


def random_life(index, metric, flavour, d, seed, rounds=40):
    """Make random additions, removals and queries; return the vectors held at the end."""
    rng = np.random.default_rng(seed)
    held = {}
    for step in range(rounds):
        free = np.setdiff1d(np.arange(500), np.array(list(held), np.int64))
        new = rng.permutation(free)[: rng.integers(0, 40)]
        vectors = vectors_of(flavour, rng, len(new), d)
        index.add(new, vectors)
        held.update(zip(new.tolist(), vectors, strict=True))
        most = len(held) if step % 10 == 9 else min(30, len(held))
        gone = rng.permutation(np.array(list(held), np.int64))[: rng.integers(0, most + 1)]
        index.remove(gone)
        for slot in gone.tolist():
            del held[slot]
        assert len(index) == len(held)
        if step % 4 == 0:
            check(index, metric, held, vectors_of(flavour, rng, 5, d), int(rng.integers(1, 30)))
    return held


@pytest.fixture
def small_parts(monkeypatch):
    """Make chunks so small that a few hundred vectors need many of them."""
    monkeypatch.setattr(kd_tree, "FOUND_AT_ONCE", 64)
    monkeypatch.setattr(vector_index, "PAIRS_AT_ONCE", 512)
    monkeypatch.setattr(metrics, "CHUNK", 128)
    monkeypatch.setattr(usearch, "PAIRS_AT_ONCE", 512)


@pytest.fixture
def distances_computed(monkeypatch):
    """A list of how many distances each call of ``Metric.distances_at`` computes."""
    counts = []
    real = metrics.Metric.distances_at

    def counting(self, a, rows, b, columns):
        counts.append(len(rows))
        return real(self, a, rows, b, columns)

    monkeypatch.setattr(metrics.Metric, "distances_at", counting)
    return counts


def exact_backends(d):
    yield from ((ExactIndex(metric), metric) for metric in METRICS)
    if d <= kd_tree.MOST_DIMENSIONS:
        yield KDBlocksIndex(d), "euclidean"


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("d", [1, 2, 3, 8, 20])
def test_exact_backends_through_adds_and_removes(flavour, d):
    for seed, (index, metric) in enumerate(exact_backends(d)):
        random_life(index, metric, flavour, d, seed)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("metric", METRICS)
def test_usearch_is_exact_while_vectors_are_few(metric, flavour):
    pytest.importorskip("usearch")
    random_life(UsearchIndex(metric, 6), metric, flavour, 6, seed=1)


def test_a_query_does_not_depend_on_other_queries_of_the_batch():
    rng = np.random.default_rng(4)
    for d in (3, 50):
        x = rng.normal(size=(700, d)).astype(np.float32)
        for index, _ in exact_backends(d):
            index.add(np.arange(700), x)
            slots, distances = index.query(x, 9)
            for i in range(0, 700, 50):
                alone = index.query(x[i : i + 1], 9)
                np.testing.assert_array_equal(alone[0][0], slots[i])
                np.testing.assert_array_equal(alone[1][0], distances[i])


def every_backend(metric, d):
    yield ExactIndex(metric)
    if metric == "euclidean" and d <= kd_tree.MOST_DIMENSIONS:
        yield KDBlocksIndex(d)
    if find_spec("usearch") is not None:
        yield UsearchIndex(metric, d)


@pytest.mark.parametrize("scan", [True, False])
@pytest.mark.parametrize("d", [2, 30])
def test_among_many_duplicates_the_smallest_slots_come_first(monkeypatch, d, scan):
    if not scan:
        monkeypatch.setattr(usearch, "MOST_NUMBERS_WITHOUT_GRAPH", 0)
    rng = np.random.default_rng(5)
    slots = rng.permutation(3000)[:1000]
    point = rng.normal(size=d).astype(np.float32)
    for index in every_backend("euclidean", d):
        index.add(slots, np.tile(point, (1000, 1)))
        index.add(np.array([5000, 5001]), np.stack([point + 1, point - 1]))
        found, distances = index.query(point[None], 50)
        np.testing.assert_array_equal(found[0], np.sort(slots)[:50])
        assert (distances == 0.0).all()
        index.remove(np.sort(slots)[:40])
        assert index.query(point[None], 50)[0][0].tolist() == np.sort(slots)[40:90].tolist()
        index.remove(np.sort(slots)[40:])
        assert sorted(index.query(point[None], 3)[0][0].tolist()) == [-1, 5000, 5001]


@pytest.mark.parametrize("metric", METRICS)
def test_zero_vectors(metric):
    x = np.zeros((4, 3), np.float32)
    x[2] = [0.0, 3.0, 4.0]
    x[3] = [0.0, -0.0, 0.0]
    wanted = {
        "euclidean": ([0, 1, 3, 2], [0, 0, 0, 5]),
        "cosine": ([0, 1, 2, 3], [1, 1, 1, 1]),
        "inner_product": ([0, 1, 2, 3], [0, 0, 0, 0]),
    }[metric]
    for index in every_backend(metric, 3):
        index.add(np.arange(4), x)
        for query in (x[0], x[3]):
            slots, distances = index.query(query[None], 4)
            assert (slots[0].tolist(), distances[0].tolist()) == wanted
            assert not np.signbit(distances).any()


@pytest.mark.parametrize("metric", METRICS)
def test_an_empty_index(metric):
    for index in every_backend(metric, 3):
        nothing = np.empty(0, np.int64), np.empty((0, 3), np.float32)
        index.add(*nothing)
        index.remove(nothing[0])
        assert len(index) == 0
        slots, distances = index.query(np.ones((2, 3), np.float32), 2)
        assert slots.tolist() == [[-1, -1]] * 2
        assert (distances == np.inf).all()
        assert index.query(nothing[1], 2)[0].shape == (0, 2)
        assert index.query(np.ones((2, 3), np.float32), 0)[0].shape == (2, 0)
        assert isinstance(index, NeighborIndex)


@pytest.mark.parametrize("scale", [1e-44, 1e-30, 1e18, 1e37, 3e38])
def test_very_small_and_very_large_vectors(scale):
    rng = np.random.default_rng(6)
    for d in (2, 12):
        x = (rng.uniform(-1, 1, size=(300, d)) * scale).astype(np.float32)
        for index, metric in exact_backends(d):
            index.add(np.arange(300), x)
            slots, distances = index.query(x[:20], 10)
            exactly = all_distances(METRICS[metric], x[:20], x)
            order = np.array([np.lexsort((np.arange(300), row))[:10] for row in exactly])
            np.testing.assert_array_equal(slots, order)
            np.testing.assert_array_equal(distances, np.take_along_axis(exactly, order, 1))
            assert np.isfinite(distances).all()


@pytest.mark.parametrize("message", ["Operation has been terminated", "something else"])
def test_usearch_turns_its_error_on_ctrl_c_into_keyboard_interrupt(monkeypatch, message):
    pytest.importorskip("usearch")
    monkeypatch.setattr(usearch, "MOST_NUMBERS_WITHOUT_GRAPH", 0)

    class Stopping:
        def fail(self, *_, **__):
            raise RuntimeError(message)

        add = remove = search = fail

    wanted = KeyboardInterrupt if "terminated" in message else RuntimeError
    for call, args in (
        ("add", (np.array([5]), np.ones((1, 9), np.float32))),
        ("remove", (np.array([0]),)),
        ("query", (np.ones((1, 9), np.float32), 2)),
    ):
        index = UsearchIndex("euclidean", 9)
        index.add(np.arange(3), np.eye(3, 9, dtype=np.float32))
        index._graph = Stopping()
        with pytest.raises(wanted):
            getattr(index, call)(*args)


@pytest.mark.parametrize("distinct", [1, 30])
def test_usearch_computes_the_distance_of_equal_vectors_once(distances_computed, distinct):
    rng = np.random.default_rng(15)
    x = rng.normal(size=(distinct, 16)).astype(np.float32)[rng.integers(distinct, size=600)]
    pytest.importorskip("usearch")
    index = UsearchIndex("euclidean", 16)
    index.add(np.arange(600), x)
    index.query(x, 40)
    assert 0 < sum(distances_computed) <= 600 * distinct
    check(index, "euclidean", dict(enumerate(x)), x[::60], 40)


def test_an_outlier_does_not_reduce_the_precision_of_the_others():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(400, 16)).astype(np.float32)
    x[0] *= 1e9
    index = ExactIndex()
    index.add(np.arange(400), x)
    check(index, "euclidean", dict(enumerate(x)), x[:20], 10)


@pytest.mark.parametrize("metric", METRICS)
def test_a_rejected_change_does_not_change_the_index(metric):
    rng = np.random.default_rng(8)
    x = rng.normal(size=(20, 4)).astype(np.float32)
    for index in every_backend(metric, 4):
        index.add(np.arange(10), x[:10])
        before = index.query(x, 5)
        rejected = [
            (index.add, (np.array([10, 3]), x[:2]), "slot 3 is held already; remove it first"),
            (index.add, (np.array([11, 10, 11]), x[:3]), "slot 11 is listed twice; list it once"),
            (index.add, (np.array([-1]), x[:1]), "slot -1 is negative; slots must be >= 0"),
            (index.remove, (np.array([2, 10]),), "slot 10 is not held"),
            (index.remove, (np.array([2, 10**12]),), "slot 1000000000000 is not held"),
            (index.remove, (np.array([2, -1]),), "slot -1 is not held"),
            (index.remove, (np.array([2, 4, 2]),), "slot 2 is listed twice; list it once"),
        ]
        for method, arguments, message in rejected:
            with pytest.raises(KeyError) as error:
                method(*arguments)
            assert error.value.args == (message,)
        assert len(index) == 10
        for old, new in zip(before, index.query(x, 5), strict=True):
            np.testing.assert_array_equal(old, new)


def copy_through_arrays(index, new):
    arrays = index.save()
    assert all(array.dtype.kind in "biuf" for array in arrays.values())
    new.load({name: array.copy() for name, array in arrays.items()})
    return new


@pytest.mark.parametrize("scan", [True, False])
@pytest.mark.parametrize("metric", METRICS)
def test_a_loaded_index_behaves_like_the_saved_one(monkeypatch, metric, scan):
    if not scan:
        monkeypatch.setattr(usearch, "MOST_NUMBERS_WITHOUT_GRAPH", 0)
    d = 5
    for index, empty in zip(every_backend(metric, d), every_backend(metric, d), strict=True):
        rng = np.random.default_rng(9)
        x = np.round(rng.normal(size=(1500, d)), 1).astype(np.float32)
        x[::7] = x[0]
        index.add(np.arange(600), x[:600])
        index.remove(np.arange(0, 600, 3))
        twins = [index, copy_through_arrays(index, empty)]
        held = np.setdiff1d(np.arange(600), np.arange(0, 600, 3))
        for step in range(30):
            gone = rng.permutation(held)[:20]
            new = np.concatenate([gone[:10], np.arange(600 + 20 * step, 620 + 20 * step)])
            held = np.union1d(np.setdiff1d(held, gone), new)
            answers = []
            for twin in twins:
                twin.remove(gone)
                twin.add(new, x[new])
                answers.append(twin.query(x[:100], 20))
            for one, other in zip(*answers, strict=True):
                np.testing.assert_array_equal(one, other)
            twins[1].query(x[:step], 3)  # a query changes nothing
        assert len(twins[0]) == len(twins[1]) == len(held)


@pytest.mark.parametrize("metric", METRICS)
def test_an_empty_index_can_be_saved(metric):
    for index, empty in zip(every_backend(metric, 3), every_backend(metric, 3), strict=True):
        loaded = copy_through_arrays(index, empty)
        loaded.add(np.array([4]), np.ones((1, 3), np.float32))
        assert loaded.query(np.ones((1, 3), np.float32), 1)[0].tolist() == [[4]]


@pytest.mark.parametrize("metric", METRICS)
def test_recall_of_usearch_after_all_vectors_were_replaced(metric):
    pytest.importorskip("usearch")
    rng = np.random.default_rng(10)
    n, d, k = 3000, 100, 20
    assert n * d > usearch.MOST_NUMBERS_WITHOUT_GRAPH
    x = rng.normal(size=(2 * n, d)) + 3 * rng.normal(size=(20, d))[rng.integers(0, 20, 2 * n)]
    x = x.astype(np.float32)
    index, truth = UsearchIndex(metric, d), ExactIndex(metric)
    for part in np.array_split(np.arange(2 * n), 20):
        for each in (index, truth):
            each.add(part % n, x[part])
            if part[-1] + n // 10 >= n and part[-1] + 1 < 2 * n:
                each.remove((part + n // 10) % n)
    assert len(index) == len(truth) > 0.9 * n - 1
    queries = x[-300:]
    slots, distances = index.query(queries, k)
    wanted, least = truth.query(queries, k)
    hits = [len(np.intersect1d(a, b)) for a, b in zip(slots, wanted, strict=True)]
    assert np.mean(hits) >= 0.95 * k
    assert (np.diff(distances, axis=1) >= 0).all()
    same = slots == wanted
    np.testing.assert_array_equal(distances[same], least[same])


def test_usearch_builds_the_same_graph_in_one_batch_or_many(monkeypatch):
    pytest.importorskip("usearch")
    monkeypatch.setattr(usearch, "MOST_NUMBERS_WITHOUT_GRAPH", 0)
    x = np.random.default_rng(11).normal(size=(500, 8)).astype(np.float32)
    whole, single = UsearchIndex("euclidean", 8), UsearchIndex("euclidean", 8)
    whole.add(np.arange(500), x)
    for i in range(500):
        single.add(np.array([i]), x[i : i + 1])
        single.query(x[:1], 3)
    np.testing.assert_array_equal(whole.save()["graph"], single.save()["graph"])


def test_usearch_scans_where_the_graph_finds_too_few(monkeypatch):
    pytest.importorskip("usearch")
    monkeypatch.setattr(usearch, "MOST_NUMBERS_WITHOUT_GRAPH", 0)
    x = np.random.default_rng(12).normal(size=(50, 4)).astype(np.float32)
    index = UsearchIndex("euclidean", 4)
    index.add(np.arange(50), x)
    index._graph.remove(np.arange(0, 30, dtype=np.uint64), threads=1)
    for queries in (x[:1], x[:7]):
        wanted = ExactIndex()
        wanted.add(np.arange(50), x)
        np.testing.assert_array_equal(index.query(queries, 40)[0], wanted.query(queries, 40)[0])


def test_usearch_saves_its_settings():
    pytest.importorskip("usearch")
    index = UsearchIndex("cosine", 3, connectivity=8, expansion_add=20, expansion_search=30)
    loaded = copy_through_arrays(index, UsearchIndex("cosine", 3))
    graph = loaded._graph
    assert (graph.connectivity, graph.expansion_add, graph.expansion_search) == (8, 20, 30)


@pytest.mark.parametrize("d", [1, 3, 8, 9, 64, 384])
@pytest.mark.parametrize("metric", METRICS)
def test_the_distance_of_a_pair_does_not_depend_on_the_batch(metric, d):
    rng = np.random.default_rng(13)
    rule = resolve_metric(metric)
    a, b = (rule.prepare(x) for x in rng.normal(size=(2, 200, d)).astype(np.float32))
    together = rule.pair_distances(a, b)
    assert together.dtype == np.float64
    np.testing.assert_array_equal(rule.pair_distances(b, a), together)
    for n in (1, 2, 7, 64):
        np.testing.assert_array_equal(rule.pair_distances(a[-n:], b[-n:]), together[-n:])
    if metric != "inner_product":
        assert (rule.pair_distances(a, a) == 0.0).all()
        assert (together >= 0.0).all()


def test_prepare():
    x = np.array([[3.0, 4.0], [0.0, 0.0], [1e-30, 0.0], [3e38, 3e38]], np.float32)
    cosine = resolve_metric("cosine").prepare(x)
    np.testing.assert_allclose(cosine, [[0.6, 0.8], [0, 0], [1, 0], [0.5**0.5, 0.5**0.5]])
    assert cosine.dtype == np.float32
    for metric in ("euclidean", "inner_product"):
        np.testing.assert_array_equal(resolve_metric(metric).prepare(x), x)


@pytest.mark.parametrize("metric", ["manhattan", 3, None, ["cosine"]])
def test_an_unknown_metric(metric):
    with pytest.raises(ValueError, match="it must be 'euclidean', 'cosine' or 'inner_product'"):
        resolve_metric(metric)


def hide(monkeypatch, *modules):
    """Simulate that these modules are not installed."""
    import_as_before = builtins.__import__

    def guarded(name, *rest):
        if name.split(".")[0] in modules:
            raise ImportError(f"No module named {name!r}")
        return import_as_before(name, *rest)

    monkeypatch.setattr(builtins, "__import__", guarded)


def test_choose_backend():
    assert choose_backend("euclidean", 8, 10) == "kd"
    assert choose_backend("euclidean", 8, 10**7) == "kd"
    assert choose_backend("euclidean", 9, 10) == "exact"
    assert choose_backend("cosine", 3, 10) == "exact"
    assert choose_backend("cosine", 100, 200_000) == "exact"
    assert choose_backend("cosine", 100, 200_001) == "cells"


def test_make_index(monkeypatch):
    pytest.importorskip("usearch")
    assert type(make_index("exact", "cosine", 3, 10)) is ExactIndex
    assert type(make_index("kd", "euclidean", 3, 10)) is KDBlocksIndex
    assert type(make_index("auto", "euclidean", 3, 10)) is KDBlocksIndex
    assert type(make_index("cells", "cosine", 3, 10)) is CellsIndex
    assert type(make_index("usearch", "inner_product", 3, 10)) is UsearchIndex
    own = ExactIndex("cosine")
    assert make_index(own, "cosine", 3, 10) is own
    with pytest.raises(ValueError, match="neighbors is 'kd', which is for metric 'euclidean', not"):
        make_index("kd", "cosine", 3, 10)
    with pytest.raises(ValueError, match="dimensions 1 to 8, and the vectors have dimension 9"):
        make_index("kd", "euclidean", 9, 10)
    with pytest.raises(ValueError, match="neighbors is 'faiss'; it must be 'auto', 'exact', 'kd'"):
        make_index("faiss", "euclidean", 9, 10)
    for other in (None, 3, ExactIndex, {"add": 1}):
        with pytest.raises(TypeError, match="an index object with the methods add, remove, query"):
            make_index(other, "euclidean", 3, 10)
    hide(monkeypatch, "usearch")
    with pytest.raises(ImportError, match=r"needs usearch: pip install dynhac\[ann\]"):
        make_index("usearch", "euclidean", 3, 10)
