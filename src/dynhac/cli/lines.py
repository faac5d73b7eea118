"""Lines of JSON that change a store: what they may hold, and how they are applied.

Points: ``{"insert": [0.1, 0.2], "id": "a", "timestamp": 7}``, ``{"insert": [[...], ...], "ids":
[...]}``, ``{"delete": "a"}`` or ``{"delete": ["a", "b"]}``, both in one for an atomic batch,
``{"expire": 12}``. Graphs: ``{"add": ["a"], "edges": [["a", "b", 0.5]], "remove": [...],
"remove_edges": [["a", "c"]]}``. A line is one update, all of it or nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dynhac.cli.parse import moment_of
from dynhac.input.errors import show

if TYPE_CHECKING:
    from dynhac.cli.stores import AnyStore

POINT_KEYS = ("insert", "id", "ids", "timestamp", "timestamps", "delete", "expire")
GRAPH_KEYS = ("add", "edges", "remove", "remove_edges")


def parse_line(line: bytes, points: bool) -> dict[str, Any]:
    """Return what a line asks for; ValueError if that is not an object with known keys."""
    try:
        asked = json.loads(line)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    except RecursionError:
        raise ValueError("not JSON: nested too deeply") from None
    if not isinstance(asked, dict):
        raise ValueError(f"{show(asked)} is not an object such as {_example(points)}")
    known = POINT_KEYS if points else GRAPH_KEYS
    unknown = [key for key in asked if key not in known]
    if unknown:
        raise ValueError(f"unknown key {show(unknown[0])}; known are {', '.join(known)}")
    for key, value in asked.items():
        if value is None:
            raise ValueError(f"{key} is null; leave it out if there is nothing to do")
    if not asked:
        raise ValueError(f"nothing to do; write an object such as {_example(points)}")
    return asked


def apply_line(store: AnyStore, asked: dict[str, Any], points: bool) -> None:
    """Apply one line; ValueError or KeyError if the model rejects it."""
    model: Any = store
    if not points:
        model.update(
            add=asked.get("add"),
            edges=_columns(asked, "edges", 3),
            remove=asked.get("remove"),
            remove_edges=_columns(asked, "remove_edges", 2),
        )
        return
    if "expire" in asked:
        if len(asked) > 1:
            raise ValueError("expire stands alone; give the rest in a line of its own")
        model.expire(moment_of(asked["expire"]))
        return
    model.update(
        insert=asked.get("insert"),
        ids=_one_of(asked, "id", "ids"),
        delete=asked.get("delete"),
        timestamps=_times(_one_of(asked, "timestamp", "timestamps")),
    )


def _example(points: bool) -> str:
    return '{"insert": [0.1, 0.2], "id": 7}' if points else '{"add": [7], "edges": [[7, 3, 0.5]]}'


def _one_of(asked: dict[str, Any], one: str, many: str) -> Any:
    if one in asked and many in asked:
        raise ValueError(f"{one} and {many} are both given; give one of them")
    return asked.get(one, asked.get(many))


def _times(value: Any) -> Any:
    if isinstance(value, list) and any(isinstance(entry, str) for entry in value):
        return [moment_of(entry) for entry in value]
    return moment_of(value)


def _columns(asked: dict[str, Any], name: str, width: int) -> Any:
    rows = asked.get(name)
    if rows is None or rows == []:
        return None
    wanted = "[u, v, w]" if width == 3 else "[u, v]"
    if not isinstance(rows, list):
        raise ValueError(f"{name} is {show(rows)}; it must be a list of {wanted}")
    for row in rows:
        if not isinstance(row, list) or len(row) != width:
            raise ValueError(f"{name} holds {show(row)}; each entry must be {wanted}")
    return tuple(list(column) for column in zip(*rows, strict=True))
