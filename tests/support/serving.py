"""Services for tests: in a thread of the test, or as a process of the command line."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx

import dynhac
from dynhac.serve import Settings, run

WATCH = {"theta": 0.3, "min_size": 2}
READ, WRITE = "r" * 32, "w" * 32


@dataclass
class Served:
    """A service that runs in a thread."""

    server: Any
    client: httpx.Client

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def service(self) -> Any:
        return self.server._service

    def post(self, path: str, value: Any, **headers: str) -> httpx.Response:
        return self.client.post(path, json=value, headers=headers)


@contextmanager
def serving(
    path: Path, mode: str = "w", kind: str | None = None, **options: Any
) -> Iterator[Served]:
    """Serve a store on a free port, in a thread; ``options`` are those of Settings."""
    parameters = options.pop("parameters", {})
    settings = Settings(**{"port": 0, "watch": WATCH, **options})
    if mode == "w" and kind != "graph" and not (path / "log.sqlite").exists():
        parameters = {"n_neighbors": 5, **parameters}
    model = dynhac.open(path, kind, mode=mode, **parameters)
    ready, found = Event(), []

    def started(server: Any) -> None:
        found.append(server)
        ready.set()

    thread = Thread(target=run, args=(model, settings, started), daemon=True)
    thread.start()
    assert ready.wait(30)
    (server,) = found
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as client:
        try:
            yield Served(server, client)
        finally:
            server.handle_exit(signal.SIGTERM, None)
            thread.join(60)
            assert not thread.is_alive()


def start_process(
    store: Path, *options: str, before: Any = None
) -> tuple[subprocess.Popen[str], str]:
    """Start ``dynhac serve``; return the process and the address.

    ``before``: what the process calls first.
    """
    command = [sys.executable, "-m", "dynhac.cli", "serve", str(store), "--port", "0"]
    command += ["--theta", "0.3", "--min-size", "2", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=before)
    assert process.stderr is not None
    lines = []
    while line := process.stderr.readline():
        lines.append(line)
        found = re.search(r"(http://\S+:\d+) \(", line)
        if found:
            return process, found[1]
    raise AssertionError("".join(lines))


def points(vectors: Any, ids: Any = None) -> list[dict[str, Any]]:
    """Return points as the API takes them."""
    rows = [{"vector": [float(x) for x in vector]} for vector in vectors]
    if ids is not None:
        rows = [{"id": id, **row} for id, row in zip(ids, rows, strict=True)]
    return rows
