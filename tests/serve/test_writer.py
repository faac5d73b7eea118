"""The writer: keys of requests, groups that share a commit, failures of the disk."""

from __future__ import annotations

import json
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from serving import points, serving

import dynhac
from dynhac.serve import writer
from dynhac.store import records
from dynhac.store.records import Records


def test_a_key_makes_a_repeated_request_change_nothing(tmp_path: Path):
    key = {"Idempotency-Key": "one"}
    with serving(tmp_path / "store") as served:
        first = served.post("/v1/points", points([[0, 0]]), **key)
        again = served.post("/v1/points", points([[0, 0]]), **key)
        assert first.json()["ids"] == [0]
        assert again.content == first.content
        other = served.post("/v1/points", points([[1, 1]]), **key)
        assert other.status_code == 422
        assert "another request" in other.json()["detail"]
        assert len(served.service.model) == 1
        deleted = served.post("/v1/points/delete", {"ids": [0]}, **{"Idempotency-Key": "two"})
        assert deleted.status_code == 200
        repeated = served.post("/v1/points/delete", {"ids": [0]}, **{"Idempotency-Key": "two"})
        assert repeated.content == deleted.content
        assert served.post("/v1/points/delete", {"ids": [0]}).status_code == 404
    with serving(tmp_path / "store") as served:  # also after it was opened again
        assert served.post("/v1/points", points([[0, 0]]), **key).content == first.content
        assert len(served.service.model) == 0


def test_a_refused_request_may_be_sent_again_with_its_key(tmp_path: Path):
    key = {"Idempotency-Key": "one"}
    with serving(tmp_path / "store") as served:
        served.post("/v1/points", points([[0, 0]], ["a"]))
        assert served.post("/v1/points", points([[1, 1]], ["a"]), **key).status_code == 409
        served.post("/v1/points/delete", {"ids": ["a"]})
        assert served.post("/v1/points", points([[1, 1]], ["a"]), **key).status_code == 200
        assert served.post("/v1/points", [], **{"Idempotency-Key": "k" * 256}).status_code == 422


def test_requests_that_wait_share_a_commit_and_fail_alone(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(writer, "GROUP_SECONDS", 60.0)  # however slow the machine
    with serving(tmp_path / "store") as served, ThreadPoolExecutor(12) as pool:
        served.post("/v1/points", points([[0, 0]], ["taken"]))
        commits = []
        log = served.service.model._store.log
        log.connection.set_trace_callback(
            lambda text: commits.append(text) if text == "COMMIT" else None
        )
        with served.service.model._engine.lock:
            bodies = [points([[i, i]], [f"p{i}"]) for i in range(8)]
            bodies += [points([[0, 0]], ["taken"]), points([[0, 0, 0]], ["wide"])]
            sent = [pool.submit(served.post, "/v1/points", body) for body in bodies]
            while served.service.writer.waiting < 9:  # one may be in the hands of the writer
                assert not any(each.done() for each in sent)
                threading.Event().wait(0.01)
        statuses = [each.result().status_code for each in sent]
        assert statuses == [200] * 8 + [409, 422]
        assert len(commits) <= 2
        numbers = {each.result().json()["update_number"] for each in sent[:8]}
        assert len(numbers) == 8
        log.connection.set_trace_callback(None)


def test_a_group_that_cannot_be_written_is_taken_back(tmp_path: Path, monkeypatch):
    with serving(tmp_path / "store") as served:
        served.post("/v1/points", points([[0, 0], [0, 1]], ["a", "b"]))
        log = served.service.model._store.log
        commit = log.commit

        def fail() -> None:
            raise sqlite3.OperationalError("disk full")

        monkeypatch.setattr(log, "commit", fail)
        refused = served.post("/v1/points", points([[0, 2]], ["c"]), **{"Idempotency-Key": "k"})
        assert refused.status_code == 503
        assert "disk full" in refused.json()["detail"]
        assert served.client.get("/v1/points/c").status_code == 404
        monkeypatch.setattr(log, "commit", commit)
        again = served.post("/v1/points", points([[0, 2]], ["c"]), **{"Idempotency-Key": "k"})
        assert again.status_code == 200
        assert served.client.get("/v1/clusters").json()["points"] == 3


@pytest.mark.parametrize("method", ["remember", "append", "record"])
def test_a_record_that_cannot_be_written_fails_the_group(tmp_path: Path, monkeypatch, method):
    with serving(tmp_path / "store") as served:
        served.post("/v1/points", points([[0, 0], [0, 1]], ["a", "b"]))
        right = getattr(Records, method)

        def fail(self, *arguments):
            with self._connection():
                raise sqlite3.OperationalError("disk I/O error")

        monkeypatch.setattr(Records, method, fail)
        key = {"Idempotency-Key": "k"}
        assert served.post("/v1/points", points([[0, 2]], ["c"]), **key).status_code == 503
        monkeypatch.setattr(Records, method, right)
        assert served.client.get("/v1/points/c").status_code == 404
        assert served.post("/v1/points", points([[0, 2]], ["c"]), **key).status_code == 200
    with dynhac.open(tmp_path / "store", mode="r") as model:
        assert sorted(model.ids) == ["a", "b", "c"]


def test_answers_and_events_are_bounded(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(records, "PRUNED_EVERY", 10)
    monkeypatch.setattr(records, "MOST_ANSWERS", 20)
    monkeypatch.setattr(records, "KEPT_EVENTS", 20)
    with serving(tmp_path / "store") as served:
        for i in range(60):
            served.post("/v1/points", points([[0, i / 100]]), **{"Idempotency-Key": f"k{i}"})
        for i in range(60, 80):
            if i in (60, 65, 70):
                served.service.model.snapshot()  # which drops the log before the last but one
            served.post("/v1/points", points([[0, i / 100]]), **{"Idempotency-Key": f"k{i}"})
        connection = served.service.model._store.log.connection
        (answers,) = connection.execute("SELECT COUNT(*) FROM answers").fetchone()
        assert answers <= 31
        first = served.post("/v1/points", points([[0, 0.79]]), **{"Idempotency-Key": "k79"})
        assert first.json()["ids"] == [79]
        rows = connection.execute("SELECT data FROM events ORDER BY id").fetchall()
        assert len(rows) < 79
        assert json.loads(rows[-1][0])["kind"] == "grew"


def test_a_store_that_takes_no_more_updates_refuses_them(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        served.post("/v1/points", points([[0, 0], [0, 1]], ["a", "b"]))
        (tmp_path / "store" / "head").rename(tmp_path / "head")
        for _ in range(3):
            refused = served.post("/v1/points", points([[0, 2]], ["c"]))
            assert refused.status_code == 503
            assert "deleted or replaced" in refused.json()["detail"]
        assert served.client.get("/readyz").status_code == 503
        assert served.client.get("/v1/clusters").json()["points"] == 2


def test_a_snapshot_gets_its_turn_under_load(tmp_path: Path):
    with serving(tmp_path / "store") as served, ThreadPoolExecutor(4) as pool:
        served.post("/v1/points", points([[0, 0]]))
        stop = threading.Event()

        def produce() -> None:
            while not stop.is_set():
                assert served.post("/v1/points", points([[0, 1]])).status_code == 200

        producing = [pool.submit(produce) for _ in range(4)]
        try:
            for _ in range(3):
                number = served.service.model.snapshot()
                assert served.client.get("/v1/stats").json()["snapshot"]["update_number"] == number
        finally:
            stop.set()
        for each in producing:
            each.result()
