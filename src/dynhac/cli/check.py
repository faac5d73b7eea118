"""``dynhac stats`` and ``dynhac verify``: what a store holds, and whether it is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from dynhac.cli.command import MISTAKE, add_command
from dynhac.cli.options import CARE, Json, Store
from dynhac.input.errors import counted

if TYPE_CHECKING:
    from dynhac.cli.stores import AnyStore


KEPT = ("log_rows", "log_bytes", "snapshot_number")
"""Figures of the store itself, beside those of the model."""


def stats(store: Store, json: Json = False) -> None:
    """Show what a store holds, its parameters, and what it takes on disk and in memory."""
    from dynhac.cli.output import show_json, show_table
    from dynhac.cli.stores import reading

    with reading(store) as opened:
        kept = opened.stats()
        told = _facts(opened) | {name: kept[name] for name in KEPT if name in kept}
    told["disk_bytes"] = sum(file.stat().st_size for file in store.iterdir() if file.is_file())
    if json:
        show_json(told)
    else:
        show_table((), [(name, _shown(name, value)) for name, value in told.items()], 0)


def verify(store: Store, json: Json = False) -> None:
    """Check the files of a store, and every merge of its hierarchy against the plain graph.

    It takes about as long as a build. Exit code 1 if anything is wrong.
    """
    from dataclasses import asdict

    from dynhac.cli.output import show, show_json
    from dynhac.cli.progress import busy
    from dynhac.cli.stores import reading

    with reading(store) as opened:  # which reads all of its files, with their checksums
        with busy(f"verifying {store}"):
            report = opened.verify()
        number = opened.update_number
    if json:
        show_json(asdict(report) | {"update": number})
    else:
        show(f"{store} at update {number}: {report}")
    if not report.ok:
        raise typer.Exit(MISTAKE)


def _facts(store: AnyStore) -> dict[str, Any]:
    """Return what the model says about itself."""
    from dynhac.cli.stores import has_text_ids, is_points

    model: Any = store
    points = is_points(store)
    levels = store.level_sizes
    told: dict[str, Any] = {
        "path": str(store.path),
        "kind": "points" if points else "graph",
        "update_number": store.update_number,
        "points" if points else "vertices": len(store),
        "edges": levels[0][1] if levels else 0,
        "trees": len(store.dendrogram().roots),
        "levels": len(levels),
        "ids": {True: "str", False: "int", None: None}[has_text_ids(store)],
        "epsilon": store.epsilon,
        "threshold": store.threshold,
        "resolution": store.resolution,
    }
    if points:
        told |= {
            "dimension": model.dimension,
            "n_neighbors": model.n_neighbors,
            "metric": model.metric,
            "similarity": _told_similarity(model.similarity),
            "backend": model.backend,
            "repair": model.repair,
            "max_points": model.max_points,
            "max_age": None if model.max_age is None else str(model.max_age),
        }
    watches = (model.graph if points else model).watches
    told["watches"] = [{"at": w.theta, "min_size": w.min_size, "clusters": len(w)} for w in watches]
    told["memory_bytes"] = store.memory
    return told


def _told_similarity(similarity: Any) -> str:
    """Return a similarity as ``build`` takes it."""
    if isinstance(similarity, tuple):
        return f"{similarity[0]}:{similarity[1]:g}"
    return similarity if isinstance(similarity, str) else "a function"


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name.endswith("bytes"):
        return _size(int(value))
    if name == "watches":
        return "; ".join(
            f"at {w['at']:g}, min_size {w['min_size']}: "
            + counted(w["clusters"], "cluster", "clusters")
            for w in value
        ) or "-"  # fmt: skip
    if isinstance(value, int) and not isinstance(value, bool) and not name.endswith("number"):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _size(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    add_command(
        app,
        stats,
        [
            ("For people", "dynhac stats my.store"),
            ("One number", "dynhac stats my.store --json | jq .points"),
        ],
        CARE,
    )
    add_command(
        app,
        verify,
        [("In a script", "dynhac verify my.store || echo 'my.store is damaged'")],
        CARE,
    )
