"""One update as bytes: named columns, one after the other, nothing executable.

A column is an array of int64, float64, float32 or datetime64[ns], or a list of str. The layout, all
numbers little-endian: the number of columns in one byte; then for every column

====================  =====================================================================
1 byte                length of the name
name                  ASCII
1 byte                what the column holds, one of the letters of ``LETTERS`` or ``s``
1 byte                number of dimensions
8 bytes each          the lengths; of strings their number
data                  raw in C order; of strings their lengths in bytes as uint32, then UTF-8
====================  =====================================================================
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dynhac.input.batches import GraphBatch, PointBatch, PointIds
from dynhac.input.columns import INT64
from dynhac.watch.parameters import WatchOrder, WatchParameters

if TYPE_CHECKING:
    from numpy.typing import NDArray

Column: TypeAlias = "NDArray[Any] | list[str]"

LETTERS = {b"l": "<i8", b"d": "<f8", b"f": "<f4", b"M": "<M8[ns]"}
LETTER_OF = {np.dtype(dtype): letter for letter, dtype in LETTERS.items()}
LENGTH = struct.Struct("<Q")

WATCH_OPS = ("watch", "close watch")
"""The kinds of updates that make and close a watch."""


def encode(columns: Mapping[str, Column]) -> bytes:
    """Return columns as bytes."""
    parts: list[bytes | memoryview] = [bytes([len(columns)])]
    for name, column in columns.items():
        parts += (bytes([len(name)]), name.encode("ascii"))
        if isinstance(column, list):
            texts = [text.encode("utf-8", "surrogatepass") for text in column]
            lengths = np.array([len(text) for text in texts], "<u4")
            parts += (b"s\x01", LENGTH.pack(len(texts)), lengths.tobytes(), *texts)
            continue
        plain = np.ascontiguousarray(column, column.dtype.newbyteorder("<"))
        parts += (LETTER_OF[plain.dtype], bytes([plain.ndim]))
        parts += map(LENGTH.pack, plain.shape)
        parts.append(plain.tobytes())
    return b"".join(parts)


def decode(payload: bytes) -> dict[str, Column]:
    """Return the columns; ValueError: these are not the bytes of columns."""
    reader = _Reader(payload)
    columns: dict[str, Column] = {}
    for _ in range(reader.take(1)[0]):
        name = reader.take(reader.take(1)[0]).decode("ascii")
        letter, dimensions = reader.take(1), reader.take(1)[0]
        shape = [LENGTH.unpack(reader.take(8))[0] for _ in range(dimensions)]
        if letter == b"s" and dimensions == 1:
            lengths = np.frombuffer(reader.take(4 * shape[0]), "<u4").tolist()
            columns[name] = [reader.take(n).decode("utf-8", "surrogatepass") for n in lengths]
        elif letter in LETTERS:
            dtype = np.dtype(LETTERS[letter])
            size = dtype.itemsize
            for length in shape:
                size *= length
            array = np.frombuffer(reader.take(size), dtype).reshape(shape)
            columns[name] = array.astype(dtype.newbyteorder("="))
        else:
            raise ValueError(f"column {name!r} is of the unknown kind {letter!r}")
    if reader.position != len(payload):
        raise ValueError("there is something behind the columns")
    return columns


class _Reader:
    """Takes bytes off the front, and no more than there are."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.position = 0

    def take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self.payload):
            raise ValueError("it ends in the middle of a column")
        taken = self.payload[self.position : end]
        self.position = end
        return taken


def encode_batch(batch: GraphBatch | PointBatch | WatchOrder) -> tuple[str, bytes]:
    """Return what kind of update a batch is, and its columns as bytes."""
    columns: dict[str, Column]
    if isinstance(batch, WatchOrder):
        return WATCH_OPS[batch.close], encode(batch.parameters.columns())
    if isinstance(batch, GraphBatch):
        columns = {name: column for name, column in batch._asdict().items() if len(column)}
        return "graph", encode(columns)
    if batch.clock is not None:
        dtype = np.float64 if isinstance(batch.clock, float) else INT64
        return "expire", encode({"clock": np.array([batch.clock], dtype)})
    columns = {}
    if batch.vectors is not None:
        columns["X"] = batch.vectors
        columns["ids"] = _column(batch.ids)
        if batch.times is not None:
            times = batch.times.values
            columns["times"] = times.view("M8[ns]") if batch.times.kind == "date" else times
    if len(batch.deleted):
        columns["delete"] = _column(batch.deleted)
    return "points", encode(columns)


def _column(ids: PointIds) -> Column:
    return ids if isinstance(ids, list) else np.asarray(ids, INT64)


def decode_graph_batch(op: str, payload: bytes) -> GraphBatch:
    """Return the batch of a row; ValueError: it is not one of a graph."""
    if op != "graph":
        raise ValueError(f"its kind is {op!r}, which is not known here")
    return GraphBatch(**decode(payload))  # type: ignore[arg-type]


def decode_watch_order(op: str, payload: bytes, threshold: float) -> WatchOrder:
    """Return the order of a row, for a model with this threshold; ValueError: it is not one."""
    parameters = WatchParameters.from_columns(threshold, decode(payload))
    return WatchOrder(parameters, close=op == WATCH_OPS[True])
