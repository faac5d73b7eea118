"""Opening and creating stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import dynhac
from dynhac.cli.output import new_path
from dynhac.input.errors import counted

if TYPE_CHECKING:
    from dynhac.store import DurableDynHAC, DurableGraphHAC

AnyStore: TypeAlias = "DurableDynHAC | DurableGraphHAC"
LOG = "log.sqlite"


@contextmanager
def open_store(path: Path, mode: str = "r") -> Iterator[AnyStore]:
    """Open a store, in mode "r" to read or "w" to write.

    A store that is open for reading can have a writer, and nothing in its folder is changed. A
    store that was open for writing is closed with a snapshot.
    """
    if not path.exists():
        raise ValueError(f"there is no store at {path}; make one with: dynhac build DATA -o {path}")
    if not (path / LOG).exists():
        raise ValueError(f"{path} is not a store: it has no {LOG}")
    with dynhac.open(path, mode=mode) as store:
        yield store


@contextmanager
def create_store(path: Path, kind: str, parameters: dict[str, Any]) -> Iterator[AnyStore]:
    """Create a store, which appears at its path when the block ends without an error."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        found = "a store" if (path / LOG).exists() else "something else"
        raise ValueError(f"{path} exists already and is {found}; give a new path, or add to a "
                         "store with: dynhac insert")  # fmt: skip
    with new_path(path) as temporary:
        with dynhac.open(temporary, kind, **parameters) as store:
            yield store
        if path.exists():
            path.rmdir()


def is_points(store: AnyStore) -> bool:
    """Whether a store holds points, not a graph."""
    return isinstance(store, dynhac.DynHAC)


def has_str_ids(store: AnyStore) -> bool | None:
    """Whether the ids of a store are str; None if it has no ids."""
    ids = store.ids
    return None if not len(ids) else ids.dtype == object


def size_text(store: AnyStore) -> str:
    """Return the number of points or vertices, with its noun."""
    nouns = ("point", "points") if is_points(store) else ("vertex", "vertices")
    return counted(len(store), *nouns)
