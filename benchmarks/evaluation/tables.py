"""Tables of the evaluation in Markdown, from results and from nothing else.

If the paper has the same data set, its figure is in brackets beside ours. It is that of the whole
data set on the paper's machine, even if ours is of a subset. A dash: was not run; the table of
skipped jobs says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.common.markdown import beside, machine_line, number, table
from benchmarks.evaluation.names import DATASET_TITLES, PAPER, SYSTEM_STYLES
from benchmarks.evaluation.plan import EPSILONS, SMALL
from benchmarks.evaluation.read_results import Results

NONE = "–"


def setting(results: Results) -> str:
    """The machine, and how much was run."""
    lines = [*map(machine_line, results.machines), ""]
    for mode in dict.fromkeys(results.modes.values()):
        names = ", ".join(DATASET_TITLES[d] for d in results.datasets if results.modes[d] == mode)
        what = "**Whole data sets**" if mode == "full" else f"**A subset only: {mode}**"
        lines.append(f"{what}: {names}.")
    dates = sorted({row["date"] for row in results.rows})
    commits = sorted({row["commit"] for row in results.rows})
    lines.append(f"Run on {' and '.join(dates)}, at commit {', '.join(commits)}.")
    return "\n".join(lines)


def speed(results: Results) -> str:
    """One update against recomputation, as in the paper's main table."""
    lines = []
    for name in results.datasets:
        cells = [DATASET_TITLES[name]]
        published = PAPER.get(name)
        for protocol in ("insertion", "deletion"):
            static = results.row(name, "static", protocol)
            ours = results.row(name, "dynhac", protocol)
            if protocol == "insertion":
                cells.append(f"{ours['points']:,}" if ours else NONE)
            if not static or not ours:
                cells += [NONE] * 3
                continue
            theirs = published and getattr(published, f"{protocol}_s")
            static_s = published.static_s if published else None
            cells.append(beside(static["ms_mean"], static_s and static_s * 1e3))
            cells.append(beside(ours["ms_mean"], theirs and theirs * 1e3))
            gain = static["ms_mean"] / ours["ms_mean"]
            cells.append(beside(gain, static_s / theirs if theirs and static_s else None) + "x")
        lines.append(cells)
    for name, published in PAPER.items():  # data sets of the paper without results here
        if name not in results.datasets:
            cells = [f"{DATASET_TITLES[name]}, in the paper", ""]
            for seconds in (published.insertion_s, published.deletion_s):
                shown = (published.static_s * 1e3, seconds * 1e3, published.static_s / seconds)
                cells += [f"({number(x)})" for x in shown]
                cells[-1] += "x"
            lines.append(cells)
    head = ["", "points", "static ms", "insertion ms", "gain", "static ms", "deletion ms", "gain"]
    return table(head, lines)


def _per_dataset(
    results: Results, cell: Callable[[str, str], str], more: Sequence[list[str]] = ()
) -> str:
    lines = [
        [SYSTEM_STYLES[s].title, *(cell(name, s) for name in results.datasets)]
        for s in results.systems
        if any(cell(name, s) != NONE for name in results.datasets)
    ]
    return table(["", *(DATASET_TITLES[d] for d in results.datasets)], [*lines, *more])


def nmi(results: Results) -> str:
    """Best NMI of every system after all insertions."""

    def cell(name: str, system: str) -> str:
        row = results.row(name, system, "insertion")
        if row is None:
            return NONE
        theirs = PAPER[name].nmi.get(system) if name in PAPER else None
        stopped = "*" if "stopped" in row else ""
        return f"{row['nmi']:.3f}{stopped}" + (f" ({theirs:.3f})" if theirs else "")

    alone = ["every point alone"]
    for name in results.datasets:
        row = results.row(name, "dynhac", "insertion") or {}
        alone.append(f"{row['nmi_alone']:.3f}" if "nmi_alone" in row else NONE)
    return _per_dataset(results, cell, [alone])


def ari(results: Results) -> str:
    """Best ARI of every system after all insertions."""

    def cell(name: str, system: str) -> str:
        row = results.row(name, system, "insertion")
        return f"{row['ari']:.3f}{'*' if 'stopped' in row else ''}" if row else NONE

    return _per_dataset(results, cell)


