"""Writes the page of a run: tables and figures between the marks of index.md.

A folder without an index.md gets page.md of this package, which says what is measured and how, and
draws no conclusions. Text outside the marks is not changed, nor is a part without results.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.common.markdown import filled
from benchmarks.evaluation import figures, tables
from benchmarks.evaluation.clusters import figures as cluster_figures
from benchmarks.evaluation.clusters import results as cluster_results
from benchmarks.evaluation.clusters import tables as cluster_tables
from benchmarks.evaluation.read_results import read_results

PAGE = Path(__file__).parent / "page.md"


def write_report(results_folder: Path, out: Path) -> None:
    """Fill the tables of a folder and draw its figures, from the results in another."""
    parts = [
        (read_results(results_folder), tables.TABLES, figures.FIGURES),
        (
            cluster_results.read(results_folder),
            cluster_tables.TABLES,
            cluster_figures.FIGURES,
        ),
    ]
    if not any(results.rows for results, _, _ in parts):
        raise SystemExit(f"no results in {results_folder}; run the evaluation first")
    document = out / "index.md"
    text = (document if document.exists() else PAGE).read_text()
    for results, shown, drawings in parts:
        if results.rows:
            content = {name: render(results) for name, render in shown.items()}
            drawn = figures.draw_all(results, out / "figures", drawings)
            for name, (caption, _) in drawings.items():
                image = f"![{caption}](figures/{name}.svg)"
                content[f"figure-{name}"] = image if name in drawn else f"{caption}: no results."
            text = filled(text, content)
    document.write_text(text)
