"""An immutable dendrogram: flat clusterings, suggested cuts, linkage matrix, exports."""

from dynhac.dendrogram.dendrogram import Dendrogram

__all__ = ["Dendrogram"]
