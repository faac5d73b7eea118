"""Hierarchies on Spark: ``python -m benchmarks.spark --data FOLDER``.

- *Quality*: the best NMI over all cuts, beside that of `GraphHAC` on the same graph of 50 nearest
  neighbours, with the default options. As these graphs are small, one worker does much of the work
  then: so once more with small `local_edges`, which makes many rounds. The NMI of `GraphHAC` with
  other epsilons tells how much it varies among hierarchies that are all as good as promised.
- *Growth*: time, CPU time of all processes, shuffled bytes and rounds, of graphs of 2, 10 and 30
  million edges between the 50 nearest neighbours of stars, on two cores.

Without data the points are generated, and there is no quality to measure. Every build is a process
of its own with its own session. Shuffled bytes are those that Spark's tasks wrote, from its event
log. Every row names the commit that it was measured at.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.datasets import DATASETS, TITLES, read_points
from benchmarks.common.machine import commit, describe
from benchmarks.common.markdown import filled, number, table
from benchmarks.common.options import new_parser
from benchmarks.common.quality import thetas_from

GUIDE = Path(__file__).parents[1] / "docs" / "guide" / "spark.md"
RESULTS = Path(__file__).parent / "cost" / "results" / "spark.json"
QUALITY = ("mnist", "intents", "reuters", "tinyimagenet")
EDGES = (2_000_000, 10_000_000, 30_000_000)
K = 50
EPSILON = 0.1
OTHER_EPSILONS = (0.0, 0.01, 0.05, 0.2)
MANY_ROUNDS = {"local_edges": 10_000}
COSTS = {
    "edges": "edges",
    "vertices": "vertices",
    "rounds": "rounds",
    "seconds": "seconds",
    "CPU seconds": "cpu_seconds",
    "CPU µs / edge": "cpu_us_per_edge",
    "shuffled bytes / edge": "shuffled_bytes_per_edge",
    "folder, bytes / edge": "largest_folder_bytes_per_edge",
}
QUALITIES = ["", "edges", "GraphHAC", "other ε", "Spark", "rounds", "many rounds", "rounds"]
SIZES = ["edges", "CPU hours", "hours on 64 cores", "on 512 cores", "shuffled TB", "folder TB"]
CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "3g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


def main() -> None:
    """Measure, and write the results after every measurement."""
    parser = new_parser(__doc__ or "", QUALITY)
    parser.add_argument("--edges", nargs="*", type=int, default=list(EDGES), metavar="N")
    parser.add_argument("--only", choices=("quality", "growth"), help="measure one of the two")
    parser.add_argument("--tables", action="store_true", help="only write the tables of the guide")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_one(**json.loads(arguments.one))
        return
    if arguments.tables:
        found = json.loads(RESULTS.read_text())
        GUIDE.write_text(filled(GUIDE.read_text(), tables(found)))
        return
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    found = {"quality": {}, "growth": {}} | found
    found["machine"] = describe()
    graphs = arguments.edges if arguments.only != "quality" else ()
    names = (arguments.datasets or QUALITY) if arguments.data else ()
    names = names if arguments.only != "growth" else ()
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            found["quality"][name] = quality(name, arguments.data, Path(folder))
            write(found)
        for edges in graphs:
            found["growth"][str(edges)] = growth(edges, arguments.data, Path(folder))
            write(found)


def tables(found: dict[str, Any]) -> dict[str, str]:
    """Return the tables of the guide, by their marks."""
    rows = sorted(found["growth"].values(), key=lambda row: int(row["edges"]))
    costs = table(list(COSTS), [[number(row[name]) for name in COSTS.values()] for row in rows])
    first, last = rows[0], rows[-1]
    slope = (last["cpu_seconds"] - first["cpu_seconds"]) / (last["edges"] - first["edges"])
    sizes = []
    for power in (9, 10, 11):
        edges = 10.0**power
        hours = slope * edges / 3600
        moved, kept = (last[name] * edges / 1e12 for name in list(COSTS.values())[-2:])
        values = (hours, hours / 64, hours / 512, moved, kept)
        sizes.append([f"10^{power}", *(number(value) for value in values)])
    said = f"From the first row to the last, an edge more takes {1e6 * slope:.3g} µs of CPU time."
    qualities = [quality_line(name, found["quality"][name]) for name in QUALITY]
    return {
        "spark-costs": f"{costs}\n\n{said}",
        "spark-sizes": table(SIZES, sizes),
        "spark-quality": table(QUALITIES, qualities),
    }


def quality_line(name: str, row: dict[str, Any]) -> list[str]:
    """Return the line of a data set."""
    other = [row["nmi_graphhac"][str(epsilon)] for epsilon in OTHER_EPSILONS]
    line = [TITLES[name], number(row["default"]["edges"])]
    line += [f"{row['nmi_graphhac'][str(EPSILON)]:.3f}", f"{min(other):.3f} to {max(other):.3f}"]
    for options in ("default", "many_rounds"):
        line += [f"{row[options]['nmi']:.3f}", number(row[options]["rounds"])]
    return line


def write(found: dict[str, Any]) -> None:
    """Write the results, and show the last ones."""
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1), flush=True)


def growth(edges: int, data: Path | None, folder: Path) -> dict[str, Any]:
    """Return what the build of a graph of so many edges takes."""
    from scipy.spatial import cKDTree

    if data is None:
        points = np.random.default_rng(0).normal(size=(edges // 20, 3))
    else:
        points = np.random.default_rng(0).permutation(read_points("tycho2", data)[0])
    points = points[: edges // 30].astype(float)
    distance, other = cKDTree(points).query(points, K + 1, workers=-1)
    own = np.repeat(np.arange(len(points)), K)
    u, v, w = unique_pairs(own, other[:, 1:].ravel(), 1 / (1 + distance[:, 1:].ravel()))
    save(folder, u[:edges], v[:edges], w[:edges])
    return measured(folder, {"epsilon": EPSILON, "threshold": 0.01})


def quality(name: str, data: Path, folder: Path) -> dict[str, Any]:
    """Return the NMI of a data set with `GraphHAC` and on Spark, and what the builds take."""
    from sklearn.metrics import normalized_mutual_info_score

    from dynhac import DynHAC, GraphHAC
    from dynhac._core import cut

    points, classes = read_points(name, data)
    threshold = DATASETS[name].threshold
    model = DynHAC(n_neighbors=K, threshold=threshold)
    model.insert(points)
    u, v, w = model.graph.edges()
    save(folder, u, v, w)
    thetas = thetas_from(threshold)
    known = classes >= 0

    def best(cuts: NDArray[np.int64]) -> float:
        scores = (normalized_mutual_info_score(classes[known], labels[known]) for labels in cuts)
        return max(float(score) for score in scores)

    def on_one_machine(epsilon: float) -> float:
        ids = range(len(points))
        one = GraphHAC.from_graph((u, v, w), ids, epsilon=epsilon, threshold=threshold)
        return best(one.cut(thetas))

    def on_spark(options: dict[str, int]) -> dict[str, Any]:
        row = measured(folder, {"epsilon": EPSILON, "threshold": threshold, **options})
        tree = np.load(folder / "tree.npz")
        return row | {"nmi": best(cut(len(points), tree["children"], tree["least"], thetas))}

    return {
        "nmi_graphhac": {str(e): on_one_machine(e) for e in (EPSILON, *OTHER_EPSILONS)},
        "default": on_spark({}),
        "many_rounds": on_spark(MANY_ROUNDS),
    }


def unique_pairs(
    u: NDArray[np.int64], v: NDArray[np.int64], w: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return every pair once, in a random order."""
    low, high = np.minimum(u, v), np.maximum(u, v)
    _, first = np.unique(low * (np.int64(1) << 32) + high, return_index=True)
    first = np.random.default_rng(0).permutation(first)
    return low[first], high[first], w[first]


