"""Find records of the same entity: ``python examples/entity_resolution.py --data FOLDER``.

The records are citations of scientific papers, typed by many people. Similar pairs are the edges of
a GraphHAC. Connected components ("following edges" in the output) are not sufficient: a few wrong
edges join different papers. Average linkage compares clusters as a whole, and any cut can be read
from the hierarchy. Then records are added and removed, without starting again. The times are those
of the engine.
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
LATE = 100  # records that are added one at a time after all others


class Quality(NamedTuple):
    """Precision and recall of pairs in one cluster, against pairs of the same paper."""

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
    """Return the connected components of the graph of edges with at least this weight."""
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
    """Return similar pairs of a row and one of ``among``, each pair once."""
    cosine = (X[rows] @ X[among].T).astype(np.float64)
    i, j = np.nonzero((cosine >= CANDIDATE) & (rows[:, None] > among))
    return rows[i], among[j], np.minimum(cosine[i, j], 1.0)


def main() -> None:
    """Resolve the records, compare cuts, then add and remove records."""
    parser = arguments(__doc__)
    parser.add_argument("--theta", type=float, help="similarity at which to cut")
    options = parser.parse_args()
    data = load(options.data, "cora_er", citations)
    theta = options.theta or (0.7 if options.data is None else 0.8)
    order = np.random.default_rng(0).permutation(len(data["X"]))
    X, y, text = (data[key][order] for key in ("X", "y", "text"))
    rows = np.arange(len(X) - LATE)

    edges = candidates(X, rows, rows)
    g = GraphHAC(epsilon=0.1, threshold=0.1)
    change = g.add(rows, edges)
    print(f"{len(rows):,} records, {len(edges[0]):,} similar pairs, in {change.seconds:.3f} s\n")
    print("                          pairs of records:")
    for each in (0.5, 0.6, 0.7, 0.8, 0.9):
        print(f"  average linkage at {each:g}:  {quality(g.labels(each), y[rows])}")
    components = connected(len(rows), edges, theta)
    print(f"  following edges at {theta:g}:  {quality(components, y[rows])}\n")

    seconds = [
        g.add(row, candidates(X, np.array([row]), np.arange(row))).seconds
        for row in range(len(rows), len(X))
    ]
    print(f"{LATE} records added, {np.mean(seconds) * 1e3:.2f} ms each:", end="  ")
    print(quality(g.labels(theta), y[g.ids]))
    gone = range(0, len(rows), 10)
    seconds = [g.remove(row).seconds for row in gone]
    print(f"{len(gone)} records removed, {np.mean(seconds) * 1e3:.2f} ms each:", end="  ")
    print(f"{quality(g.labels(theta), y[g.ids])}\n")

    labels, ids = g.labels(theta), g.ids
    for same, title in ((True, "Correctly together"), (False, "Wrongly together")):
        a, b = np.nonzero(
            np.triu((labels[:, None] == labels) & ((y[ids][:, None] == y[ids]) == same), 1)
        )
        if not len(a):
            continue
        worst = np.argmin([X[p] @ X[q] for p, q in zip(ids[a], ids[b], strict=True)])
        p, q = int(ids[a[worst]]), int(ids[b[worst]])
        print(f"{title}, least similar: cosine {X[p] @ X[q]:.2f}")
        for row in (p, q):
            print(f"  {row:5,}: {' '.join(str(text[row]).split())[:110]}")
        print(f"{g.explain(p, q)}\n")
    print(g.verify())


if __name__ == "__main__":
    main()
