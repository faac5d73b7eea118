"""An immutable dendrogram: flat clusterings, linkage matrix, exports."""

from dynhac.dendrogram.dendrogram import Dendrogram

__all__ = ["Dendrogram"]
