"""Lines of JSON that update a store: the input of ``dynhac tail``, whose help shows their forms.

A line is one update: all of it is applied or nothing.
"""

from __future__ import annotations

import json
from typing import Any

from dynhac.cli.parse import parse_date
from dynhac.cli.stores import AnyStore, is_points
from dynhac.input.errors import show

POINT_KEYS = ("insert", "id", "ids", "timestamp", "timestamps", "delete", "expire")
POINT_EXAMPLE = '{"insert": [0.1, 0.2], "id": 7}'
GRAPH_KEYS = ("add", "edges", "remove", "remove_edges")
GRAPH_EXAMPLE = '{"add": [7], "edges": [[7, 3, 0.5]]}'


def apply_line(store: AnyStore, line: bytes) -> None:
    """Apply one line; ValueError or KeyError if it is not valid or the model rejects it."""
    model: Any = store
    if not is_points(store):
        update = _parse(line, GRAPH_KEYS, GRAPH_EXAMPLE)
        model.update(
            add=update.get("add"),
            edges=_columns(update, "edges", ("u", "v", "w")),
            remove=update.get("remove"),
            remove_edges=_columns(update, "remove_edges", ("u", "v")),
        )
        return
    update = _parse(line, POINT_KEYS, POINT_EXAMPLE)
    if "expire" not in update:
        model.update(
            insert=update.get("insert"),
            ids=_either(update, "id", "ids"),
            delete=update.get("delete"),
            timestamps=_timestamps(_either(update, "timestamp", "timestamps")),
        )
    elif len(update) > 1:
        raise ValueError("expire must be the only key; put the rest in a line of its own")
    else:
        model.expire(_timestamps(update["expire"]))


def _parse(line: bytes, keys: tuple[str, ...], example: str) -> dict[str, Any]:
    try:
        update = json.loads(line)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    except RecursionError:
        raise ValueError("not JSON: nested too deeply") from None
    if not isinstance(update, dict):
        raise ValueError(f"{show(update)} is not an object such as {example}")
    if not update:
        raise ValueError(f"an empty object; write one such as {example}")
    for key, value in update.items():
        if key not in keys:
            raise ValueError(f"unknown key {show(key)}; known are {', '.join(keys)}")
        if value is None:
            raise ValueError(f"{key} is null; leave it out if there is nothing to do")
    return update


def _either(update: dict[str, Any], one: str, many: str) -> Any:
    if one in update and many in update:
        raise ValueError(f"{one} and {many} are both given; give one of them")
    return update.get(one, update.get(many))


def _timestamps(value: Any) -> Any:
    """Return one timestamp or a list of them: strings are dates, the rest is left as it is."""
    if isinstance(value, list):
        return [parse_date(entry) if isinstance(entry, str) else entry for entry in value]
    return parse_date(value) if isinstance(value, str) else value


def _columns(update: dict[str, Any], key: str, names: tuple[str, ...]) -> Any:
    """Return a list of rows as columns."""
    rows = update.get(key)
    if rows is None or rows == []:
        return None
    row_text = f"[{', '.join(names)}]"
    if not isinstance(rows, list):
        raise ValueError(f"{key} is {show(rows)}; it must be a list of {row_text}")
    for row in rows:
        if not isinstance(row, list) or len(row) != len(names):
            raise ValueError(f"{key} holds {show(row)}; each entry must be {row_text}")
    return tuple(list(column) for column in zip(*rows, strict=True))
