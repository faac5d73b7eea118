"""`Clusters` against their definition on a dense matrix, and how they behave."""

import copy
import gc
import pickle
import threading

import numpy as np
import pytest
from clusters_oracle import check_clusters

import dynhac
from dynhac import Cluster, Clusters, DynHAC, GraphHAC


def edges_of(shape, n, rng):
    """Pairs of vertices and weights of a graph of this shape."""
    u, v = np.triu_indices(n, 1)
    if shape == "star":
        u, v = np.zeros(n - 1, int), np.arange(1, n)
    elif shape == "path":
        u, v = np.arange(n - 1), np.arange(1, n)
    elif shape == "two cliques":
        kept = (u < n // 2) == (v < n // 2)
        u, v = u[kept], v[kept]
    elif shape != "clique":
        kept = rng.random(len(u)) < {"sparse": 0.1, "dense": 0.5}[shape]
        u, v = u[kept], v[kept]
    return u, v


WEIGHTS = {
    "equal": lambda rng, n: np.full(n, 0.5),
    "few": lambda rng, n: rng.integers(1, 5, n) / 4,
    "many": lambda rng, n: rng.random(n) + 1e-3,
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shape", ["star", "path", "clique", "two cliques", "sparse", "dense"])
def test_definition(shape, weights):
    rng = np.random.default_rng(len(shape) + 10 * len(weights))
    for n in (1, 2, 3, 13, 24):
        u, v = edges_of(shape, n, rng)
        w = WEIGHTS[weights](rng, len(u))
        names = [f"p{i}" for i in range(n)] if n % 2 else list(range(100, 100 + n))
        g = GraphHAC(epsilon=0.1 if n % 3 else 0.0, threshold=1e-3)
        g.add(names, edges=([names[i] for i in u], [names[i] for i in v], w))
        for theta in (0.6, 0.3, 0.1, 0.001):
            check_clusters(g.clusters(theta), g, g.labels(theta))
            check_clusters(g.clusters(theta, min_size=3), g, g.labels(theta, min_size=3))
        check_clusters(g.clusters(n_clusters=n), g, g.labels(n_clusters=n))
        labels = rng.integers(-1, 4, n) * 3 - (rng.random(n) < 0.3)
        labels = np.maximum(labels, -1)
        check_clusters(g.clusters(labels=labels), g, labels)


def test_after_updates():
    rng = np.random.default_rng(3)
    g = GraphHAC(threshold=1e-3)
    watches = [g.watch(0.3), g.watch(0.1, min_size=3)]
    for step in range(25):
        new = list(range(4 * step, 4 * step + 4))
        known = [*g.ids.tolist(), *new]
        u = [int(rng.choice(new)) for _ in range(12)]
        v = [int(rng.choice(known)) for _ in range(12)]
        pairs = {tuple(sorted(pair)): i for i, pair in enumerate(zip(u, v, strict=True))}
        pairs = [pair for pair in pairs if pair[0] != pair[1]]
        gone = rng.choice(g.ids, 3, replace=False).tolist() if len(g) > 12 else []
        pairs = [pair for pair in pairs if not set(pair) & set(gone)]
        columns = tuple(list(column) for column in zip(*pairs, strict=True))
        g.update(add=new, edges=(*columns, rng.integers(1, 9, len(pairs)) / 8), remove=gone)
        check_clusters(g.clusters(0.2), g, g.labels(0.2))
        for watch in watches:
            check_clusters(watch.summary(), g, watch.labels(), watch)


def test_cohesion_is_that_of_the_merges():
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = DynHAC(n_neighbors=8, threshold=1e-3)
    model.insert(X)
    d = model.dendrogram()
    size = np.concatenate([np.ones(300), d.size])
    total = np.zeros(300 + len(d))
    for j, (a, b) in enumerate(d.children.tolist()):
        total[300 + j] = total[a] + total[b] + d.similarity[j] * size[a] * size[b]
    by_node = dict(zip(d.node_ids.tolist(), range(300, 300 + len(d)), strict=True))
    clusters = model.clusters(0.02)
    assert len(clusters) > 5
    for cluster in clusters.values():
        if cluster.size > 1:
            pairs = cluster.size * (cluster.size - 1) / 2
            assert cluster.cohesion == pytest.approx(total[by_node[cluster.node_id]] / pairs)
    assert clusters == model.clusters(labels=model.labels(0.02))


@pytest.mark.parametrize("n_neighbors", [10, 40])
@pytest.mark.parametrize("theta", [0.1, 0.02, 0.005])
def test_planted_outliers_have_the_highest_scores(n_neighbors, theta):
    """At every cut: also where they are single points, or form clusters of their own."""
    rng = np.random.default_rng(5)
    centers = rng.normal(size=(5, 4)) * 6
    spreads = rng.uniform(0.4, 1.2, 5)
    inliers = np.concatenate(
        [
            center + spread * rng.normal(size=(120, 4))
            for center, spread in zip(centers, spreads, strict=True)
        ]
    )
    outliers = rng.uniform(-14, 14, size=(40, 4))
    far = np.linalg.norm(outliers[:, None] - centers, axis=2).min(axis=1) > 6
    X = np.concatenate([inliers, outliers[far]])
    planted = np.arange(len(X)) >= len(inliers)
    order = rng.permutation(len(X))
    model = DynHAC(n_neighbors=n_neighbors, threshold=1e-3)
    model.insert(X[order])
    score, planted = model.clusters(theta).outlier_score, planted[order]
    higher = (score[planted][:, None] > score[~planted]).mean()  # the area under the ROC curve
    assert higher > 0.98
    assert np.median(score[planted]) > 0.7
    assert np.median(score[~planted]) < 0.2


def test_points_durable_and_read_only(tmp_path):
    X = np.random.default_rng(1).normal(size=(60, 2)).round(3)
    names = [f"n{i}" for i in range(60)]
    plain = DynHAC(n_neighbors=5)
    plain.insert(X, ids=names)
    expected = plain.clusters(0.2)
    check_clusters(expected, plain.graph, plain.labels(0.2))
    assert plain.graph.clusters(0.2) == expected
    with dynhac.open(tmp_path / "store", "points", n_neighbors=5) as writer:
        writer.insert(X, ids=names)
        assert writer.clusters(0.2) == expected
        with dynhac.open(tmp_path / "store", mode="r") as reader:
            assert reader.clusters(0.2) == expected
            writer.delete(names[:10])
            assert reader.refresh() == 1
            assert reader.clusters(0.2) == writer.clusters(0.2) != expected


def test_nothing_and_one_point():
    g = GraphHAC()
    empty = g.clusters(0.5)
    assert (len(empty), list(empty), empty.medoids.tolist()) == (0, [], [])
    assert repr(empty) == "<Clusters: 0 points in 0 clusters>"
    assert (empty.largest(), empty.representatives(), empty.node_labels()) == ([], {}, {})
    assert (len(empty.to_pandas()), len(empty.points_to_pandas())) == (0, 0)
    assert g.watch(0.5).summary() == empty
    g.add("only")
    one = g.clusters(0.5)
    assert one[0].members.tolist() == ["only"]
    assert repr(one[0]) == "<Cluster 0: 1 point; typical: only>"
    assert one[0].to_dict()["cohesion"] is None
    assert one.outlier_score.tolist() == [1.0]
    none = g.clusters(0.5, min_size=2)
    assert (len(none), none.labels.tolist()) == (0, [-1])
    assert repr(none) == "<Clusters: 1 point in 0 clusters; in none: 1>"


@pytest.fixture
def g():
    g = GraphHAC()
    ids = [f"v{i}" for i in range(30)]
    pairs = [(i, j) for i in range(30) for j in range(i) if i // 5 == j // 5]
    w = [0.4 + ((7 * i + 3 * j) % 10) / 20 for i, j in pairs]
    bridges = [(5 * i, 5 * i + 5) for i in range(5)]
    u, v = zip(*pairs, *bridges, strict=True)
    g.add(ids, edges=([ids[i] for i in u], [ids[i] for i in v], [*w, *[0.1] * 5]))
    return g


def test_mapping(g):
    clusters = g.clusters(0.3)
    assert list(clusters) == list(range(6))
    assert [c.id for c in clusters.values()] == list(range(6))
    assert all(id in clusters for id in (5, np.int64(5)))
    assert not any(id in clusters for id in (6, -1, "v0", 2.0, None))
    assert isinstance(clusters[np.int64(2)], Cluster)
    assert clusters.get(17) is None
    with pytest.raises(KeyError, match=r"cluster 17 is not among .* 0, 1, 2, 3, 4, …"):
        clusters[17]
    with pytest.raises(KeyError, match="cluster 'v0' is not"):
        clusters["v0"]
    assert [c.id for c in clusters.largest(2)] == [0, 1]
    for call in (clusters.largest, clusters.representatives, clusters[0].outliers):
        with pytest.raises(ValueError, match="n is -1; it must be an integer >= 0"):
            call(-1)


def test_representatives_and_outliers(g):
    clusters = g.clusters(0.3)
    everything = clusters.representatives(99)
    for id, cluster in clusters.items():
        assert cluster.representatives(2).tolist() == cluster.members[:2].tolist()
        assert everything[id].tolist() == cluster.members.tolist()
        assert clusters.representatives(0)[id].tolist() == []
        scores = dict(zip(cluster.members.tolist(), cluster.outlier_score, strict=True))
        shown = [scores[id] for id in cluster.outliers(99).tolist()]
        assert shown == sorted(scores.values(), reverse=True)
    names = clusters.node_labels(2, str.upper, " + ")
    assert names[clusters[3].node_id] == " + ".join(clusters[3].members[:2]).upper()
    assert set(names) <= set(g.dendrogram().node_ids.tolist())


def test_copies_and_immutability(g):
    clusters = g.clusters(0.3)
    again = pickle.loads(pickle.dumps(clusters))
    for id, cluster in clusters.items():
        loaded = pickle.loads(pickle.dumps(cluster))
        assert loaded == cluster == clusters[id]
        assert not loaded.members.flags.writeable
    assert clusters[0] != clusters[1]
    assert again == clusters == copy.deepcopy(clusters)
    for array in (again.sizes, clusters.cohesion, clusters.labels, clusters[0].members):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    text = repr(clusters)
    g.remove("v0")
    assert repr(clusters) == text
    assert clusters != g.clusters(0.3)
    assert clusters != 3


def test_frames(g):
    clusters = g.clusters(0.3, min_size=2)
    frame = clusters.to_pandas(2)
    assert frame["cluster"].tolist() == list(clusters)
    assert frame["size"].tolist() == clusters.sizes.tolist()
    assert frame["representatives"].tolist() == [c.members[:2].tolist() for c in clusters.values()]
    assert frame["medoid"].dtype == "string"
    assert frame["nearest"].dtype == "Int64"
    lonely = g.clusters(0.95).to_pandas()
    assert lonely["node_id"].isna().all()
    assert lonely["cohesion"].isna().all()
    points = clusters.points_to_pandas()
    assert points["id"].tolist() == g.ids.tolist()
    np.testing.assert_array_equal(points["outlier_score"], clusters.outlier_score)


def test_table_of_many():
    g = GraphHAC()
    g.add([f"a rather long name of a point, number {i}" for i in range(40)])
    lines = repr(g.clusters(0.5)).splitlines()
    assert lines[0] == "<Clusters: 40 points in 40 clusters>"
    assert lines[-1] == "... and 30 more"
    assert len(lines) == 13
    assert max(map(len, lines)) < 120


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"theta": 0.5, "labels": [0, 1]},
            "theta is 0.5 and labels is .*; give one of them",
        ),
        ({"theta": 0.5, "n_clusters": 3}, "theta is 0.5 and n_clusters is 3; give one of them"),
        ({"theta": -1e-5}, "theta is -1e-05; it must be a similarity >= 0, the threshold"),
        ({"labels": [0] * 29}, "labels has 29 entries; it must have 30, one for each"),
        ({"labels": [0.0] * 30}, "labels is .* it must be one integer for each"),
        ({"labels": [True] * 30}, "labels is .* it must be one integer for each"),
        ({"labels": [[0] * 30]}, "labels is .* it must be one integer for each"),
        ({"labels": [[0], [0, 1]]}, "labels is .* it must be one integer for each"),
        ({"labels": 3}, "labels is 3; it must be one integer for each"),
        ({"labels": [0] * 29 + [-2]}, "label -2 at position 29 is not valid; .* >= 0, or -1"),
        ({"labels": np.full(30, 2**64 - 1, np.uint64)}, "label 18446744073709551615 at position 0"),
        ({"labels": [0] * 30, "min_size": 0}, "min_size is 0; it must be an integer >= 1"),
    ],
)
def test_wrong_arguments(g, arguments, message):
    for call in (g.clusters, g.dendrogram().clusters):
        with pytest.raises(ValueError, match=message):
            call(**arguments)


