"""`subgraph_round` in plain Python, straight from its description, and checks of its results.

Nothing is kept up to date: every linkage, every order and every judgement is computed anew.
"""

from fractions import Fraction
from typing import NamedTuple

import pyarrow as pa

INF = float("inf")
ROUNDING = 1 + 2.0**-46


class Half(NamedTuple):
    part: int
    other_part: int
    u: int
    v: int
    w: int
    size_u: int
    size_v: int
    least_u: float


def as_table(halves):
    schema = pa.schema([(name, pa.int64()) for name in Half._fields[:-1]] + [("least_u", "double")])
    columns = list(zip(*halves, strict=True)) or [[] for _ in schema]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)


def half_edges(edges, part, size=None, least=None):
    """Both halves of every edge (u, v, w); `part`, `size` and `least` are by vertex."""
    size = size or {}
    least = least or {}
    return [
        Half(part[x], part[y], x, y, w, size.get(x, 1), size.get(y, 1), least.get(x, INF))
        for u, v, w in edges
        for x, y in ((u, v), (v, u))
    ]


def mix(x):
    """The hash that decides ties, a bijection of 64-bit integers (the end of splitmix64)."""
    mask = 2**64 - 1
    x &= mask
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
    x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
    return x ^ x >> 31


class Part:
    """The clusters of one part: weights to all neighbours, also outside."""

    def __init__(self, halves, epsilon, heavy):
        self.keep = (1 + epsilon) * ROUNDING
        self.heavy = heavy
        self.weights, self.size, self.least, self.rank = {}, {}, {}, {}
        for h in halves:
            self.weights.setdefault(h.u, {})[h.v] = h.w
            self.size.update({h.u: h.size_u, h.v: h.size_v})
            self.least[h.u] = h.least_u
            self.rank.update({h.u: mix(h.u), h.v: mix(h.v)})
        self.image = {v: v for v in self.weights}
        self.merges = []

    def linkage(self, x, y):
        return self.weights[x][y] / (self.size[x] * self.size[y])

    def neighbours(self, v):
        """The heaviest first."""
        per_size = {y: (w / self.size[y], self.rank[y]) for y, w in self.weights[v].items()}
        return sorted(per_size, key=per_size.__getitem__, reverse=True)

    def largest(self, v):
        return max((self.linkage(v, y) for y in self.weights[v]), default=0.0)

    def is_good(self, outside, least, linkage):
        return outside <= linkage or outside <= self.keep * min(least, linkage)

    def is_finished(self, v):
        return self.largest(v) < self.heavy or not self.weights[v]

    def examine(self, v):
        """Return the neighbour to merge v with, or None, and where more edges may be good."""
        for y in self.neighbours(v):
            linkage = self.linkage(v, y)
            if linkage < self.heavy:
                break
            if not self.is_good(self.largest(v), self.least[v], linkage):
                return None, self.keep * min(self.least[v], linkage)
            if y in self.weights:
                outside = max(self.largest(v), self.largest(y))
                if self.is_good(outside, min(self.least[v], self.least[y]), linkage):
                    return y, None
        return None, 0.0

    def merge(self, x, y):
        a, b = sorted((x, y), key=lambda v: (-self.size[v], v))
        linkage = self.linkage(a, b)
        least = min(self.least[a], self.least[b], linkage)
        step = (a, b, self.size[a], self.size[b], self.weights[a][b], linkage, least)
        self.merges.append((*step, len(self.merges)))
        for z, w in self.weights.pop(b).items():
            if z != a:
                self.weights[a][z] = self.weights[a].get(z, 0) + w
            if z in self.weights:
                del self.weights[z][b]
                if z != a:
                    self.weights[z][a] = self.weights[a][z]
        self.size[a] += self.size.pop(b)
        self.least[a] = least
        self.rank[a] = min(self.rank[a], self.rank.pop(b))
        self.image = {v: a if z == b else z for v, z in self.image.items()}
        return a, b

    def run(self):
        queue = {v: self.largest(v) for v in self.weights if not self.is_finished(v)}
        resting = {}  # who they watch, and where more of their edges may be good
        while queue:
            v = max(queue, key=lambda v: (queue[v], self.rank[v]))
            del queue[v]
            partner, next_good = self.examine(v)
            if partner is None:
                resting[v] = self.neighbours(v)[0], next_good
                continue
            queue.pop(partner, None)
            resting.pop(partner, None)
            a, b = self.merge(v, partner)
            for x, (target, limit) in list(resting.items()):
                if target in (a, b):
                    del resting[x]
                    if not self.is_finished(x):
                        queue[x] = min(self.largest(x), limit)
            if not self.is_finished(a):
                queue[a] = self.largest(a)


