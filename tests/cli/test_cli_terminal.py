"""Output on a terminal: colours, progress bars and lines that fit its width."""

import fcntl
import os
import re
import struct
import subprocess

import numpy as np
import pytest
from cli_runs import COMMAND, environment

import dynhac

pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.fixture
def store(tmp_path):
    with dynhac.open(tmp_path / "store", n_neighbors=5) as made:
        rng = np.random.default_rng(0)
        names = [f"a point with a long name {i}" for i in range(300)]
        made.insert(rng.normal(size=(300, 3)), ids=names)
    return tmp_path / "store"


def on_terminal(columns, *args, **variables):
    """Run a command on a terminal with ``columns``; return its exit code and its output."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {k: v for k, v in environment().items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
    child = subprocess.Popen(
        [*COMMAND, *map(str, args)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**kept, "TERM": "xterm-256color", **variables},
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # Linux: the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(master)
    return child.wait(60), shown.decode()


@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.parametrize("command", ["tree --theta 0.3", "labels --theta 0.3", "stats", "changes"])
def test_lines_fit(store, columns, command):
    name, *options = command.split()
    code, shown = on_terminal(columns, name, store, *options, DYNHAC_PROGRESS="0")
    assert code == 0
    lines = ESCAPE.sub("", shown).replace("\r", "").splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= columns


def test_terminal_gets_a_summary_of_labels(store):
    _, shown = on_terminal(100, "labels", store, "--theta", "0.3")
    plain = ESCAPE.sub("", shown)
    assert re.search(r"cluster +size +share +ids", plain)
    assert "id,label" not in plain
    assert "\x1b[1m" in shown


def test_no_color(store):
    _, shown = on_terminal(100, "tree", store, NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", shown)


def test_progress(tmp_path, store):
    rows = np.random.default_rng(1).normal(size=(30_000, 8))
    np.save(tmp_path / "more.npy", rows)
    options = ("-o", tmp_path / "new", "--backend", "kd")
    code, shown = on_terminal(60, "build", tmp_path / "more.npy", *options)
    assert code == 0
    lines = [line for line in shown.split("\r") if line.startswith("searching: ")]
    assert lines
    assert all(re.match(r"searching: [\d,]+ of 30,000 points, \d+%", line) for line in lines)
    assert max(map(len, lines)) < 60
    assert "\r" + " " * len(lines[-1].rstrip()) in shown  # it is removed
    out = subprocess.run([*COMMAND, "stats", store], capture_output=True, check=True)
    assert out.stderr == b""
    assert b"\x1b" not in out.stdout


def test_progress_of_several_batches(tmp_path):
    np.save(tmp_path / "more.npy", np.random.default_rng(1).normal(size=(3000, 3)))
    options = ("-o", tmp_path / "new", "--batch-size", "5")
    code, shown = on_terminal(100, "build", tmp_path / "more.npy", *options)
    assert code == 0
    assert re.search(r"inserting: [\d,]+ of 3,000 points, \d+%, [\d,]+ points/s", shown)
