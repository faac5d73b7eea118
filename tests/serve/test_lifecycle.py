"""Start and end: signals, readers of another writer, the demo, and kill -9 under load."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from serving import WATCH, points, serving, start_process

import dynhac


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_finish_what_is_in_flight(tmp_path: Path, number):
    process, url = start_process(tmp_path / "store", "-k", "5")
    acknowledged: list[int] = []
    refused = threading.Event()

    def produce() -> None:
        with httpx.Client(base_url=url, timeout=30) as client:
            for i in range(10_000):
                try:
                    response = client.post("/v1/points", json=points([[i, 0]], [i]))
                except httpx.TransportError:
                    break
                if response.status_code != 200:
                    assert response.status_code == 503
                    break
                acknowledged.append(i)
        refused.set()

    listening = httpx.Client(base_url=url, timeout=30)
    with listening.stream("GET", "/v1/events"):
        thread = threading.Thread(target=produce)
        thread.start()
        while len(acknowledged) < 20:
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(60) == 0
    assert refused.wait(30)
    thread.join()
    listening.close()
    with dynhac.open(tmp_path / "store") as model:
        ids = set(model.ids.tolist())
    assert set(acknowledged) <= ids <= set(range(len(acknowledged) + 1))
    assert process.communicate()[1] == ""


def test_a_store_has_one_writer_and_readers_follow(tmp_path: Path):
    with serving(tmp_path / "store") as served:
        served.post("/v1/points", points([[0, 0], [0, 0.1]], ["a", "b"]))
        with serving(tmp_path / "store", mode="r", refresh_seconds=0.02, watch={}) as reader:
            assert reader.client.get("/v1/stats").json()["read_only"]
            refused = reader.post("/v1/points", points([[0, 0]], ["c"]))
            assert refused.status_code == 403
            assert "only reads" in refused.json()["detail"]
            served.post("/v1/points", points([[0, 0.2]], ["c"]))
            end = time.monotonic() + 10
            while reader.client.get("/v1/points/c").status_code != 200:
                assert time.monotonic() < end
                time.sleep(0.01)
            own, other = (each.client.get("/v1/clusters").json() for each in (served, reader))
            for answer in (own, other):
                answer.pop("age_seconds")
            assert own == other
            with reader.client.stream("GET", "/v1/events", params={"since": 0}) as response:
                text = ""
                for line in response.iter_lines():
                    text += line + "\n"
                    if "grew" in text:
                        break
            assert text.count("event: cluster") == 2
            assert reader.client.get("/readyz").status_code == 200
        command = [sys.executable, "-m", "dynhac.cli", "serve", str(tmp_path / "store")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert "open for writing already" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0", "--theta", "0.3"], "--token-file"),
        (["--token-file", "nowhere", "--theta", "0.3"], "nowhere"),
        (["--read-only", "--theta", "0.3"], "no store"),
        (["--metric", "cosine", "--similarity", "dot", "--theta", "0.3"], "similarity"),
        (["--theta", "-1"], "--theta is -1.0; it must be"),
        (["--min-size", "0"], "--min-size is 0; it must be"),
        (["--cors", "example.org"], "--cors is 'example.org'; it must be such as https://"),
    ],
)
def test_wrong_starts_are_explained(tmp_path: Path, options, words):
    command = [sys.executable, "-m", "dynhac.cli", "serve", str(tmp_path / "store"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "store").exists() or "--metric" in options


def test_a_port_that_is_taken(tmp_path: Path):
    with serving(tmp_path / "one") as served:
        command = [sys.executable, "-m", "dynhac.cli", "serve", str(tmp_path / "two")]
        command += ["--port", str(served.port), "--theta", "0.3"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"--port is {served.port}, which another program uses" in done.stderr
    with dynhac.open(tmp_path / "two"):  # nobody has it open
        pass


def test_the_demo_lives(tmp_path: Path):
    command = [sys.executable, "-m", "dynhac.cli", "serve", "--demo", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url = process.stderr.readline().split(" on ")[1].split()[0]
    try:
        with httpx.Client(base_url=url, timeout=30) as client:
            end = time.monotonic() + 30
            while client.get("/v1/stats").json()["points"] < 302:
                assert time.monotonic() < end
                time.sleep(0.05)
            clusters = client.get("/v1/clusters").json()["clusters"]
            assert clusters[0]["representatives"][0]["payload"]["text"]
            assert clusters[0]["name"]
            assert client.get("/v1/stats").json()["watches"][0]["theta"] is None
    finally:
        process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert process.communicate()[1] == ""


@pytest.mark.parametrize(
    ("each", "kills"), [(150, 2), pytest.param(1_500, 12, marks=pytest.mark.slow)]
)
def test_kill_under_load_loses_and_repeats_nothing(tmp_path: Path, each, kills):
    """Producers send again, with their key, what got no answer; a listener resumes."""
    store = tmp_path / "store"
    rng = np.random.default_rng(0)
    place = {"url": "", "stopped": False}
    acknowledged: list[list[int]] = [[], [], []]
    seen: list[dict[str, Any]] = []
    lock = threading.Lock()

    def produce(number: int) -> None:
        with httpx.Client(timeout=30) as client:
            for i in range(each):
                body = points([[number * 50, i / 1000]])
                while not place["stopped"]:
                    try:
                        response = client.post(
                            f"{place['url']}/v1/points",
                            json=body,
                            headers={"Idempotency-Key": f"{number}-{i}"},
                        )
                        assert response.status_code == 200
                    except httpx.TransportError:
                        time.sleep(0.05)
                        continue
                    acknowledged[number].append(response.json()["ids"][0])
                    break

    def listen() -> None:
        from dynhac.client.stream import Events

        parser = Events(0)
        while not place["stopped"]:
            parser.begin()
            headers = {"Last-Event-ID": str(parser.last)}
            try:
                with (
                    httpx.Client(base_url=place["url"], timeout=2) as client,
                    client.stream("GET", "/v1/events", headers=headers) as response,
                ):
                    for line in response.iter_lines():
                        event = parser.line(line)
                        if event is not None:
                            with lock:
                                seen.append(event)
            except httpx.TransportError:
                time.sleep(0.05)

    process, place["url"] = start_process(store, "-k", "5")
    threads = [threading.Thread(target=produce, args=(i,)) for i in range(3)]
    threads.append(threading.Thread(target=listen))
    for thread in threads:
        thread.start()
    try:
        for _ in range(kills):
            time.sleep(float(rng.uniform(0.3, 0.9)))
            os.kill(process.pid, signal.SIGKILL)
            process.wait(30)
            assert process.stderr is not None
            process.stderr.close()
            process, place["url"] = start_process(store)
        for thread in threads[:3]:
            thread.join(120)
        with httpx.Client(base_url=place["url"], timeout=30) as client:
            last = _last_event(client)
        end = time.monotonic() + 30
        while not (seen and seen[-1]["id"] == last):
            assert time.monotonic() < end, (last, seen[-1:])
            time.sleep(0.05)
    finally:
        place["stopped"] = True
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr is not None
        process.stderr.close()
        for thread in threads:
            thread.join(60)
    answered = [id for ids in acknowledged for id in ids]
    assert [len(ids) for ids in acknowledged] == [each] * 3
    assert len(set(answered)) == 3 * each
    with dynhac.open(store) as model:
        assert sorted(model.ids.tolist()) == sorted(answered)
        sizes = model.watch(**WATCH).clusters()
    assert [event["id"] for event in seen] == list(range(1, last + 1))
    told: dict[int, int] = {}
    for event in seen:
        told[event["cluster"]] = event["size"]
    assert {cluster: size for cluster, size in told.items() if size} == sizes


def _last_event(client: httpx.Client) -> int:
    with client.stream("GET", "/v1/events", params={"since": 10**9}) as response:
        for line in response.iter_lines():
            if line.startswith("id: "):
                return int(line[4:])
    raise AssertionError("no gap was told")
