"""Exact average-linkage HAC by brute force, straight from the definition.

Every step merges the pair of clusters with the largest linkage. A pair without an edge has linkage
0 and is never merged.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from dynhac.reference.merges import Id, Merge, as_ids, fixed_point


def exact_hac(
    ids: int | Iterable[Any],
    edges: tuple[Sequence[Any], Sequence[Any], Sequence[float]],
    threshold: float = 0.0,
    *,
    resolution: float = 2**-32,
) -> list[Merge]:
    """Merge the pair of clusters of largest linkage until none has a linkage >= threshold.

    A cluster is identified by the position in `ids` of its first leaf. Among pairs of equal linkage
    the lexicographically smallest pair of positions is merged.

    Parameters
    ----------
    ids : int or iterable of int or str
        The vertices; an int n means ``range(n)``.
    edges : (u, v, w)
        Three sequences of the same length. An edge may be listed in either direction or both.
    threshold : float
        The smallest linkage that is merged; 0 merges each connected component.
    resolution : float
        Weights are rounded to multiples of this.

    Returns
    -------
    list of Merge
        In the order in which they were made. All are on level 0.

    Examples
    --------
    >>> from dynhac.reference import exact_hac
    >>> for merge in exact_hac("abc", (["a", "b", "a"], ["b", "c", "c"], [1.0, 0.5, 0.25])):
    ...     print(merge.left, merge.right, merge.similarity, merge.size)
    0 1 1.0 2
    3 2 0.375 3
    """
    names: list[Id] = list(range(ids)) if isinstance(ids, int) else as_ids(ids)
    position = {name: i for i, name in enumerate(names)}
    weights: dict[int, dict[int, int]] = {i: {} for i in range(len(names))}
    for u, v, w in zip(as_ids(edges[0]), as_ids(edges[1]), edges[2], strict=True):
        x, y = position[u], position[v]
        weights[x][y] = weights[y][x] = fixed_point(float(w), (u, v), resolution)

    size = dict.fromkeys(weights, 1)
    node = {i: i for i in weights}
    merges: list[Merge] = []
    while pairs := [  # with negated positions: the largest entry is the pair to merge
        (Fraction(resolution) * w / (size[x] * size[y]), -x, -y)
        for x, neighbours in weights.items()
        for y, w in neighbours.items()
        if x < y
    ]:
        linkage, minus_x, minus_y = max(pairs)
        if linkage < Fraction(threshold):
            break
        x, y = -minus_x, -minus_y
        merges.append(Merge(node[x], node[y], float(linkage), size[x] + size[y], 0, linkage))
        node[x] = len(names) + len(merges) - 1
        size[x] += size.pop(y)
        del weights[x][y]
        for z, w in weights.pop(y).items():
            if z != x:
                del weights[z][y]
                weights[x][z] = weights[z][x] = weights[x].get(z, 0) + w
    return merges
