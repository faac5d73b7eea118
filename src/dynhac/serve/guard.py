"""What holds for all requests: addresses, origins, tokens, headers and metrics.

It is plain ASGI, because it is in the way of every request. In this order:

- The head of a request has a bounded size.
- Without tokens, ``Host`` must be a name of this machine, or one that was allowed. Otherwise a page
  of another site could reach the service by a name that leads to 127.0.0.1.
- A request with an ``Origin`` must come from the page itself, or from an allowed origin.
- With tokens, a request needs ``Authorization: Bearer TOKEN`` with the role for it. The page's own
  files and the health checks need none.
- Answers carry a strict content security policy: scripts and styles from here only, none inline.

Exceptions end here, so that their answers have these headers too. If an answer has begun already,
the connection is cut, so that nobody takes a part of it for the whole.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dynhac.serve.problems import Problem, problem_of
from dynhac.serve.settings import LOOPBACK_NAMES
from dynhac.store.errors import StoreError

if TYPE_CHECKING:
    from dynhac.serve.service import Service

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
SAME_ORIGIN = (b"cross-origin-resource-policy", b"same-origin")
OPEN = ("/healthz", "/readyz")
MOST_HEAD_BYTES = 65_536
READING_POSTS = ("/v1/predict",)
ALLOWED_HEADERS = b"authorization, content-type, idempotency-key, last-event-id"

log = logging.getLogger("dynhac.serve")


class Guard:
    """The outermost application."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service
        settings = service.settings
        self._tokens = settings.tokens
        self._hosts = {*LOOPBACK_NAMES, *settings.hosts}
        self._origins = set(settings.origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        origin = headers.get(b"origin")
        extra = list(HEADERS)
        if origin is not None and self._is_allowed(origin):
            extra += [(b"access-control-allow-origin", origin), (b"vary", b"origin")]
        else:
            extra.append(SAME_ORIGIN)
        start, status = time.perf_counter(), 0
        metrics = self.service.metrics

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                seconds = time.perf_counter() - start
                metrics.request_seconds.labels(_route(scope)).observe(seconds)
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        try:
            self._check(scope, headers, origin)
            if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
                extra += [
                    (b"access-control-allow-methods", b"GET, POST"),
                    (b"access-control-allow-headers", ALLOWED_HEADERS),
                    (b"access-control-max-age", b"600"),
                ]
                await _no_content(scope, receive, send_guarded)
                return
            await self.app(scope, receive, send_guarded)
        except Exception as error:
            if status:
                raise
            await _problem(scope, error).response()(scope, receive, send_guarded)
        finally:
            method = scope["method"] if scope["method"] in ("GET", "POST") else "other"
            metrics.requests.labels(method, _route(scope), str(status or 500)).inc()

    def _is_allowed(self, origin: bytes) -> bool:
        return "*" in self._origins or origin.decode("latin-1") in self._origins

    def _check(self, scope: Scope, headers: dict[bytes, bytes], origin: bytes | None) -> None:
        size = len(scope["raw_path"]) + len(scope["query_string"])
        size += sum(len(name) + len(value) for name, value in scope["headers"])
        if size > MOST_HEAD_BYTES:
            raise Problem(431, f"the head of the request has more than {MOST_HEAD_BYTES} bytes")
        host = headers.get(b"host", b"").decode("latin-1")
        if self._tokens is None and host_name(host) not in self._hosts:
            raise Problem(
                421,
                f"this service is not called {host[:80]!r}; start it with --allow-host NAME, or "
                "with --token-file FILE",
            )
        if origin is not None and not self._is_allowed(origin):
            own = origin.decode("latin-1").partition("://")[2]
            if own != host:
                raise Problem(403, f"pages of {own[:80]!r} may not use this service; see --cors")
        if self._tokens is not None and scope["method"] != "OPTIONS":
            self._check_token(scope, headers)

    def _check_token(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        path = scope["path"]
        if path in OPEN or not (path.startswith("/v1") or path == "/metrics"):
            return
        kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        assert self._tokens is not None
        role = self._tokens.role_of(token.strip()) if kind.lower() == "bearer" else None
        if role is None:
            wanted = "a token is needed" if not token else "the token is not known"
            raise Problem(
                401,
                f"{wanted}; send the header Authorization: Bearer TOKEN",
                {"WWW-Authenticate": "Bearer"},
            )
        writes = scope["method"] not in ("GET", "HEAD") and path not in READING_POSTS
        if writes and role != "write":
            raise Problem(403, "the token may read only; this needs a token to write")


def _problem(scope: Scope, error: Exception) -> Problem:
    """Return what a client is told about an exception of the application.

    A KeyError or ValueError of the library is the client's fault only where it has been turned into
    a problem already, see `library_errors`; here it is a bug.
    """
    told = problem_of(error) if isinstance(error, (Problem, StoreError, MemoryError)) else None
    if told is None:
        log.error("%s %r failed", scope["method"], scope["path"], exc_info=error)
        told = Problem(500, "an error of the service; its log has the details")
    return told


def _route(scope: Scope) -> str:
    """Return the route of a request, for metrics: one of few, whatever is asked for."""
    path: str = getattr(scope.get("route"), "path", "other")
    return path


async def _no_content(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with 204 and nothing else."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def host_name(host: str) -> str:
    """Return the name in a header Host, without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()
