"""HTTP connections with time limits.

uvicorn waits for ever for the head of a request, and for a client to take its answer. A connection
whose head is not complete in time is closed; so is one whose client takes nothing of what has
been written for it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

STUCK_SECONDS = 30.0
CHECKS = 3
"""How often a connection is looked at in that time."""


class TimedProtocol(H11Protocol):
    """A connection of uvicorn with time limits; ``header_seconds`` is set by `timed`."""

    header_seconds = 10.0
    stuck_seconds = STUCK_SECONDS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the head of a request."""
        super().connection_made(transport)
        self._head_timer: asyncio.TimerHandle | None = None
        self._stuck_timer: asyncio.TimerHandle | None = None
        self._stuck_checks = 0
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        for timer in (self._head_timer, self._stuck_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take data; when the head is complete, stop waiting for it."""
        super().data_received(data)
        if self._head_timer is not None and self.conn.their_state is not h11.IDLE:
            self._head_timer.cancel()
            self._head_timer = None
        elif self._head_timer is None and self.conn.their_state is h11.IDLE:
            self._wait_for_head()

    def pause_writing(self) -> None:
        """The client takes less than is written: begin to look whether it takes anything."""
        super().pause_writing()
        self._stuck_checks = 0
        self._look(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """The client goes on reading."""
        super().resume_writing()
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()

    def _wait_for_head(self) -> None:
        self._head_timer = self.loop.call_later(self.header_seconds, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.abort()

    def _look(self, waiting: int) -> None:
        self._stuck_timer = self.loop.call_later(self.stuck_seconds / CHECKS, self._check, waiting)

    def _check(self, before: int) -> None:
        waiting = self.transport.get_write_buffer_size()
        self._stuck_checks = self._stuck_checks + 1 if waiting >= before else 0
        if self._stuck_checks >= CHECKS:
            self.transport.abort()
        else:
            self._look(waiting)


def timed(header_seconds: float, stuck_seconds: float = STUCK_SECONDS) -> Any:
    """Return the class of connections with these limits."""
    limits = {"header_seconds": header_seconds, "stuck_seconds": stuck_seconds}
    return type("TimedProtocol", (TimedProtocol,), limits)
