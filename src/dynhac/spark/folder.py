"""The folder of a build: Parquet and JSON, written and read by Spark alone, wherever it lies.

| path        | what                                                                           |
|-------------|--------------------------------------------------------------------------------|
| `meta`      | JSON: versions, parameters, counts; one line of text                           |
| `vertices`  | Parquet: `id` long, and `name` string if ids are str                           |
| `merges`    | Parquet, at the end: see `dynhac.spark.dendrogram`                             |
| `state/R`   | JSON: what was left before round R + 1; written when the edges are             |
| `edges/0`   | Parquet: the blocks before rounds 1, 3, ...; `edges/1`: before rounds 2, 4, ... |
| `results/R` | Parquet: what the workers returned in round R                                  |
| `pointers/H`| Parquet: where the vertices have arrived after H hops, in the present round    |
| `input`     | Parquet: the edges with numbers in place of ids that are str                   |

`state/R` says that everything before it is complete: a build that was killed goes on after the last
one. All but the first three, and `state`, are emptied at the end.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Folder:
    """Reads and writes the parts of a build."""

    def __init__(self, spark: Any, path: str) -> None:
        self.spark = spark
        self.path = path.rstrip("/")

    def write_json(self, name: str, values: dict[str, Any]) -> None:
        """Write one JSON object."""
        from pyspark.sql import functions as F

        frame = self.spark.range(1, numPartitions=1).select(F.lit(json.dumps(values)))
        frame.write.mode("overwrite").text(f"{self.path}/{name}")

    def read_json(self, name: str) -> dict[str, Any] | None:
        """Return a JSON object, or None if it is not there or was not written to its end."""
        from pyspark.errors import AnalysisException

        try:
            lines = self.spark.read.text(f"{self.path}/{name}").collect()
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return None
            raise
        try:
            values: dict[str, Any] = json.loads(lines[0][0])
        except (IndexError, ValueError):
            return None
        return values

    def write(self, name: str, frame: Any) -> None:
        """Write a frame in place of what is there."""
        frame.write.mode("overwrite").parquet(f"{self.path}/{name}")

    def read(self, name: str, schema: str) -> Any:
        """Return a frame that was written."""
        return self.spark.read.schema(schema).parquet(f"{self.path}/{name}")

    def empty(self, name: str) -> None:
        """Delete the rows of a frame that nobody needs any more."""
        self.write(name, self.spark.range(0, numPartitions=1))


@contextmanager
def arrow_only() -> Iterator[None]:
    """Hide PySpark's warning about new versions of pandas: only Arrow is used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        yield
