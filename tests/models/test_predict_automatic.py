"""``predict`` for clusters that are not those of a similarity: automatic, and by conductance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from placement_oracle import labels_by_node

import dynhac
from dynhac import DynHAC

CENTRES = np.random.default_rng(3).normal(scale=5, size=(5, 3))


def blobs(n, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    return (CENTRES[rng.integers(0, 5, n)] + rng.normal(scale=spread, size=(n, 3))).astype(
        np.float32
    )


def fitted(n=300, spread=1.0, **parameters):
    model = DynHAC(**{"n_neighbors": 8, **parameters})
    model.insert(blobs(n, spread=spread))
    return model


def assert_follows_the_rule(model, queries, cuts):
    for cut in cuts:
        labels = model.labels(**cut)
        for noise in (None, "nearest"):
            predicted, _, neighbors = model.predict(queries, **cut, noise=noise)
            for row, label in enumerate(predicted.tolist()):
                weights = dict(
                    zip(
                        neighbors.ids[row].tolist(),
                        neighbors.similarities[row].tolist(),
                        strict=True,
                    )
                )
                weights.pop(-1, None)  # fewer points than neighbours
                kept = {id: w for id, w in weights.items() if w >= model.resolution}
                assert label in labels_by_node(model, kept, labels, noise is not None)


CUTS = [
    {},
    {"min_size": 2},
    {"min_size": 10},
    {"conductance": 0.05},
    {"conductance": 0.4, "min_size": 4},
    {"conductance": 1.0},
]


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("k", [3, 30])
def test_against_the_plain_rule(epsilon, k):
    model = fitted(250, epsilon=epsilon, n_neighbors=k)
    model.delete(range(0, 250, 7))
    spread = np.random.default_rng(5).uniform(-12, 12, (8, 3))
    assert_follows_the_rule(model, np.vstack([blobs(12, seed=2), spread]), CUTS)


@settings(max_examples=40, deadline=None)
@given(
    points=st.lists(st.tuples(*[st.integers(0, 4)] * 2), min_size=1, max_size=25),
    queries=st.lists(st.tuples(*[st.integers(-1, 5)] * 2), min_size=1, max_size=4),
    epsilon=st.sampled_from([0.0, 0.1, 1.0]),
    k=st.integers(1, 6),
)
def test_points_on_a_grid(points, queries, epsilon, k):
    """Many equal points and equal distances; separate trees."""
    model = DynHAC(epsilon=epsilon, n_neighbors=k, threshold=0.1)
    model.insert(np.array(points, float))
    cuts = [{"min_size": 2}, {"min_size": 4}, {"conductance": 0.3}, {"conductance": 1.0}]
    assert_follows_the_rule(model, np.array(queries, float), cuts)


def companions(labels, row):
    """Return the other rows in the cluster of a row; none for noise."""
    if labels[row] < 0:
        return []
    return [i for i in np.flatnonzero(labels == labels[row]).tolist() if i != row]


@pytest.mark.parametrize("cut", [{}, {"min_size": 5}, {"conductance": 0.1}, {"conductance": 0.5}])
@pytest.mark.parametrize("k", [5, 40])
def test_an_insertion_agrees(cut, k):
    """With epsilon 0 and no ties, if the insertion does not change the clusters of other points."""
    model = fitted(300, epsilon=0.0, threshold=0.0, n_neighbors=k)
    before = model.labels(**cut)
    compared, joined = 0, 0
    for x in np.vstack([blobs(25, seed=1), blobs(10, seed=2) * 1.5]):
        predicted = model.predict(x, **cut).labels
        id = model.insert(x)
        after = model.labels(**cut)
        if same_partition(before, after[:-1]):
            expected = np.flatnonzero(before == predicted).tolist() if predicted >= 0 else []
            assert companions(after, len(after) - 1) == expected
            compared += 1
            joined += predicted >= 0
        model.delete(id)
        before = model.labels(**cut)
    assert compared >= 15
    assert joined >= 8


def same_partition(a, b):
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    noise = all((x < 0) == (y < 0) for x, y in pairs)
    return noise and len(pairs) == len({x for x, _ in pairs}) == len({y for _, y in pairs})


def test_an_insertion_mostly_agrees():
    model = fitted(600, epsilon=0.0, n_neighbors=20)
    agreed = 0
    queries = blobs(60, seed=1)
    for x in queries:
        before, predicted = model.labels(), model.predict(x).labels
        id = model.insert(x)
        beside = companions(model.labels(), len(model) - 1)
        found = np.bincount(before[beside] + 1).argmax() - 1 if beside else -1
        agreed += found == predicted
        model.delete(id)
    assert agreed >= 0.8 * len(queries)


@pytest.mark.parametrize("parameters", [{}, {"metric": "cosine"}, {"epsilon": 0.0}, {"epsilon": 2}])
@pytest.mark.parametrize("noise", [None, "nearest"])
def test_points_of_the_model_have_their_own_labels(parameters, noise):
    model = fitted(300, **parameters)
    for cut in [*CUTS, {"theta": 0.5, "min_size": 5}, {"n_clusters": 120, "min_size": 5}]:
        predicted = model.predict(model.vectors(), **cut, noise=noise).labels
        assert predicted.tolist() == model.labels(**cut, noise=noise).tolist()
    watch = model.watch(min_size=6)
    assert model.predict(model.vectors(), watch=watch).labels.tolist() == watch.labels().tolist()


@pytest.mark.parametrize("patience", [None, 3])
def test_watches(patience):
    model = fitted(400, n_neighbors=15)
    watch = model.watch(min_size=10, patience=patience)
    queries = np.vstack([blobs(60, seed=4), blobs(40, seed=5) * 2])
    for step in range(5):
        by_watch = model.predict(queries, watch=watch)
        own = model.predict(model.vectors(), watch=watch).labels
        assert own.tolist() == watch.labels().tolist()
        if patience is None:
            alone = model.predict(queries, min_size=10)
            assert alone.scores.tolist() == by_watch.scores.tolist()
            assert same_partition(alone.labels, by_watch.labels)
        assert 1 < len(set(by_watch.labels.tolist())) <= 1 + len(watch.clusters())
        assert set(by_watch.labels.tolist()) <= {-1, *watch.clusters()}
        model.update(insert=blobs(20, seed=10 + step), delete=model.ids[:40])


def test_between_clusters():
    """A point that joins two clusters is in neither of them, or in the larger one."""
    left, right = np.linspace(0, 1, 40)[:, None], np.linspace(9, 10, 30)[:, None]
    model = DynHAC(n_neighbors=80, epsilon=0.0)
    model.insert(np.vstack([left, right]))
    assert model.labels().tolist() == [0] * 40 + [1] * 30
    queries = [[0.5], [9.5], [-300.0], [300.0]]
    assert model.predict(queries).labels.tolist() == [0, 1, -1, -1]
    assert model.predict(queries, noise="nearest").labels.tolist() == [0, 1, 0, 0]
    assert model.predict(queries, conductance=0.3, noise="nearest").labels.tolist() == [0, 1, 0, 0]


def test_no_clusters():
    for n in (0, 1, 10):
        model = DynHAC()
        if n:
            model.insert(blobs(n))
        for noise in (None, "nearest"):
            assert model.predict([[0.0, 1.0, 2.0]], noise=noise).labels.tolist() == [-1]
        assert model.predict([[0.0, 1.0, 2.0]], watch=model.watch()).labels.tolist() == [-1]


def test_noise_of_a_cut():
    """Points that join below theta are noise too."""
    model = DynHAC(n_neighbors=5)
    model.insert([[0.0], [0.1], [0.2], [5.0], [5.1]])
    queries = [[0.05], [5.05], [2.0]]
    assert model.predict(queries, 0.5, min_size=3).labels.tolist() == [0, -1, -1]
    assert model.predict(queries, 0.5, min_size=3, noise="nearest").labels.tolist() == [0, 0, 0]


def test_the_last_choice_is_not_used_for_another():
    model = fitted(200)
    for _ in range(2):
        for cut in CUTS:
            for noise in (None, "nearest"):
                predicted = model.predict(model.vectors(), **cut, noise=noise).labels
                assert predicted.tolist() == model.labels(**cut, noise=noise).tolist()
        model.update(insert=blobs(20, seed=7), delete=model.ids[:30])


def test_stores(tmp_path):
    queries = blobs(40, seed=1)
    expected = fitted(200).predict(queries, min_size=8).labels.tolist()
    with dynhac.open(tmp_path / "store", n_neighbors=8) as model:
        model.insert(blobs(200))
        watch = model.watch(min_size=8)
        followed = model.predict(queries, watch=watch).labels.tolist()
    with dynhac.open(tmp_path / "store", mode="r") as reader:
        assert reader.predict(queries, min_size=8).labels.tolist() == expected
        (again,) = reader.watches
        assert reader.predict(queries, watch=again).labels.tolist() == followed
