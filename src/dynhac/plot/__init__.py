"""Plots of dendrograms, condensed trees and timelines, with matplotlib."""

from dynhac.plot.dendrogram import plot_dendrogram
from dynhac.plot.persistence import plot_persistence
from dynhac.plot.timeline import plot_timeline
from dynhac.watch.history import Timeline

__all__ = ["Timeline", "plot_dendrogram", "plot_persistence", "plot_timeline"]
