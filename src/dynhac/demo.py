"""The library at work on a data set that changes: ``python -m dynhac.demo``.

Handwritten digits come and go one at a time. The demo shows what an update costs beside a rebuild,
that the clustering stays as good as a fresh one, that every merge is proved good at the end, and
what the hierarchy looks like. It needs the extra ``dynhac[demo]``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac import Dendrogram, GraphHAC, plot

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SEED = 0
NEIGHBOURS = 30
BUILT = 1_200
DELETED = 500
ROWS = 20  # of the picture
LEAST = 10  # leaves of a branch that gets a row there
THRESHOLD = 1e-4
EPSILON = 0.1


class Digits:
    """8x8 pictures of handwritten digits, and the similarities between them."""

    def __init__(self) -> None:
        from sklearn.datasets import load_digits
        from sklearn.metrics import pairwise_distances

        digits = load_digits()
        order = np.random.default_rng(SEED).permutation(len(digits.target))
        self.images: Floats = digits.images[order]
        self.labels: Ints = digits.target[order].astype(np.int64)
        self.points: Floats = digits.data[order] / 16.0
        self._distance: Floats = pairwise_distances(self.points)

    def neighbours(self, point: int, among: Ints) -> tuple[Ints, Ints, Floats]:
        """Return edges from a point to its nearest ones among others, as ``(u, v, weight)``."""
        distance = self._distance[point, among]
        nearest = np.argsort(distance, kind="stable")[:NEIGHBOURS]
        u = np.full(len(nearest), point, dtype=np.int64)
        return u, among[nearest], 1.0 / (1.0 + distance[nearest])

    def graph(self, points: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the edges of the nearest-neighbour graph of some of the points."""
        edges = [self.neighbours(int(p), points[points != p]) for p in points]
        u, v, w = (np.concatenate(part) for part in zip(*edges, strict=True))
        # Two points may list each other, at distances that differ in the last bit: keep one.
        low, high = np.minimum(u, v), np.maximum(u, v)
        _, first = np.unique(low * len(self.labels) + high, return_index=True)
        return low[first], high[first], w[first]


def stopwatch(run: Callable[[], Any]) -> float:
    """Run something and return how many milliseconds it took."""
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1000


def best_nmi(truth: Ints, clusterings: Iterable[Ints]) -> float:
    """Return the agreement with the classes of the clustering that agrees best."""
    from sklearn.metrics import normalized_mutual_info_score

    return max(float(normalized_mutual_info_score(truth, labels)) for labels in clusterings)


def cuts(g: GraphHAC) -> Ints:
    """Return flat clusterings of a model, from fine to coarse."""
    return g.cut(np.geomspace(1.0, THRESHOLD, 60))


def dense_average_linkage(points: Floats) -> list[Ints]:
    """Return flat clusterings by exact average linkage over all pairs of points."""
    from scipy.cluster.hierarchy import fcluster, linkage

    tree = linkage(points, method="average")
    return [fcluster(tree, k, criterion="maxclust") for k in range(2, 100)]


def stream(g: GraphHAC, title: str, batches: Iterable[dict[str, Any]]) -> tuple[float, float]:
    """Apply batches under a progress bar; return the mean milliseconds and new merges of one."""
    from tqdm import tqdm

    milliseconds, created = [], []
    for batch in tqdm(list(batches), desc=f"   {title}", unit=" points", ncols=88):
        start = time.perf_counter()
        change = g.update(**batch)
        milliseconds.append((time.perf_counter() - start) * 1000)
        created.append(change.nodes_created)
    return float(np.mean(milliseconds)), float(np.mean(created))


def leaves_under(d: Dendrogram, node: int) -> list[int]:
    """Return the indices of the leaves of a subtree."""
    leaves, stack = [], [node]
    while stack:
        node = stack.pop()
        if node < d.n_leaves:
            leaves.append(node)
        else:
            stack.extend(d.children[node - d.n_leaves].tolist())
    return leaves


