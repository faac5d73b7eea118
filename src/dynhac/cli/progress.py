"""Progress bars on standard error; nothing is written if that is not a terminal.

A bar is removed when it is done. Rich is imported only if there is a bar to draw.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

Advance = Callable[[int], None]
UPDATE_BYTES = 1 << 20
"""Bytes between two updates of a bar: an update for every line would be slow."""


@contextmanager
def bytes_bar(title: str, total: int) -> Iterator[Advance]:
    """Show how much of a file of ``total`` bytes has been read; 0 if its size is unknown."""
    with _bar(title, total or None, _byte_columns) as advance:
        pending = 0

        def count(number: int) -> None:
            nonlocal pending
            pending += number
            if pending >= UPDATE_BYTES:
                advance(pending)
                pending = 0

        yield count


@contextmanager
def items_bar(title: str, total: int, unit: str) -> Iterator[Advance]:
    """Show how many of ``total`` items are done, and how many per second."""
    with _bar(title, total, lambda: _item_columns(unit)) as advance:
        yield advance


@contextmanager
def elapsed_bar(title: str) -> Iterator[None]:
    """Show that work of unknown length is running, and for how long."""
    with _bar(title, None, _elapsed_columns):
        yield


@contextmanager
def _bar(
    title: str, total: int | None, columns: Callable[[], list[ProgressColumn]]
) -> Iterator[Advance]:
    if not sys.stderr.isatty():
        yield lambda number: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    shown = (TextColumn("{task.description}"), BarColumn(), *columns())
    with Progress(*shown, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda number: progress.advance(task, number)


def _byte_columns() -> list[ProgressColumn]:
    from rich.progress import DownloadColumn, TimeRemainingColumn, TransferSpeedColumn

    return [DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()]


def _item_columns(unit: str) -> list[ProgressColumn]:
    from rich.progress import MofNCompleteColumn, ProgressColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f} {unit}/s", style="progress.data")

    return [MofNCompleteColumn(), Rate(), TimeRemainingColumn()]


def _elapsed_columns() -> list[ProgressColumn]:
    from rich.progress import TimeElapsedColumn

    return [TimeElapsedColumn()]
