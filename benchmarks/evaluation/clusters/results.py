"""Reads the results of this part, for tables and figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.evaluation.clusters.names import CHOICE_STYLES, PARTS
from benchmarks.evaluation.clusters.plan import OURS
from benchmarks.evaluation.names import DATASET_TITLES
from benchmarks.evaluation.read_results import Results, Row, read_results

FOLDER = "clusters"  # within the folder of all results


def read(results_folder: Path) -> Results:
    """Read the results of this part, from the folder of all results."""
    return read_results(results_folder / FOLDER)


def row_of(results: Results, dataset: str, part: str, system: str, kind: str) -> Row | None:
    """Return the row of a job if it was run."""
    wanted = {"dataset": dataset, "part": part, "system": system, "kind": kind}
    for row in results.rows:
        if all(row[k] == v for k, v in wanted.items()):
            return None if "skipped" in row or "failed" in row else row
    return None


def tasks(results: Results) -> Iterator[tuple[str, str, Row]]:
    """Yield the title, set and part of every task, with the row of our choice."""
    for name in results.datasets:
        for part in PARTS:
            row = row_of(results, name, part, OURS, "choice")
            if row:
                title = DATASET_TITLES[name] if part == "whole" else sample_title(name, row)
                yield title, part, row


def sample_title(name: str, row: Row) -> str:
    """Return the title of a sample."""
    return f"{DATASET_TITLES[name]}, {row['points']:,}"


def choices(results: Results, dataset: str, part: str) -> dict[str, dict[str, Any]]:
    """Return the figures of every choice of clusters on a set, in the order of the styles."""
    found: dict[str, dict[str, Any]] = {}
    for row in results.rows:
        if (row["dataset"], row["part"], row["kind"]) == (dataset, part, "choice"):
            found |= row.get("choices", {})
    return {name: found[name] for name in CHOICE_STYLES if name in found}


def growth(results: Results, dataset: str) -> dict[str, list[tuple[Row, dict[str, Any]]]]:
    """Return the checkpoints of a growing set: of every choice, with the figures of each."""
    found: dict[str, list[tuple[Row, dict[str, Any]]]] = {}
    for row in results.rows:
        if (row["dataset"], row["kind"]) == (dataset, "growth"):
            for at in row.get("checkpoints", []):
                for name, figures in at["choices"].items():
                    found.setdefault(name, []).append((at, figures))
    return {name: found[name] for name in CHOICE_STYLES if name in found}
