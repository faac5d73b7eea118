"""Routes of clusters: what they are, who is in them, and how they developed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, Any, NamedTuple

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from dynhac.clusters.cluster import Cluster
from dynhac.clusters.clusters import Clusters
from dynhac.serve import schemas
from dynhac.serve.answers import finite, json_response, library_errors, payloads_of, service_of
from dynhac.serve.events import watch_name
from dynhac.serve.service import Service
from dynhac.serve.timelines import Lanes, lanes_of
from dynhac.serve.views import Settled
from dynhac.watch.watch import Watch

router = APIRouter(prefix="/v1", tags=["clusters"])

Theta = Annotated[
    float | None,
    Query(ge=0, description="Cut at this similarity. Without it the clusters of the watch."),
]
MinSize = Annotated[int | None, Query(ge=1, le=2**62, description="With theta.")]
WatchName = Annotated[str | None, Query(description="Another watch; see /v1/stats.")]
Offset = Annotated[int, Query(ge=0, le=2**62)]


PART = 8
"""At most about one part in so many of the time is spent on summaries, while updates wait."""


TIMELINE_PART = 30
"""The same for timelines, which change slowly."""


class Summary(NamedTuple):
    """The clusters of one state."""

    clusters: Clusters
    update_number: int
    watch: Watch | None
    key: Hashable


def summary_of(
    service: Service, theta: float | None, min_size: int | None, watch: str | None
) -> Settled[Summary]:
    """Return the clusters of a watch, or of a cut."""
    model = service.model
    chosen = service.watch if watch is None else service.find_watch(watch)

    name = watch_name(chosen)
    key: Hashable = ("clusters", name) if theta is None else ("cut", theta, min_size)

    def make() -> Summary:
        with service.turns.reading(model._engine.lock):
            number = model.update_number
            if theta is None:
                return Summary(chosen.summary(), number, chosen, key)
            found = model.clusters(theta, min_size=min_size or 1)
            return Summary(found, number, None, key)

    with library_errors():
        return service.views.get(key, make, PART)


def state_of(view: Settled[Any], version: int, number: int) -> dict[str, Any]:
    """Return the fields that tell which state an answer is of."""
    age = 0.0 if view.cost < 0.02 else round(view.age, 3)
    return {"version": version, "update_number": number, "age_seconds": age}


def lanes(service: Service, watch: Watch) -> Lanes:
    """Return the timeline of a watch, cached."""
    with library_errors():
        key = ("timeline", watch_name(watch))
        return service.views.get(key, lambda: lanes_of(watch.timeline()), TIMELINE_PART).value


def _described(
    service: Service, summary: Summary, clusters: list[Cluster], representatives: int
) -> list[dict[str, Any]]:
    """Return clusters as answers, with name, payload and trend."""
    watch = summary.watch
    entries = [cluster.to_dict(representatives) for cluster in clusters]
    ids = [id for entry in entries for id in entry["representatives"]]
    payloads = dict(zip(ids, payloads_of(service, ids), strict=True))
    past = None if watch is None else lanes(service, watch)
    with library_errors():
        name = None if watch is None else watch_name(watch)
        names = service.names.of(summary.clusters, name, summary.key)
    for entry in entries:
        entry["representatives"] = [
            {"id": id, "payload": payloads[id]} for id in entry["representatives"]
        ]
        entry["name"] = names.get(entry["cluster"])
        entry["trend"] = [] if past is None else past.trend(entry["cluster"])
    return entries


@router.get(
    "/clusters",
    summary="The clusters, largest first",
    response_model=schemas.ClustersAnswer,
    responses=schemas.READ_PROBLEMS,
)
def clusters(
    request: Request,
    theta: Theta = None,
    min_size: MinSize = None,
    watch: WatchName = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    offset: Offset = 0,
    representatives: Annotated[int, Query(ge=0, le=20)] = 3,
) -> Response:
    """Return clusters with their sizes, representatives and near clusters.

    Clusters of a watch have ids that they keep; those of a cut are numbered.
    """
    service = service_of(request)
    view = summary_of(service, theta, min_size, watch)
    found, number, chosen, _ = view.value
    largest = found.largest(min(offset + limit, len(found)))[offset:]
    after = offset + len(largest)
    return json_response(
        {
            **state_of(view, found.version, number),
            "watch": None if chosen is None else watch_name(chosen),
            "points": len(found.ids),
            "unclustered": int(np.count_nonzero(found.labels < 0)),
            "total": len(found),
            "clusters": _described(service, view.value, largest, representatives),
            "next": after if after < len(found) else None,
        }
    )


@router.get(
    "/clusters/{cluster}",
    summary="One cluster",
    response_model=schemas.OneCluster,
    responses=schemas.READ_PROBLEMS,
)
def cluster(
    request: Request,
    cluster: int,
    theta: Theta = None,
    min_size: MinSize = None,
    watch: WatchName = None,
    representatives: Annotated[int, Query(ge=0, le=100)] = 10,
) -> Response:
    """Return one cluster."""
    service = service_of(request)
    view = summary_of(service, theta, min_size, watch)
    found, number, _, _ = view.value
    with library_errors():
        one = found[cluster]
    (entry,) = _described(service, view.value, [one], representatives)
    return json_response({**state_of(view, found.version, number), **entry})


@router.get(
    "/clusters/{cluster}/members",
    summary="The members of a cluster",
    response_model=schemas.Members,
    responses=schemas.READ_PROBLEMS,
)
def members(
    request: Request,
    cluster: int,
    theta: Theta = None,
    min_size: MinSize = None,
    watch: WatchName = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    offset: Offset = 0,
) -> Response:
    """Return members with payload, the most typical first."""
    service = service_of(request)
    view = summary_of(service, theta, min_size, watch)
    found, number, _, _ = view.value
    with library_errors():
        one = found[cluster]
    page = slice(min(offset, one.size), min(offset + limit, one.size))
    ids = one.members[page].tolist()
    columns = (one.typicality[page].tolist(), one.outlier_score[page].tolist())
    rows = [
        {"id": id, "typicality": finite(typical), "outlier_score": outlier, "payload": payload}
        for id, typical, outlier, payload in zip(
            ids, *columns, payloads_of(service, ids), strict=True
        )
    ]
    after = offset + len(rows)
    return json_response(
        {
            **state_of(view, found.version, number),
            "cluster": one.id,
            "total": one.size,
            "members": rows,
            "next": after if after < one.size else None,
        }
    )


@router.get(
    "/timeline",
    summary="The sizes of clusters over time",
    response_model=schemas.TimelineAnswer,
    responses=schemas.READ_PROBLEMS,
)
def timeline(
    request: Request,
    watch: WatchName = None,
    max_clusters: Annotated[int, Query(ge=1, le=500)] = 50,
    max_steps: Annotated[int, Query(ge=2, le=5_000, description="For each cluster.")] = 200,
    since: Annotated[int, Query(ge=0, le=2**62, description="A version of the model.")] = 0,
) -> Response:
    """Return the clusters that were largest, and the births, deaths, merges and splits of these.

    ``update`` counts the versions of the model; ``time`` is the latest timestamp of its points.
    """
    service = service_of(request)
    chosen = service.watch if watch is None else service.find_watch(watch)
    past = lanes(service, chosen)
    answer = past.answer(max_clusters, max_steps, since)
    names = service.names.last(watch_name(chosen))
    for lane in answer["lanes"]:
        lane["name"] = names.get(lane["cluster"])
    return json_response({"watch": watch_name(chosen), **answer})
