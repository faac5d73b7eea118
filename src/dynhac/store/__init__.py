"""Models that live in a directory and survive crashes: a log of updates, and snapshots.

The directory holds

==========================  ===============================================================
``log.sqlite``              every update since the last snapshots, in order; the payloads
``snapshot-<n>.dynhac``     the whole model after update n, as `save` writes it
``head``                    the number of the last acknowledged update
``lock``                    locked by the writer; holds its process id
==========================  ===============================================================
"""

from dynhac.store.errors import RecoveryWarning, StoreError, StoreLockedError
from dynhac.store.models import DurableDynHAC, DurableGraphHAC
from dynhac.store.opening import open

__all__ = [
    "DurableDynHAC",
    "DurableGraphHAC",
    "RecoveryWarning",
    "StoreError",
    "StoreLockedError",
    "open",
]
