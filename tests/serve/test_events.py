"""Events: in order, each once, resumable, and no client can hold up others."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from serving import Served, points, serving

import dynhac
from dynhac.client.stream import Events
from dynhac.store import records
from dynhac.watch.events import replay


class Stream:
    """Listens in a thread, and keeps all events."""

    def __init__(self, served: Served, since: int | None = None) -> None:
        self.events: list[dict[str, Any]] = []
        self.updates = 0
        self._socket = socket.create_connection(("127.0.0.1", served.port), timeout=30)
        resume = "" if since is None else f"Last-Event-ID: {since}\r\n"
        self._socket.sendall(f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n{resume}\r\n".encode())
        self.ended = False
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()
        wait_for(lambda: self.updates)

    def _read(self) -> None:
        parser = Events(None)
        with self._socket.makefile("r", encoding="utf-8", newline="\n") as lines:
            for line in lines:
                line = line.rstrip("\r\n")
                self.updates += line == "event: update"
                event = parser.line(line)
                if event is not None:
                    self.events.append(event)
                if line == "0":  # the last part of a chunked answer
                    break
        self.ended = True

    def close(self) -> None:
        if not self.ended:
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._socket.close()


def wait_for(condition, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited for too long"
        time.sleep(0.005)


def grow(served: Served, numbers) -> None:
    for i in numbers:
        rows = points([[i % 3 * 9, i / 1000]], [i])
        assert served.post("/v1/points", rows).status_code == 200


def ids(events) -> list[int]:
    return [event["id"] for event in events]


def test_events_tell_what_the_watch_tells(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        stream = Stream(served)
        grow(served, range(30))
        served.post("/v1/points/delete", {"ids": list(range(0, 30, 3))})
        wait_for(lambda: any(event["kind"] == "died" for event in stream.events))
        assert ids(stream.events) == list(range(1, len(stream.events) + 1))
        labels: dict[int, int] = {}
        for event in stream.events:
            assert event["count"] == len(event["points"])
            told = dynhac.Event(
                event["kind"], event["cluster"], _Array(event["points"]), (), event["size"], 0
            )
            replay([told], labels)
        watch = served.service.watch
        assert labels == {id: watch.cluster_of(id) for id in served.service.model.ids.tolist()}
        stream.close()
        wait_for(lambda: served.service.hub.listeners == 0)


class _Array(list):
    def tolist(self) -> list[Any]:
        return list(self)


def test_resuming_gives_each_event_once(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        grow(served, range(40))
        everything = Stream(served, since=0)
        wait_for(lambda: len(everything.events) >= 30)
        count = len(everything.events)
        assert ids(everything.events) == list(range(1, count + 1))
        some = Stream(served, since=10)
        wait_for(lambda: len(some.events) == count - 10)
        assert some.events == everything.events[10:]
        grow(served, range(40, 50))
        last = records.read_events(served.service.model.path, 0, 0)[0].last
        for stream, first in ((everything, 1), (some, 11)):
            wait_for(lambda stream=stream: ids(stream.events)[-1:] == [last])
            assert ids(stream.events) == list(range(first, last + 1))
            stream.close()
    with serving(tmp_path / "store") as served:  # also after it was opened again
        again = Stream(served, since=20)
        wait_for(lambda: len(again.events) >= 20)
        assert again.events == everything.events[20:]
        again.close()


def test_resuming_while_events_come(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        grow(served, range(10))
        writer = Thread(target=grow, args=(served, range(10, 120)))
        writer.start()
        streams = []
        for _ in range(5):
            streams.append(Stream(served, since=3))
            time.sleep(0.05)
        writer.join()
        last = records.read_events(served.service.model.path, 0, 0)[0].last
        for stream in streams:
            wait_for(lambda stream=stream: ids(stream.events)[-1:] == [last])
            assert ids(stream.events) == list(range(4, last + 1))
            stream.close()


def test_a_listener_is_told_what_is_missing(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        grow(served, range(20))
        model = served.service.model
        last = records.read_events(model.path, 0, 0)[0].last
        with model._engine.lock:
            model._store.log.connection.execute("DELETE FROM events WHERE id <= 8")
        stream = Stream(served, since=2)
        wait_for(lambda: len(stream.events) == last - 8 + 1)
        assert stream.events[0]["kind"] == "gap"
        assert "before 9 are not kept" in stream.events[0]["message"]
        assert ids(stream.events) == list(range(8, last + 1))
        future = Stream(served, since=10_000)
        wait_for(lambda: future.events)
        assert future.events[0]["kind"] == "gap"
        assert future.events[0]["id"] == last
        for each in (stream, future):
            each.close()
    with dynhac.open(tmp_path / "store") as model:
        model.insert([0.0, 5.0])
    with serving(tmp_path / "store") as served:
        stream = Stream(served, since=last)
        wait_for(lambda: stream.events)
        assert stream.events[0]["kind"] == "gap"
        assert "without the service" in stream.events[0]["message"]
        stream.close()


def test_streams_end_with_the_service(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        stream = Stream(served)
        start = time.monotonic()
    wait_for(lambda: stream.ended)
    assert time.monotonic() - start < 10
    stream.close()


def test_a_client_that_never_reads_is_dropped(tmp_path: Path):
    with serving(tmp_path / "store", listener_buffer=50) as served:
        served.server.config.http_protocol_class.stuck_seconds = 1.0
        never = socket.socket()
        never.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        never.connect(("127.0.0.1", served.port))
        never.sendall(b"GET /v1/events?since=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        reader = Stream(served)
        wait_for(lambda: served.service.hub.listeners == 2)
        rows = [{"id": f"{i}{'x' * 990}", "vector": [0, i / 1e4]} for i in range(12_000)]
        slowest = 0.0
        for i in range(0, 12_000, 100):  # more bytes than the system holds for a connection
            start = time.monotonic()
            assert served.post("/v1/points", rows[i : i + 100]).status_code == 200
            slowest = max(slowest, time.monotonic() - start)
        assert slowest < 5
        wait_for(lambda: served.service.hub.listeners == 1)
        assert not reader.ended
        reader.close()
        never.close()


def test_many_idle_listeners(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        idle = []
        for _ in range(500):
            connection = socket.create_connection(("127.0.0.1", served.port), timeout=30)
            connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            idle.append(connection)
        wait_for(lambda: served.service.hub.listeners == 500, 60)
        start = time.monotonic()
        grow(served, range(6))
        for connection in idle:
            text = b""
            while b"event: cluster" not in text:
                part = connection.recv(65_536)
                assert part
                text += part
        assert time.monotonic() - start < 30
        for connection in idle:
            connection.close()
        wait_for(lambda: served.service.hub.listeners == 0, 60)


def test_since_in_the_address(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        grow(served, range(6))
        with served.client.stream("GET", "/v1/events", params={"since": 0}) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            lines = response.iter_lines()
            found = next(line for line in lines if line.startswith("data:"))
        assert json.loads(found[5:])["kind"] == "born"


@pytest.mark.parametrize(("last", "came"), [(2, 2), (1_000, 5), (0, 0)])
def test_the_last_events(tmp_path: Path, last: int, came: int):
    with serving(tmp_path / "store") as served:
        for i in range(5):
            served.post("/v1/points", points([[9.0 * i, 0.0], [9.0 * i, 0.1]]))
        parser, events = Events(None), []
        with served.client.stream("GET", "/v1/events", params={"last": last}) as response:
            for line in response.iter_lines():
                if line == "event: update":
                    break
                events += [event for event in [parser.line(line)] if event is not None]
    assert [event["id"] for event in events] == list(range(6 - came, 6))


@pytest.mark.parametrize("text", ["id: 3", "event: cluster", ": alive", "", "data", "retry: 5"])
def test_incomplete_lines_are_no_events(text):
    assert Events(None).line(text) is None
