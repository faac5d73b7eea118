"""Benchmarks of dynhac, run as modules from the root of the repository.

- ``benchmarks.cost``: what updates of graphs, points and stores cost;
- ``benchmarks.evaluation``: the evaluation of the DynHAC paper, repeated and extended;
- ``benchmarks.systems``: the clustering systems that the evaluation compares;
- ``benchmarks.gpu``: a model whose neighbours a GPU finds;
- ``benchmarks.common``: what several of these use.

For instance ``python -m benchmarks.cost.updates --help``.
"""

from pathlib import Path

ROOT = Path(__file__).parent.parent
CACHE = Path(__file__).parent / "cache"  # prepared streams; not committed
