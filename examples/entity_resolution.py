"""Which records mean the same thing: ``python examples/entity_resolution.py --data FOLDER``.

Citations of scientific papers, typed by many hands. Pairs that look alike are the edges of a graph,
and the graph goes into a GraphHAC. Following the edges themselves would be a mistake: a few wrong
ones chain different papers together. Average linkage asks clusters to agree as a whole, and keeps
all cuts at hand. Then records come and go, and nothing is resolved again from the beginning; the
times are those of the engine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from data import arguments, load
from dynhac import GraphHAC
from generated import citations

Ints = NDArray[np.int64]
Edges = tuple[Ints, Ints, NDArray[np.float64]]

CANDIDATE = 0.6  # cosine from which a pair is an edge
LATE = 100  # records that come when all others are there


class Quality(NamedTuple):
    """How well pairs in one cluster agree with pairs that are the same paper."""

    precision: float
    recall: float

    def __str__(self) -> str:
        f1 = 2 * self.precision * self.recall / max(self.precision + self.recall, 1e-12)
        return f"precision {self.precision:.3f}  recall {self.recall:.3f}  F1 {f1:.3f}"


def quality(labels: Ints, truth: Ints) -> Quality:
    """Return precision and recall over all pairs of records."""

    def pairs(groups: Ints) -> int:
        count = np.unique(groups, return_counts=True)[1]
        return int((count * (count - 1) // 2).sum())

    both = pairs(labels * (truth.max() + 1) + truth)
    return Quality(both / max(pairs(labels), 1), both / max(pairs(truth), 1))


def connected(n: int, edges: Edges, least: float) -> Ints:
    """Return what following edges gives: the connected parts of the graph of heavy edges."""
    u, v, w = edges
    part = np.arange(n)
    while True:
        low = part.copy()
        for a, b in ((u, v), (v, u)):
            np.minimum.at(low, a[w >= least], part[b[w >= least]])
        if (low == part).all():
            return part
        part = low[low]


def candidates(X: NDArray[np.float32], rows: Ints, among: Ints) -> Edges:
    """Return the pairs of a row and one among others that look alike, each pair once."""
    cosine = (X[rows] @ X[among].T).astype(np.float64)
    i, j = np.nonzero((cosine >= CANDIDATE) & (rows[:, None] > among))
    return rows[i], among[j], np.minimum(cosine[i, j], 1.0)


def main() -> None:
    """Resolve the records, look at the cuts, and let some come and go."""
    parser = arguments(__doc__)
    parser.add_argument("--similarity", type=float, help="where to cut")
    options = parser.parse_args()
    data = load(options.data, "cora_er", citations)
    cut = options.similarity or (0.7 if options.data is None else 0.8)
    order = np.random.default_rng(0).permutation(len(data["X"]))
    X, y, text = (data[key][order] for key in ("X", "y", "text"))
    rows = np.arange(len(X) - LATE)

    edges = candidates(X, rows, rows)
    g = GraphHAC(epsilon=0.1, threshold=0.1)
    change = g.add(rows, edges)
    print(f"{len(rows):,} records, {len(edges[0]):,} alike pairs, in {change.seconds:.3f} s\n")
    print("                          pairs of records:")
    for theta in (0.5, 0.6, 0.7, 0.8, 0.9):
        print(f"  average linkage at {theta:g}:  {quality(g.labels(theta), y[rows])}")
    print(f"  following edges at {cut:g}:  {quality(connected(len(rows), edges, cut), y[rows])}\n")

    seconds = [
        g.add(row, candidates(X, np.array([row]), np.arange(row))).seconds
        for row in range(len(rows), len(X))
    ]
    print(f"{LATE} records more, {np.mean(seconds) * 1e3:.2f} ms each:", end="  ")
    print(quality(g.labels(cut), y[g.ids]))
    gone = range(0, len(rows), 10)
    seconds = [g.remove(row).seconds for row in gone]
    print(f"{len(gone)} records less, {np.mean(seconds) * 1e3:.2f} ms each:", end="  ")
    print(f"{quality(g.labels(cut), y[g.ids])}\n")

    labels, ids = g.labels(cut), g.ids
    for same, title in ((True, "Rightly together"), (False, "Wrongly together")):
        a, b = np.nonzero(
            np.triu((labels[:, None] == labels) & ((y[ids][:, None] == y[ids]) == same), 1)
        )
        if not len(a):
            continue
        worst = np.argmin([X[p] @ X[q] for p, q in zip(ids[a], ids[b], strict=True)])
        p, q = int(ids[a[worst]]), int(ids[b[worst]])
        print(f"{title}, and least alike: cosine {X[p] @ X[q]:.2f}")
        for row in (p, q):
            print(f"  {row:5,}: {' '.join(str(text[row]).split())[:110]}")
        print(f"{g.explain(p, q)}\n")
    print(g.verify())


if __name__ == "__main__":
    main()
