"""What the columns of an input file are: ids, timestamps, vectors, edges, or not used.

The names of the columns decide what can be decided by names: the options of a command, else what
the store was built with, else the usual names. The other columns of a file of points are judged by
what they hold: *numbers*, *lists* (of numbers, one vector in each row) or *other*. The vector is
the only column of lists, or all columns of numbers. Columns that hold anything else are ignored,
and the command says so. Where that would be a guess, it is an error.

A store of points does not know these names. They are kept in a file of its folder, so that later
files may have their columns in another order, and need no options.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from dynhac.input.errors import show

LAYOUT_FILE = "columns.json"
KEPT = ("ids", "timestamps")
NUMBERS, LISTS, OTHER = "numbers", "lists", "other"
"""What a column holds."""

EDGE_NAMES = (("u", "v", "w"), ("source", "target", "weight"))
"""Usual names of the columns of edges; capital letters make no difference in the second."""


class Layout(NamedTuple):
    """The names of columns that are known before a file is read.

    Attributes
    ----------
    id, time, vector : str or None
        Columns that were asked for; a file must have them. ``vector`` is a column of lists.
    ignore : tuple of str
        Columns that are not used; a file must have them.
    payload : tuple of str or None
        Columns that are the payload of the points; an empty tuple: all that are not used otherwise.
    kind : "points", "graph" or None
        What a file holds; None: edges if it has the columns for them.
    header : bool or None
        Whether the first line of CSV has the names; None: if not all of it is numbers.
    usual_ids, usual_times : tuple of str
        Where to look for ids and timestamps if nothing was asked for.
    usual_vector : str, list of str or None
        The column of lists, or the columns of numbers, of the vectors that a store has.
    usual_payload : tuple of str or None
        As ``payload``, of the files that a store was built from.
    """

    id: str | None = None
    time: str | None = None
    vector: str | None = None
    ignore: tuple[str, ...] = ()
    kind: str | None = None
    header: bool | None = None
    usual_ids: tuple[str, ...] = ("id",)
    usual_times: tuple[str, ...] = ("timestamp",)
    usual_vector: str | list[str] | None = None
    payload: tuple[str, ...] | None = None
    usual_payload: tuple[str, ...] | None = None

    def roles(self, names: Sequence[str], ids_only: bool = False) -> Roles:
        """Return what the columns of a file are, as far as their names tell, or raise."""
        if len(set(names)) < len(names):
            repeated = next(name for i, name in enumerate(names) if name in names[:i])
            raise ValueError(f"two columns called {show(repeated)}; names must differ")
        for option, name in (
            ("--id-column", self.id),
            ("--time-column", self.time),
            ("--vector-column", self.vector),
            *(("--ignore", name) for name in self.ignore),
            *(("--payload-column", name) for name in self.payload or ()),
        ):
            if name is not None and name not in names:
                raise ValueError(f"no column {show(name)}, only {listed(names)}; see {option}")
        wanted = self.wanted_payload
        if wanted is None or ids_only:
            return self._roles(names, [n for n in names if n not in self.ignore], ids_only)
        kept = tuple(name for name in wanted if name in names)
        used = [name for name in names if name not in self.ignore and name not in kept]
        roles = self._roles(names, used, ids_only)
        # The files of the store had columns for it, and this one has none.
        return roles if wanted and not kept else roles.with_payload(kept)

    @property
    def wanted_payload(self) -> tuple[str, ...] | None:
        """The columns of the payload, if a file has them; an empty tuple: all others."""
        return self.usual_payload if self.payload is None else self.payload

    def _roles(self, names: Sequence[str], used: list[str], ids_only: bool) -> Roles:
        """Return what the columns in ``used`` are."""
        ids = _first(self.id, self.usual_ids, used)
        ends = self._ends(used, ids is not None, ids_only)
        if ends:
            return _roles(dict(zip("uvw", ends, strict=False)), None, [], used)
        if ids_only:
            if ids is None:
                raise ValueError(f"no column {self.usual_ids[0]}, only {listed(names)}")
            return _roles({"ids": ids}, None, [], used)
        found = {"ids": ids, "timestamps": _first(self.time, self.usual_times, used)}
        fields = {field: name for field, name in found.items() if name is not None}
        usual = self.usual_vector
        if self.vector is not None:
            return _roles(fields, self.vector, [], used)
        if isinstance(usual, str):
            known = usual in used
            return _roles(fields, usual if known else None, [] if known else None, used)
        if usual is not None and set(usual) <= set(used):
            return _roles(fields, None, usual, used)
        return _roles(fields, None, None, used, usual or [])

    def known_row(self, names: Collection[str], points: bool) -> bool:
        """Whether names are those of a point whose vector is known by name, or of an edge."""
        if not points:
            return bool(self._ends(names, False, False))
        vector = self.usual_vector if self.vector is None else self.vector
        needed = {vector} if isinstance(vector, str) else set(vector or ())
        return bool(needed) and needed <= set(names)

    def _ends(self, names: Collection[str], has_ids: bool, ids_only: bool) -> tuple[str, ...]:
        """Return the columns of the ends of edges, and of their weights if there are any."""
        if self.kind == "points" or self.vector is not None or (has_ids and self.kind != "graph"):
            return ()
        lower = {name.lower(): name for name in names}
        for known, (u, v, w) in (({n: n for n in names}, EDGE_NAMES[0]), (lower, EDGE_NAMES[1])):
            if u in known and v in known and (u == "u" or w in known or ids_only):
                return tuple(known[name] for name in (u, v, w) if name in known)
        return ()


def _first(given: str | None, usual: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the column that was asked for, or the first of the usual ones that is there."""
    return given if given is not None else next((n for n in usual if n in names), None)


