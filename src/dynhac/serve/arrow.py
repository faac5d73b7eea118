"""Arrow IPC streams of strangers: columns, read within limits.

A small stream can stand for very much: compressed buffers, dictionaries, runs and views repeat what
is there once, and lists of length 0, structs without fields and nulls take no bytes at all. So
buffers must not be compressed, types must store every value, and no more values become Python
objects than the stream has bytes. All else that a stream may have wrong pyarrow finds.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynhac.extras import optional
from dynhac.serve.problems import Problem

FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


def read_columns(body: bytes, names: Sequence[str]) -> dict[str, Any]:
    """Return the columns of a stream, which may have these ``names``; Problem 400, 413 or 422."""
    pa = _pyarrow()
    try:
        _check_messages(body)
        table = pa.ipc.open_stream(body).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, struct.error) as error:
        raise Problem(400, f"the body is not an Arrow IPC stream: {str(error)[:200]}") from None
    given = table.column_names
    if set(given).difference(names) or len(set(given)) != len(given):
        raise Problem(422, f"the columns are {given}; they must be {tuple(names)}")
    for field in table.schema:
        if not _is_plain(field.type):
            raise Problem(
                422,
                f"the column {field.name} is of type {str(field.type)[:200]}; it must be of "
                "numbers, texts or dates, or of lists or structs of these",
            )
    columns = {name: table[name].combine_chunks() for name in given}
    if sum(map(_count_values, columns.values())) > len(body):
        raise Problem(
            413, f"the body stands for more values than its {len(body):,} bytes; send fewer points"
        )
    return columns


def vectors_of(column: Any) -> Any:
    """Return a column of lists as a matrix; Problem 422: it is not one."""
    kind = column.type
    if not _is_list(kind) or not _is_number(kind.value_type):
        raise Problem(422, f"the column vector is of type {kind}; it must be lists of numbers")
    if not len(column):
        return np.empty((0, 0), np.float32)
    values = column.flatten()
    if values.null_count:
        raise Problem(422, "the column vector has nulls within vectors")
    lengths = column.value_lengths().unique().to_pylist()
    if len(lengths) != 1:
        raise Problem(422, f"vectors have different lengths: {sorted(lengths)[:5]}")
    return values_of(values).reshape(len(column), lengths[0])


def values_of(column: Any) -> Any:
    """Return numbers and dates without nulls as an array, anything else as a list.

    The buffers are read here: conversions of pyarrow import pandas, which takes much memory.
    """
    pa = _pyarrow()
    if pa.types.is_timestamp(column.type):
        return values_of(column.view(pa.int64())).view(f"M8[{column.type.unit}]")
    if not _is_number(column.type):
        return column.to_pylist()
    kind = str(column.type)
    dtype = np.dtype(FLOATS.get(kind, kind))
    _, data = column.buffers()
    if data is None:
        return np.empty(0, dtype)
    values = np.frombuffer(data, dtype, len(column), column.offset * dtype.itemsize)
    return np.require(values, requirements="A")  # a stream may have them at any address


def is_text(column: Any) -> bool:
    """Whether all values are str."""
    types = _pyarrow().types
    return bool(types.is_string(column.type) or types.is_large_string(column.type))


def _pyarrow() -> Any:
    optional("pyarrow.ipc", "arrow", "an Arrow stream")
    return optional("pyarrow", "arrow", "an Arrow stream")


def _is_number(kind: Any) -> bool:
    types = _pyarrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind))


def _is_list(kind: Any) -> bool:
    types = _pyarrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_plain(kind: Any) -> bool:
    """Whether a type stores every value, however often it occurs."""
    types = _pyarrow().types
    if types.is_struct(kind):
        return all(_is_plain(field.type) for field in kind)
    if _is_list(kind):
        return _is_plain(kind.value_type)
    stored = (types.is_primitive, types.is_null, types.is_string, types.is_large_string)
    return any(is_kind(kind) for is_kind in stored)


def _count_values(column: Any) -> int:
    """Count the values, those in lists and structs too, but for numbers, which stay an array."""
    if _is_number(column.type):
        return 0
    if _pyarrow().types.is_struct(column.type):
        return len(column) + sum(map(_count_values, column.flatten()))
    return len(column) + (_count_values(column.values) if _is_list(column.type) else 0)


def _check_messages(body: bytes) -> None:
    """Raise Problem 422 unless all messages are the schema and plain record batches."""
    messages = _pyarrow().ipc.MessageReader.open_stream(body)
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        if message.type == "dictionary":
            raise Problem(422, "the Arrow stream has a dictionary; send the values themselves")
        if message.type == "record batch" and _names_a_codec(bytes(message.metadata)):
            raise Problem(422, "the Arrow stream is compressed; send it without compression")


def _names_a_codec(head: bytes) -> bool:
    """Whether a message with a record batch says how its buffers are compressed.

    pyarrow does not tell, so the FlatBuffers are read here. Of a Message, field 2 is the
    RecordBatch; of that, field 3 is the compression.
    """

    def number(form: str, place: int) -> int:
        return int(struct.unpack_from(form, head, place)[0])

    def field(table: int, index: int) -> int | None:
        """Return where a field of a table is; None: the table does not have it."""
        fields = table - number("<i", table)
        slot = 4 + 2 * index
        offset = number("<H", fields + slot) if slot < number("<H", fields) else 0
        return table + offset if offset else None

    header = field(number("<I", 0), 2)
    return header is not None and field(header + number("<I", header), 3) is not None