def test_given_labels(g):
    labels = np.repeat([7, 2**62, 3], 10)
    labels[:3] = -1
    labels[3] = 5
    found = g.clusters(labels=labels)
    assert found.cluster_ids.tolist() == [3, 5, 7, 2**62]
    check_clusters(found, g, labels)
    large = g.clusters(labels=labels.tolist(), min_size=2)
    assert large.cluster_ids.tolist() == [3, 7, 2**62]
    check_clusters(large, g, np.where(labels == 5, -1, labels))
    labels[:] = 0
    assert found.labels[0] == -1


def test_dendrograms_of_other_states(g):
    view = g.dendrogram()
    assert view.clusters(0.3) == g.clusters(0.3)
    g.add("new")
    with pytest.raises(ValueError, match=r"of version 1 of its model, which is now at 2, .* use"):
        view.clusters(0.3)
    view = g.dendrogram()
    with pytest.raises(ValueError, match="does not exist any more"):
        pickle.loads(pickle.dumps(view)).clusters(0.3)
    other = GraphHAC.from_graph(([1], [2], [0.5]))
    kept = other.dendrogram()
    del other
    gc.collect()
    with pytest.raises(ValueError, match=r"does not exist any more, .* keep the model"):
        kept.clusters(0.3)


def test_watches(g):
    watch = g.watch(0.3, min_size=2)
    g.remove(["v0", "v1", "v2", "v3"])  # cluster 0 becomes too small
    g.add("late", edges=(["late"] * 5, [f"v{i}" for i in range(5, 10)], [0.9] * 5))
    summary = watch.summary()
    assert list(summary) == [1, 2, 3, 4, 5]
    assert {id: cluster.size for id, cluster in summary.items()} == watch.clusters()
    assert summary[1].medoid == "late"
    assert watch.cluster(1).medoid == "late"
    for missing in (0, 99):
        with pytest.raises(KeyError, match=f"cluster {missing} does not exist"):
            watch.cluster(missing)
    with pytest.raises(ValueError, match="cluster is -1; it must be an integer >= 0"):
        watch.cluster(-1)
    watch.close()
    for call in (watch.summary, lambda: watch.cluster(1)):
        with pytest.raises(ValueError, match="is closed"):
            call()


