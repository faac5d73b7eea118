"""``Dendrogram``: invariants, cuts against union-find, linkage matrix of scipy, deep trees."""

import pickle
import time

import numpy as np
import pytest
import scipy.cluster.hierarchy as sch
from models import partition, random_edges

from dynhac import Dendrogram, GraphHAC


def model(n=300, m=900, seed=0, epsilon=0.1, threshold=1e-4):
    g = GraphHAC(epsilon=epsilon, threshold=threshold)
    g.add(range(n), random_edges(n, m, seed))
    return g


@pytest.fixture(scope="module", params=[(0.0, 0.0), (0.1, 1e-4), (1.0, 0.05)])
def dendrogram(request):
    """A dendrogram with several trees, after a few updates."""
    epsilon, threshold = request.param
    g = model(epsilon=epsilon, threshold=threshold)
    g.remove(range(0, 300, 11))
    g.add(range(300, 340), (range(300, 330), range(301, 331), np.linspace(0.1, 0.9, 30)))
    return g.dendrogram()


def by_hand(n, children, similarity, size=None):
    """A Dendrogram made from merges."""
    children = np.asarray(children, dtype=np.int64).reshape(-1, 2)
    similarity = np.asarray(similarity, dtype=np.float64)
    least, count = similarity.tolist(), [1] * n
    for j, pair in enumerate(children.tolist()):
        least[j] = min([least[j], *(least[c - n] for c in pair if c >= n)])
        count.append(count[pair[0]] + count[pair[1]])
    return Dendrogram(
        ids=np.arange(n),
        children=children,
        similarity=similarity,
        min_similarity=np.array(least),
        size=np.array(count[n:], dtype=np.int64),
        node_ids=np.arange(len(children)),
        epsilon=0.1,
        threshold=0.0,
    )


def cut_by_union_find(d, theta):
    """The definition: the leaves of maximal subtrees all of whose merges are >= theta."""
    parent = list(range(d.n_leaves + len(d)))

    def find(x):
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    whole = [True] * d.n_leaves
    for j, (a, b) in enumerate(d.children.tolist()):
        whole.append(whole[a] and whole[b] and d.similarity[j] >= theta)
        if whole[-1]:
            parent[find(a)] = parent[find(b)] = d.n_leaves + j
    return partition([find(i) for i in range(d.n_leaves)])


def test_children_come_before_their_parent_and_have_one_parent(dendrogram):
    d = dendrogram
    n = d.n_leaves
    assert (d.children < n + np.arange(len(d))[:, None]).all()
    assert len(np.unique(d.children)) == 2 * len(d)


def test_size_and_min_similarity(dendrogram):
    d = dendrogram
    n = d.n_leaves
    again = by_hand(n, d.children, d.similarity)
    assert (d.size == again.size).all()
    assert (d.min_similarity == again.min_similarity).all()
    assert (np.diff(d.min_similarity) <= 0).all()


def test_every_leaf_is_under_exactly_one_root(dendrogram):
    d = dendrogram
    n = d.n_leaves
    assert len(d.roots) == n - len(d)
    sizes = np.concatenate([np.ones(n, int), d.size])
    assert sizes[d.roots].sum() == n
    assert not np.isin(d.roots, d.children).any()


def test_node_ids_are_distinct(dendrogram):
    assert len(set(dendrogram.node_ids.tolist())) == len(dendrogram)


def test_no_similarity_is_below_the_threshold(dendrogram):
    d = dendrogram
    assert (d.similarity >= d.threshold / (1 + d.epsilon) * (1 - 1e-12)).all()


@pytest.mark.parametrize("theta", [0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 0.9, 1.0, 2.0, float("inf")])
def test_labels_against_union_find(dendrogram, theta):
    labels = dendrogram.labels(theta)
    units = theta / dendrogram.resolution
    lowered = theta if units == float("inf") else min(theta, round(units) * dendrogram.resolution)
    assert partition(labels) == cut_by_union_find(dendrogram, lowered)
    first = [labels.tolist().index(label) for label in range(labels.max() + 1)]
    assert first == sorted(first)


