"""Pieces of HTML: tables and drawings, in plain text without any library.

All text is escaped and cut where it is long, so whatever ids hold stays text. Lines and letters
have the colour of the text around them and fills are half-transparent, so everything can be read on
light and dark ground. There are no scripts, no style sheets and no external resources.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from dynhac.dendrogram.sketch import Sketch, spans
from dynhac.plot.scales import chosen_scale

LONGEST = 40  # characters of a text in a table
LONGEST_LINE = 400  # characters of a line of plain text
LONGEST_LABEL = 24  # characters beside a row of a drawing
FILL = "#5b9bd5"
FONT = "font:12px sans-serif"
ROW = 17  # pixels
WIDTH = 300  # of the lines of a drawing, pixels
LABEL = 170  # of the text beside them, pixels


def text(value: object, longest: int = LONGEST) -> str:
    """Return a value as escaped text on one line.

    >>> text("<b>")
    '&lt;b&gt;'
    """
    plain = " ".join(str(value)[: 4 * longest].split())
    return escape(plain if len(plain) <= longest else plain[: longest - 1] + "…")


def page(title: str, *parts: str) -> str:
    """Return parts beside each other under a title; the title is plain text."""
    body = "".join(f"<div>{part}</div>" for part in parts if part)
    return (
        f'<div style="{FONT}"><div style="font-weight:bold;margin:4px 0">{text(title, 120)}</div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:8px 32px;align-items:flex-start">{body}</div>'
        "</div>"
    )


def table(rows: Iterable[tuple[str, object]]) -> str:
    """Return a table of names and values."""
    cell = "text-align:left;padding:1px 12px 1px 0;border:0;background:none"
    lines = "".join(
        f'<tr style="background:none"><td style="{cell};opacity:0.7">{text(name)}</td>'
        f'<td style="{cell}">{text(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table style="border-collapse:collapse;border:0;margin:0;{FONT}">{lines}</table>'


def grid(rows: Iterable[Sequence[str]]) -> str:
    """Return a table of numbers; the first row has the names of the columns."""
    cell = "text-align:right;padding:1px 0 1px 16px;border:0;background:none"
    lines = []
    for place, row in enumerate(rows):
        faint = "" if place else ";opacity:0.7"
        cells = "".join(f'<td style="{cell}{faint}">{text(value)}</td>' for value in row)
        lines.append(f'<tr style="background:none">{cells}</tr>')
    return (
        f'<table style="border-collapse:collapse;border:0;margin:0;{FONT}">{"".join(lines)}</table>'
    )


def note(sentence: str) -> str:
    """Return a remark in small letters."""
    return f'<div style="opacity:0.7;max-width:32em">{text(sentence, 300)}</div>'


def lines(plain: str) -> str:
    """Return several lines of text as they are, but for very long ones."""
    plain = "\n".join(
        line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"
        for line in plain.split("\n")
    )
    return f'<pre style="background:none;margin:0;white-space:pre-wrap">{escape(plain)}</pre>'


def bars(rows: list[tuple[str, int]], caption: str) -> str:
    """Return a bar for each name and number, from the top down."""
    if not rows:
        return ""
    most = max(number for _, number in rows) or 1
    drawn = []
    for place, (name, number) in enumerate(rows):
        y = ROW * place
        width = max(1.0, 220 * number / most)
        drawn.append(
            f'<text x="74" y="{y + 12}" text-anchor="end">{text(name, 12)}</text>'
            f'<rect x="80" y="{y + 2}" width="{width:.1f}" height="{ROW - 5}" fill="{FILL}"/>'
            f'<text x="{85 + width:.1f}" y="{y + 12}">{number:,}</text>'
        )
    return _svg(WIDTH + 90, ROW * len(rows), caption, drawn)


def tree(sketch: Sketch, labels: list[str]) -> str:
    """Return a drawing of the upper part of a dendrogram, with a label for each of its ends.

    Similarity grows from the left to the right. A triangle is a branch of several leaves.
    """
    if not sketch.ends:
        return ""
    left, right = 6.0, float(WIDTH)
    low, high = min(sketch.x.values(), default=0.5), max(sketch.x.values(), default=1.0)
    logarithmic = low > 0 and chosen_scale(spans(sketch)) == "log"

    def across(similarity: float) -> float:
        if logarithmic:
            share = math.log(similarity / low) / math.log(high / low)
        else:
            share = (similarity - low) / (high - low) if high > low else 0.5
        return left + 14 + share * (right - left - 34)

    def down(node: int) -> float:
        return ROW * (sketch.row[node] + 0.5)

    x = {node: across(similarity) for node, similarity in sketch.x.items()}
    until = {**x, **dict.fromkeys(sketch.ends, right)}  # where the line before a node ends
    path = [f"M{left} {down(node):.1f}H{until[node]:.1f}" for node in sketch.trees]
    for node, (one, other) in sketch.branches.items():
        path.append(f"M{x[node]:.1f} {down(one):.1f}V{down(other):.1f}")
        path += [f"M{x[node]:.1f} {down(end):.1f}H{until[end]:.1f}" for end in (one, other)]
    drawn = [f'<path d="{"".join(path)}" fill="none" stroke="currentColor" stroke-width="1"/>']
    most = max((sketch.size[node] for node in sketch.ends), default=1)
    for node, label in zip(sketch.ends, labels, strict=True):
        y = down(node)
        if node in x:
            half = 2 + (ROW / 2 - 3) * math.sqrt(sketch.size[node] / most)
            drawn.append(
                f'<path d="M{x[node]:.1f} {y:.1f}L{right} {y - half:.1f}V{y + half:.1f}Z" '
                f'fill="{FILL}"/>'
            )
        drawn.append(f'<text x="{right + 6}" y="{y + 4:.1f}">{text(label, LONGEST_LABEL)}</text>')
    height = ROW * (max(sketch.row.values()) + 1)
    if sketch.x:
        ends = [(across(low), low, "start"), (across(high), high, "end")]
        for place, similarity, anchor in ends if high > low else ends[:1]:
            drawn.append(
                f'<text x="{place:.1f}" y="{height + 13:.1f}" text-anchor="{anchor}" '
                f'opacity="0.7">{similarity:.3g}</text>'
            )
    return _svg(WIDTH + LABEL, height + 18, "similarity of merges", drawn)


def _svg(width: float, height: float, caption: str, drawn: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{text(caption)}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'style="{FONT};max-width:100%" fill="currentColor">{"".join(drawn)}</svg>'
    )
