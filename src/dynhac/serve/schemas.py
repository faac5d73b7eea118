"""The schemas of requests and answers, for the OpenAPI document.

Answers are built as plain values; the models here only document them, and tests compare both.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Id = int | str
MOST_NEIGHBOURS = 50

_ID: dict[str, Any] = {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1_000}]}
_POINT: dict[str, Any] = {
    "type": "object",
    "required": ["vector"],
    "additionalProperties": False,
    "properties": {
        "id": _ID,
        "vector": {"type": "array", "items": {"type": "number"}, "minItems": 1},
        "timestamp": {"anyOf": [{"type": "number"}, {"type": "string"}]},
        "payload": {"type": "object"},
    },
}
POINTS: dict[str, Any] = {
    "type": "array",
    "items": _POINT,
    "example": [{"id": "a", "vector": [0.1, 0.2], "payload": {"text": "hello"}}],
}
DELETE: dict[str, Any] = {
    "type": "object",
    "required": ["ids"],
    "additionalProperties": False,
    "properties": {"ids": {"type": "array", "items": _ID}},
}
UPDATE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"insert": POINTS, "delete": {"type": "array", "items": _ID}},
}
GRAPH_UPDATE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "add": {"type": "array", "items": _ID},
        "remove": {"type": "array", "items": _ID},
        "edges": {
            "type": "array",
            "description": "Lists [u, v, weight].",
            "items": {
                "type": "array",
                "minItems": 3,
                "maxItems": 3,
                "items": {"anyOf": [*_ID["anyOf"], {"type": "number"}]},
            },
        },
        "remove_edges": {
            "type": "array",
            "description": "Lists [u, v].",
            "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": _ID},
        },
        "payload": {
            "type": "array",
            "description": "An object, or null, for each vertex in add.",
            "items": {"anyOf": [{"type": "object"}, {"type": "null"}]},
        },
    },
}
PREDICT: dict[str, Any] = {
    "type": "object",
    "required": ["vectors"],
    "additionalProperties": False,
    "properties": {
        "vectors": {
            "type": "array",
            "maxItems": 10_000,
            "items": {"type": "array", "items": {"type": "number"}, "minItems": 1},
        },
        "theta": {"type": "number"},
        "min_size": {"type": "integer", "minimum": 1},
    },
}


def body_extra(content: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what documents a body that the route reads itself."""
    described = {kind: {"schema": schema} for kind, schema in content.items()}
    return {"requestBody": {"required": True, "content": described}}


