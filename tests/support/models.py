"""Small graphs, and the visible state of a model."""

import numpy as np


def random_edges(n, m, seed=0):
    """Columns of ``m`` different pairs of 0..n-1, weights multiples of 2**-20."""
    rng = np.random.default_rng(seed)
    pairs = set()
    while len(pairs) < m:
        u, v = rng.integers(0, n, 2).tolist()
        if u != v:
            pairs.add((min(u, v), max(u, v)))
    u, v = np.array(sorted(pairs), dtype=np.int64).T
    return u.copy(), v.copy(), rng.integers(1, 2**20, m) * 2.0**-20


def edge_set(g):
    """``{(u, v): w}`` with every pair in order."""
    u, v, w = (column.tolist() for column in g.edges())
    pairs = [tuple(sorted(pair)) for pair in zip(u, v, strict=True)]
    assert len(set(pairs)) == len(pairs), "an edge is listed twice"
    return dict(zip(pairs, w, strict=True))


def state(g):
    """Everything that a rejected update must leave as it was."""
    d = g.dendrogram()
    return {
        "version": g.version,
        "length": len(g),
        "ids": g.ids.tolist(),
        "edges": edge_set(g),
        "levels": g.level_sizes,
        "children": d.children.tolist(),
        "similarity": d.similarity.tolist(),
        "min_similarity": d.min_similarity.tolist(),
        "size": d.size.tolist(),
        "node_ids": d.node_ids.tolist(),
    }


def partition(labels):
    """A flat clustering as a set of sets of positions; label -1 is left out."""
    clusters = {}
    for i, label in enumerate(np.asarray(labels).tolist()):
        if label != -1:
            clusters.setdefault(label, set()).add(i)
    return {frozenset(cluster) for cluster in clusters.values()}
