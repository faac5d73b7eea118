"""Slow, readable reference implementations, used to test the engine.

``PaperDynHAC`` follows the published dynamic algorithm literally; ``exact_hac`` is textbook
average-linkage clustering by brute force. Both compute with exact fractions, so that no comparison
depends on rounding.
"""

from dynhac.reference.exact import exact_hac
from dynhac.reference.merges import Merge
from dynhac.reference.paper import PaperDynHAC
from dynhac.reference.replay import Verification

__all__ = ["Merge", "PaperDynHAC", "Verification", "exact_hac"]


def __dir__() -> list[str]:
    return sorted(__all__)
