"""Hierarchies of graphs that one machine cannot hold, on Apache Spark.

`build` takes a DataFrame of edges and writes a hierarchy with the guarantee of `GraphHAC` to a
folder, in Parquet. `SparkDendrogram` reads it. See docs/guide/spark.md.
"""

from dynhac.spark.build import build
from dynhac.spark.dendrogram import SparkDendrogram

__all__ = ["SparkDendrogram", "build"]


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
