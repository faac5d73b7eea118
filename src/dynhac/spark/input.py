"""The edges that are given: columns, ids, weights, and the resolution that fits them.

Weights become whole numbers of units of the resolution. All weights together must be less than 2^53
units: so any sum of weights is exact as a double, and no sum overflows. The total is bounded by the
number of weights between each two powers of two, which does not depend on the order of the edges
as a sum of doubles would.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import xor
from typing import Any

from dynhac.dendrogram.cuts import snap
from dynhac.input.columns import COARSEST, resolution_of_weights
from dynhac.input.errors import InvalidTypeError, show

NAMES = (("u", "v", "w"), ("source", "target", "weight"))
FINEST_CHOSEN = -32
"""Exponent of the resolution if the weights are not too large for it: as in `GraphHAC`."""
LARGEST_TOTAL = 2**53
WHOLE = ("tinyint", "smallint", "int", "bigint")
NUMBERS = (*WHOLE, "float", "double")


def edge_columns(edges: Any) -> tuple[Any, bool]:
    """Return the frame with columns u, v (long or string) and w (double), and whether ids are str.

    Raises InvalidTypeError if columns are missing or have other types.
    """
    from pyspark.sql import functions as F

    if not hasattr(edges, "sparkSession"):
        raise InvalidTypeError(
            f"edges is a {type(edges).__name__}; it must be a DataFrame of Spark, with columns u, "
            "v and w (a table in memory is for GraphHAC.from_graph)"
        )
    types = {name: type.partition("(")[0] for name, type in edges.dtypes}
    names = next((names for names in NAMES if all(name in types for name in names)), None)
    if names is None:
        raise InvalidTypeError(
            f"edges has the columns {', '.join(types) or 'none'}; it must have u, v and w, or "
            "source, target and weight"
        )
    given = [name for name, _ in edges.dtypes]
    for name in names:
        if given.count(name) > 1:
            raise InvalidTypeError(
                f"edges has {given.count(name)} columns {name}; it must have one"
            )
    u, v, w = names
    for name in (u, v):
        if types[name] not in (*WHOLE, "string"):
            raise InvalidTypeError(
                f"column {name} of edges is {types[name]}; ids must be integers or strings"
            )
    text = types[u] == "string"
    if text != (types[v] == "string"):
        raise InvalidTypeError(
            f"column {u} of edges is {types[u]} and column {v} is {types[v]}; ids must be all "
            "integers or all strings"
        )
    if types[w] not in (*NUMBERS, "decimal"):
        raise InvalidTypeError(f"column {w} of edges is {types[w]}; weights must be numbers")
    id = "string" if text else "long"
    frame = edges.select(
        F.col(u).cast(id).alias("u"),
        F.col(v).cast(id).alias("v"),
        F.col(w).cast("double").alias("w"),
    )
    return frame, text


@dataclass(frozen=True)
class Weights:
    """How many weights lie between each two powers of two: ``counts[e]`` in [2^e, 2^(e+1)).

    The ``digest`` is a hash of all edges, the same for any order and direction.
    """

    counts: dict[int, int]
    digest: int = 0

    @property
    def edges(self) -> int:
        """The number of edges."""
        return sum(self.counts.values())

    @property
    def bound(self) -> Fraction:
        """No less than the sum of all weights, and less than twice as much."""
        return sum((n * Fraction(2) ** (e + 1) for e, n in self.counts.items()), Fraction(0))

    def resolution(self, given: object) -> float:
        """Return the resolution: that which is given, if it fits, or the finest one that does."""
        least = Fraction(2) ** FINEST_CHOSEN
        while self.bound / least >= LARGEST_TOTAL:
            least *= 2
        if given is None:
            if least > COARSEST:
                raise ValueError(f"the weights may add up to {_near(self.bound)}; scale them down")
            return float(least)
        resolution = resolution_of_weights(given)
        if self.bound / Fraction(resolution) >= LARGEST_TOTAL:
            raise ValueError(
                f"resolution is {show(given)}; the weights may add up to {_near(self.bound)}, and "
                f"their sum must be less than 2^53 units: take {float(least):g}, or scale the "
                "weights down"
            )
        return resolution


def _near(total: Fraction) -> str:
    """Return a total as text; it may be too large for a double."""
    bits = int(total).bit_length()
    return f"{float(total):g}" if bits < 1000 else f"2^{bits}"


def heavy_linkage(epsilon: float, threshold: float, resolution: float) -> float:
    """Return the least linkage that is merged, in units of the resolution, as the engine has it."""
    return float(snap(threshold, resolution)) / (1 + epsilon) / resolution


def count_weights(edges: Any) -> Weights:
    """Return the weights of (u, v, w), or raise a ValueError that names an edge that is wrong."""
    from pyspark.sql import functions as F

    valid = (F.col("w") > 0) & (F.col("w") < float("inf")) & (F.col("u") != F.col("v"))
    right = F.coalesce(valid, F.lit(False))  # null: an id or a weight is missing
    exponent = F.when(right, F.floor(F.log2("w")))
    digest = F.bit_xor(F.xxhash64(F.least("u", "v"), F.greatest("u", "v"), "w"))
    rows = edges.groupBy(exponent.alias("e")).agg(F.count("*"), digest).collect()
    counts = {e: n for e, n, _ in rows}
    if None in counts:
        wrong = edges.where(~right).orderBy("u", "v", "w").first()
        raise ValueError(_fault(wrong["u"], wrong["v"], wrong["w"]))
    all_edges = reduce(xor, (part for _, _, part in rows), 0)
    return Weights({int(e): int(n) for e, n in sorted(counts.items())}, all_edges)


def _fault(u: object, v: object, w: object) -> str:
    edge = f"edge ({show(u)}, {show(v)})"
    if u is None or v is None:
        return f"{edge} has an end that is null; every edge joins two vertices"
    if u == v:
        return f"{edge} is a self loop; edges must join two different vertices"
    return f"weight of {edge} is {show(w)}; weights must be finite and > 0"


def check_underflow(edges: Any, weights: Weights, resolution: float) -> None:
    """Raise if a weight rounds to 0."""
    from pyspark.sql import functions as F

    # Rounding of a logarithm may lift a weight just below a power of two: so not ">=".
    if not weights.counts or Fraction(2) ** min(weights.counts) > Fraction(resolution) / 2:
        return
    small = edges.where(F.col("w") < resolution / 2).orderBy("u", "v", "w").first()
    if small is not None:
        raise ValueError(
            f"weight of edge ({show(small['u'])}, {show(small['v'])}) is {small['w']!r}, which "
            f"rounds to 0 at resolution {resolution:g}; leave out edges below {resolution / 2:g}, "
            "or take a finer resolution if the sum of all weights allows it"
        )
