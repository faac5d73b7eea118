"""The clusterer for river: river's own checks, and the clusters of the model behind it."""

import copy
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest
from river import checks, compose, preprocessing, stream
from river.checks import common

from dynhac import DynHAC
from dynhac.river import DynHACClustering

CENTRES = np.random.default_rng(1).normal(scale=6, size=(5, 3))


def samples(n, seed=0):
    rng = np.random.default_rng(seed)
    X = CENTRES[rng.integers(0, 5, n)] + rng.normal(size=(n, 3))
    return [dict(zip("abc", row, strict=True)) for row in X.tolist()]


MODELS = [
    DynHACClustering(),
    *(DynHACClustering(**p) for p in DynHACClustering._unit_test_params()),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_checks_of_river(model):
    checks.check_estimator(model)


# River has no data for clusterers, so that checks with data are not among those above.
WITH_DATA = [
    common.check_learn_one,
    common.check_pickling,
    common.check_shuffle_features_no_impact,
    common.check_emerging_features,
    common.check_disappearing_features,
    common.check_radically_disappearing_features,
    common.check_predict_one_pure,
    common.check_predict_one_before_any_learn,
    common.check_no_state_aliasing_with_input,
    common.check_clone_is_independent,
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("check", WITH_DATA)
def test_checks_of_river_with_data(check, model):
    rng = np.random.default_rng(0)
    data = [
        ({f"f{i}": value for i, value in enumerate(row)}, None) for row in rng.normal(size=(80, 9))
    ]
    check(model.clone(), data)


@pytest.mark.parametrize("cut", [{"theta": 0.3}, {"min_size": 5}, {}], ids=str)
def test_it_is_the_model(cut):
    clusterer = DynHACClustering(**cut, n_neighbors=8, max_points=100)
    model = DynHAC(n_neighbors=8, max_points=100)
    watch = model.watch(**cut)
    for x in samples(250):
        clusterer.learn_one(x)
        model.insert(list(x.values()))
        if len(model) > 3:
            query = samples(1, seed=len(model))[0]
            expected = model.predict(list(query.values()), watch=watch).labels
            assert clusterer.predict_one(query) == expected
    assert len(clusterer.model) == 100
    assert clusterer.model.dendrogram() == model.dendrogram()


def test_it_finds_the_clusters():
    clusterer = DynHACClustering()
    for x in samples(300):
        clusterer.learn_one(x)
    found = [clusterer.predict_one(dict(zip("abc", row, strict=True))) for row in CENTRES.tolist()]
    assert sorted(found) == sorted(clusterer.model.watches[0].clusters())


@pytest.mark.parametrize("neighbors", ["auto", "exact", "usearch"])
def test_features_that_come_later(neighbors):
    """Columns of 0 change nothing: hierarchy and cluster ids stay as they are."""
    clusterer = DynHACClustering(theta=0.2, n_neighbors=6, neighbors=neighbors)
    for x in samples(60):
        clusterer.learn_one(x)
    before = clusterer.model
    labels, tree = before.watches[0].labels().tolist(), before.dendrogram()
    clusterer.learn_one({"b": 500.0, "new": 1.0})
    assert clusterer.features == {"a": 0, "b": 1, "c": 2, "new": 3}
    assert clusterer.model is not before
    assert before.dendrogram() == tree  # untouched
    after = clusterer.model
    assert after.watches[0].labels().tolist()[:60] == labels
    assert after.vectors()[:60, :3].tolist() == before.vectors().tolist()
    assert after.vectors([60]).tolist() == [[0, 500, 0, 1, 0, 0]]
    for i in range(20):  # beyond the dimension of a KD-tree
        clusterer.learn_one({f"x{i}": 50.0, "a": 1.0})
    assert len(clusterer.features) == 24
    assert clusterer.model.dimension == 24
    assert clusterer.model.watches[0].labels().tolist()[:60] == labels
    assert clusterer.model.verify().ok


def test_order_of_features_does_not_matter():
    one, other = DynHACClustering(), DynHACClustering()
    rng = random.Random(1)
    for x in samples(50):
        names = list(x)
        rng.shuffle(names)
        one.learn_one(x)
        other.learn_one({name: x[name] for name in names})
    assert pickle.dumps(one) == pickle.dumps(other)


def test_prediction_changes_nothing():
    clusterer = DynHACClustering(theta=0.3)
    for x in samples(30):
        clusterer.learn_one(x)
    before = pickle.dumps(clusterer)
    for x in [*samples(10, seed=1), {}, {"unknown": 3.0}, {"a": True}]:
        assert type(clusterer.predict_one(x)) is int
    assert pickle.dumps(clusterer) == before


@pytest.mark.parametrize("value", ["red", None, float("nan"), float("inf"), 1e300, 10**400, [1]])
def test_wrong_values(value):
    clusterer = DynHACClustering()
    for _ in range(2):
        before = pickle.dumps(clusterer)
        with pytest.raises(ValueError, match=r"feature 'colour' is .*; it must be a finite"):
            clusterer.learn_one({"a": 1.0, "colour": value, "z": 2.0})
        assert pickle.dumps(clusterer) == before
        clusterer.learn_one({"a": 1.0})
    with pytest.raises(ValueError, match="feature 'colour'"):
        clusterer.predict_one({"colour": value})


def test_wrong_parameters():
    for parameters, message in (
        ({"theta": 0.001, "threshold": 0.01}, "theta is 0.001"),
        ({"min_size": 0}, "min_size is 0"),
        ({"min_size": 1}, "min_size is 1; the automatic choice"),
        ({"n_neighbors": 0}, "n_neighbors is 0"),
        ({"neighbors": object()}, "neighbors is"),
    ):
        with pytest.raises(ValueError, match=message):
            DynHACClustering(**parameters)


def test_times():
    clusterer = DynHACClustering(max_age=10)
    with pytest.raises(ValueError, match="need timestamps"):
        clusterer.learn_one({"a": 1.0})
    for t in range(0, 100, 2):
        clusterer.learn_one({"a": float(t)}, t=t)
    clusterer.learn_one({"b": 1.0}, t=99)  # a copy keeps the clock
    assert clusterer.model.ids.tolist() == [45, 46, 47, 48, 49, 50]


def test_samples_without_features():
    clusterer = DynHACClustering(min_size=2)
    clusterer.learn_one({})
    clusterer.learn_one({})
    assert clusterer.predict_one({}) == 0
    clusterer.learn_one({"a": 1.0})
    clusterer.learn_one({"a": 1.0, "b": 2.0})
    assert clusterer.model.dimension == 2


def test_pipelines_and_copies():
    pipeline = compose.Pipeline(preprocessing.StandardScaler(), DynHACClustering(theta=0.3))
    for x, _ in stream.iter_array(np.random.default_rng(0).normal(size=(50, 2))):
        pipeline.learn_one(x)
        pipeline.predict_one(x)
    clusterer = pipeline["DynHACClustering"]
    for again in (copy.deepcopy(clusterer), pickle.loads(pickle.dumps(clusterer))):
        x = {0: 0.5, 1: 0.1}
        assert again.predict_one(x) == clusterer.predict_one(x)
        again.learn_one({2: 1.0})
        assert len(again.model) == len(clusterer.model) + 1
    assert len(clusterer.clone().model) == 0


def test_river_is_not_imported_with_dynhac():
    code = "import sys, dynhac; dynhac.DynHAC; assert 'river' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
