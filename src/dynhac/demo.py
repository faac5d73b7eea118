"""A demo on a data set that changes: ``python -m dynhac.demo``.

Small images are inserted and deleted one at a time: scikit-learn's handwritten digits, or generated
ones if scikit-learn is not installed. The demo compares the cost of an update with a rebuild and
the quality with a fresh clustering, verifies every merge, and plots the hierarchy. The extra
``dynhac[demo]`` installs all packages that it uses; without one of them it skips that part.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac import Change, Dendrogram, GraphHAC
from dynhac.progress import metered

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SEED = 0
NEIGHBOURS = 30
BUILT = 1_200
DELETED = 500
ROWS = 20  # of the plot
LEAST = 25  # leaves of a cluster, and of a branch with a row in the plot
THRESHOLD = 1e-4
EPSILON = 0.1


class Images:
    """Images of 8x8 pixels in ten classes, in random order, and the distances between them."""

    def __init__(self, what: str, images: Floats, labels: Ints) -> None:
        order = np.random.default_rng(SEED).permutation(len(labels))
        self.what = what
        self.images = images[order]
        self.labels = labels[order]
        self.points: Floats = self.images.reshape(len(order), -1)
        squares = (self.points**2).sum(axis=1)
        between = squares[:, None] + squares - 2 * self.points @ self.points.T
        self._distance: Floats = np.sqrt(np.maximum(between, 0.0))

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
        # A pair may be listed twice, with distances that differ in the last bit: keep one.
        low, high = np.minimum(u, v), np.maximum(u, v)
        _, first = np.unique(low * len(self.labels) + high, return_index=True)
        return low[first], high[first], w[first]


def handwritten_digits() -> Images:
    """Return the digits of scikit-learn."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return Images("handwritten digits", digits.images / 16.0, digits.target.astype(np.int64))


def generated_glyphs(n: int = 1_797) -> Images:
    """Return noisy copies of ten symmetric patterns, for use without scikit-learn."""
    rng = np.random.default_rng(SEED)
    half = rng.random((10, 8, 4)) < 0.5
    patterns = np.concatenate([half, half[:, :, ::-1]], axis=2).astype(np.float64)
    labels = rng.integers(0, 10, n)
    strength = rng.uniform(0.3, 1.0, (n, 1, 1))
    images = np.clip(strength * patterns[labels] + rng.normal(0.0, 0.25, (n, 8, 8)), 0.0, 1.0)
    return Images("generated glyphs", images, labels)


def timed(update: Callable[..., Change], **batch: Any) -> tuple[Change, float]:
    """Apply a batch; return what it changed and how many milliseconds it took."""
    start = time.perf_counter()
    change = update(**batch)
    return change, (time.perf_counter() - start) * 1000


def nmi(a: Ints, b: Ints) -> float:
    """Return the normalised mutual information of two clusterings: 1 when they are the same."""

    def entropy(counts: Ints) -> float:
        share = counts[counts > 0] / len(a)
        return float(-(share * np.log(share)).sum())

    a, b = (np.unique(labels, return_inverse=True)[1] for labels in (a, b))
    of_a, of_b = entropy(np.bincount(a)), entropy(np.bincount(b))
    joint = entropy(np.bincount(a * (b.max() + 1) + b))
    return 2 * (of_a + of_b - joint) / (of_a + of_b) if of_a + of_b else 1.0


def best_nmi(truth: Ints, clusterings: Iterable[Ints]) -> float:
    """Return the NMI of the clustering that agrees best with ``truth``."""
    return max(nmi(truth, labels) for labels in clusterings)


def cuts(g: GraphHAC) -> Ints:
    """Return flat clusterings of a model, from fine to coarse."""
    return g.cut(np.geomspace(1.0, THRESHOLD, 60))


def dense_average_linkage(points: Floats) -> list[Ints]:
    """Return flat clusterings by exact average linkage over all pairs of points."""
    from scipy.cluster.hierarchy import fcluster, linkage

    tree = linkage(points, method="average")
    return [fcluster(tree, k, criterion="maxclust") for k in range(2, 100)]


def stream(g: GraphHAC, title: str, batches: Iterable[dict[str, Any]]) -> tuple[float, float]:
    """Apply batches; return the mean milliseconds and the mean number of new merges of one."""
    batches = list(batches)
    applied = []
    with metered(None) as meter:
        meter.begin(title, "points", len(batches))
        for batch in batches:
            applied.append(timed(g.update, **batch, progress=False))
            meter.advance(1)
        meter.end()
    milliseconds = float(np.mean([ms for _, ms in applied]))
    return milliseconds, float(np.mean([change.nodes_created for change, _ in applied]))