class Roles(NamedTuple):
    """What the columns of one file are.

    Attributes
    ----------
    fields : dict
        Attributes of a `Table`, each with its column: ids, timestamps, u, v, w.
    vector : str or None
        The column of lists.
    numbers : list of str or None
        The columns of the vector; None if that is still to be decided.
    rest : list of str
        The other columns: not used, or to be decided.
    usual : list of str
        The columns of numbers that the vectors of the store have, if the file lacks some of them.
    payload : tuple of str or None
        The columns of the payload; an empty tuple: those in ``rest``.
    """

    fields: dict[str, str]
    vector: str | None
    numbers: list[str] | None
    rest: list[str]
    usual: Sequence[str] = ()
    payload: tuple[str, ...] | None = None

    def with_payload(self, payload: tuple[str, ...]) -> Roles:
        """Return the roles with columns for the payload, or raise."""
        if "u" in self.fields:
            raise ValueError("payloads are for points, and these are the edges of a graph")
        return self._replace(payload=payload)

    @property
    def payload_columns(self) -> list[str] | None:
        """The columns of the payload; None if there is none."""
        return self.payload if self.payload is None else list(self.payload or self.rest)

    @property
    def ignored(self) -> list[str]:
        """The columns that are not used."""
        return [] if self.payload == () else self.rest

    @property
    def decided(self) -> bool:
        """Whether it is known which columns the vector has."""
        return self.numbers is not None

    def decide(self, kinds: dict[str, str]) -> Roles:
        """Return the roles with the vector, for what the columns in ``rest`` hold."""
        lists = [name for name in self.rest if kinds[name] == LISTS]
        numbers = [name for name in self.rest if kinds[name] == NUMBERS]
        if len(lists) > 1 or (lists and numbers):
            other = lists[1] if len(lists) > 1 else numbers[0]
            raise ValueError(
                f"columns {lists[0]} and {other} could both be the vector, which is one column of "
                f"lists or the columns of numbers; use --vector-column {lists[0]}, or --ignore"
            )
        if not lists and not numbers:
            names = [*self.fields.values(), *self.rest]
            hint = ""
            if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
                hint = "; values must be separated by commas, or by tabs in a .tsv file"
            elif {name.lower() for name in names} >= {"source", "target"}:
                hint = "; for the edges of a graph a column weight is needed as well"
            elif self.rest:
                hint = "; if one has lists as JSON text, such as [0.1, 0.2], use --vector-column"
            raise ValueError(f"no columns of numbers for vectors, only {listed(names)}{hint}")
        if numbers and self.usual:
            missing = next(name for name in self.usual if name not in self.rest)
            raise ValueError(
                f"no column {show(missing)}, only {listed([*self.fields.values(), *self.rest])}; "
                f"the vectors of the store have the columns {listed(self.usual)}"
            )
        if "" in numbers:
            raise ValueError(
                "a column without a name, which may be row numbers of another program; give it a "
                'name, or use --ignore "" or --id-column ""'
            )
        rest = [name for name in self.rest if name not in numbers and name not in lists]
        return Roles(self.fields, lists[0] if lists else None, numbers, rest, payload=self.payload)


def _roles(
    fields: dict[str, str],
    vector: str | None,
    numbers: list[str] | None,
    names: Sequence[str],
    usual: Sequence[str] = (),
) -> Roles:
    """Return roles whose ``rest`` are the names that have no role."""
    taken = {*fields.values(), vector, *(numbers or ())}
    return Roles(fields, vector, numbers, [name for name in names if name not in taken], usual)


def listed(names: Iterable[str], most: int = 20) -> str:
    """Return names as a list in text."""
    names = list(names)
    shown = [name if name and name == name.strip() else show(name) for name in names[:most]]
    more = [f"… ({len(names):,} in all)"] if len(names) > most else []
    return ", ".join(shown + more) or "none"


def save_layout(folder: Path, roles: Roles | None) -> None:
    """Keep the names of the columns of points that a store was built from, if they have names."""
    if roles is not None and "u" not in roles.fields:
        names = {field: [roles.fields[field]] if field in roles.fields else [] for field in KEPT}
        vector = roles.numbers if roles.vector is None else roles.vector
        kept = {} if roles.payload is None else {"payload": roles.payload}
        text = json.dumps(names | {"vector": vector} | kept) + "\n"
        (folder / LAYOUT_FILE).write_text(text, encoding="utf-8")


def load_layout(folder: Path, layout: Layout) -> Layout:
    """Return the layout for a file that is added to a store: with the names it was built from."""
    path = folder / LAYOUT_FILE
    if not path.is_file():
        return layout
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        ids, times, vector = kept["ids"], kept["timestamps"], kept["vector"]
        payload = kept.get("payload")
        names = [*ids, *times, *([vector] if isinstance(vector, str) else vector), *(payload or ())]
        valid = all(isinstance(each, list) for each in (ids, times, payload or []))
    except (ValueError, TypeError, KeyError):
        valid, names, payload = False, [], None
    if not valid or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"{path} is damaged; it must have the names of the columns of ids, timestamps and "
            "vector"
        )
    return layout._replace(
        kind="points",
        usual_ids=(*ids, *layout.usual_ids),
        usual_times=(*times, *layout.usual_times),
        usual_vector=vector,
        usual_payload=None if payload is None else tuple(payload),
    )
