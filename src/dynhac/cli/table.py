"""Tables: what an input file holds, as columns.

A table holds one of three kinds of rows: edges (columns u, v and usually w), points (vectors, with
optional ids and timestamps), or ids alone. Vectors are finite float32; other values are checked by
the model, not here.

Ids in text files have no type. They are text until the type of the ids of the store is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac.cli.layout import Roles
from dynhac.cli.parse import is_int_id, parse_id
from dynhac.input.errors import show
from dynhac.input.vectors import LARGEST

HELD = {"points": "vectors", "graph": "edges", "ids": "ids without vectors"}
"""The kinds of tables, and what messages call their rows."""


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a file; those that it does not have are None.

    ``source`` is the name of the file, for messages. ``vectors`` has two dimensions. ``roles`` are
    those of the columns of the file, None if it has no names. If ``untyped_ids`` is set, ids are
    text that has no type yet.
    """

    source: str
    vectors: NDArray[Any] | None = None
    ids: Any = None
    timestamps: NDArray[Any] | None = None
    u: Any = None
    v: Any = None
    w: NDArray[Any] | None = None
    payload: list[dict[str, Any] | None] | None = None
    untyped_ids: bool = False
    roles: Roles | None = None

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
        columns = self._columns("vectors", "ids", "timestamps", "u", "v", "w", "payload")
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


def as_vectors(
    array: NDArray[Any], place: Callable[[int], str], name: Callable[[int], str]
) -> NDArray[np.float32]:
    """Return rows of numbers as float32; raise if one is not finite.

    ``place`` and ``name`` tell what messages call a row and a column.
    """
    with np.errstate(over="ignore"):
        vectors = array.astype(np.float32)
    finite = np.isfinite(vectors)
    if not finite.all():
        row, column = map(int, np.unravel_index(int(np.argmin(finite)), vectors.shape))
        value = float(array[row, column])
        wrong = f"{place(row)}: {name(column)} is {show(value)}"
        if math.isfinite(value):
            raise ValueError(
                f"{wrong}, which does not fit in float32; values must lie between {-LARGEST:.3g} "
                f"and {LARGEST:.3g}"
            )
        raise ValueError(f"{wrong}; vectors must be finite")
    return vectors
