"""Signals that end a command, and what killed commands leave behind."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from cli_runs import COMMAND, environment

from dynhac import GraphHAC

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")


@pytest.fixture(autouse=True)
def hangups_count():
    """Let commands end by SIGHUP, also where the tests run under nohup and it is ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def data(tmp_path):
    """Points whose clustering takes long."""
    np.save(tmp_path / "points.npy", np.random.default_rng(0).normal(size=(60_000, 8)))
    return tmp_path / "points.npy"


def start_build(data, folder):
    """Start to build a store; return the process when it is in the middle of it."""
    child = subprocess.Popen(
        [*COMMAND, "build", str(data), "-o", str(folder / "store")],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(folder.glob(".store.partial-*/log.sqlite")) and time.monotonic() < deadline:
        assert child.poll() is None
        time.sleep(0.02)
    time.sleep(0.3)
    return child


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_build_that_is_ended_leaves_nothing(tmp_path, data, number, code):
    child = start_build(data, tmp_path)
    child.send_signal(number)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == code
    assert errors == ("error: interrupted\n" if code == 130 else "error: terminated\n")
    assert os.listdir(tmp_path) == ["points.npy"]


def test_the_next_build_removes_what_a_killed_one_has_left(tmp_path, data):
    killed = start_build(data, tmp_path)
    killed.kill()
    killed.communicate()
    alive = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    kept = tmp_path / f".store.partial-{alive.pid}"
    other = tmp_path / f".another.partial-{killed.pid}"
    for folder in (kept, other):
        folder.mkdir()
    assert (tmp_path / f".store.partial-{killed.pid}").exists()
    np.save(data, np.eye(3))
    subprocess.run(
        [*COMMAND, "build", str(data), "-o", str(tmp_path / "store")],
        env=environment(),
        check=True,
        capture_output=True,
    )
    alive.communicate(b"\n")
    assert sorted(os.listdir(tmp_path)) == [other.name, kept.name, "points.npy", "store"]


def test_the_next_save_removes_what_a_killed_one_has_left(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / f".dynhac-{ended.pid}-0123456789abcdef.part").write_bytes(b"half")
    kept = tmp_path / f".dynhac-{os.getpid()}-0123456789abcdef.part"
    kept.write_bytes(b"half")
    GraphHAC().save(tmp_path / "g")
    assert sorted(os.listdir(tmp_path)) == [kept.name, "g"]
