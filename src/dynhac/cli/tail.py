"""``dynhac tail``: a stream processor in a shell pipe.

Lines of JSON come in, events of a watch go out. What has arrived while the last lines were applied
is one group: it is applied and committed together, and only then its events are written. So a
single line is answered at once, a flood costs one commit for many lines, and no event is ever
written of an update that a crash could undo.

On Ctrl-C and SIGTERM the group at work is finished, the store closed. A line is never applied in
part, and lines are applied in order.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from types import FrameType
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from dynhac.cli.command import MISTAKE, Stopped, add_command, message_of, tell
from dynhac.cli.options import STREAM, MinSize, Store

if TYPE_CHECKING:
    from dynhac.cli.stores import AnyStore
    from dynhac.watch.watch import Watch

MOST_BYTES = 1 << 20
"""Input that is read at once, and so the most that one commit holds, but for a longer line."""


FORMATS = """In, for points (each line is one update, all or nothing):
  {"insert": [0.1, 0.2], "id": "a", "timestamp": 7}
  {"insert": [[0.1, 0.2], [3, 4]], "ids": ["b", "c"]}
  {"delete": "a"}
  {"delete": ["a", "b"], "insert": [5, 6], "id": "a"}
  {"expire": "2025-03-01T12:30"}
In, for a graph:
  {"add": ["a"], "edges": [["a", "b", 0.5]]}
  {"remove": ["c"], "remove_edges": [["d", "e"]]}
Out, for each event (born, died, merged, split, grew, shrank):
  {"line": 1, "update": 9, "event": "grew", "cluster": 3,
   "size": 12, "others": [], "points": ["a"]}"""


def tail(
    store: Store,
    at: Annotated[
        float,
        typer.Option("--at", metavar="SIMILARITY", help="Follow the clusters at this similarity."),
    ],
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="Lines to read; - for standard input.")
    ] = "-",
    min_size: MinSize = 1,
    points: Annotated[bool, typer.Option(help="Write the ids of the points in an event.")] = True,
    state: Annotated[
        bool, typer.Option("--state", help="First write the clusters that there are.")
    ] = False,
    skip_errors: Annotated[
        bool, typer.Option("--skip-errors", help="Go on after a bad line.")
    ] = False,
) -> None:
    """Apply lines of JSON from standard input, and write what happens to the clusters.

    An event is written once its update is safe on disk. A bad line changes nothing; it ends the
    command with exit code 1, after everything before it was applied, unless --skip-errors is given.
    """
    from dynhac.cli.stores import is_points, writing

    with ExitStack() as stack:
        lines: Any = sys.stdin.buffer if source == "-" else stack.enter_context(open(source, "rb"))
        opened = stack.enter_context(writing(store))
        stop = stack.enter_context(_Stop())
        watch = _watch(opened, at, min_size)
        follower = _Follower(opened, watch, is_points(opened), points, skip_errors)
        if state:
            follower.write(follower.clusters())
        for group in _groups(lines, stop):
            follower.apply(group)
            if stop.signal:
                raise Stopped(stop.signal)


class _Follower:
    """Applies groups of lines and writes the events that follow."""

    def __init__(
        self, store: AnyStore, watch: Watch, of_points: bool, with_ids: bool, skip_errors: bool
    ) -> None:
        self._store = store
        self._watch = watch
        self._of_points = of_points
        self._with_ids = with_ids
        self._skip_errors = skip_errors
        self._version = store.version

    def apply(self, group: list[tuple[int, bytes]]) -> None:
        """Apply numbered lines, commit them together, and write their events."""
        from dynhac.cli.lines import apply_line, parse_line

        events: list[str] = []
        wrong: list[str] = []
        with self._store.batch():
            for number, line in group:
                try:
                    apply_line(self._store, parse_line(line, self._of_points), self._of_points)
                except (ValueError, KeyError) as error:
                    wrong.append(f"line {number}: {message_of(error)}")
                    if self._skip_errors:
                        continue
                    break
                events += self._events(number)
        self.write(events)
        for message in wrong:
            tell("error", message)
        if wrong and not self._skip_errors:
            raise typer.Exit(MISTAKE)

    def clusters(self) -> list[str]:
        """Return a line for every cluster that there is."""
        from dynhac.cli.output import to_json

        lines = []
        for cluster, size in self._watch.clusters().items():
            told: dict[str, Any] = {"event": "state", "cluster": cluster, "size": size}
            if self._with_ids:
                told["points"] = self._watch.members(cluster)
            lines.append(to_json(told))
        return lines

    def write(self, lines: list[str]) -> None:
        """Write lines to standard output, at once."""
        from dynhac.cli.output import write_text

        write_text("".join(line + "\n" for line in lines))

    def _events(self, number: int) -> list[str]:
        from dynhac.cli.output import to_json

        if self._store.version == self._version:  # it has changed nothing: the events are old
            return []
        self._version = self._store.version
        lines = []
        for event in self._watch.events:
            told: dict[str, Any] = {
                "line": number,
                "update": self._store.update_number,
                "event": event.kind,
                "cluster": event.cluster,
                "size": event.size,
                "others": list(event.others),
            }
            if self._with_ids:
                told["points"] = event.points
            lines.append(to_json(told))
        return lines


class _Stop:
    """Signals to stop: they end waiting for input, but not work; a second one ends that too."""

    def __init__(self) -> None:
        self.signal = 0
        self.waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Stop:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as for a job in the background
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        again, self.signal = self.signal, number
        if again:
            raise KeyboardInterrupt
        if self.waiting:
            raise Stopped(number)


def _groups(file: IO[bytes], stop: _Stop) -> Iterator[list[tuple[int, bytes]]]:
    """Give the lines that have arrived, numbered from 1, whenever there are some."""
    number = 0
    rest: list[bytes] = []
    while True:
        stop.waiting = True
        if stop.signal:
            raise Stopped(stop.signal)
        piece = file.read1(MOST_BYTES)  # type: ignore[attr-defined]
        stop.waiting = False
        head, newline, tail = piece.rpartition(b"\n")
        if newline or not piece:
            lines = b"".join([*rest, head]).split(b"\n")
            group = [(number + i, line) for i, line in enumerate(lines, 1) if line.strip()]
            number += len(lines)
            rest = []
            if group:
                yield group
        if not piece:
            return
        rest.append(tail)


def _watch(store: AnyStore, at: float, min_size: int) -> Watch:
    """Return the watch that an earlier run has left in the store, with its ids, or a new one."""
    from dynhac.cli.stores import is_points

    model: Any = store
    for watch in (model.graph if is_points(store) else model).watches:
        if (watch.theta, watch.min_size) == (at, min_size):
            return watch  # type: ignore[no-any-return]
    watch = store.watch(at, min_size)
    store.snapshot()  # watches are not in the log: now it survives a crash
    return watch


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    add_command(
        app,
        tail,
        [
            ("Follow clusters in a stream", "producer | dynhac tail my.store --at 0.35"),
            (
                "Only births, of ten points at least",
                "producer | dynhac tail my.store - --at 0.35 --min-size 10 | grep '\"born\"'",
            ),
            ("Replay a file", "dynhac tail my.store updates.jsonl --at 0.35 --skip-errors"),
        ],
        STREAM,
        FORMATS,
    )
