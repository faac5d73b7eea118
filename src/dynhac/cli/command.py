"""What all commands share: help with examples, messages and exit codes.

An error of the user (a wrong value, a missing or damaged file, an optional package that is not
installed, a locked store) is reported in one line on standard error; ``--debug`` adds the
traceback. Any other exception is a bug and is not caught.

The functions of commands call their parameters by the names of the library's parameters. So a
message of the library that begins with the name of a parameter is about an option: the name is
replaced by that of the option.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from threading import current_thread, main_thread
from typing import Annotated, Any, NamedTuple

import typer

import dynhac
from dynhac.cli.printable import printable

EXIT_ERROR = 1
EXIT_INTERRUPTED = 130
USER_ERRORS = (ValueError, KeyError, OSError, ImportError, MemoryError)

OPTIONS = {"n_clusters": "--clusters", "n_neighbors": "--neighbors", "neighbors": "--backend",
           "n": "--most"}  # fmt: skip
"""Options that are not called like the parameter of the library, by the parameter."""

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class Command(NamedTuple):
    """A command as `app` adds it: its function, help text and panel in the list of all."""

    run: Callable[..., None]
    help: str
    panel: str


def command(
    panel: str, *examples: tuple[str, str], notes: str = ""
) -> Callable[[Callable[..., None]], Command]:
    """Make a function the command of its name.

    The help is the docstring, then ``notes`` with its line breaks, then the ``examples``: pairs of
    a title and a command line.
    """

    def decorate(function: Callable[..., None]) -> Command:
        listed = "\n".join(f"  # {title}\n  {line}" for title, line in examples)
        blocks = [paragraph(part) for part in (inspect.getdoc(function) or "").split("\n\n")]
        blocks += [f"\b\n{block}" for block in (notes, f"Examples:\n{listed}") if block]
        text = "\n\n".join(blocks).replace("[", r"\[")
        return Command(_with_exit_codes(function), text, panel)

    return decorate


def paragraph(text: str) -> str:
    """Return the lines of a paragraph as one, which the terminal wraps."""
    return " ".join(text.split())


def option_of(parameter: str) -> str:
    """Return the option that sets a parameter of the library."""
    return OPTIONS.get(parameter, "--" + parameter.replace("_", "-"))


def print_message(kind: str, message: object) -> None:
    """Write one line, such as a warning, to standard error."""
    with suppress(OSError):  # nobody reads standard error
        typer.echo(f"{kind}: {printable(paragraph(str(message)))}", err=True)


def message_of(error: BaseException) -> str:
    """Return the message of an exception."""
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])  # str(error) would quote it
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return str(error) or "out of memory"
    return str(error) or type(error).__name__


@contextmanager
def errors_in(place: str) -> Iterator[None]:
    """Let messages about wrong input begin with the place where it was found."""
    try:
        yield
    except (ValueError, KeyError) as error:
        raise ValueError(f"{place}: {message_of(error)}") from error


def _with_exit_codes(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function with an option ``--debug`` and with exit codes for exceptions."""

    @wraps(function)
    def run(debug: bool = False, **values: Any) -> None:
        try:
            with _signals_as_exceptions(), _warnings_as_messages():
                function(**values)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of the output has closed it
            _discard_output()
        except KeyboardInterrupt:
            if debug:
                traceback.print_exc()
            _discard_output()  # writing it could block
            print_message("error", "interrupted")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except _Terminated as signalled:
            if debug:
                traceback.print_exc()
            _discard_output()
            print_message("error", "terminated")
            raise typer.Exit(128 + signalled.number) from None
        except (*USER_ERRORS, dynhac.StoreError) as error:
            if debug:
                traceback.print_exc()
            raise typer.Exit(end_with_error(error, values)) from None

    signature = inspect.signature(function, eval_str=True)
    parameters = [
        *signature.parameters.values(),
        inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug),
    ]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


class _Terminated(BaseException):
    """A signal that ends the command."""

    def __init__(self, number: int) -> None:
        self.number = number


@contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    """Let the signals that end a command raise, so that nothing temporary is left behind.

    The second signal is ignored: what was begun is being undone.
    """
    before: dict[int, Any] = {}

    def stop(number: int, frame: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise _Terminated(number)

    try:
        if current_thread() is main_thread():
            for name in ("SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)  # Windows has no SIGHUP
                if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                    before[number] = signal.signal(number, stop)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _warnings_as_messages() -> Iterator[None]:
    """Write warnings as single lines to standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for internal in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", internal)
        warnings.showwarning = lambda message, *_, **__: print_message("warning", message)
        yield


def end_with_error(error: BaseException, parameters: Collection[str] = ()) -> int:
    """Report an error and return the exit code; ``parameters`` are those that have options."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):  # the error itself, perhaps; it must not be reported again
        _discard_output()
    message = message_of(error)
    name, verb, rest = message.partition(" is ")
    print_message("error", option_of(name) + verb + rest if name in parameters else message)
    return EXIT_ERROR


def _discard_output() -> None:
    """Redirect standard output to the null device, so that flushing its buffer succeeds."""
    with suppress(OSError, ValueError), open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), sys.stdout.fileno())
