"""Writes the page of a run: tables and figures between the marks of index.md.

A folder without an index.md gets page.md of this package, which says what is measured and how, and
draws no conclusions. Text outside the marks is not changed.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.common.markdown import filled
from benchmarks.evaluation.figures import FIGURES, draw_all
from benchmarks.evaluation.read_results import read_results
from benchmarks.evaluation.tables import TABLES

PAGE = Path(__file__).parent / "page.md"


def write_report(results_folder: Path, out: Path) -> None:
    """Fill the tables of a folder and draw its figures, from the results in another."""
    results = read_results(results_folder)
    if not results.rows:
        raise SystemExit(f"no results in {results_folder}; run the evaluation first")
    document = out / "index.md"
    text = (document if document.exists() else PAGE).read_text()
    content = {name: render(results) for name, render in TABLES.items()}
    drawn = draw_all(results, out / "figures")
    for name, (caption, _) in FIGURES.items():
        shown = f"![{caption}](figures/{name}.svg)"
        content[f"figure-{name}"] = shown if name in drawn else f"{caption}: no results."
    document.write_text(filled(text, content))
