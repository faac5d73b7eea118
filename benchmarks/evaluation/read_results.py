"""Reads the results of a run, for tables and figures."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.evaluation.names import DATASET_STYLES, SYSTEM_STYLES
from benchmarks.evaluation.plan import EPSILON

Row = dict[str, Any]


@dataclass
class Results:
    """All rows of a folder of results, and the machines and modes of its runs."""

    rows: list[Row] = field(default_factory=list)
    machines: list[dict[str, Any]] = field(default_factory=list)
    modes: dict[str, str] = field(default_factory=dict)

    @property
    def datasets(self) -> list[str]:
        """The data sets with results."""
        return [d for d in DATASET_STYLES if any(r["dataset"] == d for r in self.rows)]

    @property
    def systems(self) -> list[str]:
        """The systems with results."""
        return [s for s in SYSTEM_STYLES if any(r["system"] == s for r in self.rows)]

    def row(
        self,
        dataset: str,
        system: str,
        protocol: str,
        epsilon: float | None = EPSILON,
        kind: str = "updates",
    ) -> Row | None:
        """Return the row of a job if it was run; systems without epsilon match any epsilon."""
        wanted = {"dataset": dataset, "system": system, "protocol": protocol, "kind": kind}
        for row in self.rows:
            if any(row[k] != v for k, v in wanted.items()) or row["epsilon"] not in (epsilon, None):
                continue
            return None if "skipped" in row or "failed" in row else row
        return None


def read_results(folder: Path) -> Results:
    """Read all results of a run."""
    results = Results()
    for file in sorted(folder.glob("*.json")):
        content = json.loads(file.read_text())
        results.rows += content["rows"]
        results.modes[file.stem] = content["mode"]
        if content["machine"] not in results.machines:
            results.machines.append(content["machine"])
    return results