def loss(results: Results) -> str:
    """NMI of our system against recomputation, at the end and at all checkpoints."""
    lines = []
    for name in results.datasets:
        for protocol in ("insertion", "deletion", "growth"):
            ours, static = (results.row(name, s, protocol) for s in ("dynhac", "static"))
            if not ours or not static:
                continue
            at = {c["updates"]: c["nmi"] for c in static["checkpoints"]}
            less = [at[c["updates"]] - c["nmi"] for c in ours["checkpoints"] if c["updates"] in at]
            cells = [f"{DATASET_TITLES[name]}, {protocol}", f"{ours['nmi']:.4f}"]
            cells += [f"{static['nmi']:.4f}", f"{static['nmi'] - ours['nmi']:+.4f}"]
            cells += [f"{sum(less) / len(less):+.4f}", f"{max(less):+.4f}"]
            lines.append([*cells, f"{max(at.values()) - min(at.values()):.4f}"])
    head = ["stream", "NMI dynhac", "NMI static", "loss at the end", "mean loss", "largest loss"]
    return table([*head, "spread of static"], lines)


def again(kind: str, of: str) -> Callable[[Results], str]:
    """Return the table of NMI against recomputation over all streams of a kind of job."""

    def losses(results: Results) -> str:
        lines = []
        for name in results.datasets:
            for protocol in ("insertion", "deletion"):
                row = results.row(name, "dynhac", protocol, kind=kind)
                if row is None:
                    continue
                ours, static = np.array(row["ours"]), np.array(row["static"])
                less = static - ours
                deviation = less.std(ddof=1) if len(less) > 1 else np.nan
                cells = [f"{DATASET_TITLES[name]}, {protocol}", f"{row['points']:,}"]
                cells += [str(len(less)), f"{ours.mean():.4f}", f"{static.mean():.4f}"]
                cells.append(f"{less.mean():+.4f} ± {deviation / np.sqrt(len(less)):.4f}")
                lines.append([*cells, f"{deviation:.4f}"])
        head = ["stream", "points", of, "mean NMI dynhac", "mean NMI static", "mean loss"]
        return table([*head, "deviation of one"], lines)

    return losses


def times(protocol: str) -> Callable[[Results], str]:
    """Return the table of milliseconds per update of every system under a protocol."""

    def cell(results: Results, name: str, system: str) -> str:
        row = results.row(name, system, protocol)
        if row is None or "ms_mean" not in row:
            return NONE
        theirs = getattr(PAPER[name], f"others_{protocol}_s").get(system) if name in PAPER else None
        if system == "dynhac" and name in PAPER:
            theirs = getattr(PAPER[name], f"{protocol}_s")
        text = beside(row["ms_mean"], theirs and theirs * 1e3)
        if row["settle_ms"] and row["settle_ms"] > row["ms_mean"] / 10:
            text += f" + {number(row['settle_ms'])}"
        return text + ("*" if "stopped" in row else "")

    return lambda results: _per_dataset(results, lambda n, s: cell(results, n, s))


def epsilons(results: Results) -> str:
    """Cost, quality and levels over epsilon."""
    lines = []
    for name in results.datasets:
        for epsilon in sorted(EPSILONS):
            ins, dele = (results.row(name, "dynhac", p, epsilon) for p in ("insertion", "deletion"))
            static = results.row(name, "static", "insertion", epsilon)
            if not ins or not dele:
                continue
            theirs = PAPER.get(name)
            cells = [DATASET_TITLES[name], f"{epsilon:g}"]
            for row, protocol in ((ins, "insertion"), (dele, "deletion")):
                published = theirs and getattr(theirs, f"{protocol}_by_epsilon")[epsilon] * 1e3
                cells.append(beside(row["ms_mean"], published))
            cells += [f"{ins['nmi']:.3f}", f"{static['nmi']:.3f}" if static else NONE]
            cells += [str(ins["levels"]), number(ins["edges_rerun"]), number(dele["edges_rerun"])]
            lines.append(cells)
    head = ["", "ε", "insertion ms", "deletion ms", "NMI", "NMI static", "levels"]
    return table([*head, "edges rerun, insertion", "deletion"], lines)


def tails(results: Results) -> str:
    """Distribution of the cost of our single updates."""
    lines = []
    for name in results.datasets:
        for protocol in ("insertion", "deletion", "growth"):
            row = results.row(name, "dynhac", protocol)
            if row:
                cells = [f"{DATASET_TITLES[name]}, {protocol}", str(row["averaged"])]
                cells += [number(row[k]) for k in ("ms_mean", "ms_p50", "ms_p99", "ms_max")]
                lines.append([*cells, number(row["edges_rerun"]), str(row["levels"])])
    head = ["stream", "updates", "mean ms", "p50", "p99", "max", "edges rerun", "levels"]
    return table(head, lines)


