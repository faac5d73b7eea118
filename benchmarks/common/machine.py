"""The machine that figures are measured on, and the memory of the measuring process."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from importlib.metadata import version
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
        "dynhac": version("dynhac"),
    }


def commit() -> str:
    """Return the commit of the working tree, marked if files have changed since."""
    here = Path(__file__).parent
    head = _first_line("git", "-C", str(here), "rev-parse", "--short", "HEAD")
    changed = _first_line(
        "git", "-C", str(here), "status", "--porcelain", "-uno", ":/core", ":/src"
    )
    return f"{head}+changes" if changed else head


def peak_rss_mb() -> float:
    """Return the largest resident size that this process has had, in MB (10^6 bytes).

    On Linux ru_maxrss includes the process that started this one; VmHWM does not.
    """
    high_water = _proc_field("/proc/self/status", "VmHWM")
    if high_water:
        return int(high_water.split()[0]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


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
