"""Writes the tables of the documents from results/*.json, and from nothing else.

python -m benchmarks.cost.tables
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from benchmarks import ROOT
from benchmarks.common.datasets import TITLES
from benchmarks.common.markdown import beside, filled, machine_line, number, table
from benchmarks.cost.jobs import RESULTS

DOCUMENTS = ("README.md", "docs/benchmarks.md", "docs/guide/running.md", "docs/guide/service.md")
SERVE_READS = ("/v1/clusters", "/v1/tree")
Rows = list[dict[str, Any]]


class Authors(NamedTuple):
    """The authors' public C++ on a similar machine: one thread, CPU time, epsilon 0.1."""

    build_s: float
    update_ms: float
    rss_mb: int
    static_s: float  # their static ParHAC on the same graph


AUTHORS = {
    ("mnist", "insertion"): Authors(9.3, 7.8, 1080, 2.6),
    ("mnist", "deletion"): Authors(16.2, 61.8, 1930, 4.7),
    ("fruits360", "insertion"): Authors(13.5, 17.2, 1970, 5.4),
    ("fruits360", "deletion"): Authors(29.1, 207, 3070, 9.4),
    ("intents", "insertion"): Authors(12.0, 373, 980, 3.3),
    ("intents", "deletion"): Authors(19.9, 1278, 1390, 5.5),
    ("tinyimagenet", "insertion"): Authors(30.7, 4357, 1250, 6.4),
    ("tinyimagenet", "deletion"): Authors(37.0, 5391, 1650, 8.3),
}


def from_vectors(results: dict[str, Any]) -> str:
    """The first table of the README: what a user of vectors sees, one line per data set."""
    rows = {row["name"]: row for row in results["points"]["rows"] if "variant" not in row}
    scales = [row for row in results["scale"]["rows"] if row["name"] == "tycho2"]
    if scales:
        rows["tycho2"] = max(scales, key=lambda row: row["size"])
    titled = [(TITLES[name], rows[name]) for name in TITLES if name in rows]
    if "large" in results:
        row = max(results["large"]["rows"], key=lambda row: row["size"])
        titled.append((f"generated clusters, {row['size']:,} x {row['dimension']}", row))
    lines = []
    for title, row in titled:
        cells = [title, row["backend"]]
        cells += [
            f"{number(row[k]['ms'])} ({number(row[k]['search'])})" for k in ("insert", "delete")
        ]
        lines.append([*cells, number(row["build_s"]), number(row["rss_peak_mb"])])
    head = ["from vectors", "index", "insert one point, ms (of it search)"]
    return table([*head, "delete one point, ms", "bulk build, s", "peak RSS, MB"], lines)


def figures(results: dict[str, Any]) -> str:
    """The second table of the README: what a user of graphs sees, one line per data set."""
    pairs: dict[str, dict[str, Any]] = {}
    for row in results["streams"]["rows"]:
        pairs.setdefault(row["name"], {})[row["protocol"]] = row
    lines = []
    for name in (n for n in TITLES if len(pairs.get(n, {})) == 2):
        cells = [TITLES[name]]
        for protocol in ("insertion", "deletion"):
            theirs = AUTHORS.get((name, protocol))
            cells.append(beside(pairs[name][protocol]["ms_mean"], theirs and theirs.update_ms))
        ours, theirs = pairs[name]["insertion"], AUTHORS.get((name, "insertion"))
        cells.append(beside(ours["build_s"], theirs and theirs.build_s))
        cells.append(beside(ours["rss_peak_mb"], theirs and theirs.rss_mb))
        lines.append(cells)
    head = ["from a graph", "insert one point, ms", "delete one point, ms", "bulk build, s"]
    return table([*head, "peak RSS, MB"], lines)


def streams(results: dict[str, Any], experiment: str = "streams") -> str:
    """Single updates: cost, memory, levels and quality."""
    lines = []
    for row in ordered(results[experiment]["rows"]):
        theirs = AUTHORS.get((row["name"], row["protocol"])) if row["epsilon"] == 0.1 else None
        lines.append(
            [
                f"{TITLES[row['name']]}, {row['protocol']}",
                f"{row['epsilon']:g}",
                beside(row["ms_mean"], theirs and theirs.update_ms),
                number(row["ms_p50"]),
                number(row["ms_p99"]),
                number(row["ms_max"]),
                beside(row["build_s"], theirs and theirs.build_s),
                number(theirs.static_s) if theirs else "",
                beside(row["rss_peak_mb"], theirs and theirs.rss_mb),
                str(row["levels"]),
                f"{row['nmi']:.3f}",
                str(row["bad_merges"]),
            ]
        )
    head = ["stream", "ε", "update ms", "p50", "p99", "max", "build s", "(ParHAC s)", "peak RSS MB"]
    return table([*head, "levels", "NMI", "bad merges"], lines)


