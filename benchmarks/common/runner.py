"""Measurements in processes of their own.

A *job* is a dictionary that says what to measure. A module is started with the job as JSON in its
only argument and prints what it measured as its last line, as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import ROOT

Job = dict[str, Any]


def command(module: str, job: Job) -> list[str]:
    """Return the command that runs a job with a module of benchmarks."""
    return [sys.executable, "-m", module, json.dumps(job)]


def environment() -> dict[str, str]:
    """Return the environment of a measuring process: one thread, and benchmarks importable.

    More threads of BLAS would add their stacks and buffers to the memory that is measured.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    single = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA")}
    return os.environ | single | {"PYTHONPATH": path}


def run_process(module: str, job: Job) -> dict[str, Any]:
    """Run a job in a process of its own and return what it measured."""
    done = subprocess.run(
        command(module, job), stdout=subprocess.PIPE, text=True, env=environment(), check=True
    )
    return last_line(done.stdout)


def last_line(stdout: str) -> dict[str, Any]:
    """Return the result that a measuring process printed."""
    found: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    return found


def answer(run: Callable[[Job], dict[str, Any]]) -> None:
    """Run the job given as the only argument and print its result: the main of a measurement."""
    print(json.dumps(run(json.loads(sys.argv[1]))))


def distribution(ms: Sequence[float] | NDArray[np.float64]) -> dict[str, float]:
    """Return mean, median, 99th percentile and maximum of the times of single updates."""
    return {
        "ms_mean": float(np.mean(ms)),
        "ms_p50": float(np.percentile(ms, 50)),
        "ms_p99": float(np.percentile(ms, 99)),
        "ms_max": float(np.max(ms)),
    }
