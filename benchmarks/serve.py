"""The service under load: ``python -m benchmarks.serve --data FOLDER``.

The service runs in a process of its own, as ``dynhac serve`` does; so does the load, against
127.0.0.1 and for a bounded time. Measured are, on MNIST with full durability:

- single insertions by 16 clients, each waiting for its answer: rate and latencies;
- readers of /v1/clusters and /v1/tree beside that load: latencies;
- batches of 1,000 points as NDJSON and as Arrow, against the same batches in process;
- the memory of the service, against a process that only has the store open.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import dynhac
from benchmarks.common.datasets import DATASETS, read_points
from benchmarks.common.machine import describe

CLIENTS, READERS = 16, 2
BATCH = 1_000
READS = ("/v1/clusters", "/v1/tree?min_size=5&limit=300")
WATCH = {"theta": 0.05, "min_size": 10}
JSON, NDJSON = "application/json", "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"


class Connection:
    """A connection that sends one request after the other."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> Connection:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def request(self, method: str, path: str, body: bytes = b"", kind: str = JSON) -> bytes:
        """Return the body of an answer; raise unless its status is 200."""
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        if body:
            head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(head.encode() + b"\r\n" + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"content-length: (\d+)", answer)
        assert found is not None, answer
        data = await self._reader.readexactly(int(found[1]))
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{path}: {answer!r} {data[:300]!r}")
        return data


async def insert_singly(port: int, X: Any, seconds: float) -> list[float]:
    """Let clients insert single points for a time; return the latencies."""
    took: list[float] = []
    rows = iter(X.tolist())
    end = time.perf_counter() + seconds

    async def client() -> None:
        connection = await Connection(port).open()
        while (start := time.perf_counter()) < end:
            vector = next(rows, None)
            if vector is None:
                return
            await connection.request(
                "POST", "/v1/points", json.dumps([{"vector": vector}]).encode()
            )
            took.append(time.perf_counter() - start)

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return took


async def read_beside(port: int, seconds: float) -> dict[str, list[float]]:
    """Let readers read for a time; return the latencies by path."""
    took: dict[str, list[float]] = {path: [] for path in READS}
    first = await Connection(port).open()
    for path in READS:  # the first views are made for everybody
        await first.request("GET", path)
    end = time.perf_counter() + seconds

    async def reader() -> None:
        connection = await Connection(port).open()
        while time.perf_counter() < end:
            for path in READS:
                start = time.perf_counter()
                await connection.request("GET", path)
                took[path].append(time.perf_counter() - start)
                await asyncio.sleep(0.02)

    await asyncio.gather(*(reader() for _ in range(READERS)))
    return took


async def insert_batches(port: int, bodies: list[bytes], kind: str) -> float:
    """Insert batches one after the other; return the seconds."""
    connection = await Connection(port).open()
    await connection.request("POST", "/v1/points", bodies[0], kind)  # packages are imported once
    start = time.perf_counter()
    for body in bodies[1:]:
        await connection.request("POST", "/v1/points", body, kind)
    return time.perf_counter() - start


def as_ndjson(X: Any) -> bytes:
    """Return points as lines of JSON."""
    return b"".join(json.dumps({"vector": row}).encode() + b"\n" for row in X.tolist())


