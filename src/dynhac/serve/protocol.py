"""HTTP connections with time limits, and answers that are written at once.

uvicorn waits for ever for the head of a request, for its body, and for a client to take its answer.
Here a connection is closed if the head of a request is not complete in time, if nothing or next to
nothing of its body comes for some time, or if the client takes nothing of what has been written for
it. There is a limit of connections, too, also of those that never ask for anything.

uvicorn writes the head and the body of an answer one after the other, each with a call of the
system. `Joined` gathers what is written in one turn of the event loop.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from dynhac.serve.guard import HEADERS, SAME_ORIGIN
from dynhac.serve.problems import problem_response

STUCK_SECONDS = 30.0
CHECKS = 3
"""How often a connection is looked at in that time."""
MOST_JOINED = 1 << 16
LEAST_RATE = 1_000
"""Bytes of a body that must come in a second, in the mean, once it has been slow."""


class Joined:
    """A transport that writes what it is given in one turn of the event loop together."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Write data, now or at the end of this turn."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        if len(data) > MOST_JOINED:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered."""
        if self._parts:
            parts, self._parts = self._parts, []
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        """Write what was gathered, and close."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class TimedProtocol(H11Protocol):
    """A connection of uvicorn with time limits, which `timed` sets."""

    header_seconds = 10.0
    body_seconds = 20.0
    stuck_seconds = STUCK_SECONDS
    most_connections = 2_000

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the head of a request."""
        super().connection_made(Joined(transport, self.loop))  # type: ignore[arg-type]
        self._stuck_timer: asyncio.TimerHandle | None = None
        self._stuck_checks = 0
        self._began = self.loop.time()  # when the head of a request began to come
        self._body_end = 0.0  # until when more of its body must have come
        self._watchdog = self.loop.call_later(self._limit(), self._look_at_request)
        if len(self.connections) > self.most_connections:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._watchdog.cancel()
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take data, and note when it came."""
        now, state = self.loop.time(), self.conn.their_state
        end = now + self.body_seconds
        if state in (h11.DONE, h11.IDLE) and not self.conn.trailing_data[0]:
            self._began = now
        if state is h11.SEND_BODY:  # a few bytes now and then do not keep it open
            end = min(end, self._body_end + len(data) / LEAST_RATE)
        self._body_end = end
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP as all errors are answered, and close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = problem_response(400, msg, {"Connection": "close"})
            headers = [*response.raw_headers, *HEADERS, SAME_ORIGIN]
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=bytes(response.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event))
        self.transport.close()

    def pause_writing(self) -> None:
        """The client takes less than is written: begin to look whether it takes anything."""
        super().pause_writing()
        self._stuck_checks = 0
        self._look_again(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """The client goes on reading."""
        super().resume_writing()
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()

    def _limit(self) -> float:
        return min(self.header_seconds, self.body_seconds) / 2

    def _look_at_request(self) -> None:
        """Close the connection if the rest of a request is late; look again later."""
        now, state = self.loop.time(), self.conn.their_state
        if self.flow.read_paused:  # it is the service that does not read
            self._body_end = now + self.body_seconds
        late = state is h11.SEND_BODY and now > self._body_end
        # Between two requests the time limit for idle connections holds, which uvicorn keeps.
        if state is h11.IDLE and self.timeout_keep_alive_task is None:
            late = now - self._began > self.header_seconds
        if late and not self.flow.read_paused:
            self.transport.abort()
        else:
            self._watchdog = self.loop.call_later(self._limit(), self._look_at_request)

    def _look_again(self, waiting: int) -> None:
        seconds = self.stuck_seconds / CHECKS
        self._stuck_timer = self.loop.call_later(seconds, self._check_taken, waiting)

    def _check_taken(self, before: int) -> None:
        waiting = self.transport.get_write_buffer_size()
        self._stuck_checks = self._stuck_checks + 1 if waiting >= before else 0
        if self._stuck_checks >= CHECKS:
            self.transport.abort()
        else:
            self._look_again(waiting)


def timed(
    header_seconds: float,
    body_seconds: float,
    stuck_seconds: float = STUCK_SECONDS,
    most_connections: int = 2_000,
) -> Any:
    """Return the class of connections with these limits."""
    limits = {
        "most_connections": most_connections,
        "header_seconds": header_seconds,
        "body_seconds": body_seconds,
        "stuck_seconds": stuck_seconds,
    }
    return type("TimedProtocol", (TimedProtocol,), limits)
