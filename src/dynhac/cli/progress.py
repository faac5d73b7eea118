"""Progress on the terminal: bars with rates and the time that is left.

Everything goes to standard error, and nothing at all if that is not a terminal. Bars vanish when
they are done: what remains is what a command says at its end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, Task
    from rich.text import Text

Advance = Callable[[int], None]
PIECE = 1 << 20
"""Bytes between two looks at the clock."""


@contextmanager
def bytes_bar(title: str, total: int) -> Iterator[Advance]:
    """Show how far a file of ``total`` bytes has been read; 0 if that is not known."""
    if not _shown():
        yield _nothing
        return
    from rich.progress import DownloadColumn, TransferSpeedColumn

    with _bar(title, total or None, DownloadColumn(), TransferSpeedColumn()) as advance:
        waiting = 0

        def count(number: int) -> None:
            nonlocal waiting
            waiting += number
            if waiting >= PIECE:
                advance(waiting)
                waiting = 0

        yield count


@contextmanager
def items_bar(title: str, total: int, unit: str) -> Iterator[Advance]:
    """Show how many of ``total`` items are done, and how many a second."""
    if not _shown():
        yield _nothing
        return
    from rich.progress import MofNCompleteColumn, ProgressColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f} {unit}/s", style="progress.data")

    with _bar(title, total, MofNCompleteColumn(), Rate()) as advance:
        yield advance


@contextmanager
def busy(title: str) -> Iterator[None]:
    """Show that something of unknown length is under way, and since when."""
    if not _shown():
        yield
        return
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with _progress(*columns) as progress:
        progress.add_task(title, total=None)
        yield


@contextmanager
def _bar(title: str, total: int | None, *columns: Any) -> Iterator[Advance]:
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    with _progress(
        TextColumn("{task.description}"), BarColumn(), *columns, TimeRemainingColumn()
    ) as progress:
        task = progress.add_task(title, total=total)
        yield lambda number: progress.advance(task, number)


def _progress(*columns: Any) -> Progress:
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*columns, console=Console(stderr=True), transient=True)


def _shown() -> bool:
    return sys.stderr.isatty()


def _nothing(number: int) -> None:
    pass