def epsilons(results: dict[str, Any]) -> str:
    """The same for other values of epsilon."""
    return streams(results, "epsilons")


def counters(results: dict[str, Any]) -> str:
    """What an update reruns and changes, on average."""
    names = list(results["streams"]["rows"][0]["counters"])
    lines = [
        [
            f"{TITLES[row['name']]}, {row['protocol']}",
            *(number(row["counters"][n]) for n in names),
            number(row["engine_mb"]),
        ]
        for row in ordered(results["streams"]["rows"])
    ]
    return table(["stream", *(n.replace("_", " ") for n in names), "engine MB"], lines)


def batches(results: dict[str, Any]) -> str:
    """Cost per point by size of the batch."""
    lines = []
    for row in ordered(results["batches"]["rows"]):
        for size in row["sizes"]:
            cells = [TITLES[row["name"]], size["kind"], f"{size['batch']:,}"]
            lines.append([*cells, number(size["ms_mean"]), number(size["ms_point"])])
    return table(["data", "kind", "points in a batch", "ms per batch", "ms per point"], lines)


def growth(results: dict[str, Any]) -> str:
    """Cost, levels and quality while a graph grows point by point, beside a fresh build."""
    lines = []
    for row in ordered(results["growth"]["rows"]):
        for at in row["checkpoints"]:
            cells = [TITLES[row["name"]], f"{at['points']:,}", number(at["ms"])]
            cells += [
                number(at["fresh_build_s"] * 1000),
                str(at["levels"]),
                str(at["fresh_levels"]),
            ]
            cells += [f"{at['nmi']:.3f}", f"{at['fresh_nmi']:.3f}", str(at["bad_merges"])]
            lines.append(cells)
    head = ["data", "points", "ms per update", "ms of a fresh build", "levels", "fresh levels"]
    return table([*head, "NMI", "fresh NMI", "bad merges"], lines)


def shapes(results: dict[str, Any]) -> str:
    """Awkward graphs at two sizes."""
    lines = []
    for row in sorted(results["shapes"]["rows"], key=lambda r: (r["name"], r["size"])):
        cells = [row["name"], f"{row['points']:,}", f"{row['edges']:,}", number(row["build_s"])]
        cells += [number(row["build_us_edge"])]
        for kind in ("insertion", "deletion"):
            cells += [number(row[kind]["ms_mean"]), number(row[kind]["ms_max"])]
        lines.append([*cells, str(row["levels"]), str(row["bad_merges"])])
    head = ["graph", "vertices", "edges", "build s", "us per edge", "insert ms", "max"]
    return table([*head, "delete ms", "max", "levels", "bad merges"], lines)


def bridge(results: dict[str, Any]) -> str:
    """Two random graphs and the edge between them."""
    lines = []
    for row in sorted(results["bridge"]["rows"], key=lambda r: (r["size"], -r["epsilon"])):
        cells = [f"{row['points']:,}", f"{row['edges']:,}", f"{row['epsilon']:g}"]
        cells += [number(row["ms_mean"]), number(row["ms_max"])]
        cells += [number(row["counters"][k]) for k in ("edges_changed", "nodes_created")]
        lines.append([*cells, str(row["levels"]), str(row["bad_merges"])])
    head = ["vertices", "edges", "ε", "update ms", "max", "edges changed", "merges created"]
    return table([*head, "levels", "bad merges"], lines)


def points(results: dict[str, Any]) -> str:
    """Single insertions and deletions of points, with the search."""
    lines = []
    names = list(dict.fromkeys(row["name"] for row in results["points"]["rows"]))
    for row in sorted(results["points"]["rows"], key=lambda r: names.index(r["name"])):
        cells = [f"{TITLES.get(row['name'], row['name'])}, {row['backend']}"]
        for kind in ("insert", "delete"):
            one = row[kind]
            parts = (number(one[k]) if k in one else "" for k in ("search", "python", "engine"))
            cells += [number(one["ms"]), *parts]
        cells += [number(row["build_s"]), number(row["rss_peak_mb"])]
        refit = row["refit_s"]
        lines.append([*cells, ", ".join(f"{k} {number(v)} s" for k, v in refit.items())])
    head = ["points, backend", "insert ms", "search", "rest", "engine", "delete ms", "search"]
    return table([*head, "rest", "engine", "build s", "peak RSS MB", "refit"], lines)


