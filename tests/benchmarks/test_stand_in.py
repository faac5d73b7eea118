"""A new vertex stands in for a removed one of the same cluster: the group is not the same group.

The image of a cluster may be dropped and made again in one update. On the next level a vertex goes
and another comes that has the same dendrogram node, and every old merge of the group is replayed
with it; its list of members must change all the same.
"""

from dynhac import GraphHAC

BATCHES = [
    {"add": [0, 2, 3], "edges": (3, 0, 0.75)},
    {"add": 12, "edges": (0, 12, 1.0)},
    {"remove": 2, "add": [23, 30, 35], "edges": (30, 23, 0.75)},
    {
        "add": [41, 42],
        "remove_edges": (30, 23),
        "edges": ([41, 30, 41], [0, 35, 30], [0.75, 0.75, 0.75]),
    },
    {
        "remove": 42,
        "add": [44, 42],
        "edges": ([0, 35, 35, 30, 41, 35], [12, 0, 30, 44, 35, 42], [0.5, 1, 1, 1, 1, 1]),
    },
]


def test_a_vertex_that_stands_in_for_another():
    g = GraphHAC(epsilon=0, threshold=0)
    for batch in BATCHES:
        g.update(**batch)
        report = g.verify()
        assert report, report
