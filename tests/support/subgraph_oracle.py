"""The round inside parts in plain Python: what the native `subgraph_round` must be as good as.

It makes other merges where several are allowed: it always takes the heaviest good edge. Its results
obey the same contract, so a build with it must pass every check.
"""

import pyarrow as pa

ROUNDING = 1 + 2.0**-46


def subgraph_round(table, epsilon, heavy):
    """Return the tables (vertices, merges, edges) of all parts of a table of half edges."""
    parts = {}
    columns = ("part", "other_part", "u", "v", "w", "size_u", "size_v", "least_u")
    for part, other, *row in zip(*(table[name].to_pylist() for name in columns), strict=True):
        parts.setdefault(part, []).append((other, *row))
    vertices, merges, edges = [], [], []
    for part in sorted(parts):
        run = Run(part, parts[part], epsilon, heavy)
        run.merge_all()
        vertices += run.vertices()
        merges += run.merges
        edges += run.edges()
    return (
        _table(vertices, ("id", "image", "size"), ("least",), ("finished",)),
        _table(merges, ("a", "b", "size_a", "size_b", "w"), ("similarity", "least"), (), ("seq",)),
        _table(edges, ("part", "other_part", "u", "v", "w")),
    )


def _table(rows, ints, floats=(), flags=(), more=()):
    types = [pa.int64()] * len(ints) + [pa.float64()] * len(floats) + [pa.bool_()] * len(flags)
    types += [pa.int64()] * len(more)
    names = (*ints, *floats, *flags, *more)
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=names)


class Run:
    def __init__(self, part, rows, epsilon, heavy):
        self.part, self.keep, self.heavy = part, (1 + epsilon) * ROUNDING, heavy
        self.weights, self.size, self.least, self.other = {}, {}, {}, {}
        for other, u, v, w, size_u, size_v, least in rows:
            assert v not in self.weights.setdefault(u, {})
            self.weights[u][v] = w
            self.size[u], self.size[v], self.least[u], self.other[v] = size_u, size_v, least, other
        for v, other in self.other.items():
            assert (other == part) == (v in self.weights), (v, other, part)
        self.image = {u: u for u in self.weights}
        self.merges = []

    def linkage(self, x, y):
        return self.weights[x][y] / (self.size[x] * self.size[y])

    def largest(self, x):
        return max((self.linkage(x, y) for y in self.weights[x]), default=0.0)

    def best(self):
        """The heaviest good edge inside the part, or None."""
        largest = {x: self.largest(x) for x in self.weights}
        found = None
        for x, ends in self.weights.items():
            for y in ends:
                if y not in self.weights or y < x:
                    continue
                value, outside = self.linkage(x, y), max(largest[x], largest[y])
                least = min(self.least[x], self.least[y], value)
                if value >= self.heavy and (outside <= value or outside <= self.keep * least):
                    found = max(found or (value, x, y), (value, x, y))
        return found

    def merge_all(self):
        while (found := self.best()) is not None:
            value, x, y = found
            a, b = (x, y) if (-self.size[x], x) < (-self.size[y], y) else (y, x)
            w = self.weights[a].pop(b)
            least = min(self.least[a], self.least[b], value)
            sizes = self.size[a], self.size[b]
            self.merges.append((a, b, *sizes, w, value, least, len(self.merges)))
            for z, more in self.weights.pop(b).items():
                if z == a:
                    continue
                self.weights[a][z] = self.weights[a].get(z, 0) + more
            for z in self.weights[a]:
                if z in self.weights:
                    self.weights[z].pop(b, None)
                    self.weights[z][a] = self.weights[a][z]
            self.size[a], self.least[a], self.image[b] = sum(sizes), least, a

    def final(self, v):
        while self.image[v] != v:
            v = self.image[v]
        return v

    def finished(self, x):
        largest = self.largest(x)
        return largest < self.heavy or largest == 0

    def vertices(self):
        images = [(v, self.final(v)) for v in sorted(self.image)]
        return [(v, z, self.size[z], self.least[z], self.finished(z)) for v, z in images]

    def edges(self):
        rows = []
        for x in sorted(self.weights):
            for y, w in sorted(self.weights[x].items()):
                inside = y in self.weights
                if self.finished(x) or (inside and (y < x or self.finished(y))):
                    continue
                other = self.part if inside else self.other[y]
                if inside or self.part < other:
                    rows.append((self.part, other, x, y, w))
        return rows
