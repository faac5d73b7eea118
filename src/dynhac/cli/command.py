"""What every command has: examples in its help, one line for a mistake, a known exit code.

A mistake is what a user can mend: a wrong value, a file that is missing or damaged, an extra that
is not installed, a store that is locked. It is told in one line; ``--debug`` shows where it was
found. Everything else is a bug and shows its traceback.
"""

from __future__ import annotations

import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any

import typer

MISTAKE = 1
INTERRUPTED = 130

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class Stopped(Exception):
    """A command that ended, cleanly, because of a signal."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.code = 128 + signal_number


def add_command(
    app: typer.Typer,
    function: Callable[..., None],
    examples: Sequence[tuple[str, str]],
    panel: str,
    notes: str = "",
) -> None:
    """Register a function as the command of its name.

    Its docstring is the help; ``notes`` stand after it, line by line as they are, and then the
    ``examples``, pairs of what is done and the command line that does it.
    """
    told = "\n".join(f"  # {what}\n  {line}" for what, line in examples)
    blocks = [paragraph(part) for part in (inspect.getdoc(function) or "").split("\n\n")]
    blocks += [f"\b\n{block}" for block in (notes, f"Examples:\n{told}") if block]
    text = "\n\n".join(blocks).replace("[", r"\[")
    app.command(name=function.__name__, help=text, rich_help_panel=panel)(_guarded(function))


def paragraph(text: str) -> str:
    """Return the lines of a paragraph as one, to be broken where the terminal ends."""
    return " ".join(text.split())


FLAGS = {
    "epsilon": "--epsilon",
    "join_distance": "--join-distance",
    "max_age": "--max-age",
    "max_points": "--max-points",
    "min_size": "--min-size",
    "n_clusters": "--clusters",
    "n_neighbors": "--neighbors",
    "theta": "--at",
    "threads": "--threads",
    "threshold": "--threshold",
}
"""Options by the names that messages of the library have for them."""


def tell(kind: str, message: object) -> None:
    """Write one line, such as a warning, to standard error."""
    text = " ".join(str(message).split())
    typer.echo(f"{kind}: {text}", err=True)


def message_of(error: BaseException) -> str:
    """Return what an exception says, in one line."""
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return str(error) or "out of memory"
    text = str(error) or type(error).__name__
    name, rest = text.split(" ", 1) if " " in text else (text, "")
    return f"{FLAGS[name]} {rest}" if name in FLAGS and rest.startswith("is ") else text


def is_mistake(error: BaseException) -> bool:
    """Whether an exception is of a kind that a user can mend."""
    if isinstance(error, (ValueError, KeyError, OSError, ImportError, MemoryError)):
        return True
    from dynhac.store.errors import StoreError

    return isinstance(error, StoreError)


def _guarded(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function with an option --debug and failures turned into exit codes."""

    @wraps(function)
    def run(*args: Any, debug: bool = False, **options: Any) -> None:
        code = _run(lambda: function(*args, **options), debug)
        if code:
            raise typer.Exit(code)

    signature = inspect.signature(function, eval_str=True)
    parameters = [
        *signature.parameters.values(),
        inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug),
    ]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _run(action: Callable[[], None], debug: bool) -> int:
    """Run a command and return its exit code."""
    try:
        with _warnings_told():
            action()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has enough
        _drop_output()
    except KeyboardInterrupt:
        if debug:
            traceback.print_exc()
        _drop_output()  # nobody may be reading it
        tell("error", "interrupted")
        return INTERRUPTED
    except Stopped as stop:
        return stop.code
    except Exception as error:
        if not is_mistake(error):
            raise
        if debug:
            traceback.print_exc()
        tell("error", message_of(error))
        return MISTAKE
    return 0


@contextmanager
def _warnings_told() -> Iterator[None]:
    """Show warnings as lines on standard error."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        tell("warning", message)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for internal in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", internal)
        warnings.showwarning = show
        yield


def _drop_output() -> None:
    """Send what is left in the buffer of standard output nowhere, so that closing it succeeds."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
