"""Writes the document of a run: tables and figures between the marks of index.md.

A folder without an index.md gets the plain one of this package, which says what is measured and how
and draws no conclusions. What stands outside the marks is left alone.
"""

from __future__ import annotations

import re
from pathlib import Path

from evaluation.figures import FIGURES, draw_all
from evaluation.results import read_results
from evaluation.tables import TABLES

PLAIN = Path(__file__).parent / "index.md"


def write_report(out: Path) -> None:
    """Fill the tables of a folder and draw its figures, from its results."""
    results = read_results(out)
    if not results.rows:
        raise SystemExit(f"no results in {out / 'results'}; run the evaluation first")
    document = out / "index.md"
    text = (document if document.exists() else PLAIN).read_text()
    content = {name: render(results) for name, render in TABLES.items()}
    drawn = draw_all(results, out / "figures")
    for name, (caption, _) in FIGURES.items():
        shown = f"![{caption}](figures/{name}.svg)"
        content[f"figure-{name}"] = shown if name in drawn else f"{caption}: no results."
    for name, new in content.items():
        marks = re.compile(f"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", re.DOTALL)
        text = marks.sub(lambda m, new=new: f"{m[1]}{new}\n{m[2]}", text)
    document.write_text(text)
