"""The clients against a service: the words of the library, retries, events."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Thread

import httpx
import numpy as np
import pytest
from serving import READ, WRITE, serving

import dynhac
from dynhac.client import calls, client
from dynhac.client.retries import pause
from dynhac.serve.tokens import Tokens

X = np.random.default_rng(0).normal(size=(3_000, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    tokens = Tokens([("read", READ), ("write", WRITE)])
    with serving(tmp_path_factory.mktemp("client") / "store", tokens=tokens) as served:
        yield served


@pytest.fixture
def own(served):
    with dynhac.Client(served.url, WRITE) as own:
        yield own


def test_updates_and_readers(own):
    payload = [{"text": f"point {i}"} for i in range(len(X))]
    assert calls.insert(X, None, None, payload).kind == calls.ARROW
    ids = own.insert(X, payload=payload)
    assert ids.tolist() == list(range(len(X)))
    assert own.insert([0.0, 0.0, 0.0, 0.0], payload={"text": "single"}) == 3_000
    assert own.point(7)["payload"] == {"text": "point 7"}
    assert own.point(7)["vector"] == X[7].tolist()
    assert own.delete([0, 1])["deleted"] == [0, 1]
    change = own.update(insert=X[:1], ids=[2], delete=[2])
    assert (change["ids"], change["deleted"]) == ([2], [2])
    found, labels = own.labels()
    assert len(found) == len(labels) == own.stats()["points"] == 2_999
    assert len(own.labels(n_clusters=500).labels) == 2_999
    biggest = own.clusters(limit=1)["clusters"][0]
    assert own.cluster(biggest["cluster"])["size"] == biggest["size"]
    assert own.members(biggest["cluster"], limit=5)["total"] == biggest["size"]
    assert own.find("single")[0]["id"] == 3_000
    assert own.find(where={"text": "point 9"})[0]["id"] == 9
    assert own.explain(7, 7)["together"]
    assert own.unfold(levels=1)["size"] == 2_999
    assert own.predict(X[:2], 0.5)["clusters"]
    assert own.changes(since=1)["changes"][0]["op"] == "points"
    assert own.timeline()["lanes"]


def test_errors_are_those_of_the_library(own, served):
    with pytest.raises(KeyError, match="id 99999 in delete is not in the model"):
        own.delete([99_999])
    with pytest.raises(ValueError, match="row 1, column 2 of X is nan"):
        own.insert([[0, 0, 0, 0], [0, 0, np.nan, 0]])
    with pytest.raises(ValueError, match="already in the model"):
        own.insert([0.0, 0.0, 0.0, 0.0], ids=[9])
    with pytest.raises(ValueError, match="2 entries for 1 points"):
        own.insert([[0.0] * 4], ids=[1, 2])
    with pytest.raises(TypeError, match="None"):
        own.point(None)
    with dynhac.Client(served.url, READ) as reader:
        assert reader.stats()
        with pytest.raises(PermissionError, match="token to write"):
            reader.delete([9])
    with dynhac.Client(served.url) as nobody, pytest.raises(PermissionError, match="token"):
        nobody.stats()


def test_dates_and_str_ids(tmp_path: Path):
    days = np.arange("2025-01-01", "2025-01-04", dtype="M8[D]")
    with serving(tmp_path / "store") as served, dynhac.Client(served.url) as own:
        ids = own.insert(X[:3], ids=["a", "b", "c d/é"], timestamps=days)
        assert ids.tolist() == ["a", "b", "c d/é"]
        assert own.point("c d/é")["id"] == "c d/é"
        big = np.repeat(X, 2, axis=0)
        own.insert(
            big, [f"n{i}" for i in range(len(big))], np.full(len(big), "2025-02-01", "M8[s]")
        )
        assert served.service.model.watch(0.5).timeline().last_time == np.datetime64("2025-02-01")


def test_a_graph(tmp_path: Path):
    with serving(tmp_path / "store", kind="graph") as served, dynhac.Client(served.url) as own:
        own.graph_update(add=["a", "b", "c"], edges=(["a"], ["b"], [0.5]))
        own.graph_update(remove=["c"], remove_edges=(["a"], ["b"]))
        assert own.stats()["points"] == 2


class Flaky(httpx.BaseTransport):
    """Loses answers: the request arrives, the client does not learn what became of it."""

    def __init__(self, statuses) -> None:
        self._statuses = list(statuses)
        self._inner = httpx.HTTPTransport()

    def handle_request(self, request):
        response = self._inner.handle_request(request)
        if self._statuses:
            response.read()
            status = self._statuses.pop()
            if not status:
                raise httpx.ReadError("the connection was lost")
            return httpx.Response(status, headers={"Retry-After": "0"})
        return response

    def close(self) -> None:
        self._inner.close()


@pytest.mark.parametrize("statuses", [[0], [0, 0, 0], [503, 0, 429], [502]])
def test_a_lost_answer_is_asked_for_again(tmp_path: Path, monkeypatch, statuses):
    monkeypatch.setattr(client, "pause", lambda *_: 0.0)
    with serving(tmp_path / "store") as served, dynhac.Client(served.url) as own:
        own._client = httpx.Client(base_url=served.url, transport=Flaky(statuses))
        assert own.insert([0.0, 1.0]) == 0
        assert own.insert([0.0, 1.0]) == 1
        assert len(served.service.model) == 2


def test_giving_up(monkeypatch):
    monkeypatch.setattr(client, "pause", lambda *_: 0.0)
    with (
        dynhac.Client("http://127.0.0.1:9", retries=2) as own,
        pytest.raises(dynhac.ServiceError, match="3 attempts"),
    ):
        own.stats()


def test_pauses_grow_and_are_bounded():
    assert 0.05 <= pause(0) <= 0.1
    assert 5 <= pause(50) <= 10
    assert pause(0, "3") == 3
    assert pause(0, "soon") <= 0.1


def test_events_go_on_after_the_service_was_restarted(tmp_path: Path):
    """The second service has another port; the client is told so behind its back."""
    seen: list[dict] = []

    async def follow(url: str, since: int, until: int) -> None:
        async with dynhac.AsyncClient(url) as own:
            await own.insert([[0.0, since / 100]])
            async for event in own.events(since):
                seen.append(event)
                if event["id"] >= until:
                    return

    with serving(tmp_path / "store") as served:
        with dynhac.Client(served.url) as own:
            for i in range(5):
                own.insert([0.0, i / 1000])
        asyncio.run(follow(served.url, 0, 3))
    with serving(tmp_path / "store") as served:
        asyncio.run(follow(served.url, 3, 6))
    assert [event["id"] for event in seen] == list(range(1, 7))


def test_a_dropped_listener_resumes(tmp_path: Path):
    with serving(tmp_path / "store") as served, dynhac.Client(served.url) as own:
        events = own.events(since=0)
        seen = []

        def listen() -> None:
            for event in events:
                seen.append(event["id"])
                if event["id"] == 20:
                    return

        thread = Thread(target=listen)
        thread.start()
        for i in range(30):
            own.insert([0.0, i / 1000])
            if i == 10:
                for listener in tuple(served.service.hub._listeners):
                    listener.dropped = True
                    listener.wake()
        thread.join(30)
        events.close()
        assert seen == list(range(1, 21))
