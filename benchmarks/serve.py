"""The service under load: ``python -m benchmarks.serve --data FOLDER``.

The service runs in a process of its own, as ``dynhac serve`` does; so does the load, against
127.0.0.1 and for a bounded time. Measured are, on MNIST with full durability:

- single insertions by 16 clients, each waiting for its answer: rate and latencies;
- readers of /v1/clusters and /v1/tree beside that load: latencies;
- batches of 1,000 points, sent as NDJSON and as Arrow, against the same batches in process. Each of
  the three has a store of its own, and they take turns with five batches each, so that other load
  of the machine is shared;
- the memory of the service, against a process that only has the same store open.

With ``--data`` the figures go to benchmarks/cost/results/serve.json, which ``make figures`` reads.
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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import dynhac
from benchmarks import ROOT
from benchmarks.common.datasets import DATASETS, read_points
from benchmarks.common.machine import commit, describe

CLIENTS, READERS = 16, 2
BATCH, TURN = 1_000, 5
READS = ("/v1/clusters", "/v1/tree?min_size=5&limit=300")
WATCH = {"theta": 0.05, "min_size": 10}
JSON = "application/json"
MEDIA = {"ndjson": "application/x-ndjson", "arrow": "application/vnd.apache.arrow.stream"}
RESULTS = ROOT / "benchmarks" / "cost" / "results" / "serve.json"


class Connection:
    """A connection that sends one request after the other."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> Connection:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        await self._writer.wait_closed()

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
    took: dict[str, list[float]] = {path.partition("?")[0]: [] for path in READS}
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
                took[path.partition("?")[0]].append(time.perf_counter() - start)
                await asyncio.sleep(0.02)

    await asyncio.gather(*(reader() for _ in range(READERS)))
    return took


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


def singles(job: dict[str, Any]) -> dict[str, Any]:
    """Insert single points, beside readers or without; in a process of its own."""
    X = np.load(job["points"])[job["first"] : job["last"]]

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


def alone(job: dict[str, Any]) -> None:
    """Have a store open as the service has, and insert batches; in a process of its own.

    Each line of the input has the first and the last row of a batch. The answer is a line with the
    seconds that it took, and with the memory of the process.
    """
    X = np.load(job["points"])
    with dynhac.open(job["store"]) as model:
        model.watch(**WATCH)
        print("ready", flush=True)
        for line in sys.stdin:
            first, last = map(int, line.split())
            start = time.perf_counter()
            model.insert(X[first:last])
            seconds = time.perf_counter() - start
            print(json.dumps([seconds, memory_mb(os.getpid())]), flush=True)


def job_command(what: str, job: dict[str, Any]) -> list[str]:
    """Return the command that runs `singles` or `alone`."""
    return [sys.executable, "-m", "benchmarks.serve", "--job", json.dumps({"what": what, **job})]


def in_process(job: dict[str, Any]) -> dict[str, Any]:
    """Run `singles` in a process of its own."""
    command = job_command("singles", job)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


async def insert_batches(
    ports: dict[str, int], bodies: dict[str, list[bytes]], insert_alone: Callable[[int], float]
) -> dict[str, list[float]]:
    """Insert batches by turns in process and through the services; return the seconds of each."""
    took: dict[str, list[float]] = {name: [] for name in ("alone", *ports)}
    connections = {kind: await Connection(port).open() for kind, port in ports.items()}
    names = list(took)
    count = len(next(iter(bodies.values())))
    for turn, first in enumerate(range(0, count, TURN)):
        for name in names[turn % 3 :] + names[: turn % 3]:
            for batch in range(first, min(first + TURN, count)):
                if name == "alone":
                    took[name].append(insert_alone(batch))
                    continue
                body = bodies[name][batch]
                start = time.perf_counter()
                await connections[name].request("POST", "/v1/points", body, MEDIA[name])
                took[name].append(time.perf_counter() - start)
    for connection in connections.values():
        await connection.close()
    return took


def measure_batches(folder: Path, X: Any, base: int, batches: int) -> dict[str, Any]:
    """Return the points per second of batches, and the memory of the processes."""
    firsts = range(base, base + batches * BATCH, BATCH)
    encode = {"arrow": as_arrow, "ndjson": as_ndjson}
    bodies = {kind: [encode[kind](X[i : i + BATCH]) for i in firsts] for kind in encode}
    job = {"points": str(folder / "points.npy"), "store": str(folder / "alone")}
    with ExitStack() as stack:
        served = {kind: stack.enter_context(service(folder / kind)) for kind in encode}
        ports = {kind: port for kind, (port, _) in served.items()}
        pipe = subprocess.PIPE
        process = subprocess.Popen(job_command("alone", job), stdin=pipe, stdout=pipe, text=True)
        stack.enter_context(process)
        assert process.stdout is not None
        process.stdout.readline()  # it is ready
        memory = 0.0

        def insert_alone(batch: int) -> float:
            nonlocal memory
            first = firsts[batch]
            print(first, first + BATCH, file=process.stdin, flush=True)
            assert process.stdout is not None
            seconds, memory = json.loads(process.stdout.readline())
            return float(seconds)

        took = asyncio.run(insert_batches(ports, bodies, insert_alone))
        memory_served = memory_mb(served["arrow"][1])
    seconds = {name: sum(times[1:]) for name, times in took.items()}  # the first imports packages
    return {
        "batch": BATCH,
        "points_per_second": {
            name: round((batches - 1) * BATCH / each) for name, each in seconds.items()
        },
        "of_alone": {kind: round(seconds["alone"] / seconds[kind], 3) for kind in encode},
        "memory_mb": {"alone": memory, "served": memory_served},
    }


def measure(data: Path | None, base: int, seconds: float, batches: int) -> dict[str, Any]:
    """Return all figures; without a folder of data on generated points."""
    name = "blobs" if data is None else "mnist"
    X, _ = read_points(name, data)
    X = X[np.random.default_rng(0).permutation(len(X))]
    results: dict[str, Any] = {"machine": describe(), "commit": commit(), "dataset": name}
    results |= {"base": base, "seconds": seconds, "clients": CLIENTS, "readers": READERS}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        np.save(folder / "points.npy", X)
        for store in ("alone", "arrow", "ndjson", "singles"):
            with dynhac.open(folder / store, threshold=DATASETS[name].threshold) as model:
                model.insert(X[:base])
        results["batches"] = measure_batches(folder, X, base, batches)
        spare, count = base, (len(X) - base) // 2
        with service(folder / "singles") as (port, _):
            for readers in (False, True):
                job = {"points": str(folder / "points.npy"), "port": port, "readers": readers}
                job |= {"seconds": seconds, "first": spare, "last": spare + count}
                title = "single with readers" if readers else "single"
                results[title] = in_process(job)
                spare += count
    return results


def main() -> None:
    """Run the benchmark, or a part of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("DYNHAC_DATA"))
    parser.add_argument("--base", type=int, default=10_000, help="points before the load")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each load")
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--output", type=Path, help="file for the figures")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        job = json.loads(given.job)
        if job.pop("what") == "alone":
            alone(job)
        else:
            print(json.dumps(singles(job)))
        return
    data = None if given.data is None else Path(given.data)
    write(measure(data, given.base, given.seconds, given.batches), data, given.output, RESULTS)


def write(results: dict[str, Any], data: Path | None, output: Path | None, usual: Path) -> None:
    """Print figures, and write them to a file if they are of real data or a file is given."""
    text = json.dumps(results, indent=1)
    print(text)
    output = output or (None if data is None else usual)
    if output is not None:
        output.write_text(text + "\n")


if __name__ == "__main__":
    main()
