"""``predict`` of the estimator."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dynhac.sklearn import DynHACClustering


def blobs(n):
    return make_blobs(n, 3, centers=4, cluster_std=0.7, random_state=0)


@pytest.mark.parametrize(
    "cut",
    [
        {"theta": 0.4},
        {"n_clusters": 7},
        {},
        {"min_size": 5},
        {"min_size": 12, "noise": "nearest"},
        {"conductance": 0.2},
        {"theta": 0.5, "min_size": 4},
        {"theta": 0.5, "min_size": 4, "noise": "nearest"},
        {"n_clusters": 1},
    ],
)
@pytest.mark.filterwarnings("ignore:n_clusters is 1, but the samples fall into")
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_predict_gives_fitted_samples_their_labels(metric, cut):
    X, _ = blobs(200)
    clustering = DynHACClustering(metric=metric, n_neighbors=60, **cut).fit(X)
    assert clustering.predict(X).tolist() == clustering.labels_.tolist()
    assert clustering.predict(X[:5]).dtype == np.int64
    clustering.set_params(theta=0.9, n_clusters=None, conductance=None, min_size=1)
    assert clustering.predict(X).tolist() == clustering.labels_.tolist()
    before = pickle.dumps(clustering)
    clustering.predict(X + 0.1)
    assert pickle.dumps(clustering) == before


def test_predict_new_samples():
    X, y = blobs(300)
    clustering = DynHACClustering(n_clusters=4, n_neighbors=100).fit(X[:200])
    predicted = clustering.predict(X[200:])
    assert adjusted_rand_score(predicted, y[200:]) > 0.9
    automatic = DynHACClustering().fit(X[:200])
    assert automatic.n_clusters_ == 4
    assert adjusted_rand_score(automatic.predict(X[200:]), y[200:]) > 0.9
    assert clustering.predict(sparse.csr_matrix(X[200:])).tolist() == predicted.tolist()
    assert clustering.predict(np.full((1, 3), 1e5)).tolist() == [-1]
    assert make_pipeline(StandardScaler(), clustering).fit(X).predict(X).shape == (300,)


def test_predict_needs_points():
    with pytest.raises(NotFittedError):
        DynHACClustering().predict([[0.0]])
    graph = DynHACClustering(metric="precomputed", theta=0.5).fit(np.eye(5))
    assert not hasattr(graph, "predict")
    with pytest.raises(ValueError, match="features"):
        DynHACClustering().fit(blobs(20)[0]).predict([[0.0]])