def test_a_cut_exactly_at_a_merge_includes_it(dendrogram):
    for j in (0, len(dendrogram) // 2):
        theta = max(dendrogram.min_similarity[j], dendrogram.threshold)
        assert partition(dendrogram.labels(theta)) == cut_by_union_find(dendrogram, theta)


def test_similarities_that_increase_towards_the_root():
    d = by_hand(4, [[0, 1], [4, 2], [5, 3]], [0.5, 0.7, 0.6])
    assert d.labels(0.6).tolist() == [0, 1, 2, 3]
    assert d.labels(0.5).tolist() == [0, 0, 0, 0]
    assert d.labels(n_clusters=3).tolist() == [0, 0, 1, 2]


def test_cut_gives_the_labels_at_each_theta(dendrogram):
    thetas = [0.3, 0.9, 0.05, 0.3]
    for min_size in (1, 3):
        rows = dendrogram.cut(thetas, min_size)
        assert rows.shape == (4, dendrogram.n_leaves)
        for theta, row in zip(thetas, rows, strict=True):
            assert (row == dendrogram.labels(theta, min_size=min_size)).all()
    assert dendrogram.cut([]).shape == (0, dendrogram.n_leaves)


def test_cuts_are_nested(dendrogram):
    fine, coarse = dendrogram.cut([0.5, 0.1])
    for cluster in partition(fine):
        assert len(set(coarse[list(cluster)].tolist())) == 1


def test_clusters_below_min_size_have_label_minus_one(dendrogram):
    all_of_them = partition(dendrogram.labels(0.2))
    labels = dendrogram.labels(0.2, min_size=4)
    assert partition(labels) == {c for c in all_of_them if len(c) >= 4}
    assert sorted(set(labels.tolist()) - {-1}) == list(range(labels.max() + 1))
    assert (dendrogram.labels(0.2, min_size=10**6) == -1).all()


def test_n_clusters(dendrogram):
    d = dendrogram
    previous = None
    for k in range(d.n_leaves, len(d.roots) - 1, -17):
        clusters = partition(d.labels(n_clusters=k))
        assert len(clusters) == k
        if previous is not None:
            assert all(any(small <= large for large in clusters) for small in previous)
        previous = clusters
    assert len(partition(d.labels(n_clusters=len(d.roots)))) == len(d.roots)


def test_linkage_is_valid_and_gives_the_same_clusters(dendrogram):
    d = dendrogram
    z = d.linkage()
    assert z.shape == (d.n_leaves - 1, 4)
    assert sch.is_valid_linkage(z, throw=True)
    assert sch.is_monotonic(z)
    for theta in (0.06, 0.1, 0.25, 0.4, 0.8):
        flat = sch.fcluster(z, 1 / theta - 1, criterion="distance")
        assert partition(flat) == partition(d.labels(theta))
    k = len(d.roots) + 5
    assert partition(sch.fcluster(z, k, criterion="maxclust")) == partition(d.labels(n_clusters=k))


def test_linkage_joins_separate_trees_at_infinite_distance(dendrogram):
    d = dendrogram
    z = d.linkage()
    assert np.isinf(z[:, 2]).sum() == len(d.roots) - 1
    assert z[-1, 3] == d.n_leaves
    finite = d.linkage(join_distance=1e6)
    assert (finite[len(d) :, 2] == 1e6).all()
    assert (finite[: len(d)] == z[: len(d)]).all()
    assert sch.is_valid_linkage(finite, throw=True)


def test_linkage_with_a_distance_rule(dendrogram):
    z = dendrogram.linkage(lambda s: -np.log(s), join_distance=100)
    m = len(dendrogram)
    assert z[:m, 2] == pytest.approx(-np.log(dendrogram.min_similarity))
    assert sch.is_valid_linkage(z, throw=True)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_linkage_without_merges(n):
    d = by_hand(n, [], [])
    z = d.linkage()
    assert z.shape == (max(n - 1, 0), 4)
    assert np.isinf(z[:, 2]).all()
    if n > 1:
        assert sch.is_valid_linkage(z, throw=True)
        assert z[-1, 3] == n


def test_wrong_distance_rules():
    d = by_hand(3, [[0, 1], [2, 3]], [4.0, 0.5])
    with pytest.raises(ValueError, match="similarity 4 is above 1"):
        d.linkage()
    assert d.linkage(lambda s: 1 / s)[:, 2].tolist() == [0.25, 2.0]
    with pytest.raises(ValueError, match="never grow with the similarity"):
        d.linkage(lambda s: s)
    with pytest.raises(ValueError, match="numbers >= 0"):
        d.linkage(lambda s: -s)
    with pytest.raises(ValueError, match="one distance for each"):
        d.linkage(lambda s: 1.0)
    with pytest.raises(ValueError, match=r"join_distance is 1\.0"):
        d.linkage(lambda s: 1 / s, join_distance=1)
    apart = GraphHAC.from_graph(([], [], []), ids=[1, 2]).dendrogram()
    with pytest.raises(ValueError, match=r"join_distance is -5\.0"):
        apart.linkage(join_distance=-5)


def test_a_dendrogram_is_immutable(dendrogram):
    for name in ("ids", "children", "similarity", "min_similarity", "size", "node_ids", "roots"):
        array = getattr(dendrogram, name)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
        with pytest.raises(AttributeError):
            setattr(dendrogram, name, array)
    with pytest.raises(AttributeError):
        del dendrogram.ids
    with pytest.raises(AttributeError):
        dendrogram.extra = 1


def test_later_updates_do_not_change_a_dendrogram():
    g = model()
    d = g.dendrogram()
    kept = pickle.loads(pickle.dumps(d))
    labels = d.labels(0.3)
    g.remove(range(0, 300, 2))
    g.add(range(1000, 1100), (range(1000, 1099), range(1001, 1100), [0.5] * 99))
    assert d == kept
    assert (d.labels(0.3) == labels).all()
    assert g.dendrogram() != d


def test_a_dendrogram_is_cached_until_the_next_update():
    g = model()
    d = g.dendrogram()
    assert g.dendrogram() is d
    assert g.ids is d.ids
    g.update()
    assert g.dendrogram() == d
    g.remove(0)
    assert g.dendrogram() is not d
    assert g.dendrogram().version == g.version


def test_equality_and_pickling():
    d, e = model().dendrogram(), model().dendrogram()
    assert d == e
    assert d != model(seed=1).dendrogram()
    assert d != "something else"
    again = pickle.loads(pickle.dumps(d))
    assert again == d
    assert again.version == d.version
    with pytest.raises(ValueError, match="read-only"):
        again.size[0] = 1


def test_repr():
    assert repr(by_hand(3, [[0, 1]], [0.25])) == (
        "<Dendrogram: 3 leaves, 1 merge, 2 trees, similarity 0.25 to 0.25>"
    )
    assert repr(by_hand(1, [], [])) == "<Dendrogram: 1 leaf, 0 merges, 1 tree>"


def test_a_chain_of_a_million_merges():
    m = 1_000_000
    n = m + 1
    children = np.stack([np.r_[0, np.arange(n, n + m - 1)], np.arange(1, n)], axis=1)
    similarity = np.linspace(0.9, 0.1, m)
    d = Dendrogram(
        ids=np.arange(n),
        children=children,
        similarity=similarity,
        min_similarity=similarity,
        size=np.arange(2, n + 1),
        node_ids=np.arange(m),
        epsilon=0.1,
        threshold=0.0,
    )
    start = time.process_time()
    assert d.roots.tolist() == [n + m - 1]
    assert d.labels(0.5).max() == np.count_nonzero(similarity < 0.5)
    assert d.cut([0.7, 0.3]).shape == (2, n)
    assert d.labels(n_clusters=10).max() == 9
    z = d.linkage()
    assert z[-1, 3] == n
    assert time.process_time() - start < 10


def test_a_million_single_leaves():
    n = 1_000_000
    d = by_hand(n, [], [])
    assert len(d.roots) == n
    assert d.linkage()[-1, 3] == n


def test_a_doubtful_cut_says_what_to_give():
    g = GraphHAC(threshold=0.25)
    g.add([1, 2, 3], edges=(1, 2, 4.0))
    for asked in (g, g.dendrogram()):
        with pytest.raises(ValueError, match=r"theta is 5, an int .* mean n_clusters=5\?"):
            asked.labels(5)
        with pytest.raises(ValueError, match=r"did you mean n_clusters=2\?"):
            asked.labels(np.int64(2))
        with pytest.raises(TypeError, match=r"theta is 0\.5 and n_clusters is 2; give one of them"):
            asked.labels(0.5, n_clusters=2)
        assert asked.labels(2.0).tolist() == asked.labels(1).tolist() == [0, 0, 1]
