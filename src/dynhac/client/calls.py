"""Requests of all methods, and how their answers are read."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynhac.input.batches import id_array
from dynhac.input.columns import Ids, id_column
from dynhac.input.errors import show
from dynhac.input.vectors import vector_rows

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
LARGE = 10_000
"""Numbers in vectors; more of them are sent as Arrow, if pyarrow is installed."""


class Call(NamedTuple):
    """A request: what to send, and how to read the answer."""

    method: str
    path: str
    read: Callable[[Any], Any]
    params: Mapping[str, Any] = {}
    body: bytes | None = None
    kind: str = JSON
    key: str | None = None


class Labels(NamedTuple):
    """The cluster of every point, -1 for none."""

    ids: NDArray[Any]
    labels: NDArray[np.int64]


def _same(answer: Any) -> Any:
    return answer


def _get(path: str, read: Callable[[Any], Any] = _same, /, **params: Any) -> Call:
    given = {name: value for name, value in params.items() if value is not None}
    return Call("GET", path, read, given)


def _post(path: str, value: Any, read: Callable[[Any], Any], *, update: bool = True) -> Call:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    kind = ARROW if isinstance(value, bytes) else JSON
    return Call("POST", path, read, {}, body, kind, uuid.uuid4().hex if update else None)


def id_list(ids: Ids, name: str = "ids") -> list[Any]:
    """Return ids as a list for JSON."""
    column = id_column(ids, name)
    return column if isinstance(column, list) else column.tolist()


def _ids(given: Sequence[Any]) -> NDArray[Any]:
    return id_array(list(given), bool(given) and isinstance(given[0], str))


def insert(
    X: ArrayLike,
    ids: Ids | None,
    timestamps: ArrayLike | None,
    payload: Sequence[Mapping[str, Any] | None] | Mapping[str, Any] | None,
) -> Call:
    """Return the request of `Client.insert`."""
    vectors, single = vector_rows(X, None)
    columns = _columns(vectors, ids, timestamps, payload, single)
    if vectors.size >= LARGE and find_spec("pyarrow") is not None:
        body: Any = _arrow(columns)
    else:
        body = _rows(columns)

    def read(answer: Any) -> Any:
        return answer["ids"][0] if single else _ids(answer["ids"])

    return _post("/v1/points", body, read)


def _columns(
    vectors: NDArray[np.float32], ids: Any, timestamps: Any, payload: Any, single: bool
) -> dict[str, Any]:
    """Return what is given of points, each with one entry for each point."""
    columns: dict[str, Any] = {"vector": vectors}
    count = len(vectors)
    if ids is not None:
        columns["id"] = id_list(ids)
    if timestamps is not None:
        times = np.asarray(timestamps)
        columns["timestamp"] = np.broadcast_to(times, (count,)) if times.ndim == 0 else times
    if payload is not None:
        columns["payload"] = [payload] if isinstance(payload, Mapping) and single else list(payload)
    for name, column in columns.items():
        if len(column) != count:
            raise ValueError(f"{name} has {len(column):,} entries for {count:,} points")
    return columns


def _plain(column: Any) -> list[Any]:
    if not isinstance(column, np.ndarray):
        return list(column)
    plain: list[Any] = (
        np.datetime_as_string(column) if column.dtype.kind == "M" else column
    ).tolist()
    return plain


def _rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    names = list(columns)
    rows = zip(*map(_plain, columns.values()), strict=True)
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in rows
    ]


def _arrow(columns: dict[str, Any]) -> bytes:
    import pyarrow as pa

    vectors = columns["vector"]
    flat = pa.array(vectors.ravel())
    arrays = {"vector": pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])}
    if "id" in columns:
        arrays["id"] = pa.array(columns["id"])
    if "timestamp" in columns:
        times = columns["timestamp"]
        arrays["timestamp"] = pa.array(times.astype("M8[ns]") if times.dtype.kind == "M" else times)
    if "payload" in columns:
        texts = [None if each is None else json.dumps(each) for each in columns["payload"]]
        arrays["payload"] = pa.array(texts, pa.string())
    table = pa.table(arrays)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def delete(ids: Ids) -> Call:
    """Return the request of `Client.delete`."""
    return _post("/v1/points/delete", {"ids": id_list(ids)}, _same)


def update(
    insert: ArrayLike | None,
    ids: Ids | None,
    delete: Ids | None,
    timestamps: ArrayLike | None,
    payload: Any,
) -> Call:
    """Return the request of `Client.update`."""
    batch: dict[str, Any] = {}
    if insert is not None:
        vectors, single = vector_rows(insert, None)
        batch["insert"] = _rows(_columns(vectors, ids, timestamps, payload, single))
    if delete is not None:
        batch["delete"] = id_list(delete, "delete")
    return _post("/v1/update", batch, _same)


def graph_update(
    add: Ids | None, edges: Any, remove: Ids | None, remove_edges: Any, payload: Any
) -> Call:
    """Return the request of `Client.graph_update`."""
    batch: dict[str, Any] = {}
    for name, ids in (("add", add), ("remove", remove)):
        if ids is not None:
            batch[name] = id_list(ids, name)
    for name, columns in (("edges", edges), ("remove_edges", remove_edges)):
        if columns is not None:
            plain = [id_list(column, name) for column in columns[:2]]
            plain += [np.atleast_1d(column).tolist() for column in columns[2:]]
            batch[name] = [list(row) for row in zip(*plain, strict=True)]
    if payload is not None:
        batch["payload"] = list(payload)
    return _post("/v1/graph/update", batch, _same)


def predict(X: ArrayLike, theta: float | None, min_size: int | None) -> Call:
    """Return the request of `Client.predict`."""
    vectors, _ = vector_rows(X, None)
    query: dict[str, Any] = {"vectors": vectors.tolist()}
    query |= {} if theta is None else {"theta": theta}
    query |= {} if min_size is None else {"min_size": min_size}
    return _post("/v1/predict", query, _same, update=False)


def labels(theta: float | None, n_clusters: int | None, min_size: int | None) -> Call:
    """Return the request of `Client.labels`."""

    def read(text: Any) -> Labels:
        rows = [json.loads(line) for line in text.splitlines()]
        clusters = [-1 if row["cluster"] is None else row["cluster"] for row in rows]
        return Labels(_ids([row["id"] for row in rows]), np.array(clusters, np.int64))

    return _get("/v1/labels", read, theta=theta, n_clusters=n_clusters, min_size=min_size)


def clusters(
    theta: float | None, min_size: int | None, limit: int, offset: int, min_version: int | None
) -> Call:
    """Return the request of `Client.clusters`."""
    cut = {"theta": theta, "min_size": min_size, "min_version": min_version}
    return _get("/v1/clusters", limit=limit, offset=offset, **cut)


def cluster(id: int, theta: float | None, min_size: int | None) -> Call:
    """Return the request of `Client.cluster`."""
    return _get(f"/v1/clusters/{int(id)}", theta=theta, min_size=min_size)


def members(id: int, theta: float | None, min_size: int | None, limit: int, offset: int) -> Call:
    """Return the request of `Client.members`."""
    path = f"/v1/clusters/{int(id)}/members"
    return _get(path, theta=theta, min_size=min_size, limit=limit, offset=offset)


def point(id: int | str) -> Call:
    """Return the request of `Client.point`."""
    if isinstance(id, bool) or not isinstance(id, (int, str, np.integer)):
        raise TypeError(f"id is {show(id)}; it must be an int or a str")
    return _get("/v1/points", id=id)


def find(
    text: str | None, where: Mapping[str, Any] | None, limit: int, cluster: int | None
) -> Call:
    """Return the request of `Client.find`."""
    given = {"where": None if where is None else json.dumps(where), "cluster": cluster}
    return _get("/v1/search", lambda answer: answer["hits"], q=text, limit=limit, **given)


def explain(a: int | str, b: int | str) -> Call:
    """Return the request of `Client.explain`."""
    return _get("/v1/explain", a=a, b=b)


def unfold(node: int | None, levels: int, limit: int, min_size: int) -> Call:
    """Return the request of `Client.unfold`."""

    def read(answer: Any) -> Any:
        return answer["root"]

    return _get("/v1/tree", read, node=node, levels=levels, limit=limit, min_size=min_size)


def changes(since: int, limit: int) -> Call:
    """Return the request of `Client.changes`."""
    return _get("/v1/changes", since=since, limit=limit)


def timeline(max_clusters: int) -> Call:
    """Return the request of `Client.timeline`."""
    return _get("/v1/timeline", max_clusters=max_clusters)


def stats() -> Call:
    """Return the request of `Client.stats`."""
    return _get("/v1/stats")
