"""What can be wrong with a store."""

from __future__ import annotations


class StoreError(RuntimeError):
    """A store that cannot be opened, or an update that it cannot keep; the message says why."""


class StoreLockedError(StoreError):
    """A store that another writer has open."""


class RecoveryWarning(UserWarning):
    """A store of which something was damaged or could not be written; the message says what."""
