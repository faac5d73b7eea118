"""``dynhac tail``, in this process and in pipes: groups, signals, closed pipes, crashes."""

import json
import os
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from cli_runs import error_of, ok, process, run

import dynhac
from dynhac import DynHAC

SECONDS = 60
"""Time after which a test fails because a command hangs."""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals and pipes")


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store"
    dynhac.open(path, n_neighbors=5).close()
    return path


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph"
    with dynhac.open(path, "graph") as made:
        made.add(["a", "b", "c"], edges=(["a"], ["b"], [0.9]))
    return path


@pytest.fixture
def started():
    """Return a function that starts a command, which is killed when the test ends."""
    running = []

    def start(*args, **options):
        running.append(process(*args, **options))
        return running[-1]

    yield start
    for one in running:
        one.kill()
        one.wait()
        for pipe in (one.stdin, one.stdout, one.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def lines(*updates):
    return "".join(json.dumps(update) + "\n" for update in updates)


def events(text):
    return [json.loads(line) for line in text.splitlines()]


def inserts(count, first=0):
    """Lines that insert points far from each other: each makes a new cluster."""
    return lines(*({"insert": [1e4 * i, 0], "id": i} for i in range(first, first + count)))


def read_head(path):
    """Return the ids that readers see."""
    with dynhac.open(path, mode="r") as opened:
        return opened.ids


def ids(path):
    with dynhac.open(path, mode="r") as opened:
        assert opened.verify()
        return opened.ids.tolist()


def read_line(stream):
    """Read a line; fail if none comes."""
    found = []
    reader = threading.Thread(target=lambda: found.append(stream.readline()), daemon=True)
    reader.start()
    reader.join(SECONDS)
    assert found, "no line came"
    return found[0]


def ended(running):
    """Return the exit code and standard error of a command that must end."""
    _, message = running.communicate(timeout=SECONDS)
    assert b"Traceback" not in message
    return running.returncode, message.decode()


def test_events_are_those_of_a_watch(store):
    rng = np.random.default_rng(2)
    model = DynHAC(n_neighbors=5)
    watch = model.watch(0.3, min_size=2)
    updates, expected = [], []
    for line in range(1, 61):
        if line % 3:
            vector = rng.normal(size=2).round(3).tolist()
            updates.append({"insert": vector, "id": line})
            model.insert(vector, ids=line)
        else:
            updates.append({"delete": [line - 2]})
            model.delete(line - 2)
        expected += [
            [line, e.kind, e.cluster, e.size, list(e.others), e.points.tolist()]
            for e in watch.events
        ]
    out = events(ok("tail", store, "--theta", 0.3, "--min-size", 2, input=lines(*updates)))
    keys = ("line", "event", "cluster", "size", "others", "points")
    assert [[event[key] for key in keys] for event in out] == expected
    assert {"born", "died", "grew", "shrank"} <= {event["event"] for event in out}


def test_kinds_of_lines(store):
    text = lines(
        {"insert": [[0, 0], [0, 0.1]], "ids": ["a", "b"], "timestamps": [5, 6]},
        {"insert": [0.1, 0], "id": "c", "timestamp": 7},
        {"delete": "a", "insert": [9, 9], "id": "a", "timestamp": 8},
        {"delete": ["b"]},
    )
    out = events(ok("tail", store, "-", "--theta", 0.5, input=text))
    assert [event["line"] for event in out] == sorted(event["line"] for event in out)
    assert ids(store) == ["c", "a"]


def test_ids_that_are_not_ascii(store):
    names = ["Zürich", "\x1b[31m", "\x9b\u202e", "a\nb"]
    text = lines(*({"insert": [i, 2], "id": name} for i, name in enumerate(names)))
    out = ok("tail", store, "--theta", 0.9, input=text)
    assert "Zürich" in out
    assert out.replace("\n", "").isprintable()
    assert [event["points"] for event in events(out)] == [[name] for name in names]


def test_ids_that_are_not_unicode(store, graph):
    bad = '{"insert": [3, 4], "id": "a\\ud800"}'
    message = error_of("tail", store, "--theta", 0.9, input=bad)
    assert message.startswith("line 1: id 'a\\ud800' at position 0 of ids has a lone surrogate")
    bad = '{"add": ["x", "\\udc00"]}'
    assert "position 1 of add" in error_of("tail", graph, "--theta", 0.9, input=bad)
    assert ids(store) == []
    assert ids(graph) == ["a", "b", "c"]


def test_rows_of_data(tmp_path):
    path = tmp_path / "s"
    rows = [{"key": "a", "x": 0, "y": 1, "title": "A"}, {"key": "b", "x": 5, "y": 1, "title": "B"}]
    ok("build", "-", "-o", path, "--id-column", "key", input=lines(*rows))
    text = lines(
        {"key": "c", "y": 7, "x": 6, "title": "C"},
        {"insert": [1, 1], "id": "d", "title": "D"},
        {"vector": [2, 2], "key": "e", "other": {"z": None}},
    )
    result = run("tail", path, "--theta", 0.5, "--skip-errors", "--ignore", "title", input=text)
    assert result.exit_code == 0
    assert "line 3: unknown key 'vector'" in result.stderr
    vector = ("--vector-column", "vector", "--ignore", "title")
    ok("tail", path, "--theta", 0.5, *vector, input=text.splitlines()[2])
    with dynhac.open(path, mode="r") as opened:
        kept = dict(zip(opened.ids.tolist(), opened.vectors().tolist(), strict=True))
    assert kept == {"a": [0, 1], "b": [5, 1], "c": [6, 7], "d": [1, 1], "e": [2, 2]}
    bad = lines({"key": "f", "x": 1, "y": "2"})
    message = error_of("tail", path, "--theta", 0.5, input=bad)
    assert message.startswith("line 1: '2' in y is not a number")
    again = lines({"key": "a", "x": 1, "y": 2})
    assert "id 'a' is already in the store" in error_of("tail", path, "--theta", 0.5, input=again)


def test_rows_of_edges(graph):
    text = lines({"source": "c", "target": "new", "weight": 0.5, "comment": "x"})
    ok("tail", graph, "--theta", 0.4, input=text)
    with dynhac.open(graph, mode="r") as opened:
        assert opened.edges(of="new")[1].tolist() == ["c"]


def test_dates_and_expiry(tmp_path):
    dynhac.open(tmp_path / "s", max_age=np.timedelta64(1, "h")).close()
    text = lines(
        {"insert": [0], "timestamp": "2025-03-01T12:00Z"},
        {"insert": [1], "timestamp": "2025-03-01T12:30"},
        {"expire": "2025-03-01T13:15"},
    )
    ok("tail", tmp_path / "s", "--theta", 0.5, input=text)
    assert ids(tmp_path / "s") == [1]


def test_graph(graph):
    text = lines(
        {"edges": [["b", "c", 0.8], ["a", "c", 0.8]]},
        {"add": ["d"], "edges": [["d", "a", 0.1]], "remove": ["b"]},
        {"remove_edges": [["a", "c"]]},
    )
    out = events(ok("tail", graph, "--theta", 0.5, input=text))
    assert [(e["line"], e["event"]) for e in out if e["event"] == "merged"] == [(1, "merged")]
    with dynhac.open(graph, mode="r") as opened:
        assert opened.ids.tolist() == ["a", "c", "d"]
        assert opened.edges(of="a")[1].tolist() == ["d"]


def test_update_without_change_has_no_events(graph):
    text = lines({"add": "x"}, {"edges": [["a", "b", 0.9]]}, {"add": []})
    out = events(ok("tail", graph, "--theta", 0.5, input=text))
    assert [event["line"] for event in out] == [1]


def test_options_state_and_no_points(graph):
    out = events(ok("tail", graph, "--theta", 0.5, "--state", input=""))
    assert [(e["event"], e["size"], e["points"]) for e in out] == [
        ("state", 2, ["a", "b"]),
        ("state", 1, ["c"]),
    ]
    out = events(
        ok("tail", graph, "--theta", 0.5, "--no-points", "--state", input=lines({"add": "d"}))
    )
    assert len(out) == 3
    assert not any("points" in event for event in out)


def test_cluster_ids_persist_between_runs(store):
    first = events(ok("tail", store, "--theta", 0.5, input=inserts(3)))
    assert [event["cluster"] for event in first] == [0, 1, 2]
    second = events(ok("tail", store, "--theta", 0.5, input=lines({"delete": 1}) + inserts(1, 7)))
    assert [(e["event"], e["cluster"]) for e in second] == [("died", 1), ("born", 3)]
    other = events(ok("tail", store, "--theta", 0.5, "--min-size", 2, input=inserts(1, 8)))
    assert other == []


def test_file_with_blank_lines_and_unfinished_last_line(store, tmp_path):
    (tmp_path / "in.jsonl").write_text("\n" + inserts(2) + "\n \n" + inserts(1, 5).rstrip())
    out = events(ok("tail", store, tmp_path / "in.jsonl", "--theta", 0.5))
    assert [event["line"] for event in out] == [2, 3, 6]
    assert ids(store) == [0, 1, 5]


BAD = [
    ("nonsense", "not JSON"),
    ("[1]", "is not an object"),
    ("{}", "an empty object"),
    ('{"insert": null}', "insert is null"),
    ('{"inserts": [1, 2]}', "unknown key 'inserts'"),
    ('{"insert": [1]}', "dimension"),
    ('{"insert": [1, "a"]}', "X"),
    ('{"insert": [1, NaN]}', "is nan"),
    ('{"insert": [1, 2], "id": 0}', "id 0 in ids is already in the model"),
    ('{"insert": [1, 2], "id": "x"}', "'x'"),
    ('{"insert": [1, 2], "id": 1, "ids": [1]}', "both given"),
    ('{"insert": [1, 2], "timestamp": "now"}', "timestamp 'now'"),
    ('{"delete": 99}', "id 99 in delete is not in the model"),
    ('{"delete": {"a": 1}}', "delete"),
    ('{"expire": 3}', "max_age"),
    ('{"add": [1]}', "unknown key 'add'"),
    ('{"insert": ' + "[" * 100_000, "not JSON"),
    ("\ufffe\udc80", "not JSON"),
]


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_bad_line(store, bad, message):
    text = inserts(2).encode() + bad.encode("utf-8", "surrogateescape") + b"\n"
    text += inserts(1, 7).encode()
    result = run("tail", store, "--theta", 0.5, input=text)
    assert result.exit_code == 1
    assert [event["line"] for event in events(result.stdout)] == [1, 2]
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: line 3: ")
    assert message in line
    assert ids(store) == [0, 1]


def test_skip_errors(store):
    text = b"".join(inserts(1, i).encode() + bad.encode("utf-8", "surrogateescape") + b"\n"
                    for i, (bad, _) in enumerate(BAD))  # fmt: skip
    result = run("tail", store, "--theta", 0.5, "--skip-errors", input=text)
    assert result.exit_code == 0
    numbers = [int(line.split(":")[1].split()[1]) for line in result.stderr.splitlines()]
    assert numbers == [2 * i + 2 for i in range(len(BAD))]
    assert ids(store) == list(range(len(BAD)))


def test_bad_lines_of_graphs(graph):
    for bad, message in (
        ({"edges": [["a", "b"]]}, "each entry must be [u, v, w]"),
        ({"edges": 5}, "a list of [u, v, w]"),
        ({"edges": [["a", "b", "x"]]}, "weight"),
        ({"edges": [["a", "z", 1]]}, "'z' is not in the graph"),
        ({"remove": ["z"]}, "'z'"),
        ({"add": [1]}, "1"),
        ({"remove_edges": [["a", "c"]]}, "edge ('a', 'c')"),
        ({"insert": [1]}, "unknown key 'insert'"),
    ):
        assert message in error_of("tail", graph, "--theta", 0.5, input=lines(bad))


def test_errors(store, tmp_path):
    assert "--theta is -0.5" in error_of("tail", store, "--theta", -0.5)
    assert "no.jsonl" in error_of("tail", store, tmp_path / "no.jsonl", "--theta", 0.5)
    assert "there is no store" in error_of("tail", tmp_path / "no", "--theta", 0.5)
    with dynhac.open(store):
        assert str(os.getpid()) in error_of("tail", store, "--theta", 0.5)


def test_many_lines_are_committed_in_groups(store, monkeypatch):
    groups = []
    batch = dynhac.store.DurableDynHAC.batch

    def counted(self):
        groups.append(self.update_number)
        return batch(self)

    monkeypatch.setattr(dynhac.store.DurableDynHAC, "batch", counted)
    out = events(ok("tail", store, "--theta", 0.5, input=inserts(2000)))
    assert len(out) == 2000
    assert len(groups) < 10
    assert len(ids(store)) == 2000


def test_events_of_a_line_are_written_at_once(store, started):
    tail = started("tail", store, "--theta", "0.5")
    for i in range(5):
        tail.stdin.write(inserts(1, i).encode())
        tail.stdin.flush()
        event = json.loads(read_line(tail.stdout))
        assert (event["line"], event["event"], event["points"]) == (i + 1, "born", [i])
        with dynhac.open(store, mode="r") as reader:  # other processes see the update
            assert i in reader
    tail.stdin.close()
    assert tail.wait(SECONDS) == 0
    assert tail.stderr.read() == b""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"]
)
def test_stopped_while_waiting(store, started, number, code):
    tail = started("tail", store, "--theta", "0.5")
    tail.stdin.write(inserts(1).encode() + b'{"insert": [5, 5], "id"')  # an unfinished line
    tail.stdin.flush()
    read_line(tail.stdout)
    tail.send_signal(number)
    assert ended(tail) == (code, "")
    assert ids(store) == [0]
    with dynhac.open(store) as opened:  # the lock is released
        assert opened.update_number == 2  # the watch, and the point