def layer(results: dict[str, Any]) -> str:
    """Single updates of points: time outside search and engine, in search and in the engine."""
    lines = []
    rows = results["layer"]["rows"]
    for row in sorted(rows, key=lambda r: (r["name"], r.get("variant", ""), r["size"])):
        kind = f", {row['variant']}" if "variant" in row else ""
        cells = [f"{row['name']}, {row['dimension']} dimensions, {row['backend']}{kind}"]
        cells.append(f"{row['size']:,}")
        for kind in ("insert", "delete"):
            one = row[kind]
            cells += [number(1e3 * one[k]) for k in ("python_p50", "python", "search", "engine")]
        lines.append(cells)
    head = ["data, backend", "points"]
    for kind in ("insert", "delete"):
        head += [f"{kind}: rest, median us", "mean", "search", "engine"]
    return table(head, lines)


def windows(results: dict[str, Any]) -> str:
    """Models with a window, against models built afresh from the same points."""
    lines = []
    for row in results["windows"]["rows"]:
        streams: dict[int, list[dict[str, float]]] = {}
        for at in row["checkpoints"]:
            streams.setdefault(at["stream"], []).append(at)

        def loss(better: str, worse: str, streams: Any = streams) -> str:
            per_stream = [fmean(at[better] - at[worse] for at in s) for s in streams.values()]
            error = stdev(per_stream) / len(per_stream) ** 0.5
            return f"{fmean(per_stream):+.4f} ± {error:.4f}"

        points = row["checkpoints"]
        apart = stdev(at["fresh_nmi"] - at["nmi"] for at in points)
        mean = {key: fmean(at[key] for at in points) for key in ("nmi", "edges", "fresh_edges")}
        cells = [f"{row['name']}, window {row['window']:,}", row["variant"], str(len(streams))]
        cells += [f"{mean['nmi']:.4f}", loss("fresh_nmi", "nmi"), loss("fresh_nmi", "rebuilt_nmi")]
        cells += [loss("rebuilt_nmi", "nmi"), f"{apart:.4f}"]
        cells += [number(mean["edges"]), number(mean["fresh_edges"]), number(row["insert"]["ms"])]
        repaired = sum(s[-1]["repaired"] for s in streams.values())
        cells.append(f"{100 * repaired / row['insert']['updates']:.0f}")
        lines.append([*cells, str(row["bad_merges"])])
    head = ["window", "", "streams", "NMI", "loss", "by the graph", "by the updates", "deviation"]
    head += ["edges", "fresh edges", "ms per update", "repaired per 100 updates", "bad merges"]
    return table(head, lines)


def scale(results: dict[str, Any]) -> str:
    """One data set at several sizes."""
    lines = []
    for row in sorted(results["scale"]["rows"], key=lambda r: r["size"]):
        cells = [row["name"], f"{row['size']:,}", number(row["build_s"])]
        cells += [number(row["rss_peak_mb"])]
        for kind in ("insert", "delete"):
            cells += [number(row[kind]["ms"]), number(row[kind]["engine"])]
        lines.append([*cells, str(row["levels"]), str(row["bad_merges"])])
    head = ["data", "points", "build s", "peak RSS MB", "insert ms", "in the engine", "delete ms"]
    return table([*head, "in the engine", "levels", "bad merges"], lines)


def large(results: dict[str, Any]) -> str:
    """Generated points of many dimensions."""
    lines = []
    for row in sorted(results["large"]["rows"], key=lambda r: r["size"]):
        cells = [f"{row['size']:,} x {row['dimension']}", row["backend"], number(row["build_s"])]
        cells += [number(row["rss_peak_mb"])]
        for kind in ("insert", "delete"):
            cells += [number(row[kind]["ms"]), number(row[kind]["engine"])]
        lines.append([*cells, f"{row['recall']:.4f}", str(row["bad_merges"])])
    head = ["points", "index", "build s", "peak RSS MB", "insert ms", "in the engine", "delete ms"]
    return table([*head, "in the engine", "recall", "bad merges"], lines)


