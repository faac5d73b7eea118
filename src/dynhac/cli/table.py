"""Tables: what an input file holds, as columns.

A table holds one of three kinds of rows: edges (columns u, v and usually w), points (vectors, with
optional ids and timestamps), or ids alone. Values are checked by the model, not here.

Ids in text files have no type. They are text until the type of the ids of the store is known.

A store of points does not know the names of the columns of its vectors. If the file that it was
built from had names, they are kept in a file of the store's folder, so that the columns of later
files may be in another order.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from dynhac.cli.parse import is_int_id, parse_id

NAMES_FILE = "columns.json"
HELD = {"points": "vectors", "graph": "edges", "ids": "ids without vectors"}
"""The kinds of tables, and what messages call their rows."""


class ColumnNames(NamedTuple):
    """The names of the columns that are not part of a vector."""

    id: str = "id"
    time: str = "timestamp"

    def assign(self, columns: list[str], ids_only: bool) -> tuple[dict[str, str], list[str]]:
        """Return what the columns of a file are.

        First the columns of ids and timestamps, each with its attribute of a `Table`. Then those of
        numbers: the weights of edges, or the vectors.
        """
        if {"u", "v"} <= set(columns) and self.id not in columns:
            return {"u": "u", "v": "v"}, [name for name in columns if name == "w"]
        if ids_only:
            if self.id not in columns:
                raise ValueError(f"no column {self.id}, only {', '.join(columns)}")
            return {self.id: "ids"}, []
        numbers = [name for name in columns if name not in self]
        if not numbers:
            raise ValueError(f"no columns of vectors, only {', '.join(columns)}")
        known = {self.time: "timestamps", self.id: "ids"}
        return {name: known[name] for name in columns if name in known}, numbers


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a file; those that it does not have are None.

    ``source`` is the name of the file, for messages. ``vectors`` has two dimensions, and
    ``vector_columns`` are the names of its columns, if the file has names. If ``untyped_ids`` is
    set, ids are text that has no type yet.
    """

    source: str
    vectors: NDArray[Any] | None = None
    ids: Any = None
    timestamps: NDArray[Any] | None = None
    u: Any = None
    v: Any = None
    w: NDArray[Any] | None = None
    untyped_ids: bool = False
    vector_columns: list[str] | None = None

    @property
    def kind(self) -> str:
        """A key of `HELD`."""
        if self.u is not None:
            return "graph"
        return "ids" if self.vectors is None else "points"

    def __len__(self) -> int:
        return len({"graph": self.u, "points": self.vectors, "ids": self.ids}[self.kind])

    def require(self, kind: str, requirement: str) -> None:
        """Raise if the table is of another kind."""
        if self.kind != kind:
            raise ValueError(f"{self.source} holds {HELD[self.kind]}; {requirement}")

    def rows(self, first: int, end: int) -> Table:
        """Return some of the rows."""
        columns = self._columns("vectors", "ids", "timestamps", "u", "v", "w")
        return replace(self, **{name: column[first:end] for name, column in columns.items()})

    def typed(self, str_ids: bool | None) -> Table:
        """Return the table with ids that are str or int.

        ``str_ids`` says whether the ids of the store are str. If it is None, the store has no ids,
        and ids in text become ints if all of them can.
        """
        if not self.untyped_ids:
            return self
        columns = self._columns("ids", "u", "v")
        if str_ids is None:
            str_ids = not all(map(is_int_id, chain(*columns.values())))
        for name, ids in columns.items():
            columns[name] = [parse_id(id, str_ids) for id in ids]
        return replace(self, untyped_ids=False, **columns)

    def _columns(self, *names: str) -> dict[str, Any]:
        """Return those of the columns that the table has."""
        columns = {name: getattr(self, name) for name in names}
        return {name: column for name, column in columns.items() if column is not None}


def save_vector_columns(folder: Path, table: Table) -> None:
    """Keep the names of the columns of vectors, if the table has names."""
    if table.vector_columns is not None:
        text = json.dumps(table.vector_columns) + "\n"
        (folder / NAMES_FILE).write_text(text, encoding="utf-8")


def order_vector_columns(folder: Path, table: Table) -> Table:
    """Return the table with its columns in the order of the store; raise if their names differ."""
    path = folder / NAMES_FILE
    if table.vector_columns is None or table.vectors is None or not path.exists():
        return table
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{path} is damaged; it must be a list of the names of columns")
    if table.vector_columns == names:
        return table
    if sorted(table.vector_columns) != sorted(names):
        raise ValueError(
            f"{table.source} has the columns {', '.join(table.vector_columns)}, but the vectors of "
            f"{folder} have the columns {', '.join(names)}"
        )
    order = [table.vector_columns.index(name) for name in names]
    return replace(table, vectors=table.vectors[:, order], vector_columns=names)
