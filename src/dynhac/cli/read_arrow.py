"""Parquet, Arrow and Feather files as tables. Only columns that are used are read from Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac.cli.columns import table_of
from dynhac.cli.layout import LISTS, NUMBERS, OTHER, Layout
from dynhac.cli.table import Table
from dynhac.extras import optional

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")


def read_arrow(path: str, suffix: str, layout: Layout, ids_only: bool) -> Table:
    """Return the table in a file whose name ends in one of `PARQUET` or `ARROW`."""
    format = "a Parquet" if suffix in PARQUET else "an Arrow"
    arrow = optional("pyarrow", "arrow", f"reading {format.split()[1]} files")
    try:
        columns = _ParquetColumns(path) if suffix in PARQUET else _ArrowColumns(_ipc_table(path))
        if ids_only and len(columns.names) == 1 and layout.id is None:
            layout = layout._replace(id=columns.names[0])
        return table_of(path, columns, layout, ids_only)
    except (arrow.ArrowException, OSError) as error:
        why = str(error).split("\n")[0]
        raise ValueError(f"cannot be read as {format} file: {why}") from error


def _ipc_table(path: str) -> Any:
    arrow = optional("pyarrow", "arrow", "reading Arrow files")
    feather = optional("pyarrow.feather", "arrow", "reading Arrow files")
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith((b"ARROW1", b"FEA1")):
        return feather.read_table(path)
    with arrow.memory_map(path) as source, arrow.ipc.open_stream(source) as reader:
        return reader.read_all()


class _ArrowColumns:
    """The columns of an Arrow table."""

    def __init__(self, table: Any) -> None:
        self._types = {field.name: field.type for field in table.schema}
        self.names: Sequence[str] = list(table.schema.names)
        self._table = table

    def load(self, names: Sequence[str]) -> None:
        """Read the columns that are used: a table in memory has them."""

    def kind(self, name: str) -> str:
        """Return what a column holds: numbers, lists or other."""
        types = optional("pyarrow.types", "arrow", "reading Arrow files")
        held = _storage(self._types[name])
        if _is_list(types, held) and _is_number(types, held.value_type):
            return LISTS
        return NUMBERS if _is_number(types, held) else OTHER

    def description(self, name: str) -> str:
        """Return what messages say about what a column holds."""
        return f"holds {self._types[name]}"

    def values(self, name: str) -> Any:
        """Return a column as an array, or as a list of str."""
        types = optional("pyarrow.types", "arrow", "reading Arrow files")
        column = self._column(name)
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if types.is_decimal(column.type):
            column = column.cast("double")
        values = column.to_numpy()
        return values.tolist() if values.dtype == object else values

    def matrix(self, name: str) -> NDArray[Any]:
        """Return a column of lists of numbers as an array with a row for each list."""
        compute = optional("pyarrow.compute", "arrow", "reading Arrow files")
        column = self._column(name)
        chunks = [getattr(chunk, "storage", chunk) for chunk in column.chunks]
        lengths = np.concatenate(
            [np.empty(0, np.int64), *(compute.list_value_length(c).to_numpy(False) for c in chunks)]
        )
        wrong = np.flatnonzero(lengths != lengths[0]) if len(lengths) else lengths
        if len(wrong):
            row = int(wrong[0])
            raise ValueError(
                f"row {row} of {name} has length {lengths[row]}, row 0 has {lengths[0]}; all rows "
                "must have one length"
            )
        width = int(lengths[0]) if len(lengths) else 0
        flat = [chunk.flatten() for chunk in chunks]
        for values in flat:
            if values.null_count:
                raise ValueError(f"{name} has lists with missing values; all must be numbers")
        arrays = [values.to_numpy(zero_copy_only=False) for values in flat]
        matrix: NDArray[Any] = np.concatenate([np.empty(0, np.float32), *arrays])
        return matrix.reshape(len(lengths), width)

    def objects(self, name: str) -> list[Any]:
        """Return a column as Python values, None for missing ones."""
        return list(self._table[name].to_pylist())

    def _column(self, name: str) -> Any:
        """Return a column without missing values, or raise."""
        column = self._table[name]
        if column.null_count:
            row = int(np.argmax(column.is_null().to_numpy()))
            raise ValueError(f"row {row} of column {name} has no value; every row needs one")
        return column


class _ParquetColumns(_ArrowColumns):
    """The columns of a Parquet file, or of a folder of such files."""

    def __init__(self, path: str) -> None:
        parquet = optional("pyarrow.parquet", "arrow", "reading Parquet files")
        self._file = parquet.ParquetDataset(path)
        super().__init__(self._file.schema.empty_table())

    def load(self, names: Sequence[str]) -> None:
        """Read the columns that are used."""
        self._table = self._file.read(columns=list(names))


def _storage(type: Any) -> Any:
    return getattr(type, "storage_type", type)


def _is_list(types: Any, type: Any) -> bool:
    return bool(types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type))


def _is_number(types: Any, type: Any) -> bool:
    return bool(types.is_integer(type) or types.is_floating(type) or types.is_decimal(type))
