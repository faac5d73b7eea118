"""Routes that are called without FastAPI's search for a route and reading of requests.

FastAPI documents them. But its way to them costs more than a small update takes; so requests with
exactly their method and path are passed to their functions from here.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from dynhac.serve.problems import Problem, problem_response

log = logging.getLogger("dynhac.serve")


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
        try:
            response = await route.endpoint(Request(scope, receive))
        except Problem as problem:
            response = problem.response()
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            response = problem_response(500, "an error of the service; its log has the details")
        await response(scope, receive, send)
