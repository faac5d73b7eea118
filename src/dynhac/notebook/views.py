"""The HTML of each kind of object, for its method ``_repr_html_``.

Size and time are bounded. A drawing has at most `ROWS` rows. A model is not made to compute its
dendrogram if it has more than `DRAWN` points, which takes time and memory in proportion; its tree
is drawn if the dendrogram has been read since the last update. What else is read costs no more than
a pass over the clusters of a watch, or over the arrays of a dendrogram that exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynhac.dendrogram.sketch import left_out, sketch_of, usual_size
from dynhac.input.errors import counted
from dynhac.notebook.pieces import bars, grid, lines, note, page, table, tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dynhac.dendrogram.dendrogram import Dendrogram
    from dynhac.dendrogram.suggest import Suggestions
    from dynhac.models.change import Change
    from dynhac.models.graph import GraphHAC
    from dynhac.models.point_change import PointChange
    from dynhac.models.points import DynHAC
    from dynhac.watch.watch import Watch

ROWS = 20
DRAWN = 20_000
SHOWN_IDS = 5

Rows = list[tuple[str, object]]


def graph_html(graph: GraphHAC) -> str:
    """Return a table and, of a small graph, the upper part of its tree."""
    sizes = graph.level_sizes
    vertices, edges = sizes[0] if sizes else (0, 0)
    rows: Rows = [("vertices", f"{vertices:,}"), ("edges", f"{edges:,}"), ("levels", len(sizes))]
    rows += [("memory", _bytes(graph.memory)), *_parameters(graph, "epsilon", "threshold")]
    return _model(graph, "GraphHAC", rows)


def points_html(model: DynHAC) -> str:
    """Return a table and, of a small model, the upper part of its tree."""
    sizes = model.graph.level_sizes
    function = model.similarity
    shown = getattr(function, "__name__", function) if callable(function) else function
    rows: Rows = [
        ("points", f"{len(model):,}"),
        ("dimension", "not known yet" if model.dimension is None else model.dimension),
        ("edges", f"{sizes[0][1] if sizes else 0:,}"),
        ("levels", len(sizes)),
        ("memory", _bytes(model.memory)),
        *_parameters(model, "epsilon", "threshold", "n_neighbors", "metric"),
        ("similarity", shown),
    ]
    if model.backend is not None:
        rows.append(("index", model.backend))
    window = _parameters(model, "max_points", "max_age")
    rows += [(name, value) for name, value in window if value is not None]
    return _model(model, "DynHAC", rows)


def dendrogram_html(dendrogram: Dendrogram) -> str:
    """Return a table and the upper part of the tree."""
    rows: Rows = [
        ("leaves", f"{dendrogram.n_leaves:,}"),
        ("merges", f"{len(dendrogram):,}"),
        ("trees", f"{dendrogram.n_leaves - len(dendrogram):,}"),
    ]
    if len(dendrogram):
        span = f"{dendrogram.similarity.max():.3g} to {dendrogram.similarity.min():.3g}"
        rows.append(("similarity", span))
    rows += _parameters(dendrogram, "epsilon", "threshold", "version")
    return page("Dendrogram", table(rows), _tree(dendrogram))


def watch_html(watch: Watch) -> str:
    """Return a table and the sizes of the largest clusters."""
    theta = "automatic" if watch.theta is None else f"{watch.theta:g}"
    rows: Rows = [("theta", theta), ("min_size", f"{watch.min_size:,}")]
    if watch.patience is not None:
        rows.append(("patience", watch._parameters.patience_text))
    if watch._handle is None:
        return page("Watch (closed)", table(rows))
    ids, sizes = watch._ask(lambda engine, handle: engine.watch_clusters(handle))
    rows += [("clusters", f"{len(ids):,}"), ("points in clusters", f"{int(sizes.sum()):,}")]
    largest = np.lexsort((ids, -sizes))[:ROWS]
    found = zip(ids[largest].tolist(), sizes[largest].tolist(), strict=True)
    drawing = bars([(str(id), size) for id, size in found], "sizes of clusters")
    if len(ids) > ROWS:
        drawing += note(f"and {counted(len(ids) - ROWS, 'smaller cluster', 'smaller clusters')}")
    return page("Watch: sizes of clusters", table(rows), drawing)


def change_html(change: Change) -> str:
    """Return a table of what an update of a graph did."""
    return page("Change", table(_engine_rows(change)))


def point_change_html(change: PointChange) -> str:
    """Return a table of what an update of points did."""
    points: Rows = [
        ("inserted", _ids(change.inserted)),
        ("deleted", _ids(change.deleted)),
        ("expired", _ids(change.expired)),
        ("repaired", _ids(change.repaired)),
        ("searching", f"{change.seconds_search * 1e3:.3g} ms"),
        ("on the graph", f"{change.seconds_graph * 1e3:.3g} ms"),
    ]
    return page("PointChange", table(points), table(_engine_rows(change)))


def suggestions_html(suggestions: Suggestions) -> str:
    """Return a table of cuts, and of the automatic choice."""
    if not len(suggestions):
        return page(suggestions._head(), note(suggestions._remark()))
    return page(suggestions._head(), grid(suggestions._rows()))


def lines_html(title: str, plain: object) -> str:
    """Return what printing an object shows."""
    return page(title, lines(str(plain)))


def _engine_rows(change: Change) -> Rows:
    return [
        ("nodes created", f"{change.nodes_created:,}"),
        ("nodes removed", f"{change.nodes_removed:,}"),
        ("edges changed", f"{change.edges_changed:,}"),
        ("levels visited", f"{change.levels:,}"),
        ("groups rerun", f"{change.groups_rerun:,}"),
        ("in the engine", f"{change.seconds * 1e3:.3g} ms"),
    ]


def _model(model: Any, kind: str, rows: Rows) -> str:
    """Return the page of a model, durable or not."""
    title, store = kind, getattr(model, "_store", None)
    if store is not None:
        state = "closed" if store.closed else "read-only" if store.mode == "r" else "durable"
        title = f"{kind} ({state})"
        rows = [*rows, ("updates", f"{model.update_number:,}")]
    drawing = ""
    view = model._engine.current_view()
    if view is None and 0 < len(model) <= DRAWN:
        view = model.dendrogram()
    if view is not None:
        drawing = _tree(view)
    elif len(model):
        drawing = note(
            f"A model of more than {DRAWN:,} points draws its tree only if dendrogram() has been "
            "called since the last update."
        )
    path = "" if store is None else note(f"in {model.path}")
    return page(title, table(rows) + path, drawing)


def _tree(dendrogram: Dendrogram) -> str:
    least = usual_size(dendrogram)
    sketch = sketch_of(dendrogram, ROWS, least)
    labels = [
        f"({sketch.size[node]:,})" if node in sketch.x else str(dendrogram.ids[node])
        for node in sketch.ends
    ]
    remarks = left_out(sketch, least)
    return tree(sketch, labels) + (note("; ".join(remarks)) if remarks else "")


def _parameters(owner: Any, *names: str) -> Rows:
    values = ((name, getattr(owner, name)) for name in names)
    return [(name, f"{v:g}" if isinstance(v, float) else v) for name, v in values]


def _ids(ids: NDArray[Any]) -> str:
    """Return how many ids there are, and the first few."""
    if not len(ids):
        return "0"
    first: Sequence[object] = ids[:SHOWN_IDS].tolist()
    more = ", …" if len(ids) > SHOWN_IDS else ""
    return f"{len(ids):,}: {', '.join(str(id)[:40] for id in first)}{more}"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
