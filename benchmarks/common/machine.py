"""The machine that figures are measured on, and the memory of the measuring process."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe() -> dict[str, object]:
    """Return the machine and the versions, as stored beside results."""
    return {
        "cpu": _proc_field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "compiler": _first_line("c++", "--version"),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "dynhac": _version("dynhac"),
    }


CODE = (":/core", ":/bindings", ":/src", ":/benchmarks", ":(top,exclude,glob)**/results/**")
"""What a measurement depends on, as git names it."""


def commit() -> str:
    """Return the last commit that changed the code measured, marked if it has changed since.

    Commits of results and documents do not count: rows of one commit may be kept one by one.
    """
    git = ("git", "-C", str(Path(__file__).parent))
    last = _first_line(*git, "log", "-1", "--format=%h", "--", *CODE)
    changed = _first_line(*git, "status", "--porcelain", "-uno", "--", *CODE)
    return f"{last}+changes" if changed else last


def peak_rss_mb() -> float:
    """Return the largest resident size that this process has had, in MB (10^6 bytes).

    On Linux ru_maxrss includes the process that started this one; VmHWM does not.
    """
    high_water = _proc_field("/proc/self/status", "VmHWM")
    if high_water:
        return int(high_water.split()[0]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _version(package: str) -> str:
    """Return the version of a package, or "source" for a checkout that is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "source"


def _proc_field(file: str, field: str) -> str:
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(field)), "")


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.partition("\n")[0]
