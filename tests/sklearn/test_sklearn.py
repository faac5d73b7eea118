"""The estimator: checks of scikit-learn, and comparison with the models and exact methods."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.cluster import hierarchy as sch
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from dynhac import GraphHAC
from dynhac.models.points import DynHAC
from dynhac.neighbors import ExactIndex
from dynhac.reference import exact_hac
from dynhac.reference.merges import cut_labels
from dynhac.sklearn import DynHACClustering

NO_POINTS = "the check clusters points, whatever the tag pairwise says"


@parametrize_with_checks(
    [
        DynHACClustering(),
        DynHACClustering(metric="cosine", n_neighbors=5),
        DynHACClustering(metric="precomputed", threshold=0.0),
    ],
    expected_failed_checks=lambda estimator: (
        {"check_clustering": NO_POINTS} if estimator.metric == "precomputed" else {}
    ),
)
def test_checks_of_sklearn(estimator, check):
    check(estimator)


def points(n=120, d=3, centers=4, seed=0):
    X, y = make_blobs(n, d, centers=centers, cluster_std=0.7, random_state=seed)
    return X, y


def random_points(n, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def random_similarities(n, seed=0):
    S = np.random.default_rng(seed).uniform(0.05, 0.95, size=(n, n))
    S = np.triu(S, 1)
    return S + S.T + np.eye(n)


def same_partition(a, b):
    return adjusted_rand_score(a, b) == 1.0


def assert_shows(estimator, model):
    """Assert that the attributes of an estimator match a model."""
    d = model.dendrogram()
    assert estimator.model_.dendrogram() == d
    assert estimator.n_leaves_ == len(model) == len(estimator.labels_)
    assert estimator.n_connected_components_ == len(d.roots)
    assert estimator.children_.shape == (len(model) - 1, 2)
    assert estimator.distances_.shape == (len(model) - 1,)
    assert np.isinf(estimator.distances_).sum() == len(d.roots) - 1


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"epsilon": 0.0, "n_neighbors": 4},
        {"metric": "cosine", "similarity": "cosine", "n_neighbors": 10},
        {"metric": "inner_product", "threshold": 0.5},
        {"similarity": ("gaussian", 2.0), "neighbors": "exact", "resolution": 2.0**-40},
        {"similarity": lambda d: np.exp(-d), "threads": 2},
    ],
)
def test_fit_equals_insert(parameters):
    X, _ = points()
    model = DynHAC(**parameters)
    model.insert(X)
    estimator = DynHACClustering(**parameters).fit(X)
    assert_shows(estimator, model)
    assert estimator.labels_.tolist() == model.labels().tolist()
    assert estimator.n_features_in_ == 3
    assert not hasattr(estimator, "feature_names_in_")


def test_partial_fit_equals_insert():
    X, _ = points(200)
    model = DynHAC(n_neighbors=8)
    estimator = DynHACClustering(n_neighbors=8, theta=0.2, min_size=3)
    for begin, end in [(0, 1), (1, 80), (80, 120), (120, 121), (121, 200)]:
        model.insert(X[begin:end])
        assert estimator.partial_fit(X[begin:end]) is estimator
        assert_shows(estimator, model)
        assert estimator.labels_.tolist() == model.labels(0.2, min_size=3).tolist()
        assert estimator.n_clusters_ == len(set(estimator.labels_.tolist()) - {-1})
    assert estimator.model_.verify().ok
    assert_shows(estimator.fit(X[:50]), DynHACClustering(n_neighbors=8).fit(X[:50]).model_)


@pytest.mark.parametrize("seed", range(3))
def test_epsilon_0_is_exact_average_linkage(seed):
    n = 40
    X = random_points(n, seed=seed).astype(np.float32)
    u, v = np.triu_indices(n, 1)
    similarity = 1.0 / (1.0 + cdist(X, X)[u, v])
    merges = exact_hac(n, (u.tolist(), v.tolist(), similarity.tolist()))
    estimator = DynHACClustering(epsilon=0.0, threshold=0.0).fit(X)
    linkages = np.array([merge.similarity for merge in merges])
    assert estimator.n_connected_components_ == 1
    np.testing.assert_allclose(estimator.distances_, 1 / linkages - 1, rtol=1e-5)
    for k in (1, 2, 3, 7, 20, n):
        theta = 2.0 if k == n else linkages[n - 1 - k]
        labels = estimator.set_params(n_clusters=k).fit_predict(X)
        assert labels.tolist() == cut_labels(n, merges, theta)
        assert estimator.n_clusters_ == k


@pytest.mark.parametrize("seed", range(3))
def test_precomputed_agrees_with_agglomerative_clustering(seed):
    S = random_similarities(30, seed)
    for k in (2, 3, 5, 11):
        theirs = AgglomerativeClustering(
            k, metric="precomputed", linkage="average", compute_distances=True
        ).fit(1.0 - S)
        ours = DynHACClustering(metric="precomputed", epsilon=0.0, threshold=0.0, n_clusters=k)
        assert same_partition(ours.fit_predict(S), theirs.labels_)
        np.testing.assert_allclose(1.0 - 1.0 / ours.distances_, theirs.distances_, rtol=1e-6)
        np.testing.assert_array_equal(ours.children_, np.sort(theirs.children_, axis=1))


def test_cosines_agree_with_agglomerative_clustering():
    X = np.abs(random_points(40))
    theirs = AgglomerativeClustering(
        4, metric="cosine", linkage="average", compute_distances=True
    ).fit(X)
    ours = DynHACClustering(
        metric="cosine", similarity="cosine", epsilon=0.0, threshold=0.0, n_clusters=4
    ).fit(X)
    assert same_partition(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.distances_, theirs.distances_, rtol=1e-4, atol=1e-6)
    theta = 1.0 - 0.5 * (theirs.distances_[-2] + theirs.distances_[-1])
    assert ours.set_params(n_clusters=None, theta=theta).fit(X).n_clusters_ == 2


@pytest.mark.parametrize(
    ("similarity", "distance"),
    [
        ("inverse", lambda s: 1 / s - 1),
        (("gaussian", 1.5), lambda s: 1.5 * np.sqrt(-2 * np.log(s))),
        (lambda d: 3 / (1 + d), lambda s: 1 / s),
    ],
)
def test_children_and_distances_make_a_linkage_matrix(similarity, distance):
    X, _ = points(80, centers=3)
    estimator = DynHACClustering(n_neighbors=5, similarity=similarity, threshold=0.05).fit(X)
    trees = estimator.n_connected_components_
    assert 1 < trees < 80
    Z = np.column_stack([estimator.children_, estimator.distances_, np.empty(79)])
    counts = np.ones(2 * 80 - 1)
    for i, (a, b) in enumerate(estimator.children_):
        Z[i, 3] = counts[80 + i] = counts[a] + counts[b]
    assert sch.is_valid_linkage(Z)
    assert np.all(np.diff(Z[: 80 - trees, 2]) >= 0)
    assert np.all(np.isinf(Z[80 - trees :, 2]))
    for theta in (0.05, 0.1, 0.4):
        at = distance(theta) * (1 + 1e-12)
        flat = sch.fcluster(np.where(np.isinf(Z), 1e9, Z), at, "distance")
        assert same_partition(flat, estimator.model_.labels(theta))


def test_similarities_above_1():
    X = np.repeat(random_points(5, 7), 6, axis=0) * 1e-3
    for parameters in ({}, {"metric": "cosine"}, {"similarity": "gaussian"}):
        assert (DynHACClustering(**parameters).fit(X).distances_ >= 0).all()
    large = DynHACClustering(metric="inner_product").fit(1e3 * np.abs(X))
    assert (large.distances_ > 0).all()


def test_cut_parameters():
    X, y = points(150, centers=3, seed=3)
    trees = DynHACClustering(n_neighbors=10, theta=1e-2).fit(X)
    assert trees.n_clusters_ == trees.n_connected_components_
    automatic = DynHACClustering().fit(X)
    assert automatic.n_clusters_ == 3
    assert same_partition(automatic.labels_, y)
    for cut in (
        {"min_size": 5},
        {"min_size": 5, "noise": "nearest"},
        {"conductance": 0.3, "min_size": 2},
        {"theta": 0.6, "min_size": 2, "noise": "nearest"},
    ):
        estimator = DynHACClustering(n_neighbors=10, **cut).fit(X)
        assert estimator.labels_.tolist() == estimator.model_.labels(**cut).tolist()
        assert estimator.n_clusters_ == len(set(estimator.labels_.tolist()) - {-1})
    three = DynHACClustering(n_clusters=3).fit(X)
    assert three.n_clusters_ == 3
    assert same_partition(three.labels_, y)
    fine = DynHACClustering(theta=0.6, min_size=2).fit(X)
    assert fine.labels_.tolist() == fine.model_.labels(0.6, min_size=2).tolist()
    assert -1 in fine.labels_
    assert fine.n_clusters_ == fine.labels_.max() + 1


def test_fewer_clusters_than_trees():
    X = np.array([[0.0], [0.1], [1e6], [1e6 + 1], [-1e6]])
    with pytest.warns(UserWarning, match="n_clusters is 2, but the samples fall into 3 trees") as w:
        estimator = DynHACClustering(n_clusters=2, threshold=1e-4).fit(X)
    assert w[0].filename == __file__
    assert estimator.labels_.tolist() == [0, 0, 1, 1, 2]
    assert estimator.n_clusters_ == estimator.n_connected_components_ == 3


def test_max_points_keeps_the_last_samples():
    X, _ = points(100)
    model = DynHAC(n_neighbors=5, max_points=40)
    estimator = DynHACClustering(n_neighbors=5, max_points=40, theta=0.3)
    for begin in range(0, 100, 25):
        model.insert(X[begin : begin + 25])
        estimator.partial_fit(X[begin : begin + 25])
    assert_shows(estimator, model)
    assert estimator.labels_.tolist() == model.labels(0.3).tolist()
    assert estimator.model_.ids.tolist() == list(range(60, 100))
    with pytest.raises(ValueError, match="X has 41 rows, but max_points is 40; fit needs room"):
        estimator.fit(X[:41])
    assert len(estimator.fit(X[:40]).labels_) == 40


def test_pipeline():
    X, y = points(150, centers=3, seed=3)
    pipeline = make_pipeline(StandardScaler(), DynHACClustering(n_clusters=3))
    labels = pipeline.fit_predict(X * [1.0, 100.0, 0.01], y)
    assert same_partition(labels, y)
    again = pickle.loads(pickle.dumps(pipeline))
    assert again[-1].labels_.tolist() == labels.tolist()
    assert clone(pipeline).set_params(dynhacclustering__n_clusters=5).fit(X)[-1].n_clusters_ == 5


def test_clone_and_parameters():
    parameters = {"epsilon": 0.3, "metric": "cosine", "theta": 0.4, "min_size": 3}
    estimator = DynHACClustering(**parameters)
    X, _ = points()
    other = clone(estimator.fit(X))
    assert not hasattr(other, "model_")
    assert other.get_params() == estimator.get_params()
    assert parameters.items() <= other.get_params().items()
    assert repr(DynHACClustering(theta=0.4)) == "DynHACClustering(theta=0.4)"
    with pytest.raises(TypeError, match="positional"):
        DynHACClustering(0.1)


def test_grid_search():
    X, y = points(150, centers=3, seed=3)
    found = {}
    for parameters in ParameterGrid({"n_clusters": [2, 3, 6], "n_neighbors": [60, 100]}):
        labels = clone(DynHACClustering()).set_params(**parameters).fit_predict(X)
        found[silhouette_score(X, labels)] = labels
    assert same_partition(found[max(found)], y)

    def score(estimator, X, y):
        return adjusted_rand_score(y, estimator.fit_predict(X))

    search = GridSearchCV(DynHACClustering(), {"n_clusters": [2, 3, 6]}, scoring=score, cv=2)
    assert search.fit(X, y).best_params_ == {"n_clusters": 3}


@pytest.mark.parametrize("repeat", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy])
@pytest.mark.parametrize(
    "parameters", [{}, {"metric": "cosine", "epsilon": 0.5}, {"neighbors": ExactIndex("euclidean")}]
)
def test_a_copy_behaves_like_the_original(parameters, repeat):
    X, _ = points(200)
    estimator = DynHACClustering(n_neighbors=6, theta=0.3, **parameters)
    estimator.partial_fit(X[:60]).partial_fit(X[60:100])
    other = repeat(estimator)
    assert other.get_params().keys() == estimator.get_params().keys()
    for _ in range(2):
        assert_shows(other, estimator.model_)
        for name in ("labels_", "children_", "distances_"):
            np.testing.assert_array_equal(getattr(other, name), getattr(estimator, name))
        estimator.partial_fit(X[100:])
        assert len(other.labels_) in (100, 200)
        other.partial_fit(X[100:])
    assert repeat(DynHACClustering()).fit(X).n_leaves_ == 200


def test_a_copy_of_a_graph():
    S = random_similarities(40)
    estimator = DynHACClustering(metric="precomputed", n_clusters=5).fit(S)
    other = pickle.loads(pickle.dumps(estimator))
    assert other.model_.dendrogram() == estimator.model_.dendrogram()
    assert other.labels_.tolist() == estimator.labels_.tolist()


def test_an_index_object_is_copied_for_every_fit():
    X, _ = points()
    index = ExactIndex("euclidean")
    estimator = DynHACClustering(neighbors=index).fit(X).fit(X)
    assert len(index) == 0
    assert_shows(estimator.partial_fit(X[:5]), DynHACClustering().fit(X).partial_fit(X[:5]).model_)
    assert estimator.neighbors is index


class Uncopyable(ExactIndex):
    def __deepcopy__(self, memo):
        raise TypeError("it is one of a kind")


def test_an_index_object_that_cannot_be_copied():
    estimator = DynHACClustering(neighbors=Uncopyable("euclidean"))
    with pytest.raises(TypeError, match=r"neighbors is .* cannot be copied .it is one of a kind."):
        estimator.fit(points()[0])


def test_pandas():
    X, _ = points()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    estimator = DynHACClustering(theta=0.3).fit(frame)
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c"]
    assert estimator.labels_.tolist() == DynHACClustering(theta=0.3).fit(X).labels_.tolist()
    assert len(estimator.partial_fit(frame[:10]).labels_) == 130
    with pytest.raises(ValueError, match="feature names"):
        estimator.partial_fit(frame[["b", "a", "c"]])
    assert len(estimator.labels_) == 130
    with pytest.raises(ValueError, match="has 2 features, but DynHACClustering is expecting 3"):
        DynHACClustering().fit(X).partial_fit(X[:, :2])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_points(kind):
    X = random_points(100, 12)
    X[np.abs(X) < 1] = 0
    dense, other = DynHACClustering(n_neighbors=5), DynHACClustering(n_neighbors=5)
    dense.fit(X[:80]).partial_fit(X[80:])
    other.fit(kind(X[:80])).partial_fit(kind(X[80:]))
    assert_shows(other, dense.model_)


def test_all_forms_of_a_precomputed_matrix_give_the_same_graph():
    S = random_similarities(40)
    S[S < 0.6] = 0
    np.fill_diagonal(S, 1.0)
    g = GraphHAC.from_graph(sparse.coo_array(np.triu(S, 1)))
    noisy = S * (1 + 1e-8 * random_points(40, 40))
    diagonal = S - 3 * np.diag(np.arange(40))
    mixed = np.where(np.add.outer(np.arange(40), np.arange(40)) % 2, np.triu(S), np.tril(S))
    twice = sparse.csr_array(S)  # every entry is stored in two halves
    twice = sparse.csr_array(
        (np.repeat(twice.data / 2, 2), np.repeat(twice.indices, 2), 2 * twice.indptr)
    )
    zeros = sparse.csr_array(S)
    zeros.data[: zeros.indptr[1]] = 0.0  # row 0; column 0 has the same pairs
    tiny = np.where(S == 0, 1e-15, S)
    for X in (S, S.tolist(), np.triu(S), np.tril(S, -1), mixed, tiny, diagonal, twice, zeros):
        before = copy.deepcopy(X)
        estimator = DynHACClustering(metric="precomputed", theta=0.1).fit(X)
        assert estimator.model_.dendrogram() == g.dendrogram()
        assert estimator.labels_.tolist() == g.labels(0.1).tolist()
        assert estimator.n_features_in_ == 40
        if sparse.issparse(X):
            np.testing.assert_array_equal(X.data, before.data)
        else:
            np.testing.assert_array_equal(X, before)
    one, other = (DynHACClustering(metric="precomputed").fit(X) for X in (noisy, noisy.T))
    assert one.model_.dendrogram() == other.model_.dendrogram()
    assert same_partition(one.model_.labels(0.1), g.labels(0.1))


def test_precomputed_without_edges():
    estimator = DynHACClustering(metric="precomputed").fit(sparse.csr_array((3, 3)))
    assert estimator.labels_.tolist() == [-1, -1, -1]
    assert estimator.n_clusters_ == 0
    assert estimator.distances_.tolist() == [np.inf, np.inf]
    one = DynHACClustering(metric="precomputed", theta=0.5).fit([[1.0]])
    assert one.labels_.tolist() == [0]
    assert one.children_.shape == (0, 2)


def changed(S, row, column, value):
    S = S.copy()
    S[row, column] = value
    return S


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((2, 3)), r"X is a matrix of shape \(2, 3\); it must be square"),
        (changed(np.ones((4, 4)), 1, 3, 0.5), r"row 1, column 3 is 0.5, but row 3, column 1 is 1"),
        (changed(np.ones((4, 4)), 3, 1, 0.5), r"row 1, column 3 is 1.0, but row 3, column 1 is 0"),
        (changed(np.ones((4, 4)), 2, 0, -0.5), "row 2, column 0 of X is -0.5; similarities must"),
        (changed(np.ones((4, 4)), 2, 0, np.nan), "NaN"),
        (np.full((3, 3), 1e300), r"weight of edge \(0, 1\) is 1e\+300, which is too large"),
    ],
)
def test_wrong_similarities(X, message):
    for kind in (np.asarray, sparse.csr_array):
        with pytest.raises(ValueError, match=message):
            DynHACClustering(metric="precomputed").fit(kind(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"theta": 0.5, "n_clusters": 3}, "theta is 0.5 and n_clusters is 3; give one of them"),
        ({"theta": 0.001, "threshold": 0.01}, "theta is 0.001; it must be a similarity >= 0.01"),
        ({"theta": "x"}, "theta is 'x'; it must be a finite number"),
        ({"n_clusters": 0}, "n_clusters is 0; it must be an integer >= 1"),
        ({"n_clusters": 2.5}, "n_clusters is 2.5; it must be an integer"),
        ({"n_clusters": 121}, "n_clusters is 121, but n_samples=120; there cannot be more"),
        ({"min_size": 0}, "min_size is 0; it must be an integer >= 1"),
        ({"min_size": 1}, "min_size is 1; the automatic choice of clusters needs at least 2"),
        ({"min_size": 0, "theta": 0.5}, "min_size is 0; it must be an integer >= 1"),
        ({"conductance": 0}, "conductance is 0; it must be > 0 and <= 1"),
        ({"conductance": 1.5}, "conductance is 1.5; it must be > 0 and <= 1"),
        ({"conductance": "x"}, "conductance is 'x'; it must be"),
        ({"conductance": 0.5, "theta": 0.5}, "theta is 0.5 and conductance is 0.5; give one"),
        ({"noise": "far"}, "noise is 'far'; it must be 'nearest' or None"),
        ({"epsilon": -1}, "epsilon is -1; it must be a finite number >= 0"),
        ({"n_neighbors": 0}, "n_neighbors is 0; it must be an integer >= 1"),
        ({"metric": "manhattan"}, "metric is 'manhattan'; it must be .* or 'precomputed'"),
        ({"metric": None}, "metric is None; it must be"),
        ({"similarity": "dot"}, "similarity is 'dot', which is for metric 'inner_product'"),
        ({"neighbors": "ball_tree"}, "neighbors is 'ball_tree'"),
        ({"repair": 1}, "repair is 1; it must be True or False"),
        ({"max_points": 0}, "max_points is 0"),
        ({"metric": "precomputed", "max_points": 9}, "max_points is 9; it must be None"),
    ],
)
def test_wrong_parameters(parameters, message):
    X, _ = points()
    estimator = DynHACClustering(**parameters)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X)
    if parameters.get("metric") != "precomputed":
        with pytest.raises(ValueError, match=message):
            estimator.partial_fit(X)
    assert not hasattr(estimator, "model_")


def test_a_rejected_partial_fit_changes_nothing():
    X, _ = points()
    estimator = DynHACClustering(theta=0.3).fit(X)
    labels, version = estimator.labels_, estimator.model_.version
    for parameters, Y, message in [
        ({"epsilon": 0.2}, X, "epsilon is 0.2, but the model was made with 0.1; only theta"),
        ({"metric": "cosine"}, X, "metric is 'cosine', but the model was made with 'euclidean'"),
        ({"theta": -1.0}, X, "theta is -1.0; it must be"),
        ({"theta": None, "n_clusters": 122}, X[:1], "n_clusters is 122, but n_samples=121"),
        ({}, [[0.0, 1e300, 0.0]], "row 0, column 1 of X is 1e.300, which does not fit in float32"),
        ({}, [[0.0, np.inf, 0.0]], "infinity"),
    ]:
        before = estimator.get_params()
        with pytest.raises(ValueError, match=message):
            estimator.set_params(**parameters).partial_fit(Y)
        estimator.set_params(**before)
    assert estimator.labels_ is labels
    assert estimator.model_.version == version
    estimator.set_params(theta=None, n_clusters=7, min_size=2).partial_fit(X[:1])
    assert estimator.labels_.tolist() == estimator.model_.labels(n_clusters=7, min_size=2).tolist()


def test_partial_fit_is_not_available_with_precomputed():
    estimator = DynHACClustering(metric="precomputed")
    assert not hasattr(estimator, "partial_fit")
    assert hasattr(estimator.set_params(metric="cosine"), "partial_fit")


def test_importing_dynhac_does_not_import_sklearn():
    code = "import sys, dynhac, dynhac.models.points; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_sklearn():
    code = "import sys; sys.modules['sklearn'] = None; import dynhac.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "dynhac.sklearn needs sklearn; install it with: pip install 'dynhac[sklearn]'" in (
        done.stderr
    )
