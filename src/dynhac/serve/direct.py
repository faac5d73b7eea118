"""Routes that are called without FastAPI's search for a route and reading of requests.

FastAPI documents them. But its way to them costs more than a small update takes; so requests with
exactly their method and path are passed to their functions from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send


class Direct:
    """Calls the functions of some routes, and passes all other requests on."""

    def __init__(self, app: ASGIApp, routes: Sequence[Any]) -> None:
        self.app = app
        self._routes = {(method, route.path): route for route in routes for method in route.methods}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        route = None
        if scope["type"] == "http":
            route = self._routes.get((scope["method"], scope["path"]))
        if route is None:
            await self.app(scope, receive, send)
            return
        scope["route"] = route
        response = await route.endpoint(Request(scope, receive))
        await response(scope, receive, send)
