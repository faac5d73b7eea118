"""What a forked child does with the stores that its parent has open: it lets go of them.

The child has copies of the parent's descriptors and of its connection to the log. It closes the
descriptors without unlocking anything, and never uses the connection. Its models can be read; they
refuse updates, and closing them touches no file.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Inherited(Protocol):
    """A part of an open store: its lock, its head, its log, or its writer."""

    def abandon(self) -> None:
        """Let go of what belongs to the parent, in a forked child."""


_parts: weakref.WeakSet[Inherited] = weakref.WeakSet()


def let_go_when_forked(part: Inherited) -> None:
    """Have a part abandoned in every child that is forked from now on."""
    _parts.add(part)


def is_closed(part: Inherited) -> None:
    """Note that a child need not abandon a part."""
    _parts.discard(part)


def _let_go() -> None:
    for part in tuple(_parts):
        part.abandon()
    _parts.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
