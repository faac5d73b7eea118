"""Test graphs: named shapes with few, equal or many different weights.

Every weight is a multiple of 2**-20, so that it survives fixed-point rounding and decimal printing
unchanged.
"""

import random

UNIT = 2.0**-20
RESOLUTION = 2.0**-32

PALETTES = {
    "equal": lambda rng: 1.0,
    "few": lambda rng: rng.choice((1.0, 0.5, 0.25, 0.125)),
    "close": lambda rng: 1.0 - rng.randrange(1, 9) * 2.0**-6,  # within a factor 1.1 of each other
    "many": lambda rng: rng.randrange(1, 2**20 + 1) * UNIT,
}


def path(n):
    return [(i, i + 1) for i in range(n - 1)]


def star(n):
    return [(0, i) for i in range(1, n)]


def clique(n):
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def grid(n):
    side = max(1, round(n**0.5))
    right = [(i, i + 1) for i in range(n - 1) if (i + 1) % side]
    return right + [(i, i + side) for i in range(n - side)]


def ring(n):
    return path(n) + ([(0, n - 1)] if n > 2 else [])


def apart(n):
    """Cliques of five without an edge between them, and single vertices."""
    return [(i, j) for i, j in clique(n) if i // 5 == j // 5 and i % 7 and j % 7]


def blobs(n):
    """Cliques of six on a ring of bridges."""
    inside = [(i, j) for i, j in clique(n) if i // 6 == j // 6]
    return inside + [(i, i + 1) for i in range(5, n - 1, 6)]


def sparse(n, degree=3, seed=1):
    rng = random.Random(seed)
    pairs = set()
    for v in range(1, n):
        for _ in range(degree):
            u = rng.randrange(v)
            pairs.add((u, v))
    return sorted(pairs)


SHAPES = {
    "path": path,
    "star": star,
    "clique": clique,
    "grid": grid,
    "ring": ring,
    "apart": apart,
    "blobs": blobs,
    "sparse": sparse,
}


def weighted(shape, n, palette, seed=0):
    """Columns (u, v, w) of a named shape with weights from a named palette."""
    rng = random.Random(f"{shape} {n} {palette} {seed}")
    pairs = SHAPES[shape](n)
    weight = PALETTES[palette]
    return (
        [u for u, _ in pairs],
        [v for _, v in pairs],
        [weight(rng) for _ in pairs],
    )


def fixed(columns, resolution=RESOLUTION):
    """The same graph in the form of the oracles, for leaves that are their own ids."""
    return {(min(u, v), max(u, v)): round(w / resolution) for u, v, w in zip(*columns, strict=True)}


class Stream:
    """Random batches, each valid for the graph after all batches before it.

    Every method that is named after an operation returns the keyword arguments of ``update`` and
    has applied them to ``model``, which is ``{id: {id: weight}}`` in order of insertion. Ids are
    ints, or strings if `text`.
    """

    OPERATIONS = ("add", "remove", "set_edges", "cut_edges", "replace", "mixed")

    def __init__(self, rng, palette="many", target=12, text=False, most=3):
        self.rng = rng
        self.weight = PALETTES[palette]
        self.target = target
        self.text = text
        self.most = most
        self.model = {}
        self.next_id = 0

    def fresh(self):
        """An id that was never used; ids are not in sorted order."""
        self.next_id += 1
        block, place = divmod(self.next_id, 1009)
        number = place * 7 % 1009 + 1009 * block
        return f"v{number}" if self.text else number - 500

    def some(self, items, least=1):
        return self.rng.sample(items, min(len(items), self.rng.randint(least, self.most)))

    def seed_with(self, shape, n):
        """The first batch: a named shape."""
        new = [self.fresh() for _ in range(n)]
        pairs = {(new[a], new[b]): self.weight(self.rng) for a, b in SHAPES[shape](n)}
        return self._take(add=new, pairs=pairs)

    def add(self):
        new = [self.fresh() for _ in range(self.rng.randint(1, self.most))]
        return self._take(add=new, pairs=self._edges_at(new, [*self.model, *new]))

    def remove(self):
        return self._take(remove=self.some(list(self.model)))

    def set_edges(self):
        ids = list(self.model)
        return self._take(pairs=self._edges_at(self.some(ids), ids))

    def cut_edges(self):
        return self._take(drop=self._some_edges())

    def replace(self):
        again = self.some(list(self.model))
        return self._take(remove=again, add=again, pairs=self._edges_at(again, list(self.model)))

    def mixed(self):
        return self._take(**self._any_batch())

    def next(self):
        """An operation that keeps the number of vertices around the target."""
        if self.rng.random() < 0.5:
            grow = self.rng.random() * 2 * self.target > len(self.model)
            return self.add() if grow else self.remove()
        return getattr(self, self.rng.choice(self.OPERATIONS[2:]))()

    def bad(self):
        """A batch with one error, and the exception it must raise; the model does not change."""
        rng = self.rng
        batch = self._any_batch()
        columns = self._columns(batch["pairs"])
        add, remove, drop = list(batch["add"]), list(batch["remove"]), list(batch["drop"])
        kept = [v for v in self.model if v not in remove]
        alive = kept + [v for v in add if v not in kept]
        unknown = self.fresh()

        def put(items, *new):
            for item in new:
                items.insert(rng.randint(0, len(items)), item)

        def put_edge(u, v, w):
            at = rng.randint(0, len(columns[0]))
            for column, item in zip(columns, (u, v, w), strict=True):
                column.insert(at, item)

        faults = [
            (KeyError, lambda: put(remove, unknown)),
            (ValueError, lambda: put(add, unknown, unknown)),
        ]
        if remove:
            faults.append((ValueError, lambda: put(remove, rng.choice(remove))))
            gone = [v for v in remove if v not in add]
            if gone and alive:
                faults.append((KeyError, lambda: put_edge(gone[0], rng.choice(alive), 1.0)))
        if kept:
            faults.append((ValueError, lambda: put(add, rng.choice(kept))))
        if alive:
            faults.append((KeyError, lambda: put_edge(rng.choice(alive), unknown, 1.0)))
            faults.append((ValueError, lambda: put_edge(*[rng.choice(alive)] * 2, 1.0)))
            faults.append((ValueError, lambda: columns[2].append(1.0)))
        if kept:
            faults.append((KeyError, lambda: put(drop, (rng.choice(kept), unknown))))
        if len(alive) > 1:
            u, v = rng.sample(alive, 2)
            weights = (float("nan"), float("inf"), -float("inf"), 0.0, -1.0, 2.0**-40, 1e30)
            faults.append((ValueError, lambda: put_edge(u, v, rng.choice(weights))))

            def conflict():
                put_edge(u, v, 0.5)
                put_edge(v, u, 0.75)

            if (u, v) not in batch["pairs"] and (v, u) not in batch["pairs"]:
                faults.append((ValueError, conflict))
        strangers = [(u, v) for u in kept for v in kept if u != v and v not in self.model[u]]
        if strangers:
            faults.append((KeyError, lambda: put(drop, rng.choice(strangers))))
        error, spoil = rng.choice(faults)
        spoil()
        return self._batch(add, columns, remove, drop), error

    def _any_batch(self):
        rng = self.rng
        remove = self.some(list(self.model), least=0)
        add = [self.fresh() for _ in range(rng.randint(0, self.most))]
        if remove and rng.random() < 0.3:
            add.append(remove[0])
        alive = [v for v in self.model if v not in remove] + add
        drop = [pair for pair in self._some_edges(least=0) if not set(pair) & set(remove)]
        pairs = self._edges_at(add + self.some(alive, least=0), alive)
        if drop and rng.random() < 0.3 and drop[0][::-1] not in pairs:
            pairs[drop[0]] = self.weight(rng)  # removals come first, so this edge stays
        return {"add": add, "pairs": pairs, "remove": remove, "drop": drop}

    def _edges_at(self, ends, others):
        pairs = {}
        for v in ends:
            for u in self.some(others, least=0):
                if u != v and (u, v) not in pairs:
                    pairs[v, u] = self.weight(self.rng)
        return pairs

    def _some_edges(self, least=1):
        edges = [(u, v) for u, row in self.model.items() for v in row if u < v]
        return [pair if self.rng.random() < 0.5 else pair[::-1] for pair in self.some(edges, least)]

    def _take(self, add=(), pairs=None, remove=(), drop=()):
        pairs = pairs or {}
        for v in remove:
            for u in self.model.pop(v):
                del self.model[u][v]
        for u, v in drop:
            del self.model[u][v], self.model[v][u]
        self.model.update((v, {}) for v in add)
        for (u, v), w in pairs.items():
            self.model[u][v] = self.model[v][u] = w
        return self._batch(list(add), self._columns(pairs), list(remove), list(drop))

    def _columns(self, pairs):
        """Edges in either direction, some of them in both."""
        listed = [(u, v, w) for (u, v), w in pairs.items()]
        listed += [(v, u, w) for u, v, w in listed if self.rng.random() < 0.1]
        return [e[0] for e in listed], [e[1] for e in listed], [e[2] for e in listed]

    def _batch(self, add, columns, remove, drop):
        return {
            "add": add,
            "edges": columns,
            "remove": remove,
            "remove_edges": ([u for u, _ in drop], [v for _, v in drop]),
        }

    def indexed(self):
        """The model in the form of the oracles, with leaves numbered in order of insertion."""
        position = {v: i for i, v in enumerate(self.model)}
        return {
            (position[u], position[v]): round(w / RESOLUTION)
            for u in self.model
            for v, w in self.model[u].items()
            if position[u] < position[v]
        }
