"""An immutable dendrogram: flat clusterings, condensed tree, suggested cuts, exports."""

from dynhac.dendrogram.condensed import CondensedTree
from dynhac.dendrogram.dendrogram import Dendrogram

__all__ = ["CondensedTree", "Dendrogram"]
