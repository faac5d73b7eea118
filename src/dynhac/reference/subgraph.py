"""SubgraphHAC: merge good edges inside one partition until none is left.

The algorithm is that of TeraHAC (L. Dhulipala, J. Łącki, J. Lee, V. Mirrokni, 2023).
The *active* vertices are those of the partition; only edges between two of them may be merged.
Their edges to *inactive* vertices outside are never merged, but they count in the goodness: an
edge is good only if no other edge at its ends is much heavier.

With M(v) the smallest linkage of the merges that made v (infinite for a single point) and wmax(v)
the largest linkage of any edge at v, the *goodness* of an edge is

    max(wmax(u), wmax(v)) / min(M(u), M(v), linkage(u, v))

and a merge is good if its goodness is at most 1 + epsilon.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from dynhac.reference.dynamic_dendrogram import Node
from dynhac.reference.merges import Name

Graph = dict[int, dict[int, int]]
Step = tuple[int, int, Fraction]
"""Two clusters and their linkage. Cluster k >= 0 is a vertex; cluster ~k is the result of step k of
the same run."""


def subgraph_hac(
    graph: Graph,
    active: Iterable[int],
    clusters: Mapping[int, Node],
    epsilon: Fraction,
    floor: Fraction,
) -> list[Step]:
    """Merge good edges between active vertices; return the merges in order.

    The edge of smallest goodness is merged first; ties are broken by larger linkage, then by the
    names of the ends. Edges with a linkage below `floor` are never merged.

    A heap holds an entry for every edge between active clusters. Until one of its ends is merged,
    the goodness of an edge can only decrease, because wmax of an end decreases. Then a new entry is
    pushed, which is popped before the old one.
    """
    weights = {v: dict(graph[v]) for v in active}
    size: dict[int, int] = {}
    name: dict[int, Name] = {}
    min_merge: dict[int, Fraction | float] = {}
    for v, neighbours in weights.items():
        name[v], min_merge[v] = clusters[v].name, clusters[v].min_merge
        for y in (v, *neighbours):
            size[y] = clusters[y].size

    def linkage(x: int, y: int) -> Fraction:
        return Fraction(weights[x][y], size[x] * size[y])

    def largest_linkage(x: int) -> Fraction:
        return max((linkage(x, y) for y in weights[x]), default=Fraction(0))

    def goodness(x: int, y: int) -> Fraction:
        smallest = min(min_merge[x], min_merge[y], linkage(x, y))
        return max(wmax[x], wmax[y]) / Fraction(smallest)

    def push(x: int) -> None:
        for y in weights[x]:
            if y in weights and linkage(x, y) >= floor:
                a, b = sorted((x, y), key=lambda end: name[end])
                entry = (goodness(a, b), -linkage(a, b), name[a], name[b], a, b)
                heapq.heappush(heap, entry)

    wmax = {v: largest_linkage(v) for v in weights}
    heap: list[tuple[Fraction, Fraction, Name, Name, int, int]] = []
    for v in weights:
        push(v)

    steps: list[Step] = []
    while heap:
        edge_goodness, _, _, _, x, y = heapq.heappop(heap)
        if x not in weights or y not in weights:
            continue  # an end has been merged since
        if edge_goodness > 1 + epsilon:
            break
        z = ~len(steps)
        value = linkage(x, y)
        steps.append((x, y, value))
        size[z], name[z] = size[x] + size[y], min(name[x], name[y])
        min_merge[z] = min(min_merge[x], min_merge[y], value)
        joined = Counter(weights.pop(x)) + Counter(weights.pop(y))
        del joined[x], joined[y]  # the edge between the two parts
        weights[z] = joined
        wmax[z] = largest_linkage(z)
        for u in joined:
            if u in weights:
                weights[u].pop(x, None)
                weights[u].pop(y, None)
                weights[u][z] = joined[u]
                before, wmax[u] = wmax[u], largest_linkage(u)
                if wmax[u] != before:
                    push(u)
        push(z)
    return steps
