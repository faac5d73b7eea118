"""The answer of an exact neighbour index by definition, and a comparison with it."""

import numpy as np

from dynhac.neighbors.metrics import METRICS


def nearest(metric, vectors, slots, queries, k):
    """The answer by definition: all distances, sorted by distance and slot."""
    rule = METRICS[metric]
    a, b = rule.prepare(queries), rule.prepare(vectors)
    found = np.full((len(a), k), -1, np.int64)
    far = np.full((len(a), k), np.inf)
    for i, query in enumerate(a):
        exact = rule.pair_distances(np.tile(query, (len(b), 1)), b)
        order = np.lexsort((slots, exact))[:k]
        found[i, : len(order)], far[i, : len(order)] = slots[order], exact[order]
    return found, far


def check(index, held, queries, k):
    if not held:
        assert (index.query(queries, k)[0] == -1).all()
        return
    slots = np.array(sorted(held), np.int64)
    vectors = np.array([held[slot] for slot in slots.tolist()])
    wanted = nearest(index.metric, vectors, slots, queries, k)
    for found, expected in zip(index.query(queries, k), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)
