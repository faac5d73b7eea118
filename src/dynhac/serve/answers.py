"""What routes share in giving answers: JSON, ids in addresses, errors of the library."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fastapi import Request
from starlette.responses import Response

from dynhac.cli.parse import is_int_id
from dynhac.input.errors import show
from dynhac.serve.problems import Problem, problem_of
from dynhac.serve.service import Service


def service_of(request: Request) -> Service:
    """Return the service of an application."""
    service: Service = request.app.state.service
    if not service.ready:
        raise Problem(503, "the service is starting or ending", {"Retry-After": "1"})
    return service


def json_response(value: Any) -> Response:
    """Return a response with a value as JSON."""
    return Response(
        json.dumps(value, allow_nan=False, separators=(",", ":")), media_type="application/json"
    )


@contextmanager
def library_errors() -> Iterator[None]:
    """Turn the exceptions of the library into problems."""
    try:
        yield
    except Exception as error:
        problem = problem_of(error)
        if problem is None:
            raise
        raise problem from error


def parse_id(service: Service, text: str) -> int | str:
    """Return an id that is part of an address; Problem 404: no id looks like that."""
    if service.str_ids:
        return text
    if not is_int_id(text):
        raise Problem(404, f"id {show(text)} is not in the model, whose ids are ints")
    return int(text)


def finite(value: float) -> float | None:
    """Return a number, or None if JSON has none for it."""
    return value if math.isfinite(value) else None


def payloads_of(service: Service, ids: Sequence[Any]) -> list[dict[str, Any] | None]:
    """Return the payload of each point; None for points that have none, or have gone."""
    return service.model.payloads(ids) if ids else []
