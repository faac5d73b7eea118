"""Columns of numbers as compressed bytes, and the hash that says where a vertex is kept.

Spark moves rows, and a row per edge is dear: 8 bytes for every value and 8 more for its nulls. What
a round sends around is therefore *packed*: many edges in one value of bytes. The columns of int64
and float64 are laid out byte by byte, all lowest bytes first, and compressed: the upper bytes of
ids and weights are nearly always 0, and those of sorted ids come in long runs.

A vertex has a *home*, one of H groups: that of its hash. Everybody can tell the home of any vertex,
so an edge needs no table of addresses. The hash is Spark's ``xxhash64`` of a long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac.extras import optional
from dynhac.input.columns import INT64

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Column = NDArray[Any]

PURPOSE = "dynhac.spark"


def codec() -> Any:
    """Return what compresses: quick, and as good as slower levels on bytes that are random."""
    return optional("pyarrow", "spark", PURPOSE).Codec("zstd", compression_level=1)


def pack(*columns: Column) -> bytes:
    """Return columns of int64 or float64, of any lengths, as bytes."""
    head = np.array([len(columns), *(len(column) for column in columns)], INT64)
    planes = [np.ascontiguousarray(column).view(np.uint8).reshape(-1, 8).T for column in columns]
    body = b"".join(plane.tobytes() for plane in planes)
    packed: bytes = codec().compress(body, asbytes=True)
    return head.tobytes() + packed


def unpack(data: Any) -> list[Ints]:
    """Return the columns, as int64; those that were float64 are to be viewed as such."""
    view = memoryview(data)
    count = int(np.frombuffer(view, INT64, 1)[0])
    lengths = np.frombuffer(view, INT64, count, 8).tolist()
    body = codec().decompress(view[8 * (count + 1) :], 8 * sum(lengths), asbytes=True)
    columns, start = [], 0
    for length in lengths:
        planes = np.frombuffer(body, np.uint8, 8 * length, start).reshape(8, length)
        columns.append(np.ascontiguousarray(planes.T).view(INT64).reshape(length))
        start += 8 * length
    return columns


def unpack_all(data: Sequence[Any], count: int) -> list[Ints]:
    """Return the ``count`` columns of several values of bytes, each in one piece."""
    parts = [unpack(each) for each in data]
    if not parts:
        return [np.empty(0, INT64) for _ in range(count)]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def xxhash64(values: Ints) -> NDArray[np.uint64]:
    """Return what Spark's ``xxhash64`` gives for longs, as unsigned numbers.

    >>> xxhash64(np.array([0, 1, -1])).view(np.int64).tolist()
    [-5252525462095825812, -7001672635703045582, 3858142552250413010]
    """
    one, two, three = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    four, five = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
    seed = np.uint64(42 + five + 8)
    mixed = _rotated(values.view(np.uint64) * np.uint64(two), 31) * np.uint64(one)
    mixed = _rotated(mixed ^ seed, 27) * np.uint64(one) + np.uint64(four)
    mixed = (mixed ^ mixed >> np.uint64(33)) * np.uint64(two)
    mixed = (mixed ^ mixed >> np.uint64(29)) * np.uint64(three)
    hashed: NDArray[np.uint64] = mixed ^ mixed >> np.uint64(32)
    return hashed


def _rotated(values: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    rotated: NDArray[np.uint64] = values << np.uint64(bits) | values >> np.uint64(64 - bits)
    return rotated


def group_of(values: Ints, groups: int) -> Ints:
    """Return the group of each value: its home, or the bucket of its part.

    Spark's ``pmod(xxhash64(value), groups)``.
    """
    hashes: Ints = xxhash64(np.ascontiguousarray(values)).view(INT64)
    return hashes % groups


def runs(sorted_values: Column) -> Ints:
    """Return where the runs of equal values begin, and the end of the last one."""
    if not len(sorted_values):
        return np.zeros(1, INT64)
    changes = np.flatnonzero(sorted_values[1:] != sorted_values[:-1]) + 1
    return np.concatenate([[0], changes, [len(sorted_values)]])


def packed_by(groups: Ints, *columns: Column) -> Iterator[tuple[int, bytes]]:
    """Yield every group with the rows that are in it, packed."""
    order = np.argsort(groups, kind="stable")
    groups = groups[order]
    columns = tuple(column[order] for column in columns)
    bounds = runs(groups).tolist()
    for start, end in pairwise(bounds):
        yield int(groups[start]), pack(*(column[start:end] for column in columns))


def spread(starts: Ints, lengths: Ints) -> Ints:
    """Return the positions ``start, start + 1, ...`` of every slice, one slice after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    positions: Ints = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return positions


def find(sorted_ids: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the position of each id among the sorted ones, and whether it is there."""
    if not len(sorted_ids):
        return np.zeros(len(wanted), INT64), np.zeros(len(wanted), np.bool_)
    position = np.minimum(np.searchsorted(sorted_ids, wanted), len(sorted_ids) - 1)
    return position, sorted_ids[position] == wanted
