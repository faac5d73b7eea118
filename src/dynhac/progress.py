"""How far a long call is: on standard error, in a notebook, or reported to a function.

Every method that can take long has a keyword ``progress``: None (the default), True, False, or a
function. It is turned into a `dynhac._core.Meter`, to which the long loops report, in Python and in
the core. A meter decides when there is something to report; what is done with a report is decided
here. One line is shown at a time: while a call shows its progress, calls in other threads
or within it show nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple, TextIO

from dynhac._core import Meter
from dynhac.input.errors import InvalidTypeError, show

LINE_SECONDS = 10.0
"""Time between two lines where a line cannot be overwritten."""

VARIABLE = "DYNHAC_PROGRESS"


class Progress(NamedTuple):
    """How far a call is: what a function given as ``progress`` is called with.

    Methods that can take long have a keyword ``progress``:

    - None, the default: if the call takes longer than half a second, a line on standard error says
      how far it is, and is removed at the end. Only a terminal or a notebook gets it, no pipe or
      file. The environment variable ``DYNHAC_PROGRESS`` can be 0 for never or 1 for always.
    - True: also in a pipe or file, where it is a line every 10 seconds.
    - False: nothing.
    - A function that is called with a `Progress`, at most about 10 times a second, and at the end
      of every phase. An exception in it stops the call like Ctrl-C does: the exception is raised,
      and the model is as before. The function must not read or change the model, which is a
      RuntimeError while it is being changed.

    Attributes
    ----------
    phase : str
        What is being done: "indexing", "searching", "reading", "building", "auditing", "verifying",
        "saving", "loading", "restoring", "replaying" or, on Spark, "round 1" and so on.
    done : int
        How much of the phase is done.
    total : int or None
        How much there is to do; None if that is not known.
    unit : str
        What is counted: "points", "edges", "entries", "merges", "updates" or "bytes".
    seconds : float
        Time since the phase began.
    ended : bool
        Whether the phase has ended. Every phase that does not fail reports this once.

    Examples
    --------
    >>> from dynhac import Progress
    >>> print(Progress("searching", 2500, 10000, "points", 0.5))
    searching: 2,500 of 10,000 points, 25%, 5,000 points/s, 2 s left
    >>> print(Progress("saving", 3 * 10**8, None, "bytes", 2.0, ended=True))
    saving: 300.0 MB, 150.0 MB/s, 2 s
    """

    phase: str
    done: int
    total: int | None
    unit: str
    seconds: float
    ended: bool = False

    @property
    def rate(self) -> float | None:
        """Units per second; None at the very beginning."""
        return self.done / self.seconds if self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """About how long the phase will take; None if that is not known."""
        if self.total is None or not self.done:
            return None
        return self.seconds * (self.total - self.done) / self.done

    def __str__(self) -> str:
        parts = [self._amount()]
        if self.total and not self.ended:
            parts.append(f"{self.done / self.total:.0%}")
        if self.rate:
            parts.append(f"{_quantity(self.rate, self.unit)}/s")
        if self.ended:
            parts.append(_duration(self.seconds))
        elif self.seconds_left is not None:
            parts.append(f"{_duration(self.seconds_left)} left")
        return f"{self.phase}: {', '.join(parts)}"

    def _amount(self) -> str:
        if self.total is None or self.ended:
            return _quantity(self.done, self.unit)
        if self.unit == "bytes":
            return f"{self.done / 1e6:,.1f} of {_quantity(self.total, self.unit)}"
        return f"{self.done:,} of {_quantity(self.total, self.unit)}"


Function = Callable[[Progress], object]
ProgressOption = bool | Function | None
"""What ``progress`` may be."""


def for_update(progress: ProgressOption) -> Any:
    """Return what an update reports to, as a native call takes it.

    An exception of the user's function is raised as it is: the update is undone.
    """
    if progress is None:
        return start_display  # the native call makes the meter: this is quicker
    return _meter(progress, _Function)


@contextmanager
def metered(progress: ProgressOption) -> Iterator[Meter]:
    """Give what a long call reports to.

    An exception of the user's function ends the block, and no handler of errors within sees it:
    it says nothing about the file or store that is being read.
    """
    try:
        with _meter(progress, _ShieldedFunction) as made:
            yield made
    except _Cancelled as cancelled:
        raise cancelled.error from cancelled.error.__cause__


def _meter(progress: ProgressOption, told: Callable[[Function], _Function]) -> Meter:
    if progress is None:
        return Meter(start_display)
    if progress is False:
        return Meter(None)
    if progress is True:
        return Meter(start_any_display)
    if not callable(progress):
        raise InvalidTypeError(
            f"progress is {show(progress)}; it must be None, True, False or a function"
        )
    return Meter(lambda: told(progress), 0.0)


def start_display() -> _Display | None:
    """Return what shows progress by default, if anything does."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen in ("0", "1"):
        return start_any_display() if chosen == "1" else None
    if _notebook() is None and not _is_terminal(sys.stderr):
        return None
    return start_any_display()


