"""Errors as application/problem+json (RFC 9457), with the messages of the library."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from dynhac.input.errors import PresentError
from dynhac.store.errors import StoreError

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """An error that a client is told."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers

    def response(self) -> Response:
        """Return the response."""
        return problem_response(self.status, self.detail, self.headers)


def problem_of(error: Exception) -> Problem | None:
    """Return what a client is told about an exception of the library; None: it is a bug."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, PresentError):
        return Problem(409, str(error))
    if isinstance(error, KeyError) and error.args:
        return Problem(404, str(error.args[0]))
    if isinstance(error, RecursionError):
        return Problem(400, "a value is nested too deeply")
    if isinstance(error, (ValueError, TypeError)):
        return Problem(422, str(error))
    if isinstance(error, StoreError):
        return Problem(503, str(error))
    if isinstance(error, MemoryError):
        return Problem(503, str(error) or "out of memory; nothing changed")
    return None


def problem_response(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """Return the response for a problem."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    text = json.dumps(body, ensure_ascii=True)
    return Response(text, status, headers, media_type=MEDIA_TYPE)