def feed(running, text):
    """Write in the background until all is written or the reader has closed the pipe."""
    descriptor = os.dup(running.stdin.fileno())
    running.stdin.close()
    running.stdin = None

    def write():
        rest = memoryview(text)
        try:
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        except BrokenPipeError:
            pass
        finally:
            os.close(descriptor)

    threading.Thread(target=write, daemon=True).start()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "killed"])
def test_stopped_while_working(store, started, number):
    tail = started("tail", store, "--theta", "0.5")
    feed(tail, inserts(50_000).encode())
    seen = [json.loads(read_line(tail.stdout)) for _ in range(300)]
    tail.send_signal(number)
    rest = tail.stdout.read()
    tail.wait(SECONDS)
    assert tail.stderr.read() == b""
    whole = rest.decode().rpartition("\n")[0]  # a killed process may leave half a line
    seen += events(whole)
    kept = ids(store)
    assert kept == list(range(len(kept)))  # in order and complete
    assert len(kept) < 50_000
    written = [event["points"][0] for event in seen]
    assert written == list(range(len(written)))
    if number == signal.SIGINT:
        assert tail.returncode == 130
        assert len(written) == len(kept)
    else:
        assert len(written) <= len(kept)  # every event written is of an update on disk


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_is_not_read(store, started, monkeypatch, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    tail = started("tail", store, "--theta", "0.5")
    count = 1000  # more events than a pipe can buffer
    feed(tail, inserts(count).encode())
    deadline = time.monotonic() + SECONDS
    while len(read_head(store)) < count and time.monotonic() < deadline:
        time.sleep(0.2)
    tail.send_signal(signal.SIGINT)  # the command is blocked by its output
    time.sleep(0.5)
    assert tail.poll() is None
    if unbuffered:
        out = events(tail.stdout.read().decode())
        assert [event["points"] for event in out] == [[i] for i in range(count)]
    else:
        tail.send_signal(signal.SIGINT)  # the second one ends the command
    assert tail.wait(SECONDS) == 130
    assert len(ids(store)) == count


def test_closed_pipe(store, started):
    tail = started("tail", store, "--theta", "0.5")
    feed(tail, inserts(50_000).encode())
    read_line(tail.stdout)
    tail.stdout.close()
    assert tail.wait(SECONDS) == 0
    assert tail.stderr.read() == b""
    kept = ids(store)
    assert kept == list(range(len(kept)))
    dynhac.open(store).close()  # the lock is released


def test_closed_pipe_of_other_commands(tmp_path, started):
    with dynhac.open(tmp_path / "s", n_neighbors=2) as made:
        made.insert(np.arange(30_000.0)[:, None])
    for command in (("labels", "--theta", "0.6"), ("export", "-f", "newick", "-o", "-")):
        reading = started(command[0], tmp_path / "s", *command[1:])
        reading.stdout.readline() if command[0] == "labels" else reading.stdout.read(10)
        reading.stdout.close()
        assert reading.wait(SECONDS) == 0
        assert reading.stderr.read() == b""


def test_interrupted_build(tmp_path, started):
    building = started("build", "-", "-o", tmp_path / "s")
    # More than a pipe can buffer: when it is all written, the command is reading.
    building.stdin.write(b"1,2\n" * 100_000)
    building.stdin.flush()
    building.send_signal(signal.SIGINT)
    code, message = ended(building)
    assert (code, message) == (130, "error: interrupted\n")
    assert not list(tmp_path.iterdir())


def test_interrupted_while_clustering(tmp_path, started):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(30_000, 32)))
    building = started("build", tmp_path / "a.npy", "-o", tmp_path / "s", "--backend", "exact")
    deadline = time.monotonic() + SECONDS
    while len(list(tmp_path.iterdir())) == 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    building.send_signal(signal.SIGINT)
    code, message = ended(building)
    assert (code, message) == (130, "error: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_patience(graph):
    """A merge is written only when it has lasted, also if the command ran again in between."""
    ok("tail", graph, "--theta", 0.5, "--patience", 2, input=lines({"add": ["d"]}))
    merge = {"edges": [["a", "c", 0.9], ["b", "c", 0.9]]}
    first = ok("tail", graph, "--theta", 0.5, "--patience", 2, input=lines(merge))
    assert events(first) == []
    rest = lines({"add": ["e"]}, {"add": ["f"]})
    again = ok("tail", graph, "--theta", 0.5, "--patience", 2, input=rest)
    told = [(e["event"], e["cluster"], e["others"]) for e in events(again) if e["others"]]
    assert told == [("died", 1, [0]), ("merged", 0, [1])]
    facts = json.loads(ok("stats", graph, "--json"))
    assert [watch["patience"] for watch in facts["watches"]] == ["2 updates"]
    for wrong, message in (
        ("soon", "patience is 'soon'; it must be a number of updates, or a time span"),
        ("-1", "patience is -1"),
        ("9" * 30 + "d", "; it must be below 292 years"),
        ("9" * 5000 + "d", "; it must be below 292 years"),
        ("1h", "a graph has no timestamps"),
    ):
        assert message in error_of("tail", graph, "--theta", 0.5, f"--patience={wrong}")