def oracle(halves, epsilon, heavy):
    """Return the rows of vertices, merges and edges, as tuples."""
    vertices, merges, edges = [], [], []
    part_of = {h.v: h.other_part for h in halves}
    for number in sorted({h.part for h in halves}):
        part = Part([h for h in halves if h.part == number], epsilon, heavy)
        part.run()
        finished = {v: part.is_finished(v) for v in part.weights}
        vertices += [
            (v, z, part.size[z], part.least[z], finished[z]) for v, z in sorted(part.image.items())
        ]
        merges += part.merges
        for x in sorted(part.weights):
            for y, w in sorted(part.weights[x].items()):
                if finished[x]:
                    continue
                own = (part.size[x], part.least[x])
                if y not in part.weights and number < part_of[y]:
                    edges.append((number, part_of[y], x, y, w, own[0], None, own[1], None))
                elif y in part.weights and x < y and not finished[y]:
                    other = (part.size[y], part.least[y])
                    edges.append((number, number, x, y, w, own[0], other[0], own[1], other[1]))
    return vertices, merges, edges


def rows(table):
    return [tuple(row.values()) for row in table.to_pylist()]


def replay(edges, merges, epsilon, heavy, size=None):
    """Return what is wrong with merges (a, b, size_a, size_b, w, similarity, least, ...).

    They are judged one after the other, in exact arithmetic, on the whole graph.
    """
    weights: dict[int, dict[int, int]] = {}
    for u, v, w in edges:
        weights.setdefault(u, {})[v] = w
        weights.setdefault(v, {})[u] = w
    size = dict.fromkeys(weights, 1) | (size or {})
    least: dict[int, Fraction | float] = dict.fromkeys(weights, INF)
    wrong = []

    def linkage(x, y):
        return Fraction(weights[x][y], size[x] * size[y])

    for merge in merges:
        a, b, size_a, size_b, w, similarity, stated = merge[:7]
        own = linkage(a, b)
        smallest = min(least[a], least[b], own)
        largest = max(linkage(x, y) for x in (a, b) for y in weights[x])
        slack = 1 + Fraction(1, 2**40)
        if largest > (1 + Fraction(epsilon)) * slack * Fraction(smallest):
            wrong.append((merge, "goodness", float(largest / Fraction(smallest))))
        if own * slack < Fraction(heavy):
            wrong.append((merge, "light"))
        stated_of_merge = (size_a, size_b, w, similarity, stated)
        if stated_of_merge != (size[a], size[b], weights[a][b], float(own), float(smallest)):
            wrong.append((merge, "stated", size[a], size[b], weights[a][b], float(own)))
        least[a] = smallest
        for z, x in weights.pop(b).items():
            del weights[z][b]
            if z != a:
                weights[a][z] = weights[z][a] = weights[a].get(z, 0) + x
        size[a] += size.pop(b)
    left = {x: {y: linkage(x, y) for y in row} for x, row in weights.items()}
    wrong += [
        ("heavy edge left", x, y, float(own))
        for x, row in left.items()
        for y, own in row.items()
        if own > Fraction(heavy) * (1 + Fraction(1, 2**40))
    ]
    return wrong
