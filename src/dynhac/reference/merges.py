"""Shared by the reference implementations: ids, fixed-point weights, merges, cuts.

Weights are integers, multiples of a resolution, as in the engine. A linkage is a fraction of such
integers, so no comparison in this package depends on rounding.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

Id = int | str
Name = tuple[int, str]
"""An id in a form that sorts, see ``name_of``."""


class Merge(NamedTuple):
    """One merge of a dendrogram over n leaves.

    Leaves have the indices 0..n-1 and merge j the index n + j; children come before parents.

    Attributes
    ----------
    left, right : int
        The two nodes that it joins.
    similarity : float
        Their linkage.
    size : int
        The number of leaves under it.
    level : int
        The round in which it was made.
    linkage : Fraction
        The similarity before it was rounded to a float.
    """

    left: int
    right: int
    similarity: float
    size: int
    level: int
    linkage: Fraction


def as_ids(values: Iterable[Any]) -> list[Id]:
    """Return ids from any array or sequence as a list of ``int`` or ``str``."""
    plain = values.tolist() if hasattr(values, "tolist") else list(values)
    for value in plain:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise TypeError(f"id {value!r} is neither an int nor a str")
    return plain


def name_of(vertex: Id) -> Name:
    """Return a key that sorts ids of one kind in their natural order."""
    return (vertex, "") if isinstance(vertex, int) else (0, vertex)


def fixed_point(weight: float, edge: tuple[Id, Id], resolution: float) -> int:
    """Return a weight as a multiple of the resolution; raise ``ValueError`` if it has none."""
    if not (math.isfinite(weight) and weight > 0):
        raise ValueError(f"weight of edge {edge} is {weight}; weights must be finite and > 0")
    rounded = round(Fraction(weight) / Fraction(resolution))
    if rounded == 0:
        raise ValueError(f"weight of edge {edge} is {weight}: it rounds to 0 at {resolution=}")
    if rounded >= 2**63:  # the limit of the engine's 64-bit integers
        raise ValueError(f"weight of edge {edge} is {weight}: too large for {resolution=}")
    return rounded


def cut_labels(n: int, merges: Sequence[Merge], theta: float) -> list[int]:
    """Label the leaves by the maximal subtrees all of whose merges have a similarity >= theta.

    With epsilon > 0 a parent may have a larger similarity than its child, so it is included only if
    both its children are. Labels are 0, 1, ... in order of the first leaf of each cluster.
    """
    whole = [True] * n
    top = list(range(n + len(merges)))
    for j, merge in enumerate(merges):
        whole.append(whole[merge.left] and whole[merge.right] and merge.similarity >= theta)
        if whole[-1]:
            top[merge.left] = top[merge.right] = n + j
    for node in reversed(range(len(top))):
        top[node] = node if top[node] == node else top[top[node]]
    numbers: dict[int, int] = {}
    return [numbers.setdefault(top[leaf], len(numbers)) for leaf in range(n)]
