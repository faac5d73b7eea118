"""``dynhac find``: points by what their payloads hold."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dynhac.cli.command import command
from dynhac.cli.options import INSPECT, Json, Show, StorePath, output_option
from dynhac.cli.output import (
    TABLE_ENDINGS,
    payload_cells,
    print_columns,
    print_table,
    print_text,
    to_json,
)
from dynhac.cli.stores import open_store
from dynhac.input.errors import counted


@command(
    INSPECT,
    ("Points with these words", 'dynhac find my.store "oil price"'),
    ("With a field of this value", "dynhac find my.store --where topic=oil"),
    ("A column of titles", "dynhac find my.store oil --show title -o - | head"),
)
def find(
    store: StorePath,
    text: Annotated[
        str | None, typer.Argument(metavar="WORDS", help="Words that a payload must have, all.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE",
            help="Field that a payload must have; the value is JSON, or else text. Can be "
            "repeated.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many points to list at most.")] = 100,
    fields: Show = None,
    out: Annotated[
        Path | None,
        output_option(
            f"Write the table to a file that ends in {TABLE_ENDINGS}; - for CSV on standard output."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Find points by the words and fields of their payloads.

    The most relevant points come first. Without --show, payloads are shown whole, as JSON.
    """
    wanted = dict(map(_field, where or ()))
    with open_store(store) as opened:
        ids = opened.find(text, wanted, limit)
        payloads = opened.payloads(ids)
    columns: dict[str, Any] = {"id": ids}
    if fields:
        columns |= payload_cells(payloads, fields)
    else:
        columns["payload"] = np.array([to_json(payload) for payload in payloads], object)
    summary = counted(len(ids), "point", "points")

    def table() -> None:
        print_text(summary)
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        print_table(list(columns), [tuple(map(str, row)) for row in rows], 0)

    print_columns(
        columns,
        out,
        json,
        summary=summary,
        facts={"points": len(ids)},
        rows=lambda: {"ids": ids, "payloads": payloads},
        show=table,
    )


def _field(text: str) -> tuple[str, Any]:
    """Return the name and the value in FIELD=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"--where is {text!r}; it must be FIELD=VALUE")
    try:
        return name, json_module.loads(value)
    except (ValueError, RecursionError):
        return name, value