def draw(d: Dendrogram, data: Digits, file: Path) -> None:
    """Write a picture: the upper part of the tree, and the mean digit of every branch drawn."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    figure, axes = plt.subplots(figsize=(9, 6.5), layout="constrained")
    plot.plot_dendrogram(d, ROWS, min_size=LEAST, ax=axes)
    sketch = plot._sketch(d, ROWS, LEAST)
    ends = {node: row for node, row in plot._rows(sketch).items() if node not in sketch.opened}
    style: dict[str, Any] = {"zoom": 2.4, "cmap": "gray_r", "interpolation": "bicubic"}
    texts = []
    for node, row in ends.items():
        digits = d.ids[leaves_under(d, node)]
        share = np.bincount(data.labels[digits]) / len(digits)
        texts.append(f"{len(digits)} leaves, {share.max():.0%} are {share.argmax()}")
        mean = OffsetImage(data.images[digits].mean(axis=0), **style)
        place = AnnotationBbox(
            mean, (1.025, row), xycoords=("axes fraction", "data"), frameon=False, pad=0
        )
        axes.add_artist(place)
    axes.set_yticklabels(texts, fontsize=8)
    axes.tick_params(axis="y", pad=26)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def run(out: Path) -> None:
    """Run the demo and print what happens."""
    data = Digits()
    n = len(data.labels)
    print(f"""
dynhac keeps the hierarchical clustering of a graph up to date while the graph changes.

Data: {n:,} handwritten digits, each joined to its {NEIGHBOURS} nearest neighbours by edges with
similarity 1 / (1 + distance). Clustering: average linkage, every merge within a factor
{1 + EPSILON:g} of the best one.
""")

    g = GraphHAC(epsilon=EPSILON, threshold=THRESHOLD)
    start = np.arange(BUILT)
    u, v, w = data.graph(start)
    ms = stopwatch(lambda: g.update(add=start, edges=(u, v, w)))
    print(f"1. Build: {BUILT:,} digits, {len(u):,} edges, in {ms:.1f} ms.\n")

    arriving = range(BUILT, n)
    leaving = np.random.default_rng(SEED).choice(n, DELETED, replace=False)
    print(f"2. Then {len(arriving)} digits arrive and {DELETED} leave, one at a time:")
    insert_ms, insert_merges = stream(
        g, "insert", ({"add": i, "edges": data.neighbours(i, np.arange(i))} for i in arriving)
    )
    delete_ms, delete_merges = stream(g, "delete", ({"remove": int(i)} for i in leaving))

    fresh = GraphHAC(epsilon=EPSILON, threshold=THRESHOLD)
    ids, edges = g.ids, g.edges()
    rebuild_ms = stopwatch(lambda: fresh.update(add=ids, edges=edges))
    times = rebuild_ms / np.average([insert_ms, delete_ms], weights=[len(arriving), DELETED])
    d = g.dendrogram()
    print(f"""
                      time       merges made
   insert one   {insert_ms:8.3f} ms   {insert_merges:11,.1f}
   delete one   {delete_ms:8.3f} ms   {delete_merges:11,.1f}
   rebuild all  {rebuild_ms:8.3f} ms   {len(d):11,}

   An update costs {times:,.0f} times less than a rebuild, and leaves what it need not change alone.
""")

    truth = data.labels[ids]
    dense = best_nmi(truth, dense_average_linkage(data.points[ids]))
    print(f"""3. Is it still a good clustering? Agreement with the true digits (NMI, best cut):
   this model, after {len(arriving) + DELETED:,} updates         {best_nmi(truth, cuts(g)):.3f}
   built afresh from the final graph       {best_nmi(truth, cuts(fresh)):.3f}
   scipy, exact average linkage, all pairs {dense:.3f}
""")

    print("4. Is every merge within the guarantee? verify() replays them all on the plain graph:")
    report = g.verify()
    print(f"   {report}\n")

    picture = out / "digits.png"
    draw(d, data, picture)
    print(f"5. Picture of the dendrogram: {picture}")
    if not report.ok:
        raise SystemExit("the check failed: this is a bug in dynhac, please report it")


def main() -> None:
    """Parse the command line and run the demo."""
    parser = argparse.ArgumentParser(prog="python -m dynhac.demo", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("demo-output"), help="folder for the picture"
    )
    options = parser.parse_args()
    try:
        import matplotlib  # noqa: F401
        import scipy  # noqa: F401
        import sklearn  # noqa: F401
        import tqdm  # noqa: F401
    except ImportError as missing:
        raise SystemExit(f"{missing}; the demo needs: pip install 'dynhac[demo]'") from missing
    run(options.out)


if __name__ == "__main__":
    main()
