"""Packages that dynhac can do without: imported where they are used, missed with a helpful message.

Each comes with an extra of the same purpose, so that ``pip install 'dynhac[arrow]'`` is all that a
user has to know.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def optional(module: str, extra: str, purpose: str) -> ModuleType:
    """Return a module that ``purpose`` needs, or say which extra of dynhac brings it.

    Examples
    --------
    >>> from dynhac.extras import optional
    >>> optional("no_such_module", "plot", "plot()")
    Traceback (most recent call last):
        ...
    ImportError: plot() needs no_such_module; install it with: pip install 'dynhac[plot]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise  # it is there, and something that it needs is not
        raise ImportError(
            f"{purpose} needs {package}; install it with: pip install 'dynhac[{extra}]'"
        ) from None
