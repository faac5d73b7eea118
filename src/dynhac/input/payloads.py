"""Payloads: a JSON object for each point, checked and written as text.

A payload is a dict with str keys. Its values are str, int, float, bool, None, and lists and dicts
of these. The order of keys is kept. Depth and size are bounded, so that no payload can exhaust the
memory or the stack of who reads it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dynhac.input.columns import IdColumn
from dynhac.input.errors import InvalidTypeError, counted, show

MOST_LEVELS = 64
MOST_BYTES = 2**20
JSON_VALUES = "str, int, float, bool, None, list or dict"

WITHOUT_SPACES = re.compile("[\u2e80-\u2fdf\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
                            "\U00020000-\U0003ffff]")  # fmt: skip
"""Characters of Chinese and Japanese, which are written without spaces."""


class Payload(NamedTuple):
    """One payload.

    Attributes
    ----------
    text : str
        The object as JSON.
    strings : list of str
        All strings in it, in order; keys are not among them.
    """

    text: str
    strings: list[str]


class NewPayloads(NamedTuple):
    """The payloads that an update sets, and the ids of their points."""

    ids: list[Any]
    payloads: list[Payload | None]

    @classmethod
    def read(cls, payload: object, ids: IdColumn | tuple[int, ...]) -> NewPayloads | None:
        """Return the payloads for ids, or raise; None if no point gets one."""
        payloads = read_payloads(payload, len(ids))
        if not any(payloads):
            return None
        return cls(ids.tolist() if isinstance(ids, np.ndarray) else list(ids), payloads)


class _Wrong(Exception):
    """What is wrong with a value; the containers around it add their keys."""

    def __init__(self, why: str, kind: type[ValueError] = ValueError) -> None:
        self.why, self.kind = why, kind
        self.path: list[str] = []


def read_payloads(payload: object, count: int) -> list[Payload | None]:
    """Return the payloads of ``count`` points, or raise; a dict is that of a single point."""
    if count == 1 and (isinstance(payload, dict) or payload is None):
        return [read_payload(payload, "payload")]
    if isinstance(payload, (str, bytes, dict)) or not isinstance(payload, (Sequence, np.ndarray)):
        raise InvalidTypeError(
            f"payload is {show(payload)} ({type(payload).__name__}); it must be a list with a dict "
            "or None for every point"
        )
    if len(payload) != count:
        raise ValueError(
            f"payload has {counted(len(payload), 'entry', 'entries')} for "
            f"{counted(count, 'point', 'points')}; every point needs one, which may be None"
        )
    return [read_payload(each, f"payload of row {row}") for row, each in enumerate(payload)]


def read_payload(payload: object, name: str) -> Payload | None:
    """Return one payload, or raise; messages call it ``name``.

    >>> read_payload({"title": "Oil", "tags": ["a", 1]}, "payload")
    Payload(text='{"title":"Oil","tags":["a",1]}', strings=['Oil', 'a'])
    """
    if payload is None:
        return None
    if not isinstance(payload, dict):
        raise InvalidTypeError(
            f"{name} is {show(payload)} ({type(payload).__name__}); it must be a dict or None"
        )
    check = _Check()
    try:
        check.container(payload, 1)
        text = json.dumps(
            payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_item
        )
        size = len(text.encode())
    except _Wrong as wrong:
        field = f": field {show('.'.join(reversed(wrong.path)))}" if wrong.path else ""
        raise wrong.kind(f"{name}{field} {wrong.why}") from None
    except UnicodeEncodeError:
        raise ValueError(f"{name} has a lone surrogate; text must be valid Unicode") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} cannot be written as JSON: {error}") from None
    if size > MOST_BYTES:
        raise ValueError(
            f"{name} takes {size:,} bytes as JSON; it must take at most {MOST_BYTES:,}"
        )
    return Payload(text, check.strings)


def field_of(payload: dict[str, Any] | None, name: str) -> Any:
    """Return a field of a payload, None if it has none; a name with dots leads into objects.

    >>> field_of({"a": {"b": 1}}, "a.b"), field_of({"a.b": 2}, "a.b"), field_of({}, "a")
    (1, 2, None)
    """
    if payload is None or name in payload:
        return None if payload is None else payload[name]
    found: Any = payload
    for part in name.split("."):
        if not isinstance(found, dict) or part not in found:
            return None
        found = found[part]
    return found


def strings_in(value: Any) -> list[str]:
    """Return the strings in a value that was read from JSON, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return []
    return [text for each in value for text in strings_in(each)]


class _Check:
    """Goes through the values of a payload, and collects the strings."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self.left = MOST_BYTES  # every value takes a byte or more

    def container(self, value: Any, level: int) -> None:
        """Check a dict, list or tuple; _Wrong: a value in it is not valid."""
        if level > MOST_LEVELS:
            raise _Wrong(f"is nested more than {MOST_LEVELS} levels deep")
        named = isinstance(value, dict)
        for key, each in value.items() if named else enumerate(value):
            if named and not isinstance(key, str):
                kind = type(key).__name__
                raise _Wrong(
                    f"has the key {show(key)} ({kind}); keys must be str", InvalidTypeError
                )
            try:
                self.value(each, level)
            except _Wrong as wrong:
                wrong.path.append(str(key))
                raise

    def value(self, value: Any, level: int) -> None:
        """Check any value."""
        self.left -= 1
        if self.left < 0:
            raise _Wrong(f"is one of more than {MOST_BYTES:,} values, which are too many")
        if isinstance(value, str):
            self.strings.append(value)
        elif isinstance(value, (float, np.floating)):
            if not math.isfinite(value):
                raise _Wrong(f"is {show(value)}; numbers must be finite")
        elif isinstance(value, (dict, list, tuple)):
            self.container(value, level + 1)
        elif value is not None and not isinstance(value, (int, np.integer, np.bool_)):
            kind = type(value).__name__
            raise _Wrong(
                f"is {show(value)} ({kind}); values must be {JSON_VALUES}", InvalidTypeError
            )


def _item(value: Any) -> Any:
    """Return the Python value of a numpy scalar."""
    return value.item()