def store(results: dict[str, Any]) -> str:
    """Updates through a store, beside the bare model."""
    found = {
        (r["name"], r["protocol"], r["size"], r["variant"]): r
        for r in results["store"]["rows"]
        if "variant" in r
    }
    lines = []
    for name, protocol, size in dict.fromkeys(key[:3] for key in found):
        cells = [f"{TITLES.get(name, name)}, {protocol}", f"{size:,}"]
        for variant in ("bare", "normal", "group", "full"):
            cells.append(number(found[name, protocol, size, variant]["per_second"]))
        cells.append(number(found[name, protocol, size, "full"]["log_bytes_update"]))
        lines.append(cells)
    head = ["store", "points in an update", "bare model, updates/s", "normal", "group of 100"]
    return table([*head, "full", "log bytes per update"], lines)


def snapshots(results: dict[str, Any]) -> str:
    """Snapshots and reopening."""
    lines = []
    for r in results["store"]["rows"]:
        if r.get("protocol") != "snapshot":
            continue
        cells = [TITLES.get(r["name"], r["name"]), f"{r['points']:,}", number(r["snapshot_s"])]
        cells += [number(r["snapshot_mb"]), f"{r['rss_snapshot_mb'] / r['rss_before_mb']:.2f}"]
        cells += [number(r["wait_s"]), number(r["open_s"])]
        lines.append([*cells, f"{number(r['replay_s'])} ({r['replayed']:,})"])
    head = [
        "store",
        "points",
        "snapshot s",
        "MB",
        "memory, relative",
        "longest wait of an update s",
    ]
    return table([*head, "reopen s", "reopen from the log s (updates)"], lines)


def serve(results: dict[str, Any]) -> str:
    """Single insertions through the service, and readers beside them."""
    found = results["serve"]
    beside_readers = found["single with readers"]
    clients = f"single insertions, {found['clients']} clients"
    loads = {clients: found["single"], f"{clients}, {found['readers']} readers": beside_readers}
    loads |= {f"`{path}` beside them": beside_readers[path] for path in SERVE_READS}
    lines = []
    for title, load in loads.items():
        rate = number(load["per_second"]) if "per_second" in load else ""
        lines.append([title, rate, number(load["p50_ms"]), number(load["p99_ms"])])
    return table(["load", "per second", "median ms", "99th percentile ms"], lines)


def serve_batches(results: dict[str, Any]) -> str:
    """Batches through the service and in process."""
    found = results["serve"]["batches"]
    titles = {"alone": "in process", "arrow": "Arrow", "ndjson": "NDJSON"}
    lines = []
    for name, title in titles.items():
        share = "1" if name == "alone" else f"{found['of_alone'][name]:.2f}"
        lines.append([title, number(found["points_per_second"][name]), share])
    head = [f"batches of {found['batch']:,} points", "points per second", "of in process"]
    memory = found["memory_mb"]
    return (
        f"{table(head, lines)}\n\nMemory: {number(memory['alone'])} MB in process, "
        f"{number(memory['served'])} MB as a service, after the same batches."
    )


