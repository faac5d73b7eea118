"""What is in the clusters of a labelling, from a dense matrix of exact fractions."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np


def matrix_of(model):
    """The weights between all points, by order of insertion."""
    row = {id: i for i, id in enumerate(model.ids.tolist())}
    weights = [[Fraction(0)] * len(row) for _ in row]
    for u, v, w in zip(*(column.tolist() for column in model.edges()), strict=True):
        weights[row[u]][row[v]] = weights[row[v]][row[u]] = Fraction(w)
    return weights


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else None


def leaf_sets(dendrogram):
    """The leaves, the smallest linkage and the stable id of every merge."""
    below = [{leaf} for leaf in range(dendrogram.n_leaves)]
    found = {}
    for j, (left, right) in enumerate(dendrogram.children.tolist()):
        below.append(below[left] | below[right])
        found[frozenset(below[-1])] = (dendrogram.min_similarity[j], dendrogram.node_ids[j])
    return found


def check_clusters(clusters, model, labels, watch=None):
    """Compare every value of ``clusters`` with its definition."""
    weights, labels = matrix_of(model), np.asarray(labels).tolist()
    n = len(labels)
    assert clusters.ids.tolist() == model.ids.tolist()
    assert clusters.labels.tolist() == labels
    members = {c: [i for i in range(n) if labels[i] == c] for c in sorted(set(labels) - {-1})}
    assert list(clusters) == clusters.cluster_ids.tolist() == list(members)
    nodes = leaf_sets(model.dendrogram())

    def inside(i):
        return sum(weights[i][j] for j in members.get(labels[i], ()))

    def equal(found, exact):
        if exact is None:
            return math.isnan(found)
        return math.isclose(found, exact, rel_tol=1e-12, abs_tol=1e-15)

    for i in range(n):
        others = [j for j in members.get(labels[i], ()) if j != i]
        around = [j for j in range(n) if weights[i][j]]
        typicality = mean(weights[i][j] for j in others)
        assert equal(clusters.typicality[i], typicality)
        usual = sum(weights[i][j] * inside(j) for j in around)
        score = max(0, 1 - inside(i) * sum(weights[i]) / usual) if inside(i) else 1
        assert equal(clusters.outlier_score[i], score)
        share = inside(i) / sum(weights[i]) if around and labels[i] >= 0 else None
        assert equal(clusters.inside_share[i], share)

    for position, (c, points) in enumerate(members.items()):
        cluster = clusters[c]
        assert cluster.id == c
        assert len(cluster) == cluster.size == clusters.sizes[position] == len(points)
        pairs = [weights[i][j] for i, j in combinations(points, 2)]
        for value, exact in (
            (cluster.cohesion, mean(pairs)),
            (cluster.density, mean(Fraction(w > 0) for w in pairs)),
        ):
            assert equal(value, exact)
        ranked = sorted(points, key=lambda i: (-inside(i), i))
        assert cluster.members.tolist() == clusters.ids[ranked].tolist()
        assert cluster.medoid == clusters.medoids[position] == clusters.ids[ranked[0]]
        for name in ("typicality", "outlier_score", "inside_share"):
            of_all = getattr(clusters, name)[ranked]
            np.testing.assert_array_equal(getattr(cluster, name), of_all)
        similarity, node_id = nodes.get(frozenset(points), (math.nan, -1))
        assert cluster.node_id == node_id
        np.testing.assert_equal(cluster.similarity, similarity)
        linkages = {
            other: mean(weights[i][j] for i in points for j in theirs)
            for other, theirs in members.items()
            if other != c
        }
        near = sorted((-linkage, other) for other, linkage in linkages.items() if linkage)[:10]
        assert [found.id for found in cluster.nearest] == [other for _, other in near]
        assert all(equal(found.linkage, linkages[found.id]) for found in cluster.nearest)
        assert clusters.nearest[position] == (cluster.nearest[0].id if near else -1)
        assert clusters.nearest_linkage[position] == (cluster.nearest[0].linkage if near else 0)
        if watch is not None:
            assert repr(watch.cluster(c).to_dict()) == repr(cluster.to_dict())
            assert watch.cluster(c).members.tolist() == cluster.members.tolist()
            np.testing.assert_array_equal(watch.cluster(c).outlier_score, cluster.outlier_score)