def save(folder: Path, *columns: NDArray[Any]) -> None:
    """Write edges as Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    edges = pa.table(dict(zip("uvw", columns, strict=True)))
    parquet.write_table(edges, folder / "edges.parquet", row_group_size=1 << 20)


def measured(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Build in a process of its own; return what it took, per edge where that says more."""
    with tempfile.TemporaryDirectory(dir=folder) as work:
        one = json.dumps({"folder": str(folder), "work": work, "options": options})
        command = [sys.executable, "-m", "benchmarks.spark", "--one", one]
        subprocess.run(command, check=True)
        row: dict[str, Any] = json.loads((Path(work) / "row.json").read_text())
        shuffled = shuffled_bytes(Path(work) / "log")
        stored = stored_bytes(Path(work) / "out")
    edges = row["edges"]
    return row | {
        "cpu_us_per_edge": round(1e6 * row["cpu_seconds"] / edges, 2),
        "shuffled_bytes_per_edge": round(shuffled / edges, 1),
        "result_bytes_per_vertex": round(stored / row["vertices"], 1),
        "options": options,
        "commit": commit(),
    }


def cpu_seconds() -> float:
    """Return the CPU time of this process and all that it started: Java and its Python workers.

    A process that has ended counts in the one that started it.
    """
    times, parents = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            parents[int(folder.name)] = int(fields[1])
            times[int(folder.name)] = sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while found := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= found
    return sum(times[pid] for pid in ours) / os.sysconf("SC_CLK_TCK")