def test_one_state_while_others_update():
    """Points come and go in whole cliques of five, so every state consists of whole cliques."""
    g = GraphHAC()
    watch = g.watch(0.5)
    pairs = [(i, j) for i in range(5) for j in range(i)]

    def add(clique):
        names = [f"{clique}/{i}" for i in range(5)]
        u, v = zip(*pairs, strict=True)
        g.add(names, edges=([names[i] for i in u], [names[i] for i in v], [0.9] * 10))

    for clique in range(40):
        add(clique)
    stop = threading.Event()

    def change():
        for clique in range(40, 100_000):
            add(clique)
            g.remove([f"{clique - 40}/{i}" for i in range(5)])
            if stop.is_set():
                return

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(60):
            for clusters in (g.clusters(0.5), watch.summary()):
                assert set(clusters.sizes.tolist()) == {5}
                np.testing.assert_allclose(clusters.cohesion, 0.9)
                assert (clusters.density == 1).all()
                for cluster in clusters.largest(3):
                    assert len({id.partition("/")[0] for id in cluster.members}) == 1
            some = max(watch.clusters())
            try:
                one = watch.cluster(some)
            except KeyError:  # it has gone
                continue
            assert (one.size, one.density) == (5, 1.0)
    finally:
        stop.set()
        thread.join()
    assert isinstance(g.clusters(0.5), Clusters)
