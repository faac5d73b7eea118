"""``dynhac serve``: a durable model behind HTTP, with events and a page.

=================  =================================================================================
``settings``       what can be set, and what is refused
``app``            the application: routes, middleware, start and end
``service``        what all routes share: the model, its writer, its views and its events
``writer``         the one thread that updates the model; groups share a commit
``operations``     one request as an update of the model
``bodies``         bodies as columns: JSON, NDJSON, Arrow
``views``          cached views of one state, for readers
``events``         events of watches: recorded, and sent to all listeners
``guard``          addresses, origins, tokens and headers of all requests
``problems``       errors as problem+json
``protocol``       time limits of connections
``lifecycle``      the server: signals, and the order in which things end
``page``           the files of the page
=================  =================================================================================

FastAPI serves and documents the API; the routes are in ``points``, ``clusters``, ``tree``,
``stream`` and ``about``. Needs the extra ``dynhac[serve]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynhac.serve.app import create_app
    from dynhac.serve.lifecycle import run
    from dynhac.serve.settings import Settings

__all__ = ["Settings", "create_app", "run"]

_PLACES = {
    "Settings": "dynhac.serve.settings",
    "create_app": "dynhac.serve.app",
    "run": "dynhac.serve.lifecycle",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
