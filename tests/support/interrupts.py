"""Interrupts and other events at any line of the package, and signals at any moment."""

import gc
import linecache
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import dynhac

with_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")


def at_line(number, call, action):
    """Call, and take an action at a line of the package; return whether it was reached.

    The action is not traced. If it raises, the error is that of the line.
    """
    folder = str(Path(dynhac.__file__).parent)
    lines, reached = 0, False

    def trace(frame, event, _):
        nonlocal lines, reached
        if not frame.f_code.co_filename.startswith(folder):
            return None
        # On its way out of a with block the interpreter comes back to its first line, where it
        # takes no signals, but would trace; nor does it take any at a try.
        code = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not code.lstrip().startswith(("with ", "try:")):
            lines += 1
            if lines == number:
                reached = True
                action()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return reached


def interrupt():
    raise KeyboardInterrupt


def interrupt_at_line(number, call):
    """Call, with a KeyboardInterrupt at a line of the package; return whether it was reached."""
    try:
        assert not at_line(number, call, interrupt), "the interrupt was swallowed"
    except KeyboardInterrupt:
        return True
    return False


@contextmanager
def alarms(handler, seconds=1e-3):
    """Call a signal handler again and again."""
    previous = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@contextmanager
def alarms_interrupt():
    """SIGALRM raises KeyboardInterrupt; the timer is for the caller to set.

    The garbage collector rests: an interrupt in one of its callbacks would be lost.
    """

    def handler(signum, frame):
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, handler)
    gc.disable()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        gc.enable()
