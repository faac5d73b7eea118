"""Slow and readable implementations, to read beside the papers and to test the engine against.

``PaperDynHAC`` is the published dynamic algorithm, written down literally; ``exact_hac`` is
textbook average-linkage clustering by brute force. Both compute with exact fractions: two linkages
are equal here only if they are equal.
"""

from dynhac.reference.exact import exact_hac
from dynhac.reference.merges import Merge
from dynhac.reference.paper import PaperDynHAC
from dynhac.reference.replay import Verification

__all__ = ["Merge", "PaperDynHAC", "Verification", "exact_hac"]
