"""One file for a model: a header, named arrays, and a checksum over all of it.

The layout, all numbers little-endian:

====================  =====================================================================
8 bytes               ``MAGIC``
4 bytes               format version
4 bytes               zero
8 bytes               length of the header
header                JSON: the kind of model, and whatever the model wants to say
arrays                raw, in C order, each from a multiple of 64 bytes on
directory             JSON: name, dtype and shape of every array, in the order of the arrays
8 bytes               length of the directory
32 bytes              checksum of everything before it
====================  =====================================================================

The directory comes last, so that arrays can be made, written and dropped one after the other. The
checksum is the BLAKE2b of the BLAKE2b digests of all blocks of ``BLOCK`` bytes, the last one maybe
shorter: several threads can compute it.

Writing: a new file in the same directory is filled and flushed to the disk, then takes the place
of the old one. Whatever stops that, be it a full disk or a power cut, leaves the old file whole.
New files that killed processes have left in the directory are removed.
Reading: nothing but the magic and the version is looked at before the checksum has been verified,
and no length is believed that the file is too short for. Nothing is ever executed: no pickles.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dynhac._core import Meter
from dynhac.files.leftovers import remove_leftovers
from dynhac.input.errors import FileError, show

MAGIC = b"\x89DYNHAC\n"
FORMAT_VERSION = 2
PROLOGUE = struct.Struct("<8sIIQ")
LENGTH = struct.Struct("<Q")
DIGEST_SIZE = 32
ALIGNMENT = 64
DTYPES = frozenset(("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"))
MOST_DIMENSIONS = 8
PARTIAL = re.compile(r"\.dynhac-(\d+)-[0-9a-f]+\.part")
BLOCK = 2**20
CHUNK = 8 * BLOCK  # between two reports, and between two looks for Ctrl-C

Path = str | os.PathLike[str]
Arrays = Mapping[str, NDArray[Any]]


def write_file(
    path: Path,
    kind: str,
    header: Mapping[str, object],
    arrays: Arrays | Iterable[tuple[str, NDArray[Any]]],
    meter: Meter | None = None,
    threads: int = 1,
) -> None:
    """Write a file, all of it or nothing.

    Parameters
    ----------
    path : str or path
        An old file is replaced. Of a symbolic link, what it points to.
    kind : str
        The name of the class whose state this is.
    header : mapping
        Anything that JSON holds. Floats come back with the same bits.
    arrays : mapping, or iterable of (name, array)
        Of bool, int or float. An iterable is used up one by one, and no array is kept.
    meter : Meter, optional
        Is told of the bytes written.
    threads : int
        How many of them may compute the checksum.

    Raises
    ------
    OSError
        The file cannot be written; nothing has changed.
    """
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if os.path.exists(target) and not os.path.isfile(target):
        raise FileExistsError(errno.EEXIST, "is there, and not a regular file", os.fspath(path))
    directory = os.path.dirname(target)
    if not os.path.exists(directory):
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {directory}", os.fspath(path))
    remove_leftovers(directory, PARTIAL)
    temporary = os.path.join(directory, f".dynhac-{os.getpid()}-{secrets.token_hex(8)}.part")
    items = arrays.items() if isinstance(arrays, Mapping) else arrays
    with open(temporary, "xb") as file:
        try:
            with contextlib.suppress(FileNotFoundError):
                os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
            with Checksum(threads) as checksum:
                _write(_Hashed(file, checksum, meter), kind, header, items)
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                file.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    sync_directory(directory)


def read_file(
    path: Path, kind: str, meter: Meter | None = None, threads: int = 1
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file.

    The arrays are read-only views of one buffer: who keeps a small one should copy it. So many
    ``threads`` may compute the checksum.

    Raises
    ------
    FileError
        The file is of another kind or version, or damaged.
    OSError
        It cannot be read.
    """
    if os.path.isdir(path):
        raise IsADirectoryError(
            errno.EISDIR, "it is a folder; a store is opened with dynhac.open", os.fspath(path)
        )
    with about(path), open(path, "rb") as file:
        with Checksum(threads) as checksum:
            buffer = _read(file, checksum, meter or Meter(None))
        _, _, _, header_length = PROLOGUE.unpack_from(buffer.data)
        header_end = PROLOGUE.size + header_length
        lengths_at = len(buffer) - DIGEST_SIZE - LENGTH.size
        (directory_length,) = LENGTH.unpack_from(buffer.data, lengths_at)
        directory_at = lengths_at - directory_length
        if not header_end <= directory_at:
            raise FileError("it is damaged: its parts do not fit into it")
        header = _json(buffer[PROLOGUE.size : header_end])
        found = header.get("kind") if isinstance(header, dict) else None
        if not isinstance(found, str) or not isinstance(header.get("header"), dict):
            raise FileError("it is damaged: the header is not one")
        if found != kind:
            raise FileError(f"it holds a {found[:40]}, not a {kind}")
        directory = _json(buffer[directory_at:lengths_at])
        return header["header"], _views(buffer[:directory_at], header_end, directory)


