"""Routes of the hierarchy: unfold it, find a point in it, and explain two points."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from dynhac.serve import schemas
from dynhac.serve.answers import (
    finite,
    json_response,
    library_errors,
    parse_id,
    payloads_of,
    service_of,
)
from dynhac.serve.clusters import MinVersion, WatchName, state_of
from dynhac.serve.events import watch_name
from dynhac.serve.problems import Problem
from dynhac.serve.service import Service
from dynhac.serve.unfolding import ROOT, Unfolding
from dynhac.serve.views import Settled

router = APIRouter(prefix="/v1", tags=["hierarchy"])

MOST_STEPS = 200
FoldedSize = Annotated[
    int, Query(ge=1, le=2**31, description="Smaller branches are counted as hidden.")
]


class Tree(NamedTuple):
    """The hierarchy of one state."""

    unfolding: Unfolding
    update_number: int


def tree_of(service: Service, watch: str | None, min_version: int | None) -> Settled[Tree]:
    """Return the hierarchy, labelled with the clusters of a watch."""
    model = service.model
    chosen = service.find_watch(watch)

    def make() -> Tree:
        with service.turns.reading(model._engine.lock):
            dendrogram, labels = model.dendrogram(), chosen.labels()
            number = model.update_number
        return Tree(Unfolding(dendrogram, labels), number)

    with library_errors():
        key = ("tree", watch_name(chosen))
        return service.views.get(key, make, min_version=min_version)


@router.get(
    "/tree",
    summary="A part of the hierarchy",
    response_model=schemas.TreeAnswer,
    responses=schemas.READ_PROBLEMS,
)
def tree(
    request: Request,
    node: Annotated[int | None, Query(description="A node id; without it the top.")] = None,
    levels: Annotated[int, Query(ge=0, le=64)] = 4,
    limit: Annotated[int, Query(ge=1, le=5_000, description="Nodes at most.")] = 200,
    trees: Annotated[
        int | None, Query(ge=1, le=5_000, description="Trees below the top at most.")
    ] = None,
    min_size: FoldedSize = 1,
    watch: WatchName = None,
    min_version: MinVersion = None,
) -> Response:
    """Return a node and some levels below it, the largest branches first.

    The top is above all trees. A node that is passed over, since only one of its children has
    ``min_size`` points, does not count as a level.
    """
    service = service_of(request)
    view = tree_of(service, watch, min_version)
    unfolding, number = view.value
    with library_errors():
        start = ROOT if node is None else unfolding.node_of(node)
        root = unfolding.unfold(start, levels, limit, min_size, trees)
        names = service.names.last(watch_name(service.find_watch(watch)))
    state = state_of(view, unfolding.dendrogram.version, number)
    return json_response({**state, "root": root, "names": _names_in(root, names)})


def _names_in(root: dict[str, Any], names: dict[int, str]) -> dict[int, str]:
    """Return the names of the clusters in a part of the hierarchy, as far as they have any."""
    found, waiting = {}, [root]
    while waiting:
        node = waiting.pop()
        if (name := names.get(node["cluster"])) is not None:
            found[node["cluster"]] = name
        waiting += node["children"]
    return found


@router.get(
    "/tree/path",
    summary="The way from the top to a point or a node",
    response_model=schemas.PathAnswer,
    responses=schemas.READ_PROBLEMS,
)
def path(
    request: Request,
    point: str | None = None,
    node: Annotated[int | None, Query(description="A node id, in place of a point.")] = None,
    min_size: FoldedSize = 1,
    watch: WatchName = None,
    min_version: MinVersion = None,
) -> Response:
    """Return the nodes from the top to a point or a node, as the hierarchy shows them."""
    if (point is None) == (node is None):
        raise Problem(422, "a path leads to one end; give either point or node")
    service = service_of(request)
    view = tree_of(service, watch, min_version)
    unfolding, number = view.value
    if point is None:
        with library_errors():
            end = unfolding.node_of(node or 0)
    else:
        known = parse_id(service, point)
        places = np.flatnonzero(unfolding.dendrogram.ids == known)
        if not len(places):
            raise Problem(404, f"id {known!r} is not in the model")
        end = int(places[0])
    nodes = unfolding.path(end, min_size, MOST_STEPS)
    return json_response({**state_of(view, unfolding.dendrogram.version, number), "path": nodes})


@router.get(
    "/explain",
    summary="Why two points are together",
    response_model=schemas.ExplainAnswer,
    responses=schemas.READ_PROBLEMS,
)
def explain(request: Request, a: str, b: str) -> Response:
    """Return where two points meet in the hierarchy, and the path from each."""
    service = service_of(request)
    first, second = parse_id(service, a), parse_id(service, b)
    with library_errors():
        found = service.model.explain(first, second)
        watch = service.watch
        clusters = [watch.cluster_of(id) for id in (first, second)]
    payloads = payloads_of(service, [first, second])
    answer: dict[str, Any] = {
        "a": found.a,
        "b": found.b,
        "together": found.together,
        "similarity": finite(found.similarity),
        "linkage": finite(found.linkage),
        "node_id": found.node_id if found.node_id >= 0 else None,
        "size": found.size,
        "threshold": found.threshold,
        "clustered": found.clustered,
        "text": str(found),
    }
    for name, cluster, payload, steps in (
        ("a", clusters[0], payloads[0], found.path_a),
        ("b", clusters[1], payloads[1], found.path_b),
    ):
        shown = steps if len(steps) <= MOST_STEPS else [*steps[:100], *steps[-100:]]
        answer[f"cluster_{name}"] = cluster if cluster >= 0 else None
        answer[f"payload_{name}"] = payload
        answer[f"path_{name}"] = [step._asdict() for step in shown]
    return json_response(answer)
