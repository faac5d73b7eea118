"""Snapshots of a store: whole models in files, each named after its last update.

A snapshot is a file as `save` writes it, with an entry in its header that says which store it
belongs to, after which update it was taken, and the digest of that update's row in the log. The
newest two are kept, so that there is one to go back to.

Updates need not wait until it is written: a forked child keeps the state as it is at one moment and
sends it, column after column, to the thread that writes the file. Where there can be no child,
updates wait until all columns have been copied in memory.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from numpy.typing import NDArray

from dynhac._core import ForkedColumns, LazyColumn
from dynhac.files.format import DIGEST_SIZE, PARTIAL, Checksum, about, read_file, write_file
from dynhac.files.model_state import Source, made
from dynhac.input.errors import FileError
from dynhac.models.parameters import cores

if TYPE_CHECKING:
    from dynhac._core import Meter
    from dynhac.store.models import DurableDynHAC, DurableGraphHAC

Model: TypeAlias = "DurableDynHAC | DurableGraphHAC"

KEPT = 2
NAME = re.compile(r"snapshot-(0|[1-9]\d{0,17})\.dynhac")
CHUNK = 2**22


class Position(NamedTuple):
    """A moment of a store: the number of the last update, and the digest of its row."""

    number: int
    digest: bytes


def numbers(directory: str) -> list[int]:
    """Return the numbers of the snapshots there are, the newest first."""
    found = (NAME.fullmatch(name) for name in os.listdir(directory))
    return sorted((int(match[1]) for match in found if match), reverse=True)


def path_of(directory: str, number: int) -> str:
    """Return where the snapshot after an update is."""
    return os.path.join(directory, f"snapshot-{number}.dynhac")


class Copy:
    """The state of a model at one moment: made under its lock, to be written without it."""

    def __init__(self, model: Model) -> None:
        self.kind, self.header = model._file_kind, model._full_header()
        self._sources: list[tuple[str, Source]] = list(model._sources())
        self._child: ForkedColumns | None = None
        if ForkedColumns.supported():
            with contextlib.suppress(OSError):  # the system refuses one
                to_make = [each for _, each in self._sources if isinstance(each, LazyColumn)]
                self._child = ForkedColumns(to_make)
        if self._child is None:
            self._sources = list(made(self._sources))

    def columns(self, meter: Meter | None) -> Iterator[tuple[str, NDArray[Any]]]:
        """Give the arrays of the state one at a time."""
        for name, source in self._sources:
            if isinstance(source, LazyColumn):
                assert self._child is not None
                yield name, self._child.next(meter)
            else:
                yield name, source

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.close()


def write(
    copy: Copy, directory: str, identity: str, position: Position, meter: Meter | None
) -> int:
    """Write a snapshot of a model as it was at a position; return its size."""
    mark = {"id": identity, "number": position.number, "digest": position.digest.hex()}
    path = path_of(directory, position.number)
    write_file(path, copy.kind, copy.header | {"store": mark}, copy.columns(meter), meter)
    _check(path)
    return os.path.getsize(path)


def read(
    directory: str, number: int, identity: str, kind: str, meter: Meter
) -> tuple[Position, Mapping[str, Any], Mapping[str, NDArray[Any]]]:
    """Return the moment, the header and the arrays of a snapshot; FileError: it is damaged."""
    path = path_of(directory, number)
    header, arrays = read_file(path, kind, meter, cores())
    with about(path):
        mark = header.get("store")
        if not isinstance(mark, dict):
            raise FileError("it is no snapshot of a store")
        if mark.get("id") != identity:
            raise FileError("it is a snapshot of another store")
        if mark.get("number") != number:
            raise FileError(f"it is the snapshot after update {mark.get('number')}")
        try:
            return Position(number, bytes.fromhex(mark["digest"])), header, arrays
        except (KeyError, TypeError, ValueError):
            raise FileError("it is damaged: it does not say which update it was after") from None


def drop_old(directory: str) -> int | None:
    """Drop all but the newest snapshots; return the number of the oldest kept, if there is one."""
    held = numbers(directory)
    for number in held[KEPT:]:
        os.unlink(path_of(directory, number))
    return held[KEPT - 1] if len(held) >= KEPT else None


def drop_partial(directory: str) -> None:
    """Drop what writers that were killed have left behind."""
    for name in os.listdir(directory):
        if PARTIAL.fullmatch(name):
            os.unlink(os.path.join(directory, name))


def _check(path: str) -> None:
    """Read a file once more and raise if it does not have its checksum."""
    with open(path, "rb") as file:
        left = os.fstat(file.fileno()).st_size - DIGEST_SIZE
        checksum = Checksum()
        while left > 0:
            chunk = file.read(min(left, CHUNK))
            if not chunk:
                break
            checksum.update(chunk)
            left -= len(chunk)
        if left or file.read() != checksum.digest():
            raise FileError(f"{path}: it could not be read back as it was written")