@contextlib.contextmanager
def about(path: Path) -> Iterator[None]:
    """Make a `FileError` in this context name the file."""
    try:
        yield
    except FileError as error:
        raise FileError(f"{os.fspath(path)}: {error}") from None


class Checksum:
    """The checksum of what it is given, part after part; threads hash whole blocks.

    Data that was given must not change before the next call returns.
    """

    def __init__(self, threads: int = 1) -> None:
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._digests: list[bytes] = []
        self._hashed: Iterator[bytes] = iter(())  # the blocks of the last part
        self._rest = hashlib.blake2b(digest_size=DIGEST_SIZE)  # of a block that is not complete
        self._missing = BLOCK  # bytes of that block

    def __enter__(self) -> Checksum:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def update(self, data: bytes | bytearray | memoryview) -> None:
        """Add bytes."""
        view = memoryview(data)
        self._gather()
        begin = min(self._missing % BLOCK, len(view))
        self._add(view[:begin])
        end = begin + (len(view) - begin) // BLOCK * BLOCK
        self._hash([view[at : at + BLOCK] for at in range(begin, end, BLOCK)])
        self._add(view[end:])

    def digest(self) -> bytes:
        """Return the checksum."""
        self._gather()
        last = [self._rest.digest()] if self._missing < BLOCK else []
        return _digest(b"".join(self._digests + last))

    def _hash(self, blocks: list[memoryview]) -> None:
        if self._pool is not None and len(blocks) > 1:
            try:
                self._hashed = self._pool.map(_digest, blocks)
                return
            except RuntimeError:  # there are no threads any more, for instance at exit
                self._pool = None
        self._hashed = map(_digest, blocks)

    def _gather(self) -> None:
        """Wait for the blocks that are being hashed."""
        self._digests.extend(self._hashed)
        self._hashed = iter(())

    def _add(self, part: memoryview) -> None:
        """Add bytes to the block that is not complete."""
        self._rest.update(part)
        self._missing -= len(part)
        if not self._missing:
            self._digests.append(self._rest.digest())
            self._rest, self._missing = hashlib.blake2b(digest_size=DIGEST_SIZE), BLOCK


def checksum_of(data: bytes | bytearray | memoryview) -> bytes:
    """Return the checksum of bytes."""
    with Checksum() as checksum:
        checksum.update(data)
        return checksum.digest()


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_SIZE).digest()


class _Hashed:
    """Writes to a file, and keeps the checksum and the position."""

    def __init__(self, file: IO[bytes], checksum: Checksum, meter: Meter | None) -> None:
        self.file = file
        self.checksum = checksum
        self.meter = meter or Meter(None)
        self.meter.begin("saving", "bytes", None)
        self.position = 0

    def write(self, data: bytes | memoryview) -> None:
        for start in range(0, len(data), CHUNK):
            part = data[start : start + CHUNK]
            self.checksum.update(part)
            self.file.write(part)
            self.meter.advance(len(part))
        self.position += len(data)

    def finish(self) -> None:
        self.file.write(self.checksum.digest())
        self.meter.end()


