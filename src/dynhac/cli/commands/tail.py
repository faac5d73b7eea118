"""``dynhac tail``: a stream processor for shell pipes.

It reads lines of JSON and writes events of a watch. The lines that arrive while others are applied
form one group: they are committed together, and then their events are written. So the events of a
single line are written at once, many lines cost one commit, and no crash can undo an update whose
events were written.

On Ctrl-C and SIGTERM the current group is completed and the store is closed.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from types import FrameType
from typing import IO, Annotated, Any

import typer

from dynhac import Watch
from dynhac.cli.command import EXIT_ERROR, command, message_of, print_message
from dynhac.cli.layout import Layout, load_layout
from dynhac.cli.options import (
    STREAM,
    IdColumn,
    Ignore,
    MinSize,
    Payload,
    PayloadColumns,
    StorePath,
    TimeColumn,
    VectorColumn,
    payload_names,
)
from dynhac.cli.output import to_json, write_stdout
from dynhac.cli.parse import parse_patience
from dynhac.cli.stores import AnyStore, open_store
from dynhac.cli.update_lines import apply_line

MAX_READ = 1 << 20
"""Bytes that are read at once: the size of a group, unless a single line is longer."""

FORMATS = """Input, for points (each line is one update, all or nothing):
  {"insert": [0.1, 0.2], "id": "a", "timestamp": 7}
  {"insert": [[0.1, 0.2], [3, 4]], "ids": ["b", "c"]}
  {"insert": [0.3, 0.1], "id": "d", "payload": {"title": "text"}}
  {"delete": "a"}
  {"delete": ["a", "b"], "insert": [5, 6], "id": "a"}
  {"expire": "2025-03-01T12:30"}
  {"id": "a", "vector": [1, 2], "title": "a row, as insert reads it"}
Input, for a graph:
  {"add": ["a"], "edges": [["a", "b", 0.5]]}
  {"remove": ["c"], "remove_edges": [["d", "e"]]}
  {"source": "a", "target": "b", "weight": 0.5}
Output, for each event (born, died, merged, split, grew, shrank):
  {"line": 1, "update": 9, "event": "grew", "cluster": 3,
   "size": 12, "others": [], "points": ["a"]}"""


@command(
    STREAM,
    ("Follow clusters in a stream", "producer | dynhac tail my.store"),
    (
        "Only new clusters, of ten points or more",
        "producer | dynhac tail my.store - --min-size 10 | grep '\"born\"'",
    ),
    (
        "Without clusters that come and go",
        "producer | dynhac tail my.store --min-size 10 --patience 20",
    ),
    ("The clusters at one similarity", "producer | dynhac tail my.store --theta 0.35"),
    ("Apply a file", "dynhac tail my.store updates.jsonl --skip-errors"),
    notes=FORMATS,
)
def tail(
    store: StorePath,
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="Lines to read; - for standard input.")
    ] = "-",
    theta: Annotated[
        float | None,
        typer.Option(
            metavar="SIMILARITY",
            help="Follow the clusters at this similarity (default: the automatic clusters).",
        ),
    ] = None,
    min_size: MinSize = None,
    patience: Annotated[
        str | None,
        typer.Option(
            metavar="UPDATES|TIME",
            help="Write a change of clusters only when it has lasted for so many updates (20), or "
            "for a time (6h; 3600.0 if timestamps are numbers).",
        ),
    ] = None,
    points: Annotated[bool, typer.Option(help="Write the ids of the points in an event.")] = True,
    state: Annotated[bool, typer.Option("--state", help="First write all clusters.")] = False,
    skip_errors: Annotated[
        bool, typer.Option("--skip-errors", help="Continue after a bad line.")
    ] = False,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    vector_column: VectorColumn = None,
    ignore: Ignore = None,
    payload: Payload = False,
    payload_column: PayloadColumns = None,
) -> None:
    """Apply lines of JSON from standard input, and write the events of the clusters.

    The clusters are chosen automatically after every update, unless --theta is given. An event is
    written when its update is safe on disk. A bad line changes nothing. It ends the command with
    exit code 1 after the lines before it, unless --skip-errors is given.

    A line may also be a row of data, as in a file for insert: an edge, or a point whose vector is
    in the columns that the store was built with, or in --vector-column.
    """
    given = Layout(
        id_column,
        time_column,
        vector_column,
        tuple(ignore or ()),
        payload=payload_names(payload, payload_column),
    )
    layout = load_layout(store, given)
    with ExitStack() as stack:
        file: Any = sys.stdin.buffer if source == "-" else stack.enter_context(open(source, "rb"))
        opened = stack.enter_context(open_store(store, "w"))
        stop = _Stop()
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # ignored for background jobs
                stack.callback(signal.signal, number, signal.signal(number, stop.receive))
        # The watch of an earlier run, which continues its cluster ids, or a new one.
        watch = opened.watch(theta, min_size, patience=parse_patience(patience))
        if state:
            lines = [
                _line(watch.members(id) if points else None, event="state", cluster=id, size=size)
                for id, size in watch.clusters().items()
            ]
            write_stdout("".join(lines))
        for group in _groups(file, stop):
            _apply(opened, watch, group, layout, points, skip_errors)
            stop.check()


def _apply(
    store: AnyStore,
    watch: Watch,
    group: list[tuple[int, bytes]],
    layout: Layout,
    points: bool,
    skip_errors: bool,
) -> None:
    """Apply numbered lines, commit them together, and write their events."""
    events: list[str] = []
    errors: list[str] = []
    with store.batch():
        for number, line in group:
            version = store.version
            try:
                apply_line(store, line, layout)
            except (ValueError, KeyError) as error:
                errors.append(f"line {number}: {message_of(error)}")
                if skip_errors:
                    continue
                break
            if store.version != version:  # otherwise the watch has its earlier events
                events += [
                    _line(
                        event.points if points else None,
                        line=number,
                        update=store.update_number,
                        event=event.kind,
                        cluster=event.cluster,
                        size=event.size,
                        others=event.others,
                    )
                    for event in watch.events
                ]
    write_stdout("".join(events))
    for message in errors:
        print_message("error", message)
    if errors and not skip_errors:
        raise typer.Exit(EXIT_ERROR)


def _line(points: Any, **fields: Any) -> str:
    """Return an event as a line of JSON; without its points if they are None."""
    return to_json(fields if points is None else fields | {"points": points}) + "\n"


class _Stop:
    """Signals to stop: the first ends waiting for input but not work, the second ends both."""

    def __init__(self) -> None:
        self.waiting = False
        self._signal = 0

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        before, self._signal = self._signal, number
        if before:
            raise KeyboardInterrupt
        if self.waiting:
            self.check()

    def check(self) -> None:
        """End the command if there was a signal."""
        if self._signal:
            raise typer.Exit(128 + self._signal)


def _groups(file: IO[bytes], stop: _Stop) -> Iterator[list[tuple[int, bytes]]]:
    """Yield groups of lines that have arrived, numbered from 1; blank lines are left out."""
    number = 0
    rest: list[bytes] = []
    while True:
        stop.waiting = True
        stop.check()
        piece = file.read1(MAX_READ)  # type: ignore[attr-defined]
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
