"""The server: it runs until a signal, then ends in order.

On SIGTERM or Ctrl-C: the streams of events end; no new connections are accepted; requests in flight
are answered; the writer finishes what waits; the store is closed. A second Ctrl-C ends without
waiting for clients; the store is closed even then.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias

import uvicorn

from dynhac.serve.app import create_app
from dynhac.serve.guard import MOST_HEAD_BYTES
from dynhac.serve.protocol import timed
from dynhac.serve.service import AnyModel, Service
from dynhac.serve.settings import Settings
from dynhac.store.errors import StoreError

SWITCH_SECONDS = 0.0005
"""How long a thread keeps the interpreter from others that want it. The writer and the event loop
take turns many times in an update, and each turn could last the usual 5 ms."""
SHUTDOWN_SECONDS = 30
Started: TypeAlias = "Callable[[Server], None]"
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Server(uvicorn.Server):
    """A server of uvicorn that ends by a signal with exit code 0."""

    def __init__(self, config: uvicorn.Config, service: Service, port: int, started: Started):
        super().__init__(config)
        self.port = port
        self._service = service
        self._tell_started = started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals, and do not raise them again at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end; a second Ctrl-C does not wait for clients."""
        super().handle_exit(sig, frame)
        self._service.hub.close_soon()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, and tell so."""
        await super().startup(sockets=sockets)
        if self.started:
            self._tell_started(self)


def run(
    model: AnyModel,
    settings: Settings,
    started: Started = lambda _: None,
    feed: Callable[[Service], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Serve a model until a signal; ``started`` is called when the service can be used.

    OSError: the address is taken, or cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.create_server((settings.host, settings.port), family=family, backlog=512)
    app = create_app(model, settings, feed)
    config = uvicorn.Config(
        app,
        http=timed(settings.header_seconds, settings.body_seconds),
        proxy_headers=False,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=settings.max_connections,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
    )
    service: Service = app.state.service
    server = Server(config, service, listening.getsockname()[1], started)
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        server.run(sockets=[listening])
    finally:
        listening.close()
        sys.setswitchinterval(before)
    if not server.started:
        raise StoreError("the service could not start; its log says why")