def _write(
    out: _Hashed,
    kind: str,
    header: Mapping[str, object],
    items: Iterable[tuple[str, NDArray[Any]]],
) -> None:
    text = _text({"kind": kind, "header": dict(header)})
    out.write(PROLOGUE.pack(MAGIC, FORMAT_VERSION, 0, len(text)))
    out.write(text)
    directory: list[tuple[str, str, tuple[int, ...]]] = []
    for name, array in items:
        plain = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
        if plain.dtype.str not in DTYPES:
            raise TypeError(f"array {name} has dtype {array.dtype}; it must be bool, int or float")
        directory.append((name, plain.dtype.str, plain.shape))
        out.write(bytes(-out.position % ALIGNMENT))
        out.write(plain.reshape(-1).view(np.uint8).data)
        del array, plain  # before the next one is made
    text = _text(directory)
    out.write(text)
    out.write(LENGTH.pack(len(text)))
    out.finish()


def _text(value: object) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _json(text: NDArray[np.uint8]) -> Any:
    try:
        return json.loads(text.tobytes())
    except (ValueError, RecursionError):
        raise FileError("it is damaged: a part that must be JSON is not") from None


def sync_directory(directory: str) -> None:
    """Make a rename last, where the system can; the old or the new file is whole in any case."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _read(file: IO[bytes], checksum: Checksum, meter: Meter) -> NDArray[np.uint8]:
    """Return the bytes of a file whose magic, version and checksum are right."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(PROLOGUE.size)
    if start[: len(MAGIC)] != MAGIC[: len(start)] or not start:
        raise FileError("it is not a file of dynhac")
    if size < PROLOGUE.size + LENGTH.size + DIGEST_SIZE or len(start) < PROLOGUE.size:
        raise FileError("it is damaged: it has been cut short")
    _, version, _, _ = PROLOGUE.unpack(start)
    if version != FORMAT_VERSION:
        raise FileError(
            f"it has format version {version}, and this version of dynhac reads version "
            f"{FORMAT_VERSION}; a newer dynhac may have written it"
        )
    buffer = np.empty(size, np.uint8)
    buffer[: len(start)] = np.frombuffer(start, np.uint8)
    position = len(start)
    checksum.update(start)
    meter.begin("loading", "bytes", size - position)
    while position < size:
        part = buffer[position : position + CHUNK]
        count = file.readinto(part.data)  # type: ignore[attr-defined]
        if not count:
            raise FileError("it is damaged: it has been cut short")
        checksum.update(part[: max(0, min(count, size - DIGEST_SIZE - position))].data)
        position += count
        meter.advance(count)
    meter.end()
    buffer.setflags(write=False)
    if checksum.digest() != buffer[-DIGEST_SIZE:].tobytes():
        raise FileError("it is damaged: the checksum is not that of its content")
    return buffer


def _views(buffer: NDArray[np.uint8], position: int, directory: object) -> dict[str, NDArray[Any]]:
    """Return the arrays that fill the buffer from a position on to its end."""
    arrays: dict[str, NDArray[Any]] = {}
    for entry in directory if isinstance(directory, list) else [None]:
        name, dtype, shape = _entry(entry)
        position += -position % ALIGNMENT
        size = np.dtype(dtype).itemsize
        for length in shape:
            size *= length
        if name in arrays or size > len(buffer) - position:
            raise FileError(f"it is damaged: array {show(name)} does not fit into it")
        flat = buffer[position : position + size]
        if dtype == "|b1" and size and flat.max() > 1:
            raise FileError(f"it is damaged: array {show(name)} is not of bool")
        try:
            view = flat.view(dtype).reshape(shape)
        except ValueError:  # one length is 0, and the others are beyond all bounds
            raise FileError(f"it is damaged: array {show(name)} does not fit into it") from None
        arrays[name] = view.astype(view.dtype.newbyteorder("="), copy=False)
        position += size
    if position != len(buffer):
        raise FileError("it is damaged: there is something behind its arrays")
    return arrays


def _entry(entry: object) -> tuple[str, str, list[int]]:
    if (
        isinstance(entry, list)
        and len(entry) == 3
        and isinstance(entry[0], str)
        and isinstance(entry[1], str)
        and entry[1] in DTYPES
        and isinstance(entry[2], list)
        and len(entry[2]) <= MOST_DIMENSIONS
        and all(type(length) is int and 0 <= length < 2**62 for length in entry[2])
    ):
        return entry[0], entry[1], entry[2]
    raise FileError("it is damaged: the list of its arrays is not one")