def start_any_display() -> _Display | None:
    """Return what shows progress, unless it is in use."""
    if sys.stderr is None or not _in_use.acquire(blocking=False):
        return None
    _in_use.release()
    if _notebook() is not None:
        return _NotebookDisplay()
    return _TerminalDisplay() if _is_terminal(sys.stderr) else _LineDisplay()


_in_use = Lock()


class _Cancelled(BaseException):
    """The user's function has raised an exception."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Function:
    """A function of the user's."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def __call__(self, *report: Any) -> None:
        self._function(Progress(*report))

    def clear(self) -> None:
        """Do nothing: the exception tells that the phase has failed."""


class _ShieldedFunction(_Function):
    """One whose exceptions are not caught on their way."""

    def __call__(self, *report: Any) -> None:
        try:
            super().__call__(*report)
        except Exception as error:
            raise _Cancelled(error) from None


class _Display:
    """Shows reports. A display that fails is not used again; the work goes on."""

    def __init__(self) -> None:
        self._working = True
        self._holds = False

    def __call__(self, *report: Any) -> None:
        progress = Progress(*report)
        self._holds = self._holds or _in_use.acquire(blocking=False)
        if self._holds and self._working:
            try:
                self.show(progress)
            except (OSError, ValueError):  # closed
                self._working = False
        if progress.ended:
            self._release()

    def clear(self) -> None:
        """Remove what is shown: the phase has failed."""
        if self._holds and self._working:
            try:
                self.remove()
            except (OSError, ValueError):
                self._working = False
        self._release()

    def show(self, progress: Progress) -> None:
        raise NotImplementedError

    def remove(self) -> None:
        raise NotImplementedError

    def _release(self) -> None:
        if self._holds:
            self._holds = False
            _in_use.release()


class _TerminalDisplay(_Display):
    """One line that is overwritten, and removed at the end."""

    def __init__(self) -> None:
        super().__init__()
        self._shown = 0

    def show(self, progress: Progress) -> None:
        if progress.ended:
            self.remove()
            return
        width = shutil.get_terminal_size().columns - 1  # a full line would wrap
        self._write(str(progress)[: max(width, 1)])

    def remove(self) -> None:
        self._write("")
        sys.stderr.write("\r")
        sys.stderr.flush()

    def _write(self, line: str) -> None:
        sys.stderr.write("\r" + line.ljust(self._shown))
        sys.stderr.flush()
        self._shown = len(line)


class _LineDisplay(_Display):
    """Lines in a file or pipe: one now and then, and one at the end of a phase."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    def show(self, progress: Progress) -> None:
        if progress.ended or monotonic() >= self._next:
            self._next = monotonic() + LINE_SECONDS
            sys.stderr.write(f"{progress}\n")
            sys.stderr.flush()

    def remove(self) -> None:
        pass


class _NotebookDisplay(_Display):
    """A text of the cell's output that is replaced, and ends with the figures of each phase."""

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None
        self._ended = ""

    def show(self, progress: Progress) -> None:
        self._put(f"{self._ended}{progress}")
        if progress.ended:
            self._ended += f"{progress}\n"

    def remove(self) -> None:
        self._put(self._ended.rstrip())

    def _put(self, text: str) -> None:
        data = {"text/plain": text}
        if self._handle is None:
            from IPython import display

            show: Any = display.display
            self._handle = show(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


def _notebook() -> Any:
    """Return the shell of the notebook that this runs in; None if it runs in none."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def _quantity(amount: float, unit: str) -> str:
    return f"{amount / 1e6:,.1f} MB" if unit == "bytes" else f"{amount:,.0f} {unit}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
