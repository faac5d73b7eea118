"""What a model with a store can do beside everything else; who does it is its keeper.

A model without a keeper is being opened: updates from the log go straight into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from dynhac.store.codec import decode

if TYPE_CHECKING:
    from typing_extensions import Self

    from dynhac.store.follower import Follower
    from dynhac.store.keeper import Keeper


class Durable:
    """What a model with a store has beside everything else."""

    __slots__ = ()

    _keeper: Keeper | Follower | None

    def close(self) -> None:
        """Write a snapshot if there is something new, and let the store go.

        The model can still be read. Closing twice does no harm; a ``with`` block closes at its end.
        """
        self._kept().close(self)  # type: ignore[arg-type]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def snapshot(self) -> int:
        """Write a snapshot now; return the number of the update it was taken after.

        Updates wait while the state is copied out, and go on while it reaches the disk.
        """
        return self._kept().snapshot(self)  # type: ignore[arg-type]

    def batch(self) -> AbstractContextManager[None]:
        """Return a block within which updates reach the disk together, which is much quicker.

        They are acknowledged when the block ends: if the process dies within, none of them or the
        whole block may be missing. It is no transaction: after an exception in the block, the
        updates made before it stay. Other threads' updates wait until the end.

        Examples
        --------
        >>> import tempfile, dynhac
        >>> with tempfile.TemporaryDirectory() as folder, dynhac.open(folder) as model:
        ...     with model.batch():
        ...         for x in range(100):
        ...             _ = model.insert([float(x)])
        ...     model.update_number
        100
        """
        return self._kept().group()

    def refresh(self) -> int:
        """Follow the writer: apply the updates it has acknowledged meanwhile.

        For stores opened with ``mode="r"``. If the log does not go back far enough, a newer
        snapshot is loaded; watches made before do not follow it.

        Returns
        -------
        int
            How many updates the model is further than before.
        """
        return self._kept().refresh(self)  # type: ignore[arg-type]

    def changes(self, since: int = 0) -> Iterator[dict[str, Any]]:
        """Give the updates after a number, as far back as the log goes.

        Yields
        ------
        dict
            ``number``; ``op``, one of "points", "expire" and "graph"; ``inserted`` and ``deleted``,
            arrays or lists of ids. Points that expired are not listed: no batch named them.

        Examples
        --------
        >>> import tempfile, dynhac
        >>> with tempfile.TemporaryDirectory() as folder, dynhac.open(folder) as model:
        ...     _ = model.insert([[0.0], [1.0]], ids=["a", "b"])
        ...     _ = model.delete("a")
        ...     [(c["number"], c["inserted"], c["deleted"]) for c in model.changes()]
        [(1, ['a', 'b'], []), (2, [], ['a'])]
        """
        for row in self._kept().rows(since):
            columns = decode(row.payload)
            names = ("add", "remove") if row.op == "graph" else ("ids", "delete")
            inserted, deleted = (columns.get(name, []) for name in names)
            yield {"number": row.number, "op": row.op, "inserted": inserted, "deleted": deleted}

    def stats(self) -> dict[str, Any]:
        """Return figures about the store: numbers of updates, bytes of log and snapshots."""
        kept = self._kept()
        return {
            "path": kept.directory,
            "mode": kept.mode,
            "durability": kept.durability,
            "update_number": kept.position.number,
            **kept.stats(),
        }

    @property
    def update_number(self) -> int:
        """How many updates have been made since the store was new.

        Those that changed nothing count too, which they do not for `version`.
        """
        return self._kept().position.number

    @property
    def path(self) -> str:
        """The directory of the store."""
        return self._kept().directory

    @property
    def durability(self) -> str:
        """When an update counts as written: "full" or "normal"."""
        return self._kept().durability

    def _kept(self) -> Keeper | Follower:
        assert self._keeper is not None
        return self._keeper
