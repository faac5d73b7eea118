"""Tables of this part in Markdown, from results and from nothing else.

Agreement is NMI / ARI, in hundredths. A dash: was not run; the table of skipped jobs says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.markdown import machine_line, number, table
from benchmarks.evaluation.clusters.measures import WAYS
from benchmarks.evaluation.clusters.names import CHOICE_STYLES, PARTS
from benchmarks.evaluation.clusters.plan import OTHERS, OURS
from benchmarks.evaluation.clusters.results import choices, growth, row_of, tasks
from benchmarks.evaluation.names import DATASET_TITLES
from benchmarks.evaluation.read_results import Results

NONE = "–"
CHOSEN = ("automatic", "best-cut", *OTHERS)


def setting(results: Results) -> str:
    """The machine, and how much was run."""
    modes = {"whole sets" if m == "full" else m for m in results.modes.values()}
    dates = sorted({row["date"] for row in results.rows})
    commits = sorted({row["commit"] for row in results.rows})
    run = f"Run on {' and '.join(dates)}, at commit {', '.join(commits)}: {', '.join(modes)}."
    return "\n".join([*map(machine_line, results.machines), "", run])


def _agreement(figures: dict[str, Any] | None, way: str = "ancestors") -> str:
    if figures is None:
        return NONE
    return f"{100 * figures[way]['nmi']:.1f} / {100 * figures[way]['ari']:.1f}"


def quality(way: str) -> Callable[[Results], str]:
    """Return the table of agreement on every set, with noise counted in one way."""

    def agreements(results: Results) -> str:
        lines = []
        for title, part, row in tasks(results):
            found = choices(results, row["dataset"], part)
            cells = [title, f"{row['points']:,}", str(row["classes"])]
            lines.append([*cells, *(_agreement(found.get(name), way) for name in CHOSEN)])
        return table(["", "points", "classes", *(CHOICE_STYLES[n].title for n in CHOSEN)], lines)

    return agreements


def shares(results: Results) -> str:
    """How much of the best cut every choice reaches, over all tasks on which it was run."""
    lines = []
    for part in PARTS:
        every = [choices(results, r["dataset"], part) for _, of, r in tasks(results) if of == part]
        for name in ("automatic", *OTHERS):
            found = [of for of in every if name in of]
            if not found:
                continue
            cells = [CHOICE_STYLES[name].title, part, str(len(found))]
            for way in ("ancestors", "alone"):
                for measure in ("nmi", "ari"):
                    theirs = _shares(found, name, way, measure)
                    cells.append(f"{theirs.mean():.3f} ({theirs.min():.3f})")
            ours = [_shares(found, "automatic", "ancestors", m).mean() for m in ("nmi", "ari")]
            lines.append([*cells, " / ".join(f"{share:.3f}" for share in ours)])
    head = ["", "sets", "tasks", "NMI, noise to ancestors", "ARI, noise to ancestors"]
    return table([*head, "NMI, alone", "ARI, alone", "automatic on the same, to ancestors"], lines)


def _shares(
    found: list[dict[str, dict[str, Any]]], name: str, way: str, measure: str
) -> NDArray[np.float64]:
    """Return the agreement of a choice as shares of that of the best cut, which has no noise."""
    best = np.array([of["best-cut"][way][measure] for of in found])
    return np.array([of[name][way][measure] for of in found]) / np.maximum(best, 1e-9)


def details(results: Results) -> str:
    """All figures of every choice."""
    lines = []
    for title, part, row in tasks(results):
        for name, found in choices(results, row["dataset"], part).items():
            cells = [title, CHOICE_STYLES[name].title, *(_agreement(found, way) for way in WAYS)]
            cells += [f"{found['clusters']:,}", f"{found['clusters_large']:,}"]
            cells += [f"{found['noise']:.0%}", number(1e3 * found["labels_s"])]
            lines.append([*cells, number(found["scratch_s"])])
    head = ["", "clusters by", "noise to ancestors", "noise alone", "noise together", "clusters"]
    return table([*head, "of 25 or more", "noise", "labels ms", "from scratch s"], lines)


def changes(results: Results) -> str:
    """Labels changed per update, automatic watch against one at the best θ."""
    lines = []
    for title, part, row in tasks(results):
        found = row_of(results, row["dataset"], part, OURS, "changes")
        if found is None:
            continue
        cells = [title, str(found["updates"])]
        for kind in ("insertion", "deletion"):
            for name in ("automatic", "best-cut"):
                spread = found[kind][name]
                cells.append(f"{number(spread['mean'])} ({spread['none']:.0%})")
        lines.append(cells)
    head = ["", "updates", "insertion, automatic", "insertion, θ"]
    return table([*head, "deletion, automatic", "deletion, θ"], lines)


def growing(results: Results) -> str:
    """Number of clusters and agreement while a set grows."""
    shown = ("automatic", "automatic-anew", "theta", "conductance", "hdbscan-25")
    lines = []
    for name in results.datasets:
        by_size: dict[int, dict[str, Any]] = {}
        for chosen, checkpoints in growth(results, name).items():
            for at, figures in checkpoints:
                found = by_size.setdefault(at["points"], {"classes": at})
                found[chosen] = figures
        for points, found in sorted(by_size.items()):
            cells = [DATASET_TITLES[name], f"{points:,}"]
            cells.append(f"{found['classes']['classes']} ({found['classes']['classes_large']})")
            for chosen in shown:
                figures = found.get(chosen)
                cells.append(f"{figures['clusters']:,}" if figures else NONE)
                cells.append(f"{100 * figures['ancestors']['nmi']:.1f}" if figures else NONE)
            lines.append(cells)
    columns = [t for s in shown for t in (f"{CHOICE_STYLES[s].title}: clusters", "NMI")]
    return table(["", "points", "classes (of 25 or more)", *columns], lines)


def skipped(results: Results) -> str:
    """What was not run, or not to the end, and why."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in results.rows:
        for kind in ("skipped", "failed", "stopped"):
            if kind in row:
                system = CHOICE_STYLES[row["system"]].title if row["system"] in OTHERS else OURS
                what = DATASET_TITLES[row["dataset"]] + (" (sample)" * (row["part"] == "sample"))
                found.setdefault((f"{system}, {row['kind']}", row[kind]), []).append(what)
    lines = [[job, ", ".join(names), reason] for (job, reason), names in sorted(found.items())]
    return table(["job", "data", "reason"], lines) if lines else "Nothing."


TABLES: dict[str, Callable[[Results], str]] = {
    "clusters-setting": setting,
    "clusters-quality": quality("ancestors"),
    "clusters-quality-alone": quality("alone"),
    "clusters-shares": shares,
    "clusters-details": details,
    "clusters-changes": changes,
    "clusters-growth": growing,
    "clusters-skipped": skipped,
}
