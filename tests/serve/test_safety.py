"""Who may do what, and what hostile clients can do: little."""

from __future__ import annotations

import resource
import signal
import socket
import time
from pathlib import Path

import httpx
import pytest
from serving import READ, WRITE, points, serving, start_process

from dynhac.serve import Settings
from dynhac.serve.tokens import Tokens

TOKENS = Tokens([("read", READ), ("write", WRITE)])
BODY = b"POST /v1/points HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
"""The head of a request with a body, without its length."""


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("tokens") / "store", tokens=TOKENS) as served:
        yield served


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("safety") / "store"
    with serving(folder, header_seconds=0.6, body_seconds=0.6) as served:
        yield served


def raw(port: int, data: bytes, seconds: float = 5.0) -> bytes:
    """Send bytes and return all that comes back until the connection ends, or the time."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(data)
        answer = b""
        try:
            while part := connection.recv(65_536):
                answer += part
        except (TimeoutError, ConnectionResetError):
            pass
        return answer


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org"])
def test_other_addresses_need_tokens(host):
    with pytest.raises(ValueError, match="--token-file"):
        Settings(host=host)
    Settings(host=host, tokens=TOKENS)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_addresses_of_this_machine_need_none(host):
    Settings(host=host)


def test_roles(guarded):
    client, body = guarded.client, points([[0, 0]], ["a"])
    assert client.get("/v1/stats").status_code == 401
    assert client.get("/v1/stats").headers["www-authenticate"] == "Bearer"
    assert client.get("/metrics").status_code == 401
    assert client.get("/v1/stats", headers=bearer("x" * 32)).status_code == 401
    assert client.get("/v1/stats", headers={"Authorization": f"Basic {READ}"}).status_code == 401
    assert client.get(f"/v1/stats?token={READ}").status_code == 401
    assert client.get("/v1/stats", headers=bearer(READ)).status_code == 200
    assert client.post("/v1/points", json=body).status_code == 401
    assert client.post("/v1/points", json=body, headers=bearer(READ)).status_code == 403
    assert client.post("/v1/points", json=body, headers=bearer(WRITE)).status_code == 200
    query = {"vectors": [[0, 0]]}
    assert client.post("/v1/predict", json=query, headers=bearer(READ)).status_code == 200
    for path in ("/", "/healthz", "/readyz"):
        assert client.get(path).status_code == 200
    # Names that lead here are no danger when a token is needed.
    assert client.get("/v1/stats", headers={**bearer(READ), "Host": "a.example"}).status_code == 200


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no tokens"),
        ("# only a comment\n", "no tokens"),
        ("admin " + READ, "line 1"),
        ("read", "line 1"),
        ("read short", "at least 16"),
        (f"read {READ} more", "line 1"),
    ],
)
def test_wrong_token_files(tmp_path: Path, text, words):
    file = tmp_path / "tokens"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(ValueError, match=words):
        Tokens.read(file)


def test_a_token_file(tmp_path: Path):
    file = tmp_path / "tokens"
    file.write_text(f"# tokens\n\nread {READ}\nwrite\t{WRITE}\n")
    file.chmod(0o644)
    with pytest.raises(ValueError, match="chmod 600"):
        Tokens.read(file)
    file.chmod(0o600)
    tokens = Tokens.read(file)
    assert [tokens.role_of(t) for t in (READ, WRITE, "", "ü")] == ["read", "write", None, None]


def test_names_of_other_sites_are_refused(served, tmp_path: Path):
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""):
        assert served.client.get("/v1/stats", headers={"Host": host}).status_code == 421
    for host in ("localhost:1", "127.0.0.1", "[::1]:8000", "LOCALHOST"):
        assert served.client.get("/v1/stats", headers={"Host": host}).status_code == 200
    with serving(tmp_path / "store", hosts=("a.example",)) as other:
        assert other.client.get("/v1/stats", headers={"Host": "a.example"}).status_code == 200


def test_pages_of_other_sites_are_refused(served, tmp_path: Path):
    evil = {"Origin": "http://evil.example"}
    response = served.client.post("/v1/points", json=points([[0, 0]]), headers=evil)
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers
    assert served.client.get("/v1/stats").json()["points"] == 0
    own = {"Origin": served.url}
    assert served.client.get("/v1/stats", headers=own).status_code == 200
    assert served.client.get("/v1/stats", headers={"Origin": "null"}).status_code == 403
    with serving(tmp_path / "store", origins=("http://a.example",)) as other:
        allowed = other.client.get("/v1/stats", headers={"Origin": "http://a.example"})
        assert allowed.headers["access-control-allow-origin"] == "http://a.example"
        assert other.client.get("/v1/stats", headers=evil).status_code == 403
        asked = {"Origin": "http://a.example", "Access-Control-Request-Method": "POST"}
        assert other.client.options("/v1/points", headers=asked).status_code == 204


@pytest.mark.parametrize("path", ["/", "/v1/stats", "/docs", "/nothing", "/v1/labels"])
def test_headers_of_all_answers(served, path):
    headers = served.client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "server" not in headers


def test_hostile_text_is_text(served):
    served.post("/v1/points", points([[0, 0]], ["<script>alert(1)</script>"]))
    response = served.client.get("/v1/points/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert response.headers["content-type"] == "application/json"
    assert "<script" not in served.client.get("/docs").text


def test_slow_heads_are_cut_off(served):
    start = time.monotonic()
    assert raw(served.port, b"GET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\n") == b""
    assert time.monotonic() - start < 4
    assert raw(served.port, b"") == b""
    # Also behind a complete request on the same connection.
    first = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    answer = raw(served.port, first + b"GET /healthz HTTP/1.1\r\nHo", 4)
    assert answer.count(b"HTTP/1.1 200") == 1
    assert served.client.get("/healthz").status_code == 200


def test_slow_bodies_are_cut_off(served):
    start = time.monotonic()
    answer = raw(served.port, BODY + b"Content-Length: 100\r\n\r\n[")
    assert b"200 OK" not in answer
    assert time.monotonic() - start < 4
    deadline = time.monotonic() + 5
    while served.service.bodies.used and time.monotonic() < deadline:
        time.sleep(0.01)
    assert served.service.bodies.used == 0


@pytest.mark.parametrize("head", [b"GET / HTTP/1.1\r\n", BODY + b"Content-Length: 9999\r\n\r\n"])
def test_drops_do_not_extend_the_time_of_a_request(served, head):
    with socket.create_connection(("127.0.0.1", served.port), timeout=5) as connection:
        connection.sendall(head)
        end = time.monotonic() + 4
        try:
            while time.monotonic() < end:
                connection.sendall(b"X-A: b\r\n")
                time.sleep(0.05)
        except (BrokenPipeError, ConnectionResetError):
            return
        pytest.fail("the connection was not closed")


def test_bodies_that_do_not_come_take_no_room(served):
    """Four announced bodies would be as much as may wait."""
    announced = []
    for _ in range(5):
        announced.append(socket.create_connection(("127.0.0.1", served.port)))
        announced[-1].sendall(BODY + b"Content-Length: %d\r\n\r\n[" % (64 << 20))
    assert served.post("/v1/points", points([[0, 0]], ["beside"])).status_code == 200
    for connection in announced:
        connection.close()


def test_a_steady_slow_body_is_taken(served):
    body = b'[{"id": "steady", "vector": [0, 0]}' + b" " * 4_000 + b"]"
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.sendall(BODY + b"Content-Length: %d\r\n\r\n" % len(body))
        for start in range(0, len(body), 200):
            connection.sendall(body[start : start + 200])
            time.sleep(0.1)  # twice the least rate, for much longer than body_seconds
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"HELLO\r\n\r\n",
        b"POST /v1/points HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
        BODY + b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    ],
)
def test_nonsense_is_refused(served, request_bytes):
    answer = raw(served.port, request_bytes, 1.0)
    if answer:
        assert answer.split()[1] in (b"400", b"431")
        assert b"content-type: application/problem+json" in answer
        assert b"nosniff" in answer
    assert served.client.get("/healthz").status_code == 200


def test_a_full_queue_is_429(tmp_path: Path):
    with serving(tmp_path / "store", max_queue_bytes=200) as served:
        assert served.post("/v1/points", points([[0, 0]])).status_code == 200
        served.service.bodies.reserve(150)  # as another request would
        chunks = (b" " * 90 for _ in range(3))
        kind = {"Content-Type": "application/json"}
        for refused in (
            served.post("/v1/points", points([[0, 0]] * 5)),
            served.client.post("/v1/points", content=chunks, headers=kind),
        ):
            assert refused.status_code == 429
            assert refused.headers["retry-after"] == "1"
        served.service.bodies.release(150)
        assert served.post("/v1/points", points([[0, 0]] * 5)).status_code == 200
    with serving(tmp_path / "other", max_queue=1) as served:
        with served.service.model._engine.lock:  # the writer waits
            waiting = [_start_post(served.port) for _ in range(6)]
            time.sleep(0.5)
        statuses = sorted(_status(connection) for connection in waiting)
        assert set(statuses) == {200, 429}
        assert len(served.service.model) == statuses.count(200)


def _start_post(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    body = b'[{"vector": [0, 0]}]'
    connection.sendall(
        b"POST /v1/points HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )
    return connection


def _status(connection: socket.socket) -> int:
    with connection:
        return int(connection.recv(65_536).split()[1])


def test_idle_connections_do_not_take_the_files_of_the_store(tmp_path: Path):
    few = (400, 400)
    process, url = start_process(
        tmp_path / "store",
        before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few),
    )
    address = ("127.0.0.1", int(url.rpartition(":")[2]))
    with httpx.Client(base_url=url, timeout=30) as client:
        assert client.post("/v1/points", json=points([[0, 0]], ["first"])).status_code == 200
        idle = [socket.create_connection(address) for _ in range(600)]
        for i in range(3):
            row = points([[1, i]], [f"beside-{i}"])
            assert client.post("/v1/points", json=row).status_code == 200
            assert client.get("/v1/changes").status_code == 200
        for each in idle:
            each.close()
    assert httpx.get(f"{url}/v1/stats", timeout=30).json()["points"] == 4
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in errors
