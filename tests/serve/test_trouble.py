"""What a service answers when its store is lost or damaged, or when it has a bug itself."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from serving import Served, points, serving

from dynhac.store import records

READS = (
    "/v1/stats",
    "/metrics",
    "/readyz",
    "/v1/points/a",
    "/v1/clusters",
    "/v1/clusters/0",
    "/v1/clusters/0/members",
    "/v1/labels",
    "/v1/tree",
    "/v1/explain?a=a&b=b",
    "/v1/timeline",
    "/v1/search?q=oil",
    "/v1/changes",
    "/v1/events?since=99",
)


def fill(served: Served) -> None:
    rows = points([[0, 0], [0, 0.1]], ["a", "b"])
    rows[0]["payload"] = {"text": "oil prices"}
    assert served.post("/v1/points", rows).status_code == 200


def statuses(served: Served) -> dict[str, int]:
    """Return the status of every read; all are complete answers on one connection."""
    found = {}
    for path in READS:
        with served.client.stream("GET", path) as response:
            found[path] = response.status_code
            if response.status_code != 200:
                response.read()
                assert response.headers["content-type"] == "application/problem+json"
                assert response.headers["x-content-type-options"] == "nosniff"
                assert response.json()["detail"]
            elif "events" not in path:
                response.read()
    return found


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "waited for too long"
        time.sleep(0.01)


def test_a_store_that_was_removed(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        fill(served)
        shutil.rmtree(tmp_path / "store")
        found = statuses(served)
        assert found.pop("/v1/labels") == 200  # these need no files
        assert found.pop("/v1/tree") == 200
        assert found.pop("/v1/timeline") == 200
        assert set(found.values()) == {503}
        assert "was deleted" in served.client.get("/readyz").json()["detail"]
        refused = served.post("/v1/points", points([[0, 0]], ["c"]))
        assert refused.status_code == 503
        assert "was deleted" in refused.json()["detail"]
        assert served.client.get("/healthz").status_code == 200


def test_a_store_that_was_removed_under_a_reader(tmp_path: Path, caplog):
    with serving(tmp_path / "store") as served:
        fill(served)
        with serving(tmp_path / "store", mode="r", refresh_seconds=0.02, watch={}) as reader:
            assert reader.client.get("/readyz").status_code == 200
            shutil.rmtree(tmp_path / "store")
            wait_for(lambda: reader.client.get("/readyz").status_code == 503)
            assert "cannot be followed" in reader.client.get("/readyz").json()["detail"]
            assert set(statuses(reader).values()) <= {200, 503}
            time.sleep(0.3)  # it tries many times, and tells each reason once
    told = [record for record in caplog.records if "cannot be followed" in record.message]
    assert 1 <= len(told) <= 3  # the folder goes file by file


def test_a_damaged_payload(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        fill(served)
        with sqlite3.connect(tmp_path / "store" / "log.sqlite") as connection:
            connection.execute("UPDATE payloads SET text = '{}' WHERE id = 'a'")
        connection.close()
        assert set(statuses(served).values()) == {200, 503}
        assert "damaged" in served.client.get("/v1/points/a").json()["detail"]
        assert served.post("/v1/points", points([[0, 0]], ["c"])).status_code == 200


def test_a_bug_is_logged_once_and_answered_with_all_headers(tmp_path: Path, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    with serving(tmp_path / "store") as served:
        fill(served)
        monkeypatch.setattr(served.service, "rates", lambda: 1 // 0)
        monkeypatch.setattr(served.service, "require_writer", lambda: 1 // 0)
        for failed in (served.client.get("/v1/stats"), served.post("/v1/points", [])):
            assert failed.status_code == 500
            assert failed.json()["detail"] == "an error of the service; its log has the details"
            assert "default-src 'none'" in failed.headers["content-security-policy"]
        assert 'status="500"' in served.client.get("/metrics").text
    assert [record.message for record in caplog.records] == [
        "GET '/v1/stats' failed",
        "POST '/v1/points' failed",
    ]


def test_a_reader_that_falls_behind_lets_its_listeners_resume(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        fill(served)
        with serving(tmp_path / "store", mode="r", refresh_seconds=0.02, watch={}) as reader:
            with reader.client.stream("GET", "/v1/events?since=0") as response:
                lines = response.iter_lines()
                next(line for line in lines if line == "event: update")
                model = served.service.model
                with model._engine.lock, model._store.log.transaction():
                    connection = model._store.log.connection
                    connection.execute("UPDATE sqlite_sequence SET seq = 50")
                    records.Records(model._store).append(2, ["{}"])
                    connection.execute("DELETE FROM events WHERE id <= 50")
                assert "id: 51" not in list(lines)  # the stream ends
            with reader.client.stream("GET", "/v1/events?since=1") as response:
                data = next(line for line in response.iter_lines() if "gap" in line)
            assert "before 51 are not kept" in data


@pytest.mark.parametrize("path", ["/v1/nothing", "/nothing", "/v1"])
def test_what_is_nowhere_is_named(tmp_path: Path, path):
    with serving(tmp_path / "store") as served:
        assert repr(path) in served.client.get(path).json()["detail"]
        assert "DELETE is not possible" in served.client.delete("/v1/points").json()["detail"]
