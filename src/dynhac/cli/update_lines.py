"""Lines of JSON that update a store: the input of ``dynhac tail``, whose help shows their forms.

A line is one update: all of it is applied or nothing. It has the keys of an update, or it is a row
of data, as in a file for ``dynhac insert``: a point if its vector is under a name that is known, or
an edge.
"""

from __future__ import annotations

from typing import Any

from dynhac.cli.batches import update_edges, update_points
from dynhac.cli.layout import Layout
from dynhac.cli.parse import parse_date
from dynhac.cli.read_text import JsonRows, parse_object
from dynhac.cli.stores import AnyStore, is_points
from dynhac.input.errors import show

POINT_KEYS = ("insert", "id", "ids", "timestamp", "timestamps", "payload", "delete", "expire")
POINT_ACTIONS = {"insert", "delete", "expire"}
POINT_EXAMPLE = '{"insert": [0.1, 0.2], "id": 7}'
GRAPH_ACTIONS = {"add", "edges", "remove", "remove_edges"}
GRAPH_KEYS = ("add", "edges", "remove", "remove_edges", "payload")
GRAPH_EXAMPLE = '{"add": [7], "edges": [[7, 3, 0.5]]}'


def apply_line(store: AnyStore, line: bytes, layout: Layout) -> None:
    """Apply one line; ValueError or KeyError if it is not valid or the model rejects it."""
    model: Any = store
    points = is_points(store)
    actions = POINT_ACTIONS if points else GRAPH_ACTIONS
    update = parse_object(line)
    if layout.ignore:
        update = {key: value for key, value in update.items() if key not in layout.ignore}
    if actions.isdisjoint(update) and layout.known_row(update, points):
        rows = JsonRows(update, layout)
        try:
            rows.add([1], [update])
        except ValueError as error:  # the caller knows the number of the line
            raise ValueError(str(error).removeprefix("line 1: ")) from error
        (update_points if points else update_edges)(model, rows.table(""), [], False, False)
    elif not points:
        _check_keys(update, GRAPH_KEYS, GRAPH_EXAMPLE)
        model.update(
            add=update.get("add"),
            edges=_columns(update, "edges", ("u", "v", "w")),
            remove=update.get("remove"),
            remove_edges=_columns(update, "remove_edges", ("u", "v")),
            payload=update.get("payload"),
        )
    else:
        _check_keys(update, POINT_KEYS, POINT_EXAMPLE)
        _apply_to_points(model, update)


def _apply_to_points(model: Any, update: dict[str, Any]) -> None:
    if "expire" not in update:
        model.update(
            insert=update.get("insert"),
            ids=_either(update, "id", "ids"),
            delete=update.get("delete"),
            timestamps=_timestamps(_either(update, "timestamp", "timestamps")),
            payload=update.get("payload"),
        )
    elif len(update) > 1:
        raise ValueError("expire must be the only key; put the rest in a line of its own")
    else:
        model.expire(_timestamps(update["expire"]))


def _check_keys(update: dict[str, Any], keys: tuple[str, ...], example: str) -> None:
    if not update:
        raise ValueError(f"an empty object; write one such as {example}")
    for key, value in update.items():
        if key not in keys:
            raise ValueError(
                f"unknown key {show(key)}; known are {', '.join(keys)}; to leave out a key use "
                "--ignore, and for rows of data --vector-column"
            )
        if value is None:
            raise ValueError(f"{key} is null; leave it out if there is nothing to do")


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