def draw(d: Dendrogram, data: Images, file: Path) -> None:
    """Plot the upper part of the tree, with its clusters and the mean image of each branch."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    branches: list[Ints] = []

    def describe(ids: Ints) -> str:
        branches.append(ids)
        share = np.bincount(data.labels[ids]) / len(ids)
        return f"{share.max():.0%} are {share.argmax()}"

    figure, axes = plt.subplots(figsize=(9, 7.0), layout="constrained")
    axes.tick_params(axis="y", pad=26)  # space for the images
    d.plot(ROWS, min_size=LEAST, labels=describe, ax=axes)
    style: dict[str, Any] = {"zoom": 2.4, "cmap": "gray_r", "interpolation": "bicubic"}
    for row, ids in zip(axes.get_yticks(), branches, strict=True):
        mean = OffsetImage(data.images[ids].mean(axis=0), **style)
        where = ("axes fraction", "data")
        axes.add_artist(AnnotationBbox(mean, (1.025, row), xycoords=where, frameon=False, pad=0))
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def run(data: Images, out: Path) -> None:
    """Run the demo and print its results."""
    n = len(data.labels)
    print(f"""
dynhac keeps the hierarchical clustering of a graph up to date while the graph changes.

Data: {n:,} {data.what}, each joined to its {NEIGHBOURS} nearest neighbours by edges with
similarity 1 / (1 + distance). Clustering: average linkage, every merge within a factor
{1 + EPSILON:g} of the best one.
""")

    g = GraphHAC(epsilon=EPSILON, threshold=THRESHOLD)
    start = np.arange(BUILT)
    u, v, w = data.graph(start)
    _, ms = timed(g.update, add=start, edges=(u, v, w))
    print(f"1. Build: {BUILT:,} points, {len(u):,} edges, in {ms:.1f} ms.\n")

    arriving = range(BUILT, n)
    leaving = np.random.default_rng(SEED).choice(n, DELETED, replace=False)
    print(f"2. Then {len(arriving)} points arrive and {DELETED} leave, one at a time:", flush=True)
    insert_ms, insert_merges = stream(
        g, "insert", ({"add": i, "edges": data.neighbours(i, np.arange(i))} for i in arriving)
    )
    delete_ms, delete_merges = stream(g, "delete", ({"remove": int(i)} for i in leaving))

    fresh = GraphHAC(epsilon=EPSILON, threshold=THRESHOLD)
    ids, edges = g.ids, g.edges()
    _, rebuild_ms = timed(fresh.update, add=ids, edges=edges)
    times = rebuild_ms / np.average([insert_ms, delete_ms], weights=[len(arriving), DELETED])
    d = g.dendrogram()
    print(f"""
                        time   merges new or changed
   insert one   {insert_ms:8.3f} ms   {insert_merges:21,.1f}
   delete one   {delete_ms:8.3f} ms   {delete_merges:21,.1f}
   rebuild all  {rebuild_ms:8.3f} ms   {len(d):21,}

   An update costs {times:,.0f} times less than a rebuild, and leaves the rest of the tree alone.
""")

    truth = data.labels[ids]
    mine, theirs = cuts(g), cuts(fresh)
    chosen = g.labels(min_size=LEAST)
    print(f"""3. Is it still a good clustering? Agreement with the true classes (NMI):
   labels() chooses {chosen.max() + 1:2} clusters by itself      {nmi(truth, chosen):.3f}
   best cut of this model, after {len(arriving) + DELETED:,} updates {best_nmi(truth, mine):.3f}
   best cut, built afresh from the final graph {best_nmi(truth, theirs):.3f}""")
    if find_spec("scipy") is not None:
        dense = best_nmi(truth, dense_average_linkage(data.points[ids]))
        print(f"   best cut of scipy, exact average linkage    {dense:.3f}")
    alike = best_nmi(max(mine, key=lambda labels: nmi(truth, labels)), theirs)
    print(f"   The best cut of this model agrees with one of the fresh model to {alike:.3f}.\n")

    print("4. Is every merge within the guarantee? verify() replays them all on the plain graph:")
    report = g.verify()
    print(f"   {report}\n")

    if find_spec("matplotlib") is None:
        print("5. No picture: matplotlib is missing (pip install 'dynhac[demo]').")
    else:
        picture = out / f"{data.what.split()[-1]}.png"
        draw(d, data, picture)
        print(f"5. Picture of the dendrogram: {picture}")
    if not report.ok:
        raise SystemExit("the check failed: this is a bug in dynhac, please report it")


def main() -> None:
    """Parse the command line and run the demo."""
    parser = argparse.ArgumentParser(prog="python -m dynhac.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder for the plot")
    parser.add_argument(
        "--generated", action="store_true", help="generated images, not those of scikit-learn"
    )
    options = parser.parse_args()
    real = not options.generated and find_spec("sklearn") is not None
    run(handwritten_digits() if real else generated_glyphs(), options.out)


if __name__ == "__main__":
    main()
