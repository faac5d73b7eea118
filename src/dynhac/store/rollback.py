"""How a model goes back to where it was before a batch that could not be written.

The rows of the batch are not on the disk. So the store, read from its snapshot and log, gives the
model as it was before, in every bit. The model that the user holds takes over that state, and so
do its graph and its watches: those that were made within the batch are closed, those that were
closed within it are open again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dynhac.models.points import DynHAC
from dynhac.progress import metered
from dynhac.store.errors import StoreError
from dynhac.store.recovery import Source, recover
from dynhac.store.snapshots import Position

if TYPE_CHECKING:
    from dynhac.models.point_change import PointChange
    from dynhac.store.log import Log
    from dynhac.store.snapshots import Model
    from dynhac.watch.watch import Watch


class BatchStart(NamedTuple):
    """What is kept of a model when a batch begins."""

    position: Position
    watches: tuple[Watch, ...]
    last_change: PointChange | None

    @classmethod
    def of(cls, model: Model, position: Position) -> BatchStart:
        """Return what is to be kept of a model that is at a position."""
        last = model.last_change if isinstance(model, DynHAC) else None
        return cls(position, model.watches, last)

    def restore(self, model: Model, source: Source, log: Log) -> None:
        """Bring a model back, under its lock; an exception: it is as it was, and so is the log."""
        with metered(False) as meter:
            recovered = recover(source, log, meter)
        if recovered.position != self.position:
            raise StoreError(
                f"the files lead to update {recovered.position.number}, and the batch began after "
                f"update {self.position.number}"
            )
        made = set(model.watches).difference(self.watches)
        found = list(recovered.model.watches)
        model._adopt(recovered.model)  # type: ignore[arg-type]
        for watch in self.watches:
            fresh = next((each for each in found if each._is_like(watch)), None)
            if fresh is None:
                watch._detach()
            else:
                found.remove(fresh)
                watch._take_over(fresh)
        for watch in made:
            watch._detach()
        if isinstance(model, DynHAC):
            model._last_change = self.last_change
