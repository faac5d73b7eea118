"""Why two points are together: explanations against the dendrogram."""

import itertools
import random

import numpy as np
import pytest
from strategies import SHAPES, Stream

from dynhac import GraphHAC


def test_explain_agrees_with_the_dendrogram():
    rng = random.Random(11)
    for shape in sorted(SHAPES):
        stream = Stream(rng, "many", target=14)
        g = GraphHAC(0.1, 0.01)
        g.update(**stream.seed_with(shape, 14))
        for _ in range(8):
            g.update(**stream.mixed())
        d = g.dendrogram()
        n, ids = d.n_leaves, d.ids.tolist()
        parent = {c: n + j for j, pair in enumerate(d.children.tolist()) for c in pair}

        def path(leaf, parent=parent):
            nodes = []
            while leaf in parent:
                leaf = parent[leaf]
                nodes.append(leaf)
            return nodes

        for a, b in itertools.product(range(n), repeat=2):
            if a == b:
                continue
            up_a, up_b = path(a), path(b)
            meet = next((x for x in up_a if x in up_b), None)
            e = g.explain(ids[a], ids[b])
            assert e.together == (meet is not None)
            if meet is not None:
                up_a, up_b = (up[: up.index(meet) + 1] for up in (up_a, up_b))
                assert e.node_id == d.node_ids[meet - n]
                assert e.size == d.size[meet - n]
                assert e.linkage == d.similarity[meet - n]
                assert e.similarity == d.min_similarity[meet - n]
                labels = g.labels(0.01)
                assert e.clustered == (labels[a] == labels[b])
            else:
                assert e.similarity == 0
                assert "never" in str(e)
                assert not e.clustered
            for told, nodes in ((e.path_a, up_a), (e.path_b, up_b)):
                assert [s.node_id for s in told] == d.node_ids[np.array(nodes, int) - n].tolist()
                assert [s.size for s in told] == d.size[np.array(nodes, int) - n].tolist()
    with pytest.raises(KeyError, match="id 12345 is not in the graph"):
        g.explain(12345, ids[0])


def test_a_point_is_with_itself():
    g = GraphHAC()
    g.add([1, 2, 3], edges=(1, 2, 0.5))
    assert g.explain(1, 1).similarity == g.explain(3, 3).similarity == float("inf")
    assert "one point" in str(g.explain(1, 1))


def test_points_that_meet_only_below_the_threshold_or_never():
    g = GraphHAC(epsilon=1.0, threshold=0.5)
    g.add(list("abcz"), edges=(["a", "a"], ["b", "c"], [0.625, 0.625]))
    never = g.explain("a", "z")
    assert not never.together
    assert not never.clustered
    assert str(never).startswith("'a' and 'z' are never in one cluster: their trees are not merged")
    assert "threshold, 0.5" in str(never)
    below = g.explain("b", "c")
    assert below.together
    assert below.similarity == 0.3125
    assert below.threshold == 0.5
    assert not below.clustered
    assert g.labels(0.5).tolist() == [0, 1, 0, 2]
    assert str(below).startswith("'b' and 'c' are in no cut in one cluster, but in one tree")
    assert "up to 0.3125 only, below the threshold, 0.5" in str(below)


def test_a_threshold_that_rounding_lowered():
    g = GraphHAC(threshold=0.2)
    g.add([1, 2], edges=(1, 2, 0.2))
    assert g.explain(1, 2).similarity < 0.2
    assert g.explain(1, 2).clustered