def write_extra(content: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what documents the body and the key of an update."""
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        "description": "A repeated request with the same key gets the first answer and changes "
        "nothing. Kept for a day.",
    }
    return {"parameters": [key], **body_extra(content)}


class Problem(BaseModel):
    """An error: application/problem+json."""

    type: str
    title: str
    status: int
    detail: str


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what documents problems with these statuses."""
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": "A problem.", "content": content} for status in statuses}


ALWAYS = (401, 403, 421, 431, 503)
READ_PROBLEMS = problems(*ALWAYS, 400, 404, 409, 422)
WRITE_PROBLEMS = problems(*ALWAYS, 400, 404, 409, 413, 415, 422, 429)


class Answer(BaseModel):
    """The base of all answers: they have exactly the fields that are documented."""

    model_config = ConfigDict(extra="forbid")


class Updated(Answer):
    """What an update of points did."""

    ids: list[Id] = Field(description="The ids of the inserted points, in order.")
    deleted: list[Id]
    expired: list[Id] = Field(description="Points that the window dropped.")
    update_number: int
    version: int


class GraphUpdated(Answer):
    """What an update of a graph did."""

    nodes_created: int
    nodes_removed: int
    update_number: int
    version: int


class Neighbour(Answer):
    """A neighbour in the graph."""

    id: Id
    similarity: float
    payload: dict[str, Any] | None


class Point(Answer):
    """A point."""

    id: Id
    vector: list[float] | None = Field(description="null in a graph")
    payload: dict[str, Any] | None
    cluster: int | None = Field(description="null: it is in no cluster")
    neighbors: list[Neighbour]


class FoundNeighbour(Answer):
    """A near point."""

    id: Id
    similarity: float | None


class Predicted(Answer):
    """The clusters that vectors would be in."""

    clusters: list[int | None]
    scores: list[float | None]
    neighbors: list[list[FoundNeighbour]]


class Member(Answer):
    """A point of a cluster."""

    id: Id
    typicality: float | None
    outlier_score: float
    payload: dict[str, Any] | None


class Representative(Answer):
    """A typical point of a cluster."""

    id: Id
    payload: dict[str, Any] | None


class Near(Answer):
    """A near cluster."""

    id: int
    name: str | None
    linkage: float


class ClusterAnswer(Answer):
    """A cluster."""

    cluster: int
    name: str | None = Field(description="Words of its payload that set it apart.")
    size: int
    cohesion: float | None
    density: float | None
    similarity: float | None = Field(description="The highest cut that keeps it together.")
    node_id: int | None
    representatives: list[Representative]
    nearest: list[Near]
    trend: list[int] = Field(description="Sizes at even distances over the timeline.")


class State(Answer):
    """The state that an answer is of."""

    version: int
    update_number: int
    age_seconds: float = Field(description="Of what takes long to compute, if the model is large.")


class ClustersAnswer(State):
    """A page of clusters."""

    described_version: int = Field(description="What all but ids, sizes and trends are of.")
    watch: str | None = Field(description="The watch whose ids these are; null for a cut.")
    points: int
    unclustered: int
    total: int
    clusters: list[ClusterAnswer]
    next: int | None = Field(description="The offset of the next page.")


class OneCluster(ClusterAnswer, State):
    """One cluster."""


class Members(State):
    """A page of the members of a cluster, the most typical first."""

    cluster: int
    total: int
    members: list[Member]
    next: int | None


class TreeNode(Answer):
    """A node of the hierarchy; ``node`` and ``point`` are null for the top above all trees."""

    node: int | None = Field(description="The stable id of a merge.")
    point: Id | None = Field(description="The point, if it is a leaf.")
    size: int
    similarity: float | None
    together_up_to: float | None
    cluster: int | None = Field(description="The cluster that all its points are in.")
    hidden: int = Field(description="Points in branches smaller than min_size.")
    more: int = Field(description="Children that are not in this answer.")
    children: list[TreeNode]


class TreeAnswer(State):
    """A part of the hierarchy."""

    root: TreeNode
    names: dict[str, str] = Field(description="Names of the clusters in it that have one, by id.")


class PathAnswer(State):
    """The nodes from the top to a point, without children."""

    path: list[TreeNode]


class StepAnswer(Answer):
    """A merge on the path from a point to the root."""

    node_id: int
    similarity: float
    size: int


class ExplainAnswer(Answer):
    """How two points come together."""

    a: Id
    b: Id
    together: bool
    similarity: float | None = Field(description="null for a point and itself")
    linkage: float | None
    node_id: int | None
    size: int
    threshold: float
    clustered: bool
    cluster_a: int | None
    cluster_b: int | None
    payload_a: dict[str, Any] | None
    payload_b: dict[str, Any] | None
    path_a: list[StepAnswer]
    path_b: list[StepAnswer]
    text: str


class ChangeAnswer(Answer):
    """An update in the log."""

    number: int
    op: str
    inserted: list[Id]
    deleted: list[Id]


class ChangesAnswer(Answer):
    """Updates in the log."""

    changes: list[ChangeAnswer]
    complete: bool = Field(description="false: the log begins later than was asked for.")
    next: int | None = Field(description="What to give as since for the next page.")


class TimelineEvent(Answer):
    """A birth, death, merge or split."""

    update: int
    kind: Literal["born", "died", "merged", "split"]
    cluster: int
    others: list[int]


class Lane(Answer):
    """The sizes of one cluster: after update[i] it has size[i] points."""

    cluster: int
    name: str | None
    update: list[int]
    size: list[int]
    time: list[float | str] | None


class TimelineAnswer(Answer):
    """The timeline of a watch."""

    watch: str
    last_update: int
    last_time: float | str | None
    lanes: list[Lane]
    events: list[TimelineEvent]
    total: int = Field(description="How many clusters the timeline has in all.")


class SearchHit(Answer):
    """A point that was found."""

    id: Id
    cluster: int | None
    payload: dict[str, Any] | None


class SearchAnswer(Answer):
    """Points that were found."""

    hits: list[SearchHit]


class SnapshotAnswer(Answer):
    """The last snapshot."""

    update_number: int
    age_seconds: float
    bytes: int


class WatchAnswer(Answer):
    """A watch; the first one is shown by default."""

    name: str
    theta: float | None
    min_size: int | None
    clusters: int


class StatsAnswer(Answer):
    """Figures of the service."""

    name: str
    kind: Literal["points", "graph"]
    points: int
    clusters: int
    dimension: int | None
    metric: str | None
    epsilon: float
    threshold: float
    version: int
    update_number: int
    updates_per_second: float
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    waiting: int
    listeners: int
    log_bytes: int
    snapshot: SnapshotAnswer | None
    watches: list[WatchAnswer]
    read_only: bool
    uptime_seconds: float
    dynhac: str


class Health(Answer):
    """Whether the service lives."""

    status: str
