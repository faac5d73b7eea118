"""What commands report that change a store."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from dynhac.cli.output import print_json, print_text
from dynhac.cli.stores import AnyStore
from dynhac.input.errors import counted

MAX_IDS = 20
"""New ids that are listed; of more, only the first and the last."""

COUNTS = {
    "inserted": ("inserted", "inserted"),
    "replaced": ("replaced", "replaced"),
    "edges_set": ("edge set", "edges set"),
    "deleted": ("deleted", "deleted"),
    "deleted_edges": ("edge deleted", "edges deleted"),
    "expired": ("expired", "expired"),
    "repaired": ("repaired", "repaired"),
}
"""Numbers in a result, and how they are reported: of one, and of several."""


def store_facts(store: AnyStore, start: float) -> dict[str, Any]:
    """Return the state of a store after a change that began at the time ``start``."""
    return {
        "size": len(store),
        "update": store.update_number,
        "seconds": time.perf_counter() - start,
    }


def print_result(store: Path, result: dict[str, Any], json: bool, text: str | None = None) -> None:
    """Write the result of a change, as JSON or as text; the usual text if none is given."""
    if json:
        print_json(result | {"store": str(store)})
        return
    if text is None:
        counts = ", ".join(
            counted(result[name], *words)
            for name, words in COUNTS.items()
            if result.get(name) or (name == "inserted" and name in result)
        )
        text = (
            f"{store}: {counts}; {result['size']:,} in the store, update "
            f"{result['update']}, in {result['seconds']:.2f} s"
        )
    print_text(text)
    ids = result.get("ids")
    if ids:
        listed = ", ".join(map(str, ids)) if len(ids) <= MAX_IDS else f"{ids[0]} to {ids[-1]}"
        print_text(f"new ids: {listed}")
