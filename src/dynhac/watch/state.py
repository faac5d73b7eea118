"""The saved form of a watch: the columns of its clusters, its history and its last step.

Columns are checked when they are loaded: whatever a file has in them, a watch that was loaded can
be read and updated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynhac.watch.events import NO_CLUSTER
from dynhac.watch.history import History, PastStep

if TYPE_CHECKING:
    from dynhac._core import WatchState
    from dynhac.watch.parameters import WatchParameters

REPORTED = ("usual", "reported", "held_key", "held_reported", "waiting", "since", "kind")
"""The columns of a `ReportedState`."""

HISTORY = (
    *("version", "time_kind", "time", "cluster", "before", "now", "clusters"),
    *("source", "target", "end", "moves"),
)

Columns = Mapping[str, NDArray[Any]]


def state_columns(state: WatchState) -> dict[str, NDArray[Any]]:
    """Return the clusters of a watch as columns."""
    columns = {"ids": state.ids, "roots": state.roots, "next": np.array([state.next], np.int64)}
    if state.reported is not None:
        columns |= {f"reported/{name}": getattr(state.reported, name) for name in REPORTED}
        columns["reported/next"] = np.array([state.reported.next], np.int64)
    return columns


def load_state(columns: Columns, parameters: WatchParameters) -> tuple[Any, ...]:
    """Return the last arguments of the engine's ``restore_watch``."""
    reported = None
    if parameters.patience is not None:
        parts = (_whole(columns, f"reported/{name}") for name in REPORTED)
        reported = (*parts, _one(columns, "reported/next"))
    return _whole(columns, "ids"), _whole(columns, "roots"), _one(columns, "next"), reported


def history_columns(history: History, points: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    """Return a history as columns, with the ids of the points in its last step if given."""
    columns: dict[str, NDArray[Any]] = dict(history.columns())
    if points is not None and points.dtype == object:
        texts = [text.encode("utf-8", "surrogatepass") for text in points.tolist()]
        columns["last/text"] = np.frombuffer(b"".join(texts), np.uint8)
        columns["last/lengths"] = np.array([len(text) for text in texts], np.int64)
    elif points is not None:
        columns["last/ids"] = points
    return columns


def load_history(columns: Columns) -> tuple[History, PastStep | None, NDArray[Any] | None]:
    """Return a history, its last step and the ids of the points in it; None if not saved."""
    history = History.from_columns({name: _whole(columns, name) for name in HISTORY})
    points: NDArray[Any]
    if "last/ids" in columns:
        points = _whole(columns, "last/ids")
    elif "last/text" in columns:
        points = _texts(columns)
    else:
        return history, None, None
    step = history.last
    if step is None or not _fits(step, len(points)):
        raise ValueError("the last step of a watch does not fit its points")
    return history, step, points


def _fits(step: PastStep, points: int) -> bool:
    """Whether the moves of a step are those of so many points between its clusters."""
    known = {NO_CLUSTER, *step.cluster.tolist()}
    ends = [0, *step.end.tolist()]
    return (
        known >= {*step.source.tolist(), *step.target.tolist()}
        and ends == sorted(ends)
        and ends[-1] == points
    )


def _texts(columns: Columns) -> NDArray[Any]:
    text, lengths = columns["last/text"], _whole(columns, "last/lengths")
    if text.dtype != np.uint8 or text.ndim != 1 or (lengths < 0).any():
        raise ValueError("the points in the last step of a watch are no texts")
    if sum(lengths.tolist()) != len(text):
        raise ValueError("the points in the last step of a watch have wrong lengths")
    data, ends = text.tobytes(), np.cumsum(lengths).tolist()
    points = np.empty(len(lengths), object)
    for i, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        points[i] = data[start:end].decode("utf-8", "surrogatepass")
    return points


def _whole(columns: Columns, name: str) -> NDArray[np.int64]:
    column = columns[name]
    if column.dtype != np.int64 or column.ndim != 1:
        raise ValueError(f"{name} of a watch is not a column of whole numbers")
    return np.array(column)  # the file's buffer must not stay for it


def _one(columns: Columns, name: str) -> int:
    column = _whole(columns, name)
    if column.shape != (1,):
        raise ValueError(f"{name} of a watch is not one number")
    return int(column[0])