def churn(results: Results) -> str:
    """Labels that an update changes."""
    lines = []
    for name in results.datasets:
        for protocol in ("insertion", "deletion"):
            for system in results.systems:
                row = results.row(name, system, protocol, kind="churn")
                if row:
                    cells = [f"{DATASET_TITLES[name]}, {protocol}", SYSTEM_STYLES[system].title]
                    cells += [str(row["made"]), f"{row['changed_mean']:.3g}"]
                    cells += [str(row["changed_max"]), f"{row['updates_without_change']:.0%}"]
                    lines.append([*cells, f"{row['cut']:.3g}", f"{row['nmi']:.3f}"])
    head = ["stream", "system", "updates", "labels changed", "most", "updates that change none"]
    return table([*head, "cut", "NMI"], lines)


def memory(results: Results) -> str:
    """Peak memory of the process after the build, less what it had before it, in MB."""

    def cell(name: str, system: str) -> str:
        row = results.row(name, system, "insertion")
        return number(row["rss_peak_mb"] - row["rss_input_mb"]) if row else NONE

    return _per_dataset(results, cell)


def small(results: Results) -> str:
    """The paper's algorithm beside ours, on few points."""
    lines = []
    for name in results.datasets:
        for system in SMALL:
            row = results.row(name, system, "insertion", kind="small")
            if row:
                cells = [DATASET_TITLES[name], SYSTEM_STYLES[system].title, f"{row['points']:,}"]
                cells += [number(row["ms_mean"]) + ("*" if "stopped" in row else "")]
                cells += [f"{row['nmi']:.3f}", str(row["levels"])]
                lines.append([*cells, "yes" if row["verify"]["ok"] else "NO"])
    head = ["", "system", "points", "insertion ms", "NMI", "levels (rounds)", "verified"]
    return table(head, lines)


def growth(results: Results) -> str:
    """A data set that grows from 1,000 points, beside recomputation."""
    lines = []
    for name in results.datasets:
        ours, static = (results.row(name, s, "growth") for s in ("dynhac", "static"))
        if not ours:
            continue
        fresh = {c["updates"]: c for c in static["checkpoints"]} if static else {}
        for at in ours["checkpoints"]:
            other = fresh.get(at["updates"])
            cells = [DATASET_TITLES[name], f"{at['points']:,}"]
            cells += [number(at["ms"]) if "ms" in at else NONE, str(at["levels"])]
            cells += [str(other["levels"]) if other else NONE, f"{at['nmi']:.3f}"]
            lines.append([*cells, f"{other['nmi']:.3f}" if other else NONE])
    head = ["", "points", "ms per update", "levels", "levels, static", "NMI", "NMI static"]
    return table(head, lines)


def verified(results: Results) -> str:
    """What `verify` reports of the last states."""
    lines = []
    for system in ("dynhac", "static", "paper"):
        for epsilon in sorted(EPSILONS):
            rows = [
                r["verify"]
                for r in results.rows
                if r["system"] == system and r["epsilon"] == epsilon and "verify" in r
            ]
            if rows:
                bad = sum(r["bad_merges"] for r in rows)
                cells = [SYSTEM_STYLES[system].title, f"{epsilon:g}", str(len(rows))]
                cells += [str(sum(not r["ok"] for r in rows)), str(bad)]
                lines.append([*cells, f"{max(r['worst_goodness'] for r in rows):.6f}"])
    head = ["system", "ε", "states checked", "not right", "bad merges", "worst ratio"]
    return table(head, lines)


def skipped(results: Results) -> str:
    """What was not run, or not to the end, and why."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in results.rows:
        for kind in ("skipped", "failed", "stopped"):
            if kind in row:
                key = (SYSTEM_STYLES[row["system"]].title, row["protocol"], f"{kind}: {row[kind]}")
                found.setdefault(key, []).append(DATASET_TITLES[row["dataset"]])
    lines = [
        [system, protocol, ", ".join(dict.fromkeys(names)), reason]
        for (system, protocol, reason), names in sorted(found.items())
    ]
    return table(["system", "protocol", "data", "reason"], lines) if lines else "Nothing."


TABLES: dict[str, Callable[[Results], str]] = {
    "setting": setting,
    "speed": speed,
    "nmi": nmi,
    "ari": ari,
    "loss": loss,
    "nearby": again("nearby", "values of ε"),
    "samples": again("samples", "samples"),
    "insertion": times("insertion"),
    "deletion": times("deletion"),
    "epsilons": epsilons,
    "tails": tails,
    "churn": churn,
    "memory": memory,
    "small": small,
    "growth": growth,
    "verified": verified,
    "skipped": skipped,
}
