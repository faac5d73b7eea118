"""Progress bars on standard error; nothing is written if that is not a terminal.

A bar is removed when it is done. Rich is imported only if there is a bar to draw.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

Advance = Callable[[int], None]


@contextmanager
def progress_bar(title: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
    """Show how much of ``total`` is done and how fast; without a ``unit``, the elapsed time.

    The unit is "bytes" or a noun in the plural.
    """
    if not sys.stderr.isatty():
        yield lambda number: None
        return
    from rich import progress
    from rich.console import Console
    from rich.text import Text

    class Rate(progress.ProgressColumn):
        def render(self, task: progress.Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f} {unit}/s", style="progress.data")

    columns: list[progress.ProgressColumn] = [progress.TimeElapsedColumn()]
    if unit:
        of_bytes = (progress.DownloadColumn(), progress.TransferSpeedColumn())
        of_items = (progress.MofNCompleteColumn(), Rate())
        columns = [*(of_bytes if unit == "bytes" else of_items), progress.TimeRemainingColumn()]
    shown = (progress.TextColumn("{task.description}"), progress.BarColumn(), *columns)
    with progress.Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        yield partial(bar.advance, bar.add_task(title, total=total))