def as_arrow(X: Any) -> bytes:
    """Return points as an Arrow stream."""
    import pyarrow as pa

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    sink = io.BytesIO()
    table = pa.table({"vector": vectors})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Return latencies in milliseconds."""
    p50, p99 = np.percentile(seconds, (50, 99)) * 1e3
    return {"p50_ms": round(float(p50), 2), "p99_ms": round(float(p99), 2)}


def load(job: dict[str, Any]) -> dict[str, Any]:
    """Run one kind of load; in a process of its own."""
    X = np.load(job["points"])[job["first"] : job["last"]]
    if job["kind"] == "single":
        return _singles(job, X)
    encode = as_arrow if job["kind"] == "arrow" else as_ndjson
    bodies = [encode(X[i : i + BATCH]) for i in range(0, len(X), BATCH)]
    media = ARROW if job["kind"] == "arrow" else NDJSON
    seconds = asyncio.run(insert_batches(job["port"], bodies, media))
    return {"points_per_second": round((len(X) - BATCH) / seconds)}


def _singles(job: dict[str, Any], X: Any) -> dict[str, Any]:
    async def both() -> tuple[list[float], dict[str, list[float]]]:
        reading = read_beside(job["port"], job["seconds"]) if job["readers"] else asyncio.sleep(0)
        inserting = insert_singly(job["port"], X, job["seconds"])
        took, read = await asyncio.gather(inserting, reading)
        return took, read or {}

    start = time.perf_counter()
    took, read = asyncio.run(both())
    elapsed = time.perf_counter() - start
    answer = {"per_second": round(len(took) / elapsed), **percentiles(took)}
    return answer | {path: percentiles(times) for path, times in read.items()}


@contextmanager
def service(store: Path) -> Iterator[tuple[int, int]]:
    """Serve a store; give its port and process."""
    options = ["--port", "0", "--theta", str(WATCH["theta"]), "--min-size", str(WATCH["min_size"])]
    command = [sys.executable, "-m", "dynhac.cli", "serve", str(store), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = re.search(r":(\d+) \(", process.stderr.readline())
        assert found is not None, process.stderr.read()
        yield int(found[1]), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


def memory_mb(process: int) -> float:
    """Return the resident memory of a process."""
    text = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", text)
    assert found is not None
    return round(int(found[1]) / 1024, 1)


def alone(job: dict[str, Any]) -> dict[str, Any]:
    """Insert batches in process, and tell the memory of a process that has the store open."""
    X = np.load(job["points"])[job["first"] : job["last"]]
    with dynhac.open(job["store"]) as model:
        model.watch(**WATCH)
        model.insert(X[:BATCH])
        start = time.perf_counter()
        for i in range(BATCH, len(X), BATCH):
            model.insert(X[i : i + BATCH])
        seconds = time.perf_counter() - start
        return {
            "points_per_second": round((len(X) - BATCH) / seconds),
            "memory_mb": memory_mb(os.getpid()),
        }


def in_process(what: str, **job: Any) -> dict[str, Any]:
    """Run `load` or `alone` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.serve", "--job", json.dumps({"what": what, **job})]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def measure(data: Path | None, base: int, seconds: float, batches: int) -> dict[str, Any]:
    """Return all figures; without a folder of data on generated points."""
    name = "blobs" if data is None else "mnist"
    X, _ = read_points(name, data)
    X = X[np.random.default_rng(0).permutation(len(X))]
    count = batches * BATCH
    singles = (len(X) - base - 2 * count) // 2
    results: dict[str, Any] = {"machine": describe(), "dataset": name}
    results |= {"base": base, "seconds": seconds}
    with tempfile.TemporaryDirectory() as folder:
        points = Path(folder) / "points.npy"
        np.save(points, X)
        common = {"points": str(points)}
        for store in ("alone", "served"):
            with dynhac.open(Path(folder) / store, threshold=DATASETS[name].threshold) as model:
                model.insert(X[:base])
        own = {**common, "store": str(Path(folder) / "alone")}
        results["alone"] = in_process("alone", first=base, last=base + count, **own)
        with service(Path(folder) / "served") as (port, process):
            spare = base
            for kind in ("arrow", "ndjson"):
                job = {**common, "port": port, "kind": kind, "first": spare, "last": spare + count}
                results[kind] = in_process("load", **job)
                if kind == "arrow":
                    results["memory_mb"] = memory_mb(process)
                spare += count
            for readers in (False, True):
                job = {**common, "port": port, "kind": "single", "readers": readers}
                job |= {"seconds": seconds, "first": spare, "last": spare + singles}
                title = "single with readers" if readers else "single"
                results[title] = in_process("load", **job)
                spare += singles
    results["batches_of_alone"] = {
        kind: round(results[kind]["points_per_second"] / results["alone"]["points_per_second"], 3)
        for kind in ("arrow", "ndjson")
    }
    return results


def main() -> None:
    """Run the benchmark, or a part of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("DYNHAC_DATA"))
    parser.add_argument("--base", type=int, default=10_000, help="points before the load")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each load")
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--output", type=Path, help="file for the figures")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        job = json.loads(given.job)
        print(json.dumps((load if job.pop("what") == "load" else alone)(job)))
        return
    data = None if given.data is None else Path(given.data)
    text = json.dumps(measure(data, given.base, given.seconds, given.batches), indent=1)
    print(text)
    if given.output is not None:
        given.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
