"""Clients of a service: `Client`, and `AsyncClient` for asyncio. Need the extra ``dynhac[client]``.

``calls`` builds requests and reads answers, ``retries`` says when to try again, ``stream`` reads
server-sent events, and ``client`` has the two clients.
"""

from dynhac.client.client import AsyncClient, Client
from dynhac.client.errors import ServiceError

__all__ = ["AsyncClient", "Client", "ServiceError"]
