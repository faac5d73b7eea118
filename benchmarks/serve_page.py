"""The page of a large model: ``python -m benchmarks.serve_page --data FOLDER``.

Chromium, driven by Selenium, opens the page of a service and inserts single points through its API.
Measured are, in milliseconds:

- the first view, three times: from the start of loading until list, hierarchy and timeline are
  drawn;
- an update: from sending a point until the list and the hierarchy are drawn with it;
- the processor time of the service for such an update, which does not depend on other load.

With ``--data`` the figures go to benchmarks/cost/results/serve_page.json, which ``make figures``
reads.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import dynhac
from benchmarks import ROOT
from benchmarks.common.datasets import DATASETS, shuffled_points
from benchmarks.common.machine import commit, describe
from benchmarks.serve import service, write

OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
)
RESULTS = ROOT / "benchmarks" / "cost" / "results" / "serve_page.json"
FIRST = "const [m] = performance.getEntriesByName('first view'); return m ? m.startTime : null"
LISTEN = """
const done = arguments[0];
Promise.all([import("/state.js"), import("/icicle.js")]).then(([{ state }, { drawnVersion }]) => {
  window.drawn = { tree: [], clusters: [] };
  const versions = { tree: drawnVersion, clusters: () => state.clusters.version };
  const look = () => {
    for (const [name, version] of Object.entries(versions)) {
      const seen = window.drawn[name];
      if (seen.at(-1)?.[1] !== version()) seen.push([performance.now(), version()]);
    }
    requestAnimationFrame(look);
  };
  look();
  done();
});"""
INSERT = """
const [body, done] = arguments;
const start = performance.now();
const headers = { "Content-Type": "application/json" };
fetch("/v1/points", { method: "POST", headers, body })
  .then((answer) => answer.json())
  .then(({ version }) => done([start, version]));"""


def browser() -> Any:
    """Return Chromium without a window."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    for option in OPTIONS:
        options.add_argument(option)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options, service)
    driver.set_window_size(1400, 900)
    driver.set_script_timeout(60)
    return driver


def until(read: Any, seconds: float = 60.0) -> Any:
    """Return what a function returns as soon as it is true."""
    end = time.monotonic() + seconds
    while not (value := read()):
        if time.monotonic() > end:
            raise SystemExit("the page did not show what it should")
        time.sleep(0.05)
    return value


def cpu_seconds(process: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def see_updates(driver: Any, vectors: Any) -> dict[str, list[float]]:
    """Insert points one after the other; return when the views showed each."""
    driver.execute_async_script(LISTEN)
    took: dict[str, list[float]] = {"tree": [], "clusters": []}
    for vector in vectors.tolist():
        time.sleep(1)
        start, version = driver.execute_async_script(INSERT, json.dumps([{"vector": vector}]))
        for name, times in took.items():

            def shown(name: str = name, version: int = version) -> list[float]:
                drawn = driver.execute_script(f"return window.drawn.{name}")
                return [at for at, of in drawn if of >= version]

            times.append(until(shown)[0] - start)
    return took


def measure(data: Path | None, points: int, updates: int) -> dict[str, Any]:
    """Return all figures; without a folder of data on generated points."""
    name = "blobs" if data is None else "geonames"
    X, _ = shuffled_points(name, data)
    points = min(points, len(X) - updates)
    results: dict[str, Any] = {"machine": describe(), "commit": commit(), "dataset": name}
    results |= {"points": points, "updates": updates}
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        with dynhac.open(store, threshold=DATASETS[name].threshold) as model:
            model.insert(X[:points], payload=[{"text": f"point {i % 1000}"} for i in range(points)])
        with service(store) as (port, process):
            driver = browser()
            try:
                first = []
                for _ in range(3):
                    driver.get(f"http://127.0.0.1:{port}")
                    first.append(until(lambda: driver.execute_script(FIRST)))
                results["first_view_ms"] = [round(each) for each in first]
                before = cpu_seconds(process)
                took = see_updates(driver, X[points : points + updates])
                spent = (cpu_seconds(process) - before) / updates
                results["service_cpu_ms"] = round(1e3 * spent)
            finally:
                driver.quit()
    for view, times in took.items():
        p50, most = np.median(times), max(times)
        results[view] = {"p50_ms": round(float(p50)), "max_ms": round(float(most))}
    return results


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("DYNHAC_DATA"))
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--output", type=Path, help="file for the figures")
    given = parser.parse_args()
    data = None if given.data is None else Path(given.data)
    write(measure(data, given.points, given.updates), data, given.output, RESULTS)


if __name__ == "__main__":
    main()
