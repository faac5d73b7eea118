"""What a forked child does with the stores that its parent has open: it lets go of them.

The child has copies of the parent's descriptors and of its connection to the log. It closes the
descriptors without unlocking anything, and never uses the connection. Its models can be read; they
refuse updates, and closing them touches no file.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynhac.store.writer import Writer

open_writers: weakref.WeakSet[Writer] = weakref.WeakSet()
"""The writers of this process whose files are open."""


def _let_go() -> None:
    for writer in tuple(open_writers):
        writer.abandon()
    open_writers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
