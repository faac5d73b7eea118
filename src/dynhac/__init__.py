"""Hierarchical clustering of weighted graphs that stays up to date.

`GraphHAC` holds a weighted graph and its (1+ε)-approximate average-linkage hierarchy. Vertices and
edges come and go in batches; the hierarchy, and the ids of its clusters, follow.

Examples
--------
>>> from dynhac import GraphHAC
>>> g = GraphHAC(epsilon=0.1, threshold=1e-4)
>>> change = g.update(add=[1, 2, 3], edges=([1, 2], [2, 3], [0.9, 0.3]))
>>> g.labels(0.5).tolist()
[0, 0, 1]
"""

from dynhac.change import Change, Node, Nodes
from dynhac.dendrogram import Dendrogram
from dynhac.errors import InvalidTypeError
from dynhac.graph import GraphHAC
from dynhac.verification import VerifyReport

__all__ = [
    "Change",
    "Dendrogram",
    "GraphHAC",
    "InvalidTypeError",
    "Node",
    "Nodes",
    "VerifyReport",
]