def serve_page(results: dict[str, Any]) -> str:
    """The page of a large model in Chromium."""
    found = results["serve_page"]
    first = sorted(found["first_view_ms"])
    lines = [["first view", number(first[len(first) // 2]), number(first[-1])]]
    for view, title in (("clusters", "list of clusters"), ("tree", "hierarchy")):
        name = f"an update, in the {title}"
        lines.append([name, number(found[view]["p50_ms"]), number(found[view]["max_ms"])])
    return table([f"page of {found['points']:,} points", "median ms", "max ms"], lines)


def neighbors_machine(results: dict[str, Any]) -> str:
    """The machine that neighbour indexes were measured on."""
    return machine_line(results["neighbors"]["machine"])


def machine(results: dict[str, Any]) -> str:
    """The machines that the figures were measured on; that of threads is named beside them."""
    others = (r["machine"] for name, r in results.items() if name != "threads")
    return "\n".join(dict.fromkeys(map(machine_line, others)))


def threads(results: dict[str, Any]) -> str:
    """A section on what threads bring: seconds, and how many times faster than one thread."""
    of = results["threads"]
    rows: dict[tuple[str, int], dict[int, float]] = {}
    many = []
    for row in of["rows"]:
        if row["part"] == "many points":
            many.append(row)
            continue
        size = row.get("size", row.get("edges"))
        rows.setdefault((row["part"], size), {})[row["threads"]] = row["seconds"]
    counts = sorted({count for seconds in rows.values() for count in seconds})
    lines = []
    for (part, size), seconds in rows.items():
        unit = "edges" if part in ("build", "save", "load") else "points"
        cells = [f"{number(seconds[c])} ({seconds[counts[0]] / seconds[c]:.1f})" for c in counts]
        lines.append([f"{part}, {size:,} {unit}", *cells])
    parts = ["## Threads"]
    graph = next((row for row in of["rows"] if "vertices" in row), None)
    if graph:
        size = f"{graph['vertices']:,} vertices and {graph['edges']:,} edges"
        parts.append(f"A graph of {size}, and uniform random points in three dimensions.")
    parts += [
        "Seconds of wall-clock time, and how many times faster than with one thread. `load` also "
        "verifies the model.",
        f"Measured on: {machine_line(of['machine'])}",
        table(["", *(f"{count} thread{'s' * (count > 1)}" for count in counts)], lines),
        "![How much faster each part is with more threads](images/threads.png)",
    ]
    if many:
        lines = []
        for row in many:
            cells = (number(row[name]) for name in ("seconds", "cpu", "peak_mb"))
            lines.append([f"{row['size']:,}", str(row["threads"]), *cells])
        head = ["points in three dimensions", "threads", "seconds", "seconds of CPU", "peak RSS MB"]
        parts.append("Many points, inserted in one call, with the search for neighbours:")
        parts.append(table(head, lines))
    return "\n\n".join(parts)


INDEXES = {
    "kd": "KD-tree, exact",
    "exact": "scan, exact",
    "cells": "cells",
    "usearch": "usearch",
    "usearch-tuned": "usearch, tuned",
    "hnswlib": "hnswlib",
    "faiss": "faiss HNSW",
}


def neighbors(results: dict[str, Any]) -> str:
    """Neighbour indexes side by side."""
    lines = []
    for row in neighbor_rows(results["neighbors"]["rows"]):
        cells = [points_title(row), INDEXES[row["variant"]]]
        cells += [number(row["build_s"]), number(row["search_s"]), number(row["insert_ms"])]
        cells += [number(row["delete_ms"]) if "delete_ms" in row else ""]
        lines.append([*cells, f"{row['recall']:.4f}", f"{row['memory']:.2f}"])
    head = ["points", "index", "build s", "search of all s", "insert ms", "delete ms", "recall"]
    return table([*head, "memory"], lines)


def neighbor_rows(rows: Rows) -> Rows:
    """Rows by number of points, real data sets first, then by index."""
    names = list(INDEXES)
    return sorted(
        rows,
        key=lambda r: (r["name"] not in TITLES, r["size"], r["name"], names.index(r["variant"])),
    )


def points_title(row: dict[str, Any]) -> str:
    """Return the title of the points of a row."""
    return TITLES.get(row["name"], f"generated, {row['size']:,} x {row['dimension']}")


def ordered(rows: Rows) -> Rows:
    """Rows by data set, then epsilon, insertion before deletion."""
    names = list(TITLES)
    return sorted(
        rows, key=lambda r: (names.index(r["name"]), r["epsilon"], r["protocol"] != "insertion")
    )


TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "from-vectors": ("points", from_vectors),
    "figures": ("streams", figures),
    "streams": ("streams", streams),
    "counters": ("streams", counters),
    "epsilons": ("epsilons", epsilons),
    "batches": ("batches", batches),
    "growth": ("growth", growth),
    "shapes": ("shapes", shapes),
    "bridge": ("bridge", bridge),
    "machine": ("streams", machine),
    "points": ("points", points),
    "layer": ("layer", layer),
    "windows": ("windows", windows),
    "scale": ("scale", scale),
    "large": ("large", large),
    "neighbors": ("neighbors", neighbors),
    "neighbors-machine": ("neighbors", neighbors_machine),
    "store": ("store", store),
    "snapshots": ("store", snapshots),
    "serve": ("serve", serve),
    "serve-batches": ("serve", serve_batches),
    "serve-page": ("serve_page", serve_page),
    "threads": ("threads", threads),
}


def main() -> None:
    """Fill the documents that have tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = {f.stem: json.loads(f.read_text()) for f in sorted(options.results.glob("*.json"))}
    if not results:
        raise SystemExit(f"no results in {options.results}; run benchmarks.cost.updates first")
    content = {name: show(results) for name, (of, show) in TABLES.items() if of in results}
    for name in DOCUMENTS:
        document = ROOT / name
        document.write_text(filled(document.read_text(), content))
        print(f"{document.name}: tables of {', '.join(results)}")


if __name__ == "__main__":
    main()
