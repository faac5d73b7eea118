"""Problems that a service answers with, as the exceptions that a model would raise."""

from __future__ import annotations

from typing import Any

from dynhac.input.errors import PresentError


class ServiceError(RuntimeError):
    """A request that the service could not answer; ``status`` is that of HTTP, 0 if none came."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def error_of(status: int, body: Any) -> Exception:
    """Return the exception for an answer that is a problem."""
    detail = body.get("detail") if isinstance(body, dict) else None
    message = str(detail or f"the service answered with status {status}")
    if status == 404:
        return KeyError(message)
    if status == 409:
        return PresentError(message)
    if status in (400, 413, 415, 422):
        return ValueError(message)
    if status in (401, 403):
        return PermissionError(message)
    return ServiceError(message, status)
