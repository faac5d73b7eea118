"""The clients: the methods of `DynHAC` where they make sense over HTTP.

Both have the same methods; those of `AsyncClient` are awaited. A request that gets no answer, or
the answer that the service is busy, is sent again with growing pauses. Updates carry a key, the
same each time, so that none is made twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from dynhac.client import calls
from dynhac.client.calls import Call
from dynhac.client.errors import ServiceError, error_of
from dynhac.client.retries import AGAIN, pause
from dynhac.client.stream import Events
from dynhac.extras import optional
from dynhac.input.columns import Ids, whole_number

SILENCE = 45.0
"""Seconds without anything from a stream of events, after which the connection is lost."""


class _Methods:
    """The methods of both clients.

    Parameters
    ----------
    url : str
        Where the service is, such as "http://127.0.0.1:8000".
    token : str, optional
        A token, if the service needs one.
    timeout : float, default 60
        Seconds to wait for an answer.
    retries : int, default 6
        How often a request is sent again.
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 60.0, retries: int = 6
    ) -> None:
        self._httpx: Any = optional("httpx", "client", "a client")
        self._retries = whole_number(retries, "retries", 0)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._options: dict[str, Any] = {
            "base_url": url.rstrip("/"),
            "headers": headers,
            "timeout": timeout,
        }

    def _do(self, call: Call) -> Any:
        raise NotImplementedError

    def insert(
        self,
        X: ArrayLike,
        ids: Ids | None = None,
        timestamps: ArrayLike | None = None,
        *,
        payload: Sequence[Mapping[str, Any] | None] | Mapping[str, Any] | None = None,
    ) -> Any:
        """Insert points; return their ids. See `DynHAC.insert`.

        Large batches are sent as Arrow if pyarrow is installed.
        """
        return self._do(calls.insert(X, ids, timestamps, payload))

    def delete(self, ids: Ids) -> Any:
        """Delete points; return what the update did. See `DynHAC.delete`."""
        return self._do(calls.delete(ids))

    def update(
        self,
        insert: ArrayLike | None = None,
        ids: Ids | None = None,
        delete: Ids | None = None,
        timestamps: ArrayLike | None = None,
        *,
        payload: Sequence[Mapping[str, Any] | None] | None = None,
    ) -> Any:
        """Apply one batch, all of it or nothing. See `DynHAC.update`."""
        return self._do(calls.update(insert, ids, delete, timestamps, payload))

    def graph_update(
        self,
        *,
        add: Ids | None = None,
        edges: Any = None,
        remove: Ids | None = None,
        remove_edges: Any = None,
        payload: Sequence[Mapping[str, Any] | None] | None = None,
    ) -> Any:
        """Apply one batch to a graph. See `GraphHAC.update`; edges are columns u, v, w."""
        return self._do(calls.graph_update(add, edges, remove, remove_edges, payload))

    def predict(
        self, X: ArrayLike, theta: float | None = None, *, min_size: int | None = None
    ) -> Any:
        """Return the clusters that vectors would be in. See `DynHAC.predict`."""
        return self._do(calls.predict(X, theta, min_size))

    def labels(
        self,
        theta: float | None = None,
        *,
        n_clusters: int | None = None,
        min_size: int | None = None,
    ) -> Any:
        """Return ids and labels of all points, of one state. See `DynHAC.labels`."""
        return self._do(calls.labels(theta, n_clusters, min_size))

    def clusters(
        self,
        theta: float | None = None,
        *,
        min_size: int | None = None,
        limit: int = 100,
        offset: int = 0,
        min_version: int | None = None,
    ) -> Any:
        """Return a page of clusters, the largest first.

        With ``min_version`` the answer is of this version of the model or a later one.
        """
        return self._do(calls.clusters(theta, min_size, limit, offset, min_version))

    def cluster(self, id: int, theta: float | None = None, *, min_size: int | None = None) -> Any:
        """Return one cluster."""
        return self._do(calls.cluster(id, theta, min_size))

    def members(
        self,
        id: int,
        theta: float | None = None,
        *,
        min_size: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Any:
        """Return a page of the members of a cluster, the most typical first."""
        return self._do(calls.members(id, theta, min_size, limit, offset))

    def point(self, id: int | str) -> Any:
        """Return a point: vector, payload, cluster and neighbours."""
        return self._do(calls.point(id))

    def find(
        self,
        text: str | None = None,
        where: Mapping[str, Any] | None = None,
        limit: int = 100,
        *,
        cluster: int | None = None,
    ) -> Any:
        """Return points by id, by words of their payload, and by its fields; of a cluster or all.

        See ``find`` of models of `dynhac.open`.
        """
        return self._do(calls.find(text, where, limit, cluster))

    def explain(self, a: int | str, b: int | str) -> Any:
        """Return how two points come together. See `DynHAC.explain`."""
        return self._do(calls.explain(a, b))

    def unfold(
        self, node: int | None = None, *, levels: int = 4, limit: int = 200, min_size: int = 1
    ) -> Any:
        """Return a node of the hierarchy and the levels below it."""
        return self._do(calls.unfold(node, levels, limit, min_size))

    def changes(self, since: int = 0, limit: int = 100) -> Any:
        """Return a page of the updates after a number."""
        return self._do(calls.changes(since, limit))

    def timeline(self, max_clusters: int = 50) -> Any:
        """Return the sizes of clusters over time."""
        return self._do(calls.timeline(max_clusters))

    def stats(self) -> Any:
        """Return figures of the service."""
        return self._do(calls.stats())

    def _arguments(self, call: Call) -> dict[str, Any]:
        headers = {"Content-Type": call.kind} if call.body is not None else {}
        if call.key is not None:
            headers["Idempotency-Key"] = call.key
        return {"params": dict(call.params), "content": call.body, "headers": headers}

    def _stream_arguments(self, events: Events) -> dict[str, Any]:
        headers = {} if events.last is None else {"Last-Event-ID": str(events.last)}
        timeout = self._httpx.Timeout(self._options["timeout"], read=SILENCE)
        return {"headers": headers, "timeout": timeout}


def _read(call: Call, response: Any) -> Any:
    """Return what an answer holds; raise if it is a problem."""
    kind = response.headers.get("content-type", "")
    if response.status_code >= 400:
        raise error_of(response.status_code, response.json() if "json" in kind else None)
    return call.read(response.json() if kind.startswith(calls.JSON) else response.text)


def _lost(error: Exception, attempts: int) -> ServiceError:
    return ServiceError(f"no answer from the service in {attempts} attempts: {error!r}")


class Client(_Methods):
    """A client of a service.

    Examples
    --------
    >>> import dynhac
    >>> with dynhac.Client("http://127.0.0.1:8000") as client:  # doctest: +SKIP
    ...     client.insert([[0.0, 1.0], [0.1, 1.0]], ids=["a", "b"])
    ...     client.clusters()["total"]
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 60.0, retries: int = 6
    ) -> None:
        super().__init__(url, token, timeout=timeout, retries=retries)
        self._client = self._httpx.Client(**self._options)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _do(self, call: Call) -> Any:
        for attempt in range(self._retries + 1):
            retry_after = None
            try:
                response = self._client.request(call.method, call.path, **self._arguments(call))
            except self._httpx.TransportError as error:
                if attempt == self._retries:
                    raise _lost(error, attempt + 1) from error
            else:
                if response.status_code not in AGAIN or attempt == self._retries:
                    return _read(call, response)
                retry_after = response.headers.get("retry-after")
            time.sleep(pause(attempt, retry_after))
        raise AssertionError("unreachable")

    def events(self, since: int | None = None) -> Iterator[dict[str, Any]]:
        """Give what happens to clusters, for ever; after a lost connection it goes on.

        Parameters
        ----------
        since : int, optional
            The id of an event; all events after it come first. By default only new ones come.
        """
        events, failures = Events(since), 0
        while True:
            events.begin()
            arguments = self._stream_arguments(events)
            try:
                with self._client.stream("GET", "/v1/events", **arguments) as response:
                    if response.status_code not in (200, *AGAIN):
                        response.read()
                        _read(calls.stats(), response)  # which raises
                    for line in response.iter_lines() if response.status_code == 200 else ():
                        failures = 0
                        event = events.line(line)
                        if event is not None:
                            yield event
            except self._httpx.TransportError as error:
                if failures >= self._retries:
                    raise _lost(error, failures + 1) from error
            time.sleep(pause(failures))
            failures += 1


class AsyncClient(_Methods):
    """A client of a service for asyncio: the methods of `Client`, to be awaited.

    Examples
    --------
    >>> async def follow() -> None:
    ...     async with dynhac.AsyncClient("http://127.0.0.1:8000") as client:
    ...         async for event in client.events():
    ...             print(event["kind"], event["cluster"])
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 60.0, retries: int = 6
    ) -> None:
        super().__init__(url, token, timeout=timeout, retries=retries)
        self._client = self._httpx.AsyncClient(**self._options)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _do(self, call: Call) -> Any:
        for attempt in range(self._retries + 1):
            retry_after = None
            arguments = self._arguments(call)
            try:
                response = await self._client.request(call.method, call.path, **arguments)
            except self._httpx.TransportError as error:
                if attempt == self._retries:
                    raise _lost(error, attempt + 1) from error
            else:
                if response.status_code not in AGAIN or attempt == self._retries:
                    return _read(call, response)
                retry_after = response.headers.get("retry-after")
            await asyncio.sleep(pause(attempt, retry_after))
        raise AssertionError("unreachable")

    async def events(self, since: int | None = None) -> AsyncIterator[dict[str, Any]]:
        """Give what happens to clusters, for ever; see `Client.events`."""
        events, failures = Events(since), 0
        while True:
            events.begin()
            arguments = self._stream_arguments(events)
            try:
                async with self._client.stream("GET", "/v1/events", **arguments) as response:
                    if response.status_code not in (200, *AGAIN):
                        await response.aread()
                        _read(calls.stats(), response)  # which raises
                    if response.status_code == 200:
                        async for line in response.aiter_lines():
                            failures = 0
                            event = events.line(line)
                            if event is not None:
                                yield event
            except self._httpx.TransportError as error:
                if failures >= self._retries:
                    raise _lost(error, failures + 1) from error
            await asyncio.sleep(pause(failures))
            failures += 1
