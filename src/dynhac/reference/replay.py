"""Check of a finished dendrogram: replay its merges on the input graph and test each one.

The replay uses only the merges and their order, so it also tests the state that the algorithm keeps
between updates.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from dynhac.reference.merges import Merge


class Verification(NamedTuple):
    """The result of a replay.

    Attributes
    ----------
    ok : bool
        Whether no error was found.
    merges : int
        Merges replayed.
    bad_merges : int
        Merges whose goodness exceeds 1 + epsilon.
    worst_goodness : float
        The largest goodness of all merges.
    wrong_similarities : int
        Merges whose stored linkage is not the linkage of the two clusters.
    heavy_edges_left : int
        Edges between roots that should have been merged: linkage >= threshold / (1 + epsilon).
    faults : tuple of str
        Errors in the state that is kept between updates.
    """

    ok: bool
    merges: int
    bad_merges: int
    worst_goodness: float
    wrong_similarities: int
    heavy_edges_left: int
    faults: tuple[str, ...]


def replay(
    weights: Sequence[Mapping[int, int]],
    merges: Sequence[Merge],
    epsilon: Fraction,
    threshold: Fraction,
    unit: Fraction,
    faults: tuple[str, ...] = (),
) -> Verification:
    """Apply the merges one by one to a graph of n leaves and test whether each is good.

    A merge is compared with all other clusters at that moment. By the theorem of the paper, if
    every merge of a sequence is good when it is made, the dendrogram is (1 + epsilon)-approximate.
    """
    n = len(weights)
    graph: dict[int, dict[int, int]] = {v: dict(neighbours) for v, neighbours in enumerate(weights)}
    size = [1] * n
    min_merge: list[Fraction | float] = [math.inf] * n

    def linkage(x: int, y: int) -> Fraction:
        return unit * graph[x].get(y, 0) / (size[x] * size[y])

    bad = wrong = 0
    worst = Fraction(1)
    for j, merge in enumerate(merges):
        x, y, z = merge.left, merge.right, n + j
        value = linkage(x, y)
        wrong += value != merge.linkage
        smallest = min(min_merge[x], min_merge[y], value)
        largest = max(
            (linkage(end, other) for end in (x, y) for other in graph[end]), default=Fraction(0)
        )
        bad += largest > (1 + epsilon) * smallest
        if smallest > 0:
            worst = max(worst, largest / Fraction(smallest))
        size.append(size[x] + size[y])
        min_merge.append(smallest)
        joined = graph[z] = {}
        for end in (x, y):
            for other, w in graph.pop(end).items():
                if other not in (x, y):
                    del graph[other][end]
                    joined[other] = graph[other][z] = joined.get(other, 0) + w
    heavy = sum(
        (1 + epsilon) * linkage(x, y) >= threshold for x in graph for y in graph[x] if x < y
    )
    ok = not (bad or wrong or heavy or faults)
    return Verification(ok, len(merges), bad, float(worst), wrong, heavy, faults)
