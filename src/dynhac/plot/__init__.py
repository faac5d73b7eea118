"""Drawings of dendrograms and timelines, with matplotlib."""

from dynhac.plot.dendrogram import plot_dendrogram
from dynhac.plot.timeline import Timeline, plot_timeline

__all__ = ["Timeline", "plot_dendrogram", "plot_timeline"]
