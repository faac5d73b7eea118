"""Routes that stream: events, labels, and the updates in the log."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response, StreamingResponse

from dynhac.extras import optional
from dynhac.serve import schemas
from dynhac.serve.answers import json_response, library_errors, service_of
from dynhac.serve.bodies import ARROW, NDJSON
from dynhac.serve.clusters import MinSize, Theta, WatchName, require_cut
from dynhac.serve.problems import Problem
from dynhac.serve.service import Service
from dynhac.store.errors import StoreError
from dynhac.store.models import StoredUpdate

router = APIRouter(prefix="/v1", tags=["streams"])

ROWS = 10_000
"""Rows of labels in one part of a stream."""
MOST_IDS = 100_000
"""Ids of inserted and deleted points on a page of updates, if it has more than one."""
CSV = "text/csv"
MEDIA = {"ndjson": NDJSON, "csv": CSV, "arrow": ARROW}
_TEXT = {"schema": {"type": "string"}}


@router.get(
    "/events",
    summary="Events of the clusters, as server-sent events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Events `cluster` with ids, which can be resumed after; events `update` "
            "tell that the state has changed.",
            "content": {"text/event-stream": _TEXT},
        },
        **schemas.READ_PROBLEMS,
    },
)
async def events(
    request: Request,
    last_event_id: Annotated[str | None, Header(description="Resume after this event.")] = None,
    since: Annotated[
        int | None, Query(ge=0, le=2**62, description="The same, for clients without headers.")
    ] = None,
    last: Annotated[
        int, Query(ge=0, le=1_000, description="Without an id: begin with so many events.")
    ] = 0,
) -> Response:
    """Send what happens to clusters: born, died, merged, split, grew, shrank.

    With the id of an event, all events after it come first, as long as they are kept; otherwise
    an event of kind ``gap`` tells what is missing. Without an id, only new events come, after the
    ``last`` ones that are kept.
    """
    service = service_of(request)
    after = since
    if last_event_id is not None:
        if not (last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 19):
            raise Problem(422, f"Last-Event-ID is {last_event_id[:80]!r}; it must be an event's id")
        after = int(last_event_id)
    stream = service.hub.listen(after, last)
    begin = await anext(stream)  # a store that cannot be read is told before the answer begins

    async def parts() -> AsyncIterator[bytes]:
        yield begin
        with suppress(StoreError):  # the client connects again, and is told
            async for part in stream:
                yield part

    return StreamingResponse(
        parts(),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


@router.get(
    "/labels",
    summary="The cluster of every point",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Rows of id and cluster; null, an empty field in CSV: in no cluster.",
            "content": dict.fromkeys(MEDIA.values(), _TEXT),
        },
        **schemas.READ_PROBLEMS,
    },
)
def labels(
    request: Request,
    theta: Theta = None,
    min_size: MinSize = None,
    n_clusters: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    watch: WatchName = None,
    format: Annotated[
        Literal["ndjson", "csv", "arrow"] | None, Query(description="By default as in Accept.")
    ] = None,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """Stream the clusters of all points, of one state."""
    service = service_of(request)
    require_cut(theta is not None or n_clusters is not None, min_size, watch)
    wanted = (name for name, media in MEDIA.items() if media in (accept or ""))
    chosen: str = format or next(wanted, "ndjson")
    ids, clusters = _labels(service, theta, min_size, n_clusters, watch)
    return StreamingResponse(WRITE[chosen](ids, clusters), media_type=MEDIA[chosen])


def _labels(
    service: Service,
    theta: float | None,
    min_size: int | None,
    n_clusters: int | None,
    watch: str | None,
) -> tuple[Any, Any]:
    model = service.model
    with library_errors():
        if theta is None and n_clusters is None:
            chosen = service.find_watch(watch)
            with service.turns.reading(model._engine.lock):
                return model.ids, chosen.labels()
        dendrogram = model.dendrogram()
        found = dendrogram.labels(theta, n_clusters=n_clusters, min_size=min_size or 1)
        return dendrogram.ids, found


def _parts(ids: Any, labels: Any) -> Iterator[tuple[list[Any], list[int | None]]]:
    for start in range(0, len(ids), ROWS):
        part = slice(start, start + ROWS)
        found = [label if label >= 0 else None for label in labels[part].tolist()]
        yield ids[part].tolist(), found


def _ndjson(ids: Any, labels: Any) -> Iterator[str]:
    for some, found in _parts(ids, labels):
        rows = zip(some, found, strict=True)
        yield "".join(
            f'{{"id":{json.dumps(id)},"cluster":{"null" if label is None else label}}}\n'
            for id, label in rows
        )


def _csv(ids: Any, labels: Any) -> Iterator[str]:
    yield "id,cluster\r\n"
    for some, found in _parts(ids, labels):
        text = io.StringIO()
        csv.writer(text).writerows(zip(some, found, strict=True))
        yield text.getvalue()


def _arrow(ids: Any, labels: Any) -> Iterator[bytes]:
    pa: Any = optional("pyarrow", "arrow", "an Arrow stream")
    kind = pa.string() if ids.dtype == object else pa.int64()
    schema = pa.schema([("id", kind), ("cluster", pa.int64())])
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        for start in range(0, len(ids), ROWS):
            part = slice(start, start + ROWS)
            columns = [
                pa.array(ids[part].tolist(), kind),
                pa.array(labels[part], mask=np.asarray(labels[part] < 0)),
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
    yield sink.getvalue()


WRITE: dict[str, Callable[[Any, Any], Iterator[str | bytes]]] = {
    "ndjson": _ndjson,
    "csv": _csv,
    "arrow": _arrow,
}


@router.get(
    "/changes",
    summary="The updates in the log",
    response_model=schemas.ChangesAnswer,
    responses=schemas.READ_PROBLEMS,
)
def changes(
    request: Request,
    since: Annotated[int, Query(ge=0, le=2**62, description="The number of an update.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> Response:
    """Return the updates after a number, as far back as the log goes.

    A page ends early when it has many ids, at least after the first update.
    """
    service = service_of(request)
    rows: list[StoredUpdate] = []
    ids = 0
    with library_errors():
        for row in islice(service.model.changes(since), limit):
            rows.append(row)
            ids += len(row["inserted"]) + len(row["deleted"])
            if ids > MOST_IDS:
                break
    last = rows[-1]["number"] if rows else since
    first = rows[0]["number"] if rows else service.model.update_number + 1
    return json_response(
        {
            "changes": [
                {
                    "number": row["number"],
                    "op": row["op"],
                    "inserted": _plain(row["inserted"]),
                    "deleted": _plain(row["deleted"]),
                }
                for row in rows
            ],
            "complete": first <= since + 1,
            "next": last if last < service.model.update_number and rows else None,
        }
    )


def _plain(ids: Any) -> list[Any]:
    plain: list[Any] = ids if isinstance(ids, list) else ids.tolist()
    return plain
