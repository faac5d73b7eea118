"""The folder of a build: Parquet and JSON, written and read by Spark alone, wherever it lies.

| path        | what                                                                           |
|-------------|--------------------------------------------------------------------------------|
| `meta`      | JSON: versions, parameters, the edges in short; written first, and only once   |
| `result`    | JSON: how many rounds, vertices and merges; written last                       |
| `vertices`  | Parquet: `id` long, and `name` string if ids are str                           |
| `merges`    | Parquet, at the end: see `dynhac.spark.dendrogram`                             |
| `state/R`   | JSON: what was left before round R + 1; written when the edges are             |
| `edges/0`   | Parquet: the blocks before rounds 1, 3, ...; `edges/1`: before rounds 2, 4, ... |
| `results/R` | Parquet: what the workers returned in round R                                  |
| `pointers/H`| Parquet: where the vertices have arrived after H hops, in the present round    |
| `input`     | Parquet: the edges with numbers in place of ids that are str                   |

`state/R` says that everything before it is complete: a build that was killed goes on after the last
one. All but the first four, and `state`, are emptied at the end. JSON is one line of text.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dynhac.input.errors import InvalidTypeError, show

PATTERN = "*?[]{}\\"
"""Characters that Spark takes for a pattern of names when it reads."""


class Folder:
    """Reads and writes the parts of a build."""

    def __init__(self, spark: Any, path: str | os.PathLike[str]) -> None:
        self.spark = spark
        self.path = _checked(path)

    def find(self) -> dict[str, Any] | None:
        """Return `meta`, or None if there is no file; raise if there are files of other kinds."""
        with self._usable():
            meta = self.read_json("meta")
            if meta is None and not self._is_empty():
                raise ValueError(
                    f"{self.path} has files that are not of a build; give an empty folder or a new "
                    "one"
                )
        return meta

    def start(self, meta: dict[str, Any]) -> None:
        """Write `meta`, the first file of a build."""
        with self._usable():
            self.write_json("meta", meta)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except ValueError:
            raise
        except Exception as error:  # any of Java
            raise OSError(f"{self.path} cannot be used: {reason(error)}") from error

    def _is_empty(self) -> bool:
        """Return whether there is no file, except for those that Spark hides."""
        files = self.spark.read.format("binaryFile").option("recursiveFileLookup", True)
        try:
            return files.load(self.path).select("path").first() is None
        except Exception as error:
            if _is_missing(error):
                return True
            raise

    def write_json(self, name: str, values: dict[str, Any]) -> None:
        """Write one JSON object."""
        from pyspark.sql import functions as F

        frame = self.spark.range(1, numPartitions=1).select(F.lit(json.dumps(values)))
        frame.write.mode("overwrite").text(f"{self.path}/{name}")

    def read_json(self, name: str) -> dict[str, Any] | None:
        """Return a JSON object, or None if it is not there or was not written to its end."""
        try:
            lines = self.spark.read.text(f"{self.path}/{name}").collect()
        except Exception as error:
            if _is_missing(error):
                return None
            raise
        try:
            values = json.loads(lines[0][0])
        except (IndexError, ValueError):
            return None
        return values if isinstance(values, dict) else None

    def write(self, name: str, frame: Any) -> None:
        """Write a frame in place of what is there."""
        frame.write.mode("overwrite").parquet(f"{self.path}/{name}")

    def read(self, name: str, schema: str) -> Any:
        """Return a frame that was written."""
        return self.spark.read.schema(schema).parquet(f"{self.path}/{name}")

    def empty(self, name: str) -> None:
        """Delete the rows of a frame that nobody needs any more."""
        self.write(name, self.spark.range(0, numPartitions=1))


def reason(error: Exception) -> str:
    """Return what an error of Spark says, without what Java adds."""
    lines = [line.strip(": ") for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith("An error occurred while")]
    return said[0] if said else type(error).__name__


def _is_missing(error: Exception) -> bool:
    """Return whether an error of Spark says that a path is not there."""
    condition = getattr(error, "getCondition", None)
    return condition is not None and condition() == "PATH_NOT_FOUND"


def _checked(path: object) -> str:
    """Return the path of a folder without a slash at its end, or raise."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise InvalidTypeError(f"path is {show(path)}; it must be a str or a path")
    stripped = text.rstrip("/")
    if not stripped.strip():
        raise ValueError(f"path is {show(text)}; it must be a folder")
    wrong = next((letter for letter in stripped if letter in PATTERN), None)
    if wrong is not None:
        raise ValueError(
            f"path is {show(text)}; it must not have {wrong!r}, which Spark takes for a pattern"
        )
    return stripped


@contextmanager
def arrow_only() -> Iterator[None]:
    """Hide PySpark's warning about new versions of pandas: only Arrow is used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        yield
