"""Flat clusterings that follow the updates of a model: watches, events, timelines."""

from dynhac.watch.events import Event, replay
from dynhac.watch.history import Timeline
from dynhac.watch.watch import Watch

__all__ = ["Event", "Timeline", "Watch", "replay"]
