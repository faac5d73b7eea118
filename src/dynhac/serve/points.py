"""Routes of points: insert, delete, update, read, predict; and updates of a graph."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from dynhac.input.errors import show
from dynhac.serve import schemas
from dynhac.serve.answers import (
    finite,
    json_response,
    library_errors,
    parse_id,
    payloads_of,
    service_of,
)
from dynhac.serve.bodies import (
    ARROW,
    IN_THREAD,
    JSON,
    NDJSON,
    Body,
    Points,
    check_ids,
    check_numbers,
    media_type,
    parse_json,
    parse_points,
    points_of,
)
from dynhac.serve.problems import Problem
from dynhac.serve.service import Service

LONGEST_KEY = 255
MOST_PREDICTED = 10_000
Update = Callable[[], dict[str, Any]]


router = APIRouter(prefix="/v1", tags=["points"])
direct = APIRouter(prefix="/v1", tags=["points"])
"""Routes that read their requests themselves; `dynhac.serve.direct` calls them."""


async def write(
    request: Request,
    service: Service,
    kinds: tuple[str, ...],
    make: Callable[[str, bytes], Update],
) -> Response:
    """Read the body of a request, let its update wait for its turn, and answer."""
    writer = service.require_writer()
    kind = media_type(request, kinds)
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= LONGEST_KEY):
        raise Problem(422, f"the Idempotency-Key must have 1 to {LONGEST_KEY} characters")
    body = Body(request, service.bodies, service.settings)
    try:
        data = await body.read()
        with library_errors():
            large = len(data) > IN_THREAD
            update = await asyncio.to_thread(make, kind, data) if large else make(kind, data)
            digest = b""
            if key is not None:
                about = f"{request.url.path} {kind}\n".encode()
                digest = hashlib.blake2b(about + data, digest_size=16).digest()
            answer = await writer.submit(update, key, digest)
    finally:
        body.close()
    return Response(answer, media_type=JSON)


def _update(service: Service, points: Points | None, delete: Any = None) -> Update:
    """Return the update that inserts points and deletes others."""
    model = service.points()
    given: dict[str, Any] = {} if delete is None else {"delete": delete}
    if points is not None and len(points.vectors):
        check_ids(points.ids, "ids")
        given |= {"insert": points.vectors, "ids": points.ids, "timestamps": points.timestamps}
        if points.payload is not None:
            given["payload"] = points.payload

    def update() -> dict[str, Any]:
        change = model.update(**given)
        return {
            "ids": change.inserted.tolist(),
            "deleted": change.deleted.tolist(),
            "expired": change.expired.tolist(),
        }

    return update


def _fields(body: bytes, allowed: tuple[str, ...]) -> dict[str, Any]:
    """Return the object in a body; Problem: it is none, or has other fields."""
    fields = parse_json(body)
    if not isinstance(fields, dict):
        raise Problem(422, f"the body is {show(fields)}; it must be an object")
    for name in fields:
        if name not in allowed:
            raise Problem(422, f"there is no field {show(name)}; the fields are {allowed}")
    return fields


def _ids(value: Any, name: str) -> list[Any] | None:
    if value is not None and not isinstance(value, list):
        raise Problem(422, f"{name} is {show(value)}; it must be a list of ids")
    return value


@direct.post(
    "/points",
    summary="Insert points",
    response_model=schemas.Updated,
    responses=schemas.WRITE_PROBLEMS,
    openapi_extra=schemas.write_extra(
        {
            JSON: schemas.POINTS,
            NDJSON: {"type": "string", "description": "One object {id?, vector, ...} a line."},
            ARROW: {
                "type": "string",
                "format": "binary",
                "description": "Columns vector, and id, timestamp, payload if any.",
            },
        }
    ),
)
async def insert(request: Request) -> Response:
    """Insert points: all of them or, after an error, none. They are on the disk when this answers.

    All points have an id, or none; without ids they get ints that count up.
    """
    service = service_of(request)
    service.points()
    return await write(
        request,
        service,
        (JSON, NDJSON, ARROW),
        lambda kind, body: _update(service, parse_points(kind, body)),
    )


@direct.post(
    "/points/delete",
    summary="Delete points",
    response_model=schemas.Updated,
    responses=schemas.WRITE_PROBLEMS,
    openapi_extra=schemas.write_extra({JSON: schemas.DELETE}),
)
async def delete(request: Request) -> Response:
    """Delete points: all of them or, if one is not there, none."""
    service = service_of(request)
    service.points()

    def make(kind: str, body: bytes) -> Update:
        ids = _ids(_fields(body, ("ids",)).get("ids"), "ids")
        if ids is None:
            raise Problem(422, "there is no field 'ids'")
        return _update(service, None, ids)

    return await write(request, service, (JSON,), make)


@direct.post(
    "/update",
    summary="Insert and delete points in one batch",
    response_model=schemas.Updated,
    responses=schemas.WRITE_PROBLEMS,
    openapi_extra=schemas.write_extra({JSON: schemas.UPDATE}),
)
async def update(request: Request) -> Response:
    """Apply one batch, all of it or nothing; deletions come first."""
    service = service_of(request)
    service.points()

    def make(kind: str, body: bytes) -> Update:
        fields = _fields(body, ("insert", "delete"))
        given = fields.get("insert")
        points = None if given is None else points_of(given)
        return _update(service, points, _ids(fields.get("delete"), "delete"))

    return await write(request, service, (JSON,), make)


@direct.post(
    "/graph/update",
    summary="Update a graph",
    response_model=schemas.GraphUpdated,
    responses=schemas.WRITE_PROBLEMS,
    openapi_extra=schemas.write_extra({JSON: schemas.GRAPH_UPDATE}),
)
async def graph_update(request: Request) -> Response:
    """Apply one batch to a graph, all of it or nothing; removals come first."""
    service = service_of(request)
    model = service.graph()

    def make(kind: str, body: bytes) -> Update:
        fields = _fields(body, ("add", "edges", "remove", "remove_edges", "payload"))
        given: dict[str, Any] = {
            name: _ids(fields.get(name), name)
            for name in ("add", "remove")
            if fields.get(name) is not None
        }
        check_ids(given.get("add"), "add")
        for name, width in (("edges", 3), ("remove_edges", 2)):
            if fields.get(name) is not None:
                given[name] = _columns(fields[name], name, width)
        if fields.get("payload") is not None:
            given["payload"] = fields["payload"]

        def update() -> dict[str, Any]:
            change = model.update(**given)
            return {"nodes_created": change.nodes_created, "nodes_removed": change.nodes_removed}

        return update

    return await write(request, service, (JSON,), make)


def _columns(rows: Any, name: str, width: int) -> tuple[list[Any], ...]:
    """Return a list of rows as columns."""
    if not isinstance(rows, list):
        raise Problem(422, f"{name} is {show(rows)}; it must be a list of lists")
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != width:
            raise Problem(
                422, f"row {number} of {name} is {show(row)}; it must be a list of {width}"
            )
    return tuple([row[i] for row in rows] for i in range(width))


@router.get(
    "/points",
    summary="One point, whatever its id",
    response_model=schemas.Point,
    responses=schemas.READ_PROBLEMS,
)
@router.get(
    "/points/{id:path}",
    summary="One point",
    response_model=schemas.Point,
    responses=schemas.READ_PROBLEMS,
)
def point(request: Request, id: str) -> Response:
    """Return a point: vector, payload, cluster, and its neighbours in the graph.

    Some ids cannot be part of an address, such as "..": ``/v1/points?id=`` takes all.
    """
    service = service_of(request)
    model = service.model
    known = parse_id(service, id)
    with library_errors():
        if known not in model:
            raise Problem(404, f"id {show(known)} is not in the model")
        vector = service.points().vectors([known])[0].tolist() if service.is_points() else None
        graph = service.points().graph if service.is_points() else service.graph()
        _, others, weights = graph.edges(of=[known])
        cluster = service.watch.cluster_of(known)
    order = weights.argsort(kind="stable")[::-1][: schemas.MOST_NEIGHBOURS]
    ids = others[order].tolist()
    payloads = payloads_of(service, [known, *ids])
    neighbours = [
        {"id": other, "similarity": float(weight), "payload": payload}
        for other, weight, payload in zip(ids, weights[order], payloads[1:], strict=True)
    ]
    return json_response(
        {
            "id": known,
            "vector": vector,
            "payload": payloads[0],
            "cluster": cluster if cluster >= 0 else None,
            "neighbors": neighbours,
        }
    )


@direct.post(
    "/predict",
    summary="The clusters of new vectors",
    response_model=schemas.Predicted,
    responses=schemas.READ_PROBLEMS | schemas.problems(400, 409, 413, 415, 429),
    openapi_extra=schemas.body_extra({JSON: schemas.PREDICT}),
)
async def predict(request: Request) -> Response:
    """Return the clusters that vectors would be in as new points; nothing changes.

    Without ``theta`` the clusters are those of the watch of the service.
    """
    service = service_of(request)
    service.points()
    media_type(request, (JSON,))
    body = Body(request, service.bodies, service.settings)
    try:
        data = await body.read()
        with library_errors():
            return json_response(await asyncio.to_thread(_predict, service, data))
    finally:
        body.close()


def _predict(service: Service, body: bytes) -> dict[str, Any]:
    fields = _fields(body, ("vectors", "theta", "min_size"))
    vectors = fields.get("vectors")
    if not isinstance(vectors, list) or not all(isinstance(row, list) for row in vectors):
        raise Problem(422, f"vectors is {show(vectors)}; it must be a list of lists of numbers")
    if len(vectors) > MOST_PREDICTED:
        raise Problem(
            422,
            f"there are {len(vectors):,} vectors; a request has at most {MOST_PREDICTED:,}, since "
            "the answer has the neighbours of each",
        )
    if not vectors:
        return {"clusters": [], "scores": [], "neighbors": []}
    check_numbers(vectors)
    model, theta, min_size = service.points(), fields.get("theta"), fields.get("min_size")
    if theta is not None:
        found = model.predict(vectors, theta, min_size=1 if min_size is None else min_size)
    elif min_size is not None:
        raise Problem(422, "min_size is given, but no theta")
    else:
        found = model.predict(vectors, watch=service.watch)
    labels, scores, neighbours = found
    rows = zip(
        neighbours.ids.tolist(),
        neighbours.similarities.tolist(),
        neighbours.distances.tolist(),
        strict=True,
    )
    return {
        "clusters": [label if label >= 0 else None for label in labels.tolist()],
        "scores": [finite(score) for score in scores.tolist()],
        "neighbors": [
            [
                {"id": id, "similarity": finite(similarity)}
                for id, similarity, distance in zip(*row, strict=True)
                if finite(distance) is not None
            ]
            for row in rows
        ],
    }
