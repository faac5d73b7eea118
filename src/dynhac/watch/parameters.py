"""The parameters of a watch, and the order to make or close one.

A watch without theta follows the automatic clusters.

A patience is a number of updates, or a time in the unit of the model's timestamps; of dates that is
nanoseconds. No two watches of a model have the same parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynhac.dendrogram.cuts import check_no_count
from dynhac.dendrogram.selection import automatic_min_size
from dynhac.input.columns import INT64_MAX, is_int, real_number, scalar, whole_number
from dynhac.input.errors import InvalidTypeError, counted, show
from dynhac.input.timestamps import read_age

UPDATES, NUMBERS, DATES = range(3)
"""What a patience is measured in: updates, timestamps that are numbers, or dates."""


class WatchParameters(NamedTuple):
    """The parameters of a watch.

    Attributes
    ----------
    theta, min_size
        Those of `Watch`.
    patience : int, float or None
        How long; None for no patience.
    unit : int
        What that is measured in.
    """

    theta: float | None
    min_size: int
    patience: int | float | None = None
    unit: int = UPDATES

    @classmethod
    def read(
        cls, threshold: float, theta: object, min_size: object, patience: object
    ) -> WatchParameters:
        """Return parameters as users give them, or raise."""
        similarity: float | None = None
        if theta is None:
            size = whole_number(automatic_min_size(min_size), "min_size", 2, INT64_MAX)
        else:
            similarity = _read_theta(threshold, theta)
            size = 1 if min_size is None else whole_number(min_size, "min_size", 1, INT64_MAX)
        length, unit = _read_patience(patience)
        return cls(similarity, size) if not length else cls(similarity, size, length, unit)

    @property
    def where(self) -> str:
        """Which clusters a watch follows, in words: "the watch" is followed by this."""
        return "of automatic clusters" if self.theta is None else f"at {self.theta:g}"

    @property
    def public_patience(self) -> int | float | np.timedelta64 | None:
        """The patience as users give it."""
        if self.patience is None or self.unit != DATES:
            return self.patience
        return np.timedelta64(int(self.patience), "ns")

    @property
    def patience_text(self) -> str | None:
        """The patience in words; None if there is none."""
        if self.patience is None:
            return None
        if self.unit == UPDATES:
            return counted(int(self.patience), "update", "updates")
        return (
            f"{self.patience:g} time units" if self.unit == NUMBERS else _span(self.public_patience)
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the parameters as arrays, for `from_columns`."""
        columns: dict[str, NDArray[Any]] = {"min_size": np.array([self.min_size], np.int64)}
        if self.theta is not None:
            columns["theta"] = np.array([self.theta])
        if self.patience is not None:
            columns["unit"] = np.array([self.unit], np.int64)
            dtype = np.float64 if self.unit == NUMBERS else np.int64
            columns["patience"] = np.array([self.patience], dtype)
        return columns

    @classmethod
    def from_columns(cls, threshold: float, columns: Mapping[str, Any]) -> WatchParameters:
        """Return the parameters; ValueError or KeyError: they are not right."""
        names = ("min_size", *(name for name in ("theta", "patience") if name in columns))
        if "patience" in columns:
            names += ("unit",)
        values = {name: np.asarray(columns[name]) for name in names}
        if any(value.shape != (1,) for value in values.values()):
            raise ValueError("the parameters of a watch are not single values")
        given = {name: value.tolist()[0] for name, value in values.items()}
        patience: object = given.get("patience")
        if patience is not None:
            unit = given["unit"]
            if unit == DATES:
                patience = np.timedelta64(whole_number(patience, "patience", 1, INT64_MAX), "ns")
            elif unit == UPDATES:
                patience = whole_number(patience, "patience", 1, INT64_MAX)
            elif unit == NUMBERS:
                patience = real_number(patience, "patience", above=True)
            else:
                raise ValueError(f"{unit} is no unit of patience")
        return cls.read(threshold, given.get("theta"), given["min_size"], patience)


class WatchOrder(NamedTuple):
    """The order to make a watch, or to close it."""

    parameters: WatchParameters
    close: bool = False


def _read_theta(threshold: float, theta: object) -> float:
    """Return the similarity of a cut, or raise."""
    similarity = real_number(theta, "theta")
    check_no_count(theta)
    if similarity < threshold:
        raise ValueError(
            f"theta is {show(theta)}; it must be a similarity >= {threshold:g}, the threshold of "
            "the model"
        )
    return similarity


def _span(span: Any) -> str:
    """Return a timedelta64 in the largest unit in which it is whole."""
    for unit in ("D", "h", "m", "s", "ms", "us"):
        if span.astype(f"m8[{unit}]") == span:
            return f"{span.astype(f'm8[{unit}]')}"
    return f"{span}"


def _read_patience(value: object) -> tuple[int | float, int]:
    """Return a patience and its unit; 0 for none."""
    value = scalar(value)
    if value is None:
        return 0, UPDATES
    # First: a timedelta64 is an integer of NumPy's.
    if isinstance(value, (timedelta, np.timedelta64)) or hasattr(value, "to_timedelta64"):
        return read_age(value, "patience")[1], DATES
    if is_int(value):
        return whole_number(value, "patience", 0, INT64_MAX), UPDATES
    if isinstance(value, (float, np.floating)):
        return real_number(value, "patience"), NUMBERS
    raise InvalidTypeError(
        f"patience is {show(value)}; it must be an int, a number of updates, or a time: a float in "
        "the unit of the timestamps, or a timedelta64"
    )
