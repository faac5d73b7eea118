"""Flat clusters that are followed through updates: watches, events, history."""

from dynhac.watch.events import Event, replay
from dynhac.watch.watch import Watch

__all__ = ["Event", "Watch", "replay"]
