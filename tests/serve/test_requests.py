"""Wrong requests: an error each, which names what is wrong, and nothing changes."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from serving import Served, points, serving

from dynhac.serve.bodies import parse_points
from dynhac.serve.problems import Problem

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("requests") / "store", max_body=1 << 20) as served:
        served.post("/v1/points", points([[0, 0], [1, 1]], ["a", "b"]))
        yield served


def send(served: Served, body: bytes, kind: str, path: str = "/v1/points"):
    return served.client.post(path, content=body, headers={"Content-Type": kind})


def arrow(compression: str | None = None, **columns) -> bytes:
    table = pa.table(columns)
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def lists(vectors) -> pa.Array:
    return pa.array(vectors, pa.list_(pa.float32()))


NAN = b'[{"id": "c", "vector": [0, 1]}, {"id": "d", "vector": [0, NaN]}]'
JSON_CASES = [
    (NAN, 422, "row 1, column 1"),
    (b'[{"id": "c", "vector": [0, "x"]}]', 422, "row 0, column 1"),
    (b'[{"id": "c", "vector": [0, null]}]', 422, "row 0, column 1"),
    (b'[{"id": "c", "vector": [0, true]}]', 422, "row 0, column 1"),
    (b'[{"id": "c", "vector": [0, 1]}, {"id": "d", "vector": [0]}]', 422, "row 1"),
    (b'[{"id": "c", "vector": [0, 1, 2]}]', 422, "dimension"),
    (b'[{"id": "c", "vector": [0, 1e300]}]', 422, "row 0, column 1"),
    (b'[{"id": "c"}]', 422, "row 0 has no vector"),
    (b'[{"id": "c", "vector": 7}]', 422, "row 0 has no vector"),
    (b'[{"id": "c", "vector": [0, 1]}, {"vector": [0, 1]}]', 422, "row 1"),
    (b'[{"id": "c", "vector": [0, 1], "vecter": 1}]', 422, "vecter"),
    (b'[{"id": "c", "vector": [0, 1], "payload": 3}]', 422, "payload of row 0"),
    (b'[{"id": 7, "vector": [0, 1]}]', 422, "int"),
    (b'[{"id": 1.5, "vector": [0, 1]}]', 422, "1.5"),
    (b'[{"id": "c", "vector": [0, 1], "timestamp": 3}]', 422, "timestamps"),
    (b'[{"id": "a", "vector": [0, 1]}]', 409, "'a'"),
    (b'[{"id": "c", "vector": [0, 1]}, {"id": "c", "vector": [0, 1]}]', 422, "twice"),
    (b'{"id": "c", "vector": [0, 1]}', 422, "list of objects"),
    (b"[3]", 422, "row 0"),
    (b"not json", 400, "not JSON"),
    (b"", 400, "not JSON"),
    (b'[{"id": "\xff"}]', 400, "not JSON"),
    (b"[" * 100_000, 400, "nested too deeply"),
    (b'{"a":' * 100_000, 400, "nested too deeply"),
    (b"[" + b"9" * 10_000 + b"]", 400, "not JSON"),
    (b'[{"id": "c", "vector": [0, ' + b"9" * 400 + b"]}]", 422, "row 0, column 1"),
]


@pytest.mark.parametrize(("body", "status", "words"), JSON_CASES)
def test_wrong_json(served, body, status, words):
    before = served.client.get("/v1/stats").json()["update_number"]
    response = send(served, body, "application/json")
    assert (response.status_code, response.headers["content-type"]) == (
        status,
        "application/problem+json",
    )
    assert words in response.json()["detail"]
    assert served.client.get("/v1/stats").json()["update_number"] == before


def test_any_depth_of_json_is_refused(served):
    """Python may be able to read a value that it cannot show."""
    for depth in range(900, 1_001, 2):
        deep = b"[" * depth + b"]" * depth
        for path, body in (
            ("/v1/points", deep),
            ("/v1/points", b'[{"id": %s, "vector": [0, 1]}]' % deep),
            ("/v1/update", b'{"delete": %s}' % deep),
            ("/v1/predict", b'{"vectors": [[0, 1]], "theta": %s}' % deep),
            ("/v1/predict", b'{"vectors": %s}' % deep),
        ):
            assert send(served, body, "application/json", path).status_code in (400, 422)
        assert served.client.get("/v1/search", params={"where": deep}).status_code in (400, 422)


def test_broken_ndjson_in_the_middle(served):
    body = b'{"id":"c","vector":[0,1]}\n\n{"id":"d","vector":[0,\n{"id":"e","vector":[0,1]}\n'
    response = send(served, body, NDJSON)
    assert response.status_code == 400
    assert "line 3 is not JSON" in response.json()["detail"]
    assert served.client.get("/v1/points/c").status_code == 404


def test_ndjson_and_arrow(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        X = np.random.default_rng(0).normal(size=(2_000, 3)).astype(np.float32)
        rows = [
            json.dumps({"id": i, "vector": row, "payload": {"n": i}})
            for i, row in enumerate(X[:1_000].tolist())
        ]
        answer = send(served, "\n".join(rows).encode(), NDJSON).json()
        assert answer["ids"] == list(range(1_000))
        payload = [json.dumps({"n": i}) for i in range(1_000, 2_000)]
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(X[1_000:].ravel()), 3)
        body = arrow(id=pa.array(range(1_000, 2_000)), vector=vectors, payload=pa.array(payload))
        assert send(served, body, ARROW).json()["ids"] == list(range(1_000, 2_000))
        for i in (0, 999, 1_000, 1_999):
            point = served.client.get(f"/v1/points/{i}").json()
            assert point["vector"] == X[i].tolist()
            assert point["payload"] == {"n": i}


def test_slices_chunks_and_dates_of_arrow(tmp_path: Path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    table = pa.table(
        {
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 2),
            "id": pa.array([f"p{i}" for i in range(40)]),
            "timestamp": pa.array(np.arange("2025-01-01", 40, dtype="M8[D]").astype("M8[ms]")),
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.slice(5, 20), max_chunksize=7)
        writer.write_table(table.slice(30))
    with serving(tmp_path / "store") as served:
        answer = send(served, sink.getvalue(), ARROW).json()
        kept = [*range(5, 25), *range(30, 40)]
        assert answer["ids"] == [f"p{i}" for i in kept]
        assert np.array_equal(served.service.model.vectors(), X[kept].astype(np.float32))
        assert served.service.watch.timeline().last_time == np.datetime64("2025-02-09")


def many(kind: pa.DataType, children: list[pa.Array]) -> pa.Array:
    """Values that take no bytes of a stream."""
    return pa.Array.from_buffers(kind, 1_000_000, [None], children=children)


EMPTY = many(pa.list_(pa.float32(), 0), [pa.array([], pa.float32())])
NULLS = many(pa.null(), [])
PLAIN = lists([[0, 1], [1, 0]])
BOMBS = [
    (arrow("zstd", vector=lists([[0] * 100_000])), 422, "compress"),
    (arrow("lz4", vector=lists([[0] * 100_000])), 422, "compress"),
    (arrow(vector=EMPTY), 413, "more values"),
    (arrow(vector=EMPTY, payload=NULLS), 413, "more values"),
    (arrow(vector=lists([[0]]), payload=pa.array([[None] * 100_000])), 413, "more values"),
    (arrow(vector=PLAIN, id=pa.array(["c", "d"]).dictionary_encode()), 422, "dictionary"),
    (arrow("zstd", vector=PLAIN, id=pa.array(["c"] * 2).dictionary_encode()), 422, "dictionary"),
    (arrow(vector=PLAIN, payload=pa.array(["{}"] * 2, pa.string_view())), 422, "string_view"),
    (arrow(vector=PLAIN, id=pa.RunEndEncodedArray.from_arrays([2], ["c"])), 422, "run_end"),
    (arrow(vector=PLAIN, payload=pa.array([[{"a": b"x"}]] * 2)), 422, "binary"),
]


@pytest.mark.parametrize(("body", "status", "words"), BOMBS)
def test_arrow_that_stands_for_very_much(served, body, status, words):
    response = send(served, body, ARROW)
    assert response.status_code == status, response.text
    assert words in response.json()["detail"]


def test_damaged_arrow():
    """Whatever bytes are damaged: the points are read, or there is an error that a client gets."""
    rng = np.random.default_rng(5)
    whole = arrow(vector=lists([[0, 1], [1, 0]]), payload=pa.array(['{"a": 1}', None]))
    answers = Counter()
    for _ in range(1_000):
        body = np.frombuffer(whole, np.uint8).copy()
        body[rng.integers(len(body), size=rng.integers(1, 4))] = rng.integers(256)
        try:
            answers[parse_points(ARROW, body.tobytes()).vectors.ndim] += 1
        except (Problem, ValueError) as error:
            answers[getattr(error, "status", 422)] += 1
    assert answers.keys() <= {2, 400, 413, 422}
    assert all(answers[each] > 5 for each in (2, 400, 422)), answers


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"nothing of the kind", 400, "Arrow"),
        (arrow(vector=lists([[0, 1]]))[:-30], 400, "Arrow"),
        (arrow(id=pa.array(["c"])), 422, "no column vector"),
        (arrow(vector=pa.array([1.0])), 422, "lists of numbers"),
        (arrow(vector=lists([[0, 1], None]), id=pa.array(["c", "d"])), 422, "row 1"),
        (arrow(vector=lists([[0, 1], [0]]), id=pa.array(["c", "d"])), 422, "lengths"),
        (arrow(vector=lists([[0, None]]), id=pa.array(["c"])), 422, "null"),
        (arrow(vector=lists([[0, float("inf")]]), id=pa.array(["c"])), 422, "row 0, column 1"),
        (arrow(vector=lists([[0, 1]]), other=pa.array([1])), 422, "other"),
        (arrow(vector=lists([[0, 1]]), id=pa.array(["c"]), payload=pa.array(["["])), 400, "row 0"),
    ],
)
def test_wrong_arrow(served, body, status, words):
    response = send(served, body, ARROW)
    assert response.status_code == status
    assert words in response.json()["detail"]


def test_long_ids_are_refused(served, tmp_path: Path):
    """Ids are in answers many times: long ones would make these huge."""
    long = "x" * 1_001
    for response in (
        served.post("/v1/points", points([[0, 1], [1, 0]], ["c", long])),
        served.post("/v1/update", {"insert": points([[0, 1], [1, 0]], ["c", long])}),
        send(served, arrow(vector=lists([[0, 1], [1, 0]]), id=pa.array(["c", long])), ARROW),
    ):
        assert response.status_code == 422
        assert "at position 1 of ids has 1,001 characters" in response.json()["detail"]
    with serving(tmp_path / "graph", kind="graph") as graph:
        response = graph.post("/v1/graph/update", {"add": [long]})
        assert response.status_code == 422
        assert graph.post("/v1/graph/update", {"add": ["x" * 1_000]}).status_code == 200


def test_many_vectors_are_predicted_in_several_requests(served):
    answer = served.post("/v1/predict", {"vectors": [[0, 1]] * 10_001})
    assert answer.status_code == 422
    assert "10,000" in answer.json()["detail"]


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded", "a/b/c"])
@pytest.mark.parametrize("path", ["/v1/points", "/v1/points/delete", "/v1/update", "/v1/predict"])
def test_wrong_content_types(served, kind, path):
    response = send(served, b"[]", kind, path)
    assert response.status_code == 415
    assert "Content-Type" in response.json()["detail"]


def test_a_body_that_is_too_large(served):
    body = b"[" + b" " * (1 << 20) + b"]"
    assert send(served, body, "application/json").status_code == 413
    chunks = (b" " * 100_000 for _ in range(20))
    response = served.client.post(
        "/v1/points", content=chunks, headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 413
    assert served.client.get("/healthz").status_code == 200
    assert served.service.bodies.used == 0


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1/clusters?limit=0", "limit"),
        ("/v1/clusters?theta=x", "theta"),
        ("/v1/clusters?theta=-0.0001", "theta"),
        ("/v1/clusters/x", "cluster"),
        ("/v1/tree?levels=-1", "levels"),
        ("/v1/tree?node=1.5", "node"),
        ("/v1/explain?a=a", "b"),
        ("/v1/labels?format=xml", "format"),
        ("/v1/labels?n_clusters=99", "n_clusters"),
        ("/v1/changes?since=-1", "since"),
        ("/v1/search?where=3", "where"),
        ("/v1/events?since=x", "since"),
        ("/v1/explain", "query a is missing"),
        ("/v1/clusters?min_size=3", "min_size is 3, but no theta"),
        ("/v1/clusters/0/members?min_size=3", "min_size is 3, but no theta"),
        ("/v1/labels?min_size=3", "min_size is 3, but no theta"),
        ("/v1/clusters?theta=0.5&watch=x", "watch is 'x', but a cut"),
        ("/v1/labels?n_clusters=1&watch=x", "watch is 'x', but a cut"),
    ],
)
def test_wrong_parameters_are_named(served, path, words):
    response = served.client.get(path)
    assert response.status_code == 422, response.text
    assert words in response.json()["detail"]


def test_wrong_fields_of_other_routes(served):
    for path, value in (
        ("/v1/points/delete", {"id": "a"}),
        ("/v1/points/delete", {}),
        ("/v1/points/delete", {"ids": "a"}),
        ("/v1/points/delete", []),
        ("/v1/update", {"insert": 3}),
        ("/v1/update", {"delete": 3}),
        ("/v1/predict", {"vectors": [[1]]}),
        ("/v1/predict", {"vectors": [1]}),
        ("/v1/predict", {"vectors": [[0, 1]], "theta": "x"}),
        ("/v1/predict", {"vectors": [[0, 1]], "min_size": 3}),
        ("/v1/predict", {"vectors": [[0, 1]], "theta": 0.5, "min_size": 0}),
        ("/v1/predict", {"vectors": [[0, 1]], "theta": 0.5, "min_size": False}),
    ):
        response = served.post(path, value)
        assert response.status_code == 422, (path, value, response.text)


def test_events_with_a_wrong_id(served):
    response = served.client.get("/v1/events", headers={"Last-Event-ID": "seven"})
    assert response.status_code == 422


def test_other_methods_are_405(served):
    for method, path in (("PUT", "/v1/points"), ("DELETE", "/v1/clusters"), ("GET", "/v1/update")):
        response = served.client.request(method, path)
        assert response.status_code == 405
        assert response.headers["content-type"] == "application/problem+json"
