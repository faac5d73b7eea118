"""How payloads are searched: what the text index gets, and queries for words and fields.

SQLite picks out the payloads that can have a field; Python checks them, because SQLite knows no
bool and cannot name every key.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable
from functools import cache
from typing import Any

from dynhac.input.payloads import WITHOUT_SPACES, strings_in


@cache
def sqlite_can(statement: str) -> bool:
    """Whether the SQLite of this Python knows what a statement needs."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(statement)
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


def index_text(strings: Iterable[str]) -> str:
    """Return strings as the text index gets them."""
    text = "\n".join(strings)
    return text if text.isascii() else WITHOUT_SPACES.sub(r" \g<0> ", text)


def index_text_of(text: str) -> str:
    """Return what the text index got for a payload."""
    try:
        return index_text(strings_in(json.loads(text)))
    except ValueError:  # a damaged one; entries of rows that do not exist do no harm
        return ""


def all_words(text: str) -> str:
    """Return a query for all words of a text, whatever characters it has."""
    valid = text.encode(errors="replace").decode().replace("\0", " ")
    words = valid.split() or [""]  # which matches nothing
    return " ".join('"' + index_text([word]).replace('"', '""') + '"' for word in words)


def field_condition(name: str, value: Any) -> tuple[str, list[Any]] | None:
    """Return a condition that payloads with a field meet, for SQLite; None if it cannot tell."""
    parts = name.split(".")
    if re.search(r'["\\\x00-\x1f]', name) or not all(parts):
        return None
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            return None
    elif not isinstance(value, (str, float)) or (isinstance(value, str) and "\0" in value):
        return None
    if not _is_unicode(name) or (isinstance(value, str) and not _is_unicode(value)):
        return None
    if not sqlite_can("""SELECT json_extract('{"a":1}', '$."a"')"""):
        return None
    paths = ['$."' + name + '"']
    if len(parts) > 1:
        paths.append("$" + "".join(f'."{part}"' for part in parts))
    condition = " OR ".join("json_extract(p.text, ?) = ?" for _ in paths)
    return f"({condition})", [each for path in paths for each in (path, value)]


def _is_unicode(text: str) -> bool:
    """Whether SQLite can be given a text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def has_field(payload: dict[str, Any], name: str, value: Any) -> bool:
    """Whether a payload has a field with a value; a name with dots leads into objects."""
    if name in payload and _same(payload[name], value):
        return True
    found: Any = payload
    for part in name.split("."):
        if not isinstance(found, dict) or part not in found:
            return False
        found = found[part]
    return _same(found, value)


def _same(a: Any, b: Any) -> bool:
    """Whether two values of JSON are equal; in Python True equals 1."""
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
