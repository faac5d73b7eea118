"""A vertex of a level is replaced by another with the same dendrogram node.

The image of a cluster may be removed and made again in one update. On the next level a vertex is
then replaced by one with the same dendrogram node, and all old merges of its group are replayed.
The list of the group's members must change nevertheless.
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


def test_vertex_replaced_by_one_with_the_same_node():
    g = GraphHAC(epsilon=0, threshold=0)
    for batch in BATCHES:
        g.update(**batch)
        report = g.verify()
        assert report, report
