"""Text that a terminal can show without harm.

Ids may hold any character. Written to a terminal, control characters can move the cursor, change
colours or titles, and hide or reorder other text. They are shown as escapes, as in Python strings.
"""

from __future__ import annotations

import unicodedata

JOINERS = "\u200c\u200d"
"""Characters without width that some scripts and emoji need; they are harmless."""


def printable(text: str, keep: str = "") -> str:
    r"""Return text with escapes for all characters that are not printable, except ``keep``.

    Examples
    --------
    >>> from dynhac.cli.printable import printable
    >>> print(printable("red: \x1b[31m, reversed: \u202eabc"))
    red: \x1b[31m, reversed: \u202eabc
    """
    if text.isprintable():
        return text
    return "".join(
        char if char in keep or _is_harmless(char) else char.encode("unicode_escape").decode()
        for char in text
    )


def json_escaped(text: str) -> str:
    r"""Return JSON in one line with escapes for characters that are not printable.

    It is the same JSON: such a character can only be in a string.

    Examples
    --------
    >>> from dynhac.cli.printable import json_escaped
    >>> print(json_escaped('["\x9b31m", "Zürich"]'))
    ["\u009b31m", "Zürich"]
    """
    if text.isprintable():
        return text
    return "".join(char if _is_harmless(char) else _json_escape(char) for char in text)


def _is_harmless(char: str) -> bool:
    return char.isprintable() or char in JOINERS or unicodedata.category(char) == "Zs"


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
