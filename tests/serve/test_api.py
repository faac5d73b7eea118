"""The API against the library: every route, on points and on a graph."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from serving import WATCH, Served, points, serving

import dynhac

RNG = np.random.default_rng(0)
CENTRES = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 10, axis=0)
X = (CENTRES + RNG.normal(0, 0.1, CENTRES.shape)).astype(np.float32)
TOPICS = ("oil", "rain", "gold")
IDS = [f"point/{i} é" for i in range(len(X))]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("api") / "store") as served:
        rows = points(X, IDS)
        for i, row in enumerate(rows):
            row["payload"] = {"text": f"number {i}", "topic": TOPICS[i // 10]}
        assert served.post("/v1/points", rows).json()["ids"] == IDS
        yield served


@pytest.fixture(scope="module")
def model():
    model = dynhac.DynHAC(n_neighbors=5)
    model.insert(X, ids=IDS)
    return model


def get(served: Served, path: str, **params):
    response = served.client.get(path, params=params)
    assert response.status_code == 200, response.text
    return response.json()


def test_clusters_are_those_of_the_library(served, model):
    watch = model.watch(**WATCH)
    answer = get(served, "/v1/clusters")
    assert answer["total"] == 3
    assert answer["points"] == 30
    assert answer["next"] is None
    for entry in answer["clusters"]:
        own = watch.cluster(entry["cluster"])
        assert entry["size"] == own.size
        assert entry["cohesion"] == own.cohesion
        ids = [each["id"] for each in entry["representatives"]]
        assert ids == own.representatives(3).tolist()
        topics = {each["payload"]["topic"] for each in entry["representatives"]}
        assert len(topics) == 1
        assert topics.pop() in entry["name"]
        assert entry["trend"][-1] == own.size


def test_clusters_come_in_pages(served):
    first = get(served, "/v1/clusters", limit=2)
    second = get(served, "/v1/clusters", limit=2, offset=first["next"])
    assert first["next"] == 2
    assert second["next"] is None
    ids = [entry["cluster"] for page in (first, second) for entry in page["clusters"]]
    assert sorted(ids) == [0, 1, 2]


def test_a_cut_is_that_of_the_library(served, model):
    answer = get(served, "/v1/clusters", theta=0.9, min_size=2, limit=1000)
    own = model.clusters(0.9, min_size=2)
    assert {c["cluster"]: c["size"] for c in answer["clusters"]} == {
        id: cluster.size for id, cluster in own.items()
    }
    assert answer["watch"] is None


def test_one_cluster_and_its_members(served, model):
    own = model.watch(**WATCH).cluster(1)
    answer = get(served, "/v1/clusters/1")
    assert answer["size"] == 10
    assert [near["id"] for near in answer["nearest"]] == [near.id for near in own.nearest]
    members = []
    offset: int | None = 0
    while offset is not None:
        page = get(served, "/v1/clusters/1/members", limit=4, offset=offset)
        members += page["members"]
        offset = page["next"]
    assert [member["id"] for member in members] == own.members.tolist()
    assert members[0]["payload"]["topic"] in TOPICS


def test_a_point(served, model):
    answer = get(served, f"/v1/points/{IDS[3].replace('/', '%2F')}")
    assert answer["id"] == IDS[3]
    assert answer["vector"] == X[3].tolist()
    assert answer["payload"] == {"text": "number 3", "topic": "oil"}
    assert answer["cluster"] == model.watch(**WATCH).cluster_of(IDS[3])
    _, others, weights = model.graph.edges(of=IDS[3])
    assert {n["id"]: n["similarity"] for n in answer["neighbors"]} == dict(
        zip(others.tolist(), weights.tolist(), strict=True)
    )


def test_labels_in_three_formats(served, model):
    labels = model.watch(**WATCH).labels().tolist()
    text = served.client.get("/v1/labels").text
    rows = [json.loads(line) for line in text.splitlines()]
    assert [(row["id"], row["cluster"]) for row in rows] == list(zip(IDS, labels, strict=True))
    text = served.client.get("/v1/labels", params={"format": "csv"}).text
    assert [(row["id"], int(row["cluster"])) for row in csv.DictReader(io.StringIO(text))] == [
        *zip(IDS, labels, strict=True)
    ]
    accept = {"Accept": "application/vnd.apache.arrow.stream"}
    table = pa.ipc.open_stream(served.client.get("/v1/labels", headers=accept).content).read_all()
    assert table["id"].to_pylist() == IDS
    assert table["cluster"].to_pylist() == labels
    text = served.client.get("/v1/labels", params={"n_clusters": 3}).text
    assert [json.loads(line)["cluster"] for line in text.splitlines()] == model.labels(
        n_clusters=3
    ).tolist()


def test_explain(served, model):
    answer = get(served, "/v1/explain", a=IDS[0], b=IDS[1])
    own = model.explain(IDS[0], IDS[1])
    assert answer["similarity"] == own.similarity
    assert answer["node_id"] == own.node_id
    assert answer["text"] == str(own)
    assert [tuple(step.values()) for step in answer["path_a"]] == [tuple(s) for s in own.path_a]
    assert get(served, "/v1/explain", a=IDS[0], b=IDS[0])["similarity"] is None


def test_predict(served, model):
    vectors = [[0.0, 0.05], [50.0, 50.0]]
    answer = served.post("/v1/predict", {"vectors": vectors}).json()
    own = model.predict(vectors, watch=model.watch(**WATCH))
    assert answer["clusters"] == [None if label < 0 else label for label in own.labels.tolist()]
    assert answer["scores"] == own.scores.tolist()
    cut = served.post("/v1/predict", {"vectors": vectors, "theta": 0.5}).json()
    assert cut["clusters"][0] == model.predict(vectors, 0.5).labels[0]


def test_tree_and_path(served, model):
    view = model.dendrogram()
    answer = get(served, "/v1/tree", levels=64, limit=5000)

    def leaves(node):
        if node["point"] is not None:
            return [node["point"]]
        found = [leaf for child in node["children"] for leaf in leaves(child)]
        assert len(found) == node["size"]
        return found

    assert sorted(leaves(answer["root"])) == sorted(IDS)
    path = get(served, "/v1/tree/path", point=IDS[7])["path"]
    assert path[-1]["point"] == IDS[7]
    merges = dict(zip(view.node_ids.tolist(), view.size.tolist(), strict=True))
    assert [merges[node["node"]] for node in path[:-1]] == [node["size"] for node in path[:-1]]
    below = get(served, "/v1/tree", node=path[-2]["node"], levels=1)["root"]
    assert below["size"] == path[-2]["size"]
    assert get(served, "/v1/tree/path", node=path[-2]["node"])["path"] == path[:-1]
    for both in ({}, {"node": path[0]["node"], "point": IDS[7]}):
        assert served.client.get("/v1/tree/path", params=both).status_code == 422


def test_names_of_what_is_shown(served):
    names = {entry["cluster"]: entry["name"] for entry in get(served, "/v1/clusters")["clusters"]}
    assert len(names) == 3
    assert all(names.values())
    answer = get(served, "/v1/tree", levels=64, limit=5000)
    assert answer["names"] == {str(cluster): name for cluster, name in names.items()}
    assert get(served, "/v1/tree", levels=0)["names"] == {}
    for near in get(served, "/v1/clusters/1")["nearest"]:
        assert near["name"] == names[near["id"]]


def test_search_by_id_text_and_field(served):
    assert get(served, "/v1/search", q=IDS[4])["hits"][0]["id"] == IDS[4]
    assert [hit["id"] for hit in get(served, "/v1/search", q="number 17")["hits"]] == [IDS[17]]
    hits = get(served, "/v1/search", where='{"topic": "rain"}', limit=100)["hits"]
    assert {hit["id"] for hit in hits} == set(IDS[10:20])
    assert get(served, "/v1/search", q='"(* AND NEAR')["hits"] == []


def test_search_within_a_cluster(served, model):
    cluster = get(served, "/v1/points", id=IDS[12])["cluster"]
    for query in ({"q": "number"}, {"where": '{"topic": "rain"}'}):
        hits = get(served, "/v1/search", cluster=cluster, limit=50, **query)["hits"]
        assert sorted(hit["id"] for hit in hits) == sorted(IDS[10:20])
    assert get(served, "/v1/search", cluster=cluster, q="number", limit=3)["hits"] == hits[:3]
    assert get(served, "/v1/search", cluster=cluster, where='{"topic": "oil"}')["hits"] == []
    assert get(served, "/v1/search", cluster=cluster, q=IDS[0])["hits"] == []
    assert served.client.get("/v1/search", params={"q": "x", "cluster": 99}).status_code == 404


@pytest.mark.parametrize("id", ["..", ".", "a/../b", "/", "//", "?#%", " ", "delete", "é"])
def test_every_id_can_be_reached(tmp_path: Path, id: str):
    with serving(tmp_path / "store") as served:
        served.post("/v1/points", points([[0.0, 1.0], [0.0, 1.1]], [id, "other"]))
        assert get(served, "/v1/points", id=id)["vector"] == [0.0, 1.0]
        assert get(served, "/v1/tree/path", point=id)["path"][-1]["point"] == id
        with dynhac.Client(served.url) as client:
            assert client.point(id)["id"] == id


def test_predict_and_automatic_clusters(tmp_path: Path):
    many = np.repeat(CENTRES, 10, axis=0) + np.random.default_rng(1).normal(0, 0.5, (300, 2))
    with serving(tmp_path / "store", watch={}) as served:
        served.post("/v1/points", points(many))
        own = dynhac.DynHAC(n_neighbors=5)
        own.insert(many)
        watch = own.watch()
        vectors = [[0.1, 0.1], [9.0, 0.1], [0.0, 8.8], [500.0, 500.0]]
        answer = served.post("/v1/predict", {"vectors": vectors}).json()
        expected = own.predict(vectors, watch=watch)
        found = [-1 if cluster is None else cluster for cluster in answer["clusters"]]
        assert found == expected.labels.tolist()
        assert len(set(found[:3])) == 3
        listed = {entry["cluster"] for entry in get(served, "/v1/clusters")["clusters"]}
        assert set(found[:3]) <= listed


def test_timeline_stats_and_changes(served):
    timeline = get(served, "/v1/timeline")
    assert {lane["cluster"]: lane["size"][-1] for lane in timeline["lanes"]} == {
        0: 10,
        1: 10,
        2: 10,
    }
    assert [event["kind"] for event in timeline["events"]] == ["born"] * 3
    stats = get(served, "/v1/stats")
    assert stats["points"] == 30
    assert stats["name"] == "store"
    changes = get(served, "/v1/changes", since=1)
    assert [change["inserted"] for change in changes["changes"]] == [IDS]
    assert changes["complete"]


def test_health_metrics_and_reference(served):
    assert served.client.get("/healthz").json() == {"status": "ok"}
    assert served.client.get("/readyz").json() == {"status": "ready"}
    text = served.client.get("/metrics").text
    for name in ("dynhac_points 30", "dynhac_clusters 3", "dynhac_update_seconds_count 1"):
        assert name in text
    for path in ("/healthz", "/readyz"):
        assert served.client.head(path).status_code == 200
    reference = served.client.get("/docs").text
    assert "GET /v1/clusters" in reference
    assert "`" not in reference.partition("<h2>Schemas")[0]
    assert reference.index("POST /v1/points") < reference.index("GET /healthz")
    assert served.client.get("/").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/v1/points/nobody",
        "/v1/clusters/77",
        "/v1/clusters/77/members",
        "/v1/tree?node=123456",
        "/v1/tree/path?point=nobody",
        "/v1/tree/path?node=123456",
        "/v1/explain?a=nobody&b=nobody",
        "/v1/clusters?watch=other",
        "/v1/nothing",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
    ],
)
def test_what_is_not_there_is_404(served, path):
    response = served.client.get(path)
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["status"] == 404


def test_a_graph(tmp_path: Path):
    with serving(tmp_path / "graph", kind="graph") as served:
        batch = {"add": ["a", "b", "c"], "edges": [["a", "b", 0.9], ["b", "c", 0.2]]}
        assert served.post("/v1/graph/update", batch).json()["nodes_created"] == 2
        assert get(served, "/v1/clusters")["clusters"][0]["size"] == 2
        point = get(served, "/v1/points/b")
        assert point["vector"] is None
        assert [each["id"] for each in point["neighbors"]] == ["a", "c"]
        wrong = served.post("/v1/graph/update", {"edges": [["a", "b"]]})
        assert wrong.status_code == 422
        assert "row 0 of edges" in wrong.json()["detail"]
        assert served.post("/v1/graph/update", {"remove": ["z"]}).status_code == 404
        assert served.post("/v1/points", []).status_code == 409


def test_update_is_one_batch(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        served.post("/v1/points", points([[0, 0], [1, 1]], ["a", "b"]))
        batch = {"insert": points([[5, 5]], ["a"]), "delete": ["a"]}
        answer = served.post("/v1/update", batch).json()
        assert (answer["ids"], answer["deleted"]) == (["a"], ["a"])
        assert get(served, "/v1/points/a")["vector"] == [5.0, 5.0]
        refused = served.post("/v1/update", {"insert": points([[6, 6]], ["c"]), "delete": ["z"]})
        assert refused.status_code == 404
        assert get(served, "/v1/stats")["points"] == 2
        deleted = served.post("/v1/points/delete", {"ids": ["b"]}).json()
        assert deleted["deleted"] == ["b"]
