"""Whether the patience of a watch that is a time fits the timestamps of a model.

The first points of a model decide whether points have timestamps, and of which kind. A watch that
was made before them requires timestamps of its kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dynhac.input.errors import InvalidTypeError
from dynhac.watch.parameters import DATES, UPDATES, WatchParameters

if TYPE_CHECKING:
    from dynhac._core import PointModel
    from dynhac.input.batches import PointBatch
    from dynhac.models.parameters import PointParameters
    from dynhac.watch.watch import Watch


def check_patience(points: PointModel, model: PointParameters, watch: WatchParameters) -> None:
    """Raise if the patience of a watch is not a time like those of the model."""
    if watch.unit == UPDATES or (points.dimension is None and model.max_age is None):
        return
    given = f"patience is {watch.patience_text}, a time"
    if points.dimension is not None and points.time_kind is None:
        raise ValueError(
            f"{given}, and the points of this model have no timestamps; give a number of "
            "updates, an int"
        )
    dates = model.ages_are_dates if points.time_kind is None else points.time_kind == "date"
    if dates != (watch.unit == DATES):
        wanted = "a timedelta64" if dates else "a float"
        raise InvalidTypeError(
            f"{given}; for this model it must be {wanted}, since its timestamps are "
            f"{'dates' if dates else 'numbers'}"
        )


def require_times(watches: Iterable[Watch], batch: PointBatch) -> None:
    """Raise if the first points of a model do not have the timestamps that a watch needs."""
    kind = None if batch.times is None else batch.times.kind
    for watch in watches if batch.vectors is not None else ():
        unit = watch._parameters.unit
        if unit != UPDATES and (kind is None or (kind == "date") != (unit == DATES)):
            raise ValueError(
                f"points need timestamps that are {'dates' if unit == DATES else 'numbers'}, "
                f"since a watch has a patience of {watch._parameters.patience_text}"
            )
