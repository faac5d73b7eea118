"""Progress bars on standard error; nothing is written if that is not a terminal.

A bar is removed when it is done. Rich is imported only if there is a bar to draw.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int | None], object]
"""Called with how much is done, and the total or None if it is unknown."""


@contextmanager
def progress_bar(title: str, unit: str = "") -> Iterator[Report]:
    """Show how much is done and how fast, or the elapsed time until a total is reported.

    The unit is "bytes" or a noun in the plural.
    """
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich import progress
    from rich.console import Console
    from rich.text import Text

    elapsed = progress.TimeElapsedColumn()
    count = progress.MofNCompleteColumn()

    class Figures(progress.ProgressColumn):
        def render(self, task: progress.Task) -> Text:
            if task.total is None:
                return elapsed.render(task)
            speed = task.finished_speed or task.speed
            rate = "" if speed is None else f"{speed:,.0f} {unit}/s"
            return Text.assemble(count.render(task), " ", (rate, "progress.data.speed"))

    figures: list[progress.ProgressColumn] = [Figures()]
    if unit == "bytes":
        figures = [progress.DownloadColumn(), progress.TransferSpeedColumn()]
    titled = (progress.TextColumn("{task.description}"), progress.BarColumn())
    columns = (*titled, *figures, progress.TimeRemainingColumn())
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
