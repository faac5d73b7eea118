"""The hierarchy at one moment: cuts, the linkage matrix, exports."""

from dynhac.dendrogram.dendrogram import Dendrogram

__all__ = ["Dendrogram"]
