"""A clusterer for river, on top of the models of this package.

Needs the extra ``dynhac[river]``. Importing ``dynhac`` does not import river; importing
``dynhac.river`` does.
"""

from dynhac.extras import optional

optional("river", "river", "dynhac.river")  # raises an error that names the extra

from dynhac.river.clusterer import DynHACClustering  # noqa: E402

__all__ = ["DynHACClustering"]


def __dir__() -> list[str]:
    return sorted(__all__)
