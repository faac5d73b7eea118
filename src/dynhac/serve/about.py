"""Routes about the service itself: figures, search, health, metrics."""

from __future__ import annotations

import os
import time
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from dynhac.cli.parse import is_int_id
from dynhac.models.points import DynHAC
from dynhac.serve import schemas
from dynhac.serve.answers import json_response, library_errors, payloads_of, service_of
from dynhac.serve.bodies import parse_json
from dynhac.serve.events import watch_name
from dynhac.serve.problems import Problem
from dynhac.serve.service import Service
from dynhac.version import __version__

router = APIRouter(prefix="/v1", tags=["about"])
health = APIRouter(tags=["about"])


@router.get(
    "/stats",
    summary="Figures of the service",
    response_model=schemas.StatsAnswer,
    responses=schemas.READ_PROBLEMS,
)
def stats(request: Request) -> Response:
    """Return figures: points, clusters, rate and latency of updates, log and snapshot."""
    service = service_of(request)
    model = service.model
    points = isinstance(model, DynHAC)
    with library_errors():
        watches = [service.watch, *(each for each in model.watches if each is not service.watch)]
        described = [
            {
                "name": watch_name(watch),
                "theta": watch.theta,
                "min_size": watch.min_size,
                "clusters": len(watch),
            }
            for watch in watches
        ]
    return json_response(
        {
            "name": os.path.basename(model.path),
            "kind": "points" if points else "graph",
            "points": len(model),
            "clusters": described[0]["clusters"],
            "dimension": model.dimension if isinstance(model, DynHAC) else None,
            "metric": model.metric if isinstance(model, DynHAC) else None,
            "epsilon": model.epsilon,
            "threshold": model.threshold,
            "version": model.version,
            "update_number": model.update_number,
            **service.rates(),
            "waiting": 0 if service.writer is None else service.writer.waiting,
            "listeners": service.hub.listeners,
            **service.disk(),
            "watches": described,
            "read_only": service.read_only,
            "uptime_seconds": round(time.time() - service.started, 3),
            "dynhac": __version__,
        }
    )


@router.get(
    "/search",
    summary="Find points by id or text",
    response_model=schemas.SearchAnswer,
    responses=schemas.READ_PROBLEMS,
)
def search(
    request: Request,
    q: Annotated[str, Query(max_length=1_000, description="An id, or words.")] = "",
    where: Annotated[
        str | None,
        Query(max_length=2_000, description='Fields of the payload, as JSON: {"topic": "oil"}'),
    ] = None,
    cluster: Annotated[
        int | None, Query(description="Only points in this cluster of the watch.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 20,
) -> Response:
    """Return the point with this id, if there is one, and points whose payload has the words.

    With ``where`` only points whose payload has these values.
    """
    service = service_of(request)
    fields = None if where is None else parse_json(where.encode(), "where")
    ids = _found(service, q.strip(), fields, cluster, limit)
    payloads = payloads_of(service, ids)
    hits = []
    for id, payload in zip(ids, payloads, strict=True):
        try:
            place = service.watch.cluster_of(id)
        except KeyError:  # it has gone meanwhile
            continue
        if cluster in (None, place):
            hits.append({"id": id, "cluster": place if place >= 0 else None, "payload": payload})
    return json_response({"hits": hits})


def _found(
    service: Service, text: str, where: Any, cluster: int | None, limit: int
) -> list[int | str]:
    model = service.model
    found: dict[int | str, None] = {}
    if text and where is None and (service.str_ids or is_int_id(text)):
        id = text if service.str_ids else int(text)
        if id in model:
            found[id] = None
    if text or where is not None:
        with library_errors():
            within = None if cluster is None else service.watch.members(cluster)
            hits = model.find(text or None, where, limit, within=within)
            found |= dict.fromkeys(hits.tolist())
    return list(found)[:limit]


@health.head("/healthz", include_in_schema=False)
@health.get("/healthz", response_model=schemas.Health, summary="Whether the service lives")
def healthz() -> Response:
    """Answer as long as the process lives."""
    return json_response({"status": "ok"})


@health.head("/readyz", include_in_schema=False)
@health.get(
    "/readyz",
    response_model=schemas.Health,
    summary="Whether the service can serve",
    responses=schemas.problems(503),
)
def readyz(request: Request) -> Response:
    """Answer 200 if the store is open and updates are possible, or those of its writer seen."""
    trouble = service_of(request).trouble
    if trouble is not None:
        raise Problem(503, trouble)
    return json_response({"status": "ready"})


@health.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **schemas.problems(401, 403, 503),
    },
)
def metrics(request: Request) -> Response:
    """Return figures in the text format of Prometheus."""
    return Response(service_of(request).metrics.text(), media_type=CONTENT_TYPE_LATEST)
