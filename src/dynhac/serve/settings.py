"""What can be set in a service, and combinations that are refused."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Any

from dynhac.serve.tokens import Tokens

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Settings:
    """The settings of a service.

    Attributes
    ----------
    host, port
        Where it listens. Without tokens only on an address of this machine. Port 0 takes a free
        one.
    tokens : Tokens, optional
        Who may read and write; without them everybody who can connect.
    hosts : tuple of str
        Names under which the service may be addressed, beside those of this machine. Without
        tokens all others are refused, so that a page of another site cannot reach the service by
        a name that leads here.
    origins : tuple of str
        Origins of other sites whose pages may use the API; "*" for all.
    watch : dict
        Arguments of `watch`: the clusters that events and ids are about.
    name_field : str, optional
        The field of the payload that names of clusters come from; all texts by default.
    max_body : int
        Bytes of the largest body that is accepted.
    max_queue, max_queue_bytes : int
        How many updates wait at most, and how many bytes all bodies have together.
    listener_buffer : int
        How many events wait at most for a listener that reads slowly.
    max_connections : int
        Connections at the same time; others are closed at once.
    refresh_seconds : float
        How often a service that only reads looks for updates of the writer.
    header_seconds, body_seconds : float
        How long a client may take for the head of a request, and between two parts of a body.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    tokens: Tokens | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    watch: dict[str, Any] = field(default_factory=dict)
    name_field: str | None = None
    max_body: int = 64 << 20
    max_queue: int = 1_024
    max_queue_bytes: int = 256 << 20
    listener_buffer: int = 1_000
    max_connections: int = 2_000
    refresh_seconds: float = 0.25
    header_seconds: float = 10.0
    body_seconds: float = 20.0

    def __post_init__(self) -> None:
        if self.tokens is None and not is_loopback(self.host):
            raise ValueError(
                f"host is {self.host!r}, which other machines can reach, and there are no tokens: "
                "anybody could read and change the store. Give --token-file FILE, or listen on "
                "127.0.0.1 behind a proxy"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address."""
    if host in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
