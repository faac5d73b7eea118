"""The small files of a store: the lock of its writer, and the number of the last update.

The lock file holds the process id of the writer. What counts is the system's lock on it, which ends
with the process, however that ends. A forked child has a copy of the descriptor, with which it
would keep the lock: it closes it at once, see `dynhac.store.forks`. The id is written once the log
exists. So a lock file with an id but without a log tells that the log is lost.

``head`` exists before the log does, and holds the number of the last acknowledged update. It is
written after every update but not flushed, so it is at most behind the log and never ahead of it;
but SQLite drops the end of a damaged log without a word, and then it tells how much is gone.
Readers go by it too: an update in the log that is not acknowledged yet may still be taken back.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
from collections.abc import Iterable
from time import time_ns
from typing import IO, NamedTuple

from dynhac.files.format import sync_directory
from dynhac.input.errors import show
from dynhac.store.errors import StoreError, StoreLockedError
from dynhac.store.forks import is_closed, let_go_when_forked

LOG, LOCK, HEAD = "log.sqlite", "lock", "head"
HEAD_MAGIC = b"DYNHEAD\n"
HEAD_LAYOUT = struct.Struct("<8sQ")
SETTLED = 10**8
"""Nanoseconds in which all clocks of file systems have moved on; they tick 100 times a second, or,
if their times are whole seconds, every one or two seconds."""
WHOLE_SECONDS_SETTLED = 3 * 10**9
LOCKED_BYTE = 2**30  # on Windows a locked byte cannot be read, so it lies behind the process id


class WriterLock:
    """The right to write to a directory, held by one process at a time."""

    def __init__(self, directory: str) -> None:
        path = os.path.join(directory, LOCK)
        self._file = open(path, "a+b")  # noqa: SIM115, closed by close
        let_go_when_forked(self)
        try:
            if not _lock(self._file):
                self._file.seek(0)
                owner = self._file.read(64).decode("ascii", "replace").strip()
                by = f" (process {owner})" if owner else ""
                raise StoreLockedError(
                    f"{directory} is open for writing already{by}; a store has one writer at a "
                    "time, and any number of readers, mode='r'"
                )
        except BaseException:
            self._file.close()
            raise

    def name_owner(self) -> None:
        """Write the process id into the file."""
        self._file.truncate(0)
        self._file.write(b"%d\n" % os.getpid())
        self._file.flush()

    def close(self) -> None:
        """Let others write, also if another process has a copy of the descriptor."""
        if not self._file.closed:
            _unlock(self._file)
            self._file.close()
            is_closed(self)

    def abandon(self) -> None:
        """Close the file without unlocking it: it is the lock of another process."""
        self._file.close()


def had_writer(directory: str) -> bool:
    """Whether a writer has had the store open, and so a log was there."""
    path = os.path.join(directory, LOCK)
    return os.path.exists(path) and os.path.getsize(path) > 0


def _lock(file: IO[bytes]) -> bool:
    """Lock a file for this process; return whether no other process had locked it."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(LOCKED_BYTE)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unlock(file: IO[bytes]) -> None:
    if sys.platform == "win32":
        import msvcrt

        file.seek(LOCKED_BYTE)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)
        return
    import fcntl

    fcntl.flock(file, fcntl.LOCK_UN)


class FileIdentity(NamedTuple):
    """Which file a path led to when a store was opened."""

    name: str
    path: str
    device: int
    inode: int

    @classmethod
    def of(cls, directory: str, name: str) -> FileIdentity:
        """Return the identity of a file of a store."""
        path = os.path.join(directory, name)
        found = os.stat(path)
        return cls(name, path, found.st_dev, found.st_ino)

    @property
    def gone(self) -> bool:
        """Whether the file has been deleted or replaced."""
        try:
            found = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return True
        return found.st_ino != self.inode or found.st_dev != self.device

    @property
    def replaced(self) -> bool:
        """Whether there is another file in its place."""
        return self.gone and os.path.exists(self.path)


class OpenFiles:
    """The files that a writer has open, and whether they are still in the directory of the store.

    A directory notes the time when a name in it was last added or removed. So one look at it is
    enough, unless the last change was so short a time before the last look at the files that one
    after it may have the same time.
    """

    def __init__(self, directory: str, names: Iterable[str]) -> None:
        self.directory = directory
        self.identities = {name: FileIdentity.of(directory, name) for name in names}
        self._unchanged: tuple[int, int, int] | None = None  # since then, the files are all there

    def gone(self) -> str | None:
        """Return the path of a file that has been deleted or replaced."""
        try:
            found = os.stat(self.directory)
        except OSError:
            return self.directory
        stamp = found.st_mtime_ns, found.st_ino, found.st_dev
        if stamp == self._unchanged:
            return None
        for file in self.identities.values():
            if file.gone:
                return file.path
        settled = WHOLE_SECONDS_SETTLED if not stamp[0] % 10**9 else SETTLED
        if stamp[0] + settled < time_ns():
            self._unchanged = stamp
        return None


class Head:
    """The file with the number of the last acknowledged update, open for writing."""

    def __init__(self, directory: str, number: int) -> None:
        path = os.path.join(directory, HEAD)
        new = not os.path.exists(path)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        self._file = os.fdopen(descriptor, "r+b", buffering=0)
        let_go_when_forked(self)
        try:
            self.write(number)
            self._file.truncate(len(head_bytes(0)))
            os.fsync(descriptor)
            if new:
                sync_directory(directory)
        except BaseException:
            self._file.close()
            raise

    def write(self, number: int) -> None:
        """Note that an update is acknowledged."""
        self._file.seek(0)
        self._file.write(head_bytes(number))

    def close(self) -> None:
        """Flush the file to the disk and close it."""
        try:
            os.fsync(self._file.fileno())
        finally:
            self._file.close()
            is_closed(self)

    def abandon(self) -> None:
        """Close the file, which is that of another process."""
        self._file.close()


def head_bytes(number: int) -> bytes:
    """Return what the file holds."""
    data = HEAD_LAYOUT.pack(HEAD_MAGIC, number)
    return data + hashlib.blake2b(data, digest_size=8).digest()


def read_head(directory: str) -> int | None:
    """Return the number of the last acknowledged update; None if there is no such file.

    Raises
    ------
    StoreError
        The file is damaged.
    """
    path = os.path.join(directory, HEAD)
    for _ in range(3):  # the writer may be writing just now
        try:
            with open(path, "rb") as file:
                data = file.read(64)
        except FileNotFoundError:
            return None
        if len(data) == len(head_bytes(0)):
            number: int = HEAD_LAYOUT.unpack_from(data)[1]
            if data == head_bytes(number):
                return number
    raise StoreError(f"{path} is damaged: it holds {show(data)}")
