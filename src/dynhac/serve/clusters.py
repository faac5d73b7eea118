"""Routes of clusters: what they are, who is in them, and how they developed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from dynhac.clusters.clusters import Clusters
from dynhac.input.errors import show
from dynhac.serve import schemas
from dynhac.serve.answers import finite, json_response, library_errors, payloads_of, service_of
from dynhac.serve.events import watch_name
from dynhac.serve.problems import Problem
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
MinVersion = Annotated[
    int | None,
    Query(
        ge=0,
        le=2**62,
        description="Wait until the answer is of this version of the model, which the answer of an "
        "update tells, or of a later one; at most 2 seconds.",
    ),
]
Offset = Annotated[int, Query(ge=0, le=2**62)]


PART = 8
"""While the writer is busy, at most about one part in so many of the time is spent on summaries."""


TIMELINE_PART = 30
"""The same for timelines, which change slowly."""


UNKNOWN: dict[str, Any] = {
    **dict.fromkeys(("cohesion", "density", "similarity", "node_id")),
    "representatives": [],
    "nearest": [],
}
"""What is known of a cluster that was born after the last summary."""


class Summary(NamedTuple):
    """The clusters of one state."""

    clusters: Clusters
    update_number: int
    watch: Watch | None
    key: Hashable


class Choice(NamedTuple):
    """Which clusters a request is about."""

    theta: float | None
    min_size: int | None
    watch: str | None
    min_version: int | None


def require_cut(is_cut: bool, min_size: int | None, watch: str | None) -> None:
    """Raise Problem 422 if a parameter is given that does not go with the others."""
    if min_size is not None and not is_cut:
        raise Problem(422, f"min_size is {min_size}, but no theta is given; a watch has its own")
    if watch is not None and is_cut:
        raise Problem(422, f"watch is {show(watch)}, but a cut is asked for; give one of them")


async def _choice(
    theta: Theta = None,
    min_size: MinSize = None,
    watch: WatchName = None,
    min_version: MinVersion = None,
) -> Choice:
    require_cut(theta is not None, min_size, watch)
    return Choice(theta, min_size, watch, min_version)


Chosen = Annotated[Choice, Depends(_choice)]


def summary_of(service: Service, choice: Choice) -> Settled[Summary]:
    """Return the clusters of a watch, or of a cut."""
    model, theta = service.model, choice.theta
    watch = service.find_watch(choice.watch)
    key: Hashable = ("clusters", watch_name(watch))
    if theta is not None:
        key = ("cut", theta, choice.min_size)

    def make() -> Summary:
        with service.turns.reading(model._engine.lock):
            number = model.update_number
            if theta is None:
                return Summary(watch.summary(), number, watch, key)
            found = model.clusters(theta, min_size=choice.min_size or 1)
            return Summary(found, number, None, key)

    with library_errors():
        return service.views.get(key, make, PART, choice.min_version)


def state_of(view: Settled[Any], version: int, number: int) -> dict[str, Any]:
    """Return the fields that tell which state an answer is of."""
    age = 0.0 if view.cost < 0.02 else round(view.age, 3)
    return {"version": version, "update_number": number, "age_seconds": age}


def lanes(service: Service, watch: Watch, min_version: int | None = None) -> Lanes:
    """Return the timeline of a watch, cached."""
    key = ("timeline", watch_name(watch))
    with library_errors():
        return service.views.get(
            key, lambda: lanes_of(watch.timeline()), TIMELINE_PART, min_version
        ).value


def _described(
    service: Service, summary: Summary, wanted: list[int], representatives: int
) -> list[dict[str, Any]]:
    """Return clusters as answers, with name, payload and trend; of a new one little is known."""
    watch, known = summary.watch, summary.clusters
    entries = [
        known[id].to_dict(representatives) if id in known else {**UNKNOWN, "cluster": id}
        for id in wanted
    ]
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
        entry["nearest"] = [{**near, "name": names.get(near["id"])} for near in entry["nearest"]]
        entry["trend"] = [] if past is None else past.trend(entry["cluster"])
    return entries


class Present(NamedTuple):
    """Which clusters there are in one state, and how large they are."""

    version: int
    update_number: int
    points: int
    sizes: dict[int, int]


def _present(service: Service, summary: Summary) -> Present:
    """Return the clusters of the newest state, if they are of a watch, which keeps count of them.

    Those of a cut are as the summary has them.
    """
    model, watch, found = service.model, summary.watch, summary.clusters
    engine = model._engine
    if watch is None:
        sizes = dict(zip(found, found.sizes.tolist(), strict=True))
        return Present(found.version, summary.update_number, len(found.ids), sizes)

    def read() -> Present | None:
        version = model.version
        present = Present(version, model.update_number, len(model), watch.clusters())
        return present if model.version == version else None

    with library_errors():
        return engine.read_one_state(read)


@router.get(
    "/clusters",
    summary="The clusters, largest first",
    response_model=schemas.ClustersAnswer,
    responses=schemas.READ_PROBLEMS,
)
def clusters(
    request: Request,
    choice: Chosen,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    offset: Offset = 0,
    representatives: Annotated[int, Query(ge=0, le=20)] = 3,
) -> Response:
    """Return clusters with their sizes, representatives and near clusters.

    Clusters of a watch have ids that they keep; those of a cut are numbered. Which clusters of a
    watch there are and their sizes are of the newest state. What takes long to compute may be of an
    older one while updates come: ``described_version``. A cluster that did not exist then has no
    representatives yet.
    """
    service = service_of(request)
    view = summary_of(service, choice)
    found, _, watch, _ = view.value
    version, number, points, sizes = _present(service, view.value)
    order = sorted(sizes, key=lambda id: (-sizes[id], id))[offset : offset + limit]
    entries = _described(service, view.value, order, representatives)
    for entry in entries:
        entry["size"] = sizes[entry["cluster"]]
    after = offset + len(entries)
    return json_response(
        {
            **state_of(view, version, number),
            "described_version": found.version,
            "watch": None if watch is None else watch_name(watch),
            "points": points,
            "unclustered": points - sum(sizes.values()),
            "total": len(sizes),
            "clusters": entries,
            "next": after if after < len(sizes) else None,
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
    choice: Chosen,
    representatives: Annotated[int, Query(ge=0, le=100)] = 10,
) -> Response:
    """Return one cluster."""
    service = service_of(request)
    view = summary_of(service, choice)
    found, number, _, _ = view.value
    with library_errors():
        one = found[cluster]
    (entry,) = _described(service, view.value, [one.id], representatives)
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
    choice: Chosen,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    offset: Offset = 0,
) -> Response:
    """Return members with payload, the most typical first."""
    service = service_of(request)
    view = summary_of(service, choice)
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
    min_version: MinVersion = None,
) -> Response:
    """Return the clusters that were largest, and the births, deaths, merges and splits of these.

    ``update`` counts the versions of the model; ``time`` is the latest timestamp of its points.
    """
    service = service_of(request)
    chosen = service.find_watch(watch)
    past = lanes(service, chosen, min_version)
    answer = past.answer(max_clusters, max_steps, since)
    names = service.names.last(watch_name(chosen))
    for lane in answer["lanes"]:
        lane["name"] = names.get(lane["cluster"])
    return json_response({"watch": watch_name(chosen), **answer})
