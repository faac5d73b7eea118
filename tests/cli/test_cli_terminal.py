"""Output on a terminal: colours, progress bars, lines that fit its width, escaped ids."""

import csv
import fcntl
import io
import json
import os
import re
import shlex
import struct
import subprocess

import numpy as np
import pytest
from cli_runs import COMMAND, environment, ok, ok_json

import dynhac
from dynhac.input.batches import GraphBatch

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
@pytest.mark.parametrize(
    "command", ["tree --theta 0.3", "labels --theta 0.3", "clusters -n 40", "stats", "changes"]
)
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


HARMFUL = ["\x1b]0;title\x07", "\x9b31m", "\u202egnp.exe", "two\nlines", "back\b\r", "\x7f"]


@pytest.mark.parametrize(
    "command",
    [
        "labels STORE --theta 0.3",
        "labels STORE --theta 0.3 -o -",
        "tree STORE --min-size 1 -d 9",
        "changes STORE",
        "explain STORE A A\x1b[1m",
        "export STORE -o -",
        "tail STORE --theta 0.3 --state /dev/null",
        "tail STORE --theta 0.3 \x1b[1m",
        "export STORE -o \x1b[1m",
        "build DATA -o NEW",
    ],
)
def test_control_characters_are_escaped(tmp_path, command):
    with dynhac.open(tmp_path / "store", n_neighbors=5) as made:
        made.insert(np.arange(len(HARMFUL))[:, None] / 10, ids=HARMFUL)
    (tmp_path / "data.csv").write_text("\x1b[1mname,x\nText,1\n")
    words = {"STORE": tmp_path / "store", "A": HARMFUL[0], "B": HARMFUL[2],
             "DATA": tmp_path / "data.csv", "NEW": tmp_path / "new"}  # fmt: skip
    _, shown = on_terminal(200, *(words.get(word, word) for word in command.split()), NO_COLOR="1")
    own = re.compile(r"\x1b\[(\?25[hl]|[0-9;]*m|\d*[AK])|[\r\n\t]")  # of rich and the terminal
    text = own.sub("", shown.replace("\x1b[1mname", "HARM"))
    assert text.isprintable(), text
    assert "HARM" not in text
    assert re.search(r"\\x1b|\\u001b|\\u202e", text), text


def test_data_in_pipes_is_exact(tmp_path):
    with dynhac.open(tmp_path / "store", n_neighbors=5) as made:
        made.insert(np.arange(len(HARMFUL))[:, None] / 10, ids=HARMFUL)
    out = subprocess.check_output([*COMMAND, "labels", tmp_path / "store", "--theta", "0.3"])
    rows = list(csv.reader(io.StringIO(out.decode(), newline="")))
    assert [row[0] for row in rows[1:]] == HARMFUL
    args = ["labels", tmp_path / "store", "--theta", "0.3", "--json"]
    out = subprocess.check_output([*COMMAND, *args])
    assert json.loads(out)["ids"] == HARMFUL
    assert out.decode().rstrip("\n").isprintable()


def test_old_store_with_an_id_that_is_not_unicode(tmp_path):
    store = tmp_path / "store"
    with dynhac.open(store, "graph") as made:
        made._write(GraphBatch(add=["a", "b\ud800"]), None)  # refused by update()
    for name, *options in (
        ["labels", "--theta", 0.3],
        ["tree"],
        ["export", "-o", "-"],
        ["changes"],
    ):
        assert "b\\ud800" in ok(name, store, *options)
    assert "b\ud800" in ok_json("labels", store, "--theta", 0.3)["ids"]
    ok("labels", store, "--theta", 0.3, "-o", tmp_path / "a.csv")
    assert b"\\ud800" in (tmp_path / "a.csv").read_bytes()
    with dynhac.open(store) as made:
        assert "b\ud800" in made
        made.remove("b\ud800")


FULL = "error: No space left on device\n"
CLOSED = [
    ("labels STORE --theta 0.3", "<&- >&- 2>&-", 0, ""),
    ("tree STORE", ">&-", 0, ""),
    ("build - -o NEW", "<&-", 1, "error: standard input: empty; at least one row is needed\n"),
    ("explain STORE a nobody", "2>/dev/full", 1, ""),
    ("tail STORE --theta 0.3 --state", "</dev/null >/dev/full", 1, FULL),
    ("stats STORE", ">/dev/full", 1, FULL),
    ("labels --help", ">/dev/full", 1, FULL),
    ("labels STORE --theta 0.3", "| true", 0, ""),
]


@pytest.mark.parametrize(("command", "streams", "code", "message"), CLOSED)
def test_closed_and_full_streams(tmp_path, store, command, streams, code, message):
    if "/dev/full" in streams and not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    words = command.replace("STORE", str(store)).replace("NEW", str(tmp_path / "new"))
    line = f"{shlex.join(COMMAND)} {words} {streams}"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, message)
    with dynhac.open(store, mode="r") as opened:
        assert opened.verify()


def test_progress_of_several_batches(tmp_path):
    np.save(tmp_path / "more.npy", np.random.default_rng(1).normal(size=(3000, 3)))
    options = ("-o", tmp_path / "new", "--batch-size", "1")
    code, shown = on_terminal(100, "build", tmp_path / "more.npy", *options)
    assert code == 0
    assert re.search(r"inserting: [\d,]+ of 3,000 points, \d+%, [\d,]+ points/s", shown)
