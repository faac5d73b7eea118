"""The application: routes, errors, start and end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.routing import Match, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from dynhac.input.errors import show
from dynhac.serve import about, clusters, points, schemas, stream, tree
from dynhac.serve.direct import Direct
from dynhac.serve.guard import Guard
from dynhac.serve.problems import problem_response
from dynhac.serve.reference import reference_page
from dynhac.serve.service import AnyModel, Service
from dynhac.serve.settings import Settings
from dynhac.version import __version__

PAGE = Path(__file__).parent / "page"
DESCRIPTION = """Hierarchical clustering that stays up to date, over HTTP.

Updates are on the disk when they are answered. Errors are application/problem+json. With tokens,
send `Authorization: Bearer TOKEN`."""


def create_app(
    model: AnyModel,
    settings: Settings | None = None,
    feed: Callable[[Service], Coroutine[Any, Any, None]] | None = None,
) -> FastAPI:
    """Return an ASGI application that serves a durable model.

    The application owns the model from its start: it makes all updates, and closes the store when
    it ends.

    Parameters
    ----------
    model : DurableDynHAC or DurableGraphHAC
        What `dynhac.open` returns; with ``mode="r"`` the service only reads.
    settings : Settings, optional
        Its settings.
    feed : coroutine function, optional
        Runs beside the service and updates its model, such as `dynhac.serve.demo.feed`.
    """
    service = Service(model, settings or Settings())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await service.start()
        feeding = None if feed is None else asyncio.create_task(feed(service))
        try:
            yield
        finally:
            if feeding is not None:
                feeding.cancel()
                await asyncio.wait([feeding])
            await service.stop()

    app = FastAPI(
        title="dynhac",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    for module in (points, clusters, tree, stream, about):
        app.include_router(module.router)
    app.include_router(points.direct)
    app.include_router(about.health)
    _add_errors(app)
    _document(app)
    app.router.routes.append(_PageMount("/", _Page(directory=PAGE, html=True)))
    app.add_middleware(Direct, routes=points.direct.routes)
    app.add_middleware(Guard, service=service)
    return app


class _PageMount(Mount):
    """The place of the page: everywhere but in the API, whose wrong methods must be 405."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether a request is for the page."""
        if scope["type"] == "http" and scope["path"].startswith("/v1/"):
            return Match.NONE, {}
        return super().matches(scope)


class _Page(StaticFiles):
    """The files of the page; browsers ask each time whether one has changed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = " ".join(str(part) for part in first["loc"])
        if first["type"] == "missing":
            return problem_response(422, f"{place} is missing")
        given = repr(first.get("input"))[:80]
        return problem_response(422, f"{place} is {given}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        detail, path = str(error.detail), show(request.url.path)
        if error.status_code == 404:
            detail = f"there is nothing at {path}; /docs lists the routes"
        elif error.status_code == 405:
            detail = f"{request.method} is not possible at {path}; /docs lists the routes"
        return problem_response(error.status_code, detail, dict(error.headers or {}))


def _document(app: FastAPI) -> None:
    """Make the OpenAPI document, and a page that shows it."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
            )
            parts = document.setdefault("components", {})
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{}, {"token": []}]
            known = parts.setdefault("schemas", {})
            known["Problem"] = schemas.Problem.model_json_schema()
            for name in ("HTTPValidationError", "ValidationError"):
                known.pop(name, None)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(reference_page(app.openapi()))
