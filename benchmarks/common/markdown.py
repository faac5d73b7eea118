"""Tables in Markdown, and the documents that show them.

A document marks the place of a table with ``<!-- name:begin -->`` and ``<!-- name:end -->``; what
is between the marks is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def number(x: float) -> str:
    """Three significant digits, with thousands separated."""
    if x == 0 or x >= 100:
        return f"{x:,.0f}"
    return f"{x:.3g}" if x >= 0.001 else f"{x:.1e}"


def beside(ours: float, theirs: float | None) -> str:
    """Our figure, and theirs in brackets if there is one."""
    return number(ours) if theirs is None else f"{number(ours)} ({number(theirs)})"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table; all columns but the first are aligned to the right."""
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine_line(machine: Mapping[str, Any]) -> str:
    """Describe a machine (see machine.py) in one line."""
    return (
        "{cpu}, {cores} cores, {memory_gb} GB; {system}; {compiler}; "
        "Python {python}, NumPy {numpy}."
    ).format(**machine)


def filled(text: str, content: Mapping[str, str]) -> str:
    """Return a document with new content between its marks."""
    for name, new in content.items():
        marks = re.compile(f"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)", re.DOTALL)
        text = marks.sub(lambda m, new=new: f"{m[1]}{new}\n{m[2]}", text)
    return text