def shuffled_bytes(log: Path) -> int:
    """Return what all tasks wrote for others to read."""
    total = 0
    for file in log.iterdir():
        for line in file.read_text().splitlines():
            if line.startswith('{"Event":"SparkListenerTaskEnd"'):
                metrics = json.loads(line).get("Task Metrics") or {}
                total += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
    return total


def stored_bytes(out: Path) -> int:
    """Return the size of the merges and the vertices."""
    folders = (out / "merges", out / "vertices")
    return sum(file.stat().st_size for folder in folders for file in folder.iterdir())


def run_one(folder: str, work: str, options: dict[str, Any]) -> None:
    """Build the graph of a folder, and write what it took."""
    from pyspark.sql import SparkSession

    from dynhac import Progress
    from dynhac.spark import build

    log = Path(work) / "log"
    log.mkdir()
    builder = SparkSession.builder.master("local[2]").config("spark.eventLog.dir", log.as_uri())
    for key, value in CONF.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    edges = spark.read.parquet(f"{folder}/edges.parquet")
    out, most = Path(work) / "out", 0

    def note(report: Progress) -> None:
        nonlocal most
        if report.ended:
            print(report, flush=True)
            most = max(most, sum(file.stat().st_size for file in out.rglob("*.parquet")))

    began, before = time.perf_counter(), cpu_seconds()
    tree = build(edges, path=out, progress=note, **options)
    seconds, cpu = time.perf_counter() - began, cpu_seconds() - before
    states = [tree._folder.read_json(f"state/{number}") or {} for number in range(tree.rounds + 1)]
    local = tree.to_dendrogram()
    np.savez(f"{folder}/tree.npz", children=local.children, least=local.min_similarity)
    row = {
        "edges": edges.count(),
        "vertices": tree.n_leaves,
        "merges": tree.n_merges,
        "rounds": tree.rounds,
        "edges_before_rounds": [state["half_edges"] // 2 for state in states[:-1]],
        "resolution": tree.resolution,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "largest_folder_bytes_per_edge": round(most / edges.count(), 1),
    }
    (Path(work) / "row.json").write_text(json.dumps(row))
    spark.stop()


if __name__ == "__main__":
    main()
