"""Optional dependencies: imported where they are used; errors name the extra to install."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def optional(module: str, extra: str, purpose: str) -> ModuleType:
    """Return a module that ``purpose`` needs, or raise an error that names its extra of dynhac.

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
            raise  # the package is installed, but one of its own dependencies is not
        raise ImportError(
            f"{purpose} needs {package}; install it with: pip install 'dynhac[{extra}]'"
        ) from None
