"""Plots of dendrograms and timelines, with matplotlib."""

from dynhac.plot.dendrogram import plot_dendrogram
from dynhac.plot.timeline import plot_timeline
from dynhac.watch.history import Timeline

__all__ = ["Timeline", "plot_dendrogram", "plot_timeline"]
