"""A hierarchy of sentences by intent: ``python examples/intents.py --data FOLDER``.

Sentence embeddings are inserted into a DynHAC. Three cuts of its dendrogram, from coarse to fine,
form a tree. The program prints each branch with its most typical sentence and its most frequent
intent. Then new sentences arrive one at a time, and it prints the clusters that they join.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from data import Arrays, arguments, load
from dynhac import Cluster, Clusters, DynHAC
from generated import sentences

Ints = NDArray[np.int64]

SEED = 0
WIDTH = 56  # most characters of a sentence to print
ARRIVING = 4


class Sentences:
    """The sentences, their vectors, and the intents that people assigned."""

    def __init__(self, data: Arrays, points: int) -> None:
        rows = np.random.default_rng(SEED).permutation(len(data["X"]))[:points]
        self.X, self.y, self.text = (data[key][rows] for key in ("X", "y", "text"))
        self.intents = [str(name).rpartition("/")[2] for name in data["classes"]]

    def describe(self, cluster: Cluster) -> str:
        """Return the most typical sentence of a cluster and the share of its main intent."""
        rows = cluster.members  # the ids are row numbers
        sentence = str(self.text[cluster.medoid])
        shown = sentence if len(sentence) <= WIDTH else sentence[: WIDTH - 3] + "..."
        counts = np.bincount(self.y[rows])
        share, name = counts.max() / len(rows), self.intents[int(counts.argmax())]
        return f"{len(rows):,}: {shown} [{share:.0%} {name}, intents: {np.count_nonzero(counts)}]"


def print_tree(
    data: Sentences, rows: Ints, cuts: list[Clusters], wide: int, indent: str = ""
) -> None:
    """Print the largest clusters of some rows in the first cut, and recursively those inside them.

    Each cut is finer than the one before, so each of its clusters is inside one cluster of that.
    """
    while cuts and len(np.unique(cuts[0].labels[rows])) == 1:
        cuts = cuts[1:]  # this cut does not divide the rows
    if not cuts:
        return
    inside = [cuts[0][label] for label in np.unique(cuts[0].labels[rows]).tolist()]
    largest = sorted(inside, key=len, reverse=True)[:wide]
    hidden = len(inside) - len(largest)
    for i, cluster in enumerate(largest):
        last = i == len(largest) - 1 and not hidden
        print(indent + ("└─ " if last else "├─ ") + data.describe(cluster))
        print_tree(data, cluster.members, cuts[1:], 3, indent + ("   " if last else "│  "))
    if hidden:
        print(f"{indent}└─ {hidden:,} smaller")


def main() -> None:
    """Cluster, print the tree, and insert some more sentences."""
    parser = arguments(__doc__)
    parser.add_argument("--points", type=int, default=10_000, help="most sentences to use")
    parser.add_argument(
        "--cuts",
        type=float,
        nargs="+",
        default=[0.002, 0.02, 0.2],
        help="thetas: similarities at which to cut, from coarse to fine",
    )
    options = parser.parse_args()
    data = Sentences(load(options.data, "intents_minilm384", sentences), options.points)
    first = len(data.X) - ARRIVING

    model = DynHAC(
        metric="cosine", similarity="cosine", n_neighbors=30, threshold=min(options.cuts)
    )
    start = time.perf_counter()
    model.insert(data.X[:first])  # the ids are 0, 1, ...: the rows of X
    took = time.perf_counter() - start
    intents = len(np.unique(data.y))
    print(f"{first:,} sentences of {intents} intents, clustered in {took:.1f} s.\n")
    print_tree(data, np.arange(first), [model.clusters(theta) for theta in options.cuts], 5)

    print("\nNew sentences:")
    watch = model.watch(options.cuts[-1])
    for row in range(first, len(data.X)):
        start = time.perf_counter()
        model.insert(data.X[row])
        milliseconds = (time.perf_counter() - start) * 1000
        beside = watch.members(watch.cluster_of(row))
        beside = beside[beside != row]
        nearest = beside[np.argsort(-(data.X[beside] @ data.X[row]), kind="stable")][:2]
        same = np.count_nonzero(data.y[beside] == data.y[row])
        print(f"\n  {data.text[row]}")
        print(
            f"  took {milliseconds:.1f} ms; cluster mates: {len(beside)}, with the same intent "
            f"({data.intents[data.y[row]]}): {same}"
        )
        for other in nearest.tolist():
            print(f"    - {data.text[other]}")


if __name__ == "__main__":
    main()
