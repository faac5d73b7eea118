"""Stores as the commands open them: to read, to write, or new.

A new store is built in a folder beside its place and moved there when it is complete, so that a
build that fails or is interrupted leaves nothing behind.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dynhac.cli.progress import Advance, busy, items_bar

if TYPE_CHECKING:
    from dynhac.store import DurableDynHAC, DurableGraphHAC

    AnyStore: TypeAlias = DurableDynHAC | DurableGraphHAC

LOG = "log.sqlite"


@contextmanager
def reading(path: Path) -> Iterator[AnyStore]:
    """Open a store that others may be writing to; nothing in its folder is changed."""
    with _opened(path, "r") as store:
        yield store


@contextmanager
def writing(path: Path) -> Iterator[AnyStore]:
    """Open a store to change it; it is closed with a snapshot."""
    with _opened(path, "w") as store:
        yield store


@contextmanager
def building(path: Path, kind: str, parameters: dict[str, Any]) -> Iterator[AnyStore]:
    """Make a new store, which takes its place when the block ends without an error."""
    import dynhac

    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        what = "a store" if (path / LOG).exists() else "something else"
        raise ValueError(f"{path} exists already and is {what}; give a new place, or add to a "
                         "store with: dynhac insert")  # fmt: skip
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path}: the folder {path.absolute().parent} does not exist")
    beside = path.absolute().parent / f".{path.name}.building-{os.getpid()}"
    try:
        with dynhac.open(beside, kind, **parameters) as store:
            yield store
            with busy("writing the store"):
                store.close()
        if path.exists():
            path.rmdir()
        os.replace(beside, path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def is_points(store: AnyStore) -> bool:
    """Whether a store holds points, not a graph."""
    from dynhac import DynHAC

    return isinstance(store, DynHAC)


def has_text_ids(store: AnyStore) -> bool | None:
    """Whether the ids of a store are str; None if it has none."""
    ids = store.ids
    return None if not len(ids) else ids.dtype == object


def named(store: AnyStore, count: int) -> str:
    """Return a number of what the store holds, in words."""
    from dynhac.input.errors import counted

    if is_points(store):
        return counted(count, "point", "points")
    return counted(count, "vertex", "vertices")


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[AnyStore]:
    import dynhac

    if not path.exists():
        raise ValueError(f"there is no store at {path}; make one with: dynhac build DATA -o {path}")
    if not (path / LOG).exists():
        raise ValueError(f"{path} is not a store: it has no {LOG}")
    with ExitStack() as bars:
        bars.enter_context(busy(f"opening {path}"))
        store = dynhac.open(path, mode=mode, progress=_replay_bar(path, bars))
    with store:
        yield store
        if mode == "w":
            with busy("closing the store"):
                store.close()


def _replay_bar(path: Path, bars: ExitStack) -> Callable[[int, int], None]:
    """Return what to call with the number of updates read from the log, and of all."""
    advance: Advance | None = None
    before = 0

    def report(done: int, total: int) -> None:
        nonlocal advance, before
        if advance is None:
            bars.close()
            advance = bars.enter_context(items_bar(f"opening {path}", total, "updates"))
        advance(done - before)
        before = done

    return report
