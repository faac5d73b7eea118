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
ACCEPTED = 32
"""Connections that are accepted in one turn of the event loop; it takes a few to refuse one."""
SPARE_FILES = 256
"""Files that connections leave to the store, and to connections that will be refused."""
WAITING = 512
"""Connections that wait in the system until they are accepted."""
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
            for each in sockets or ():
                each.listen(WAITING)  # asyncio has set it to the number it accepts at a time
            self._tell_started(self)


def connections_for(wanted: int) -> int:
    """Return how many connections there can be at most, and let there be as many as are wanted.

    Each is an open file, and the system bounds these. Without spare ones the store could not be
    written, and no connection be accepted.
    """
    try:
        import resource
    except ImportError:  # not on this system
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        wanted = max(soft - SPARE_FILES, 1)
    return wanted


def run(
    model: AnyModel,
    settings: Settings,
    started: Started = lambda _: None,
    feed: Callable[[Service], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Serve a model until a signal; ``started`` is called when the service can be used.

    OSError: the address is taken, or cannot be listened on.
    """
    most = connections_for(settings.max_connections)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.create_server((settings.host, settings.port), family=family)
    app = create_app(model, settings, feed)
    config = uvicorn.Config(
        app,
        http=timed(settings.header_seconds, settings.body_seconds, most_connections=most),
        proxy_headers=False,
        ws="none",
        lifespan="on",
        log_level="error",  # anybody can cause warnings
        access_log=False,
        server_header=False,
        date_header=False,
        backlog=ACCEPTED,
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
