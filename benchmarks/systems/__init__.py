"""The clustering systems of the evaluation, by name; see base.py for what they have in common.

``SYSTEMS[name](settings)`` makes a system, or raises `Unavailable` with the reason why it cannot be
had here (a package that is not installed, for one). The ones whose name ends in ``-normalised``
scale every point to unit length first. `WITH_RADIUS` are those with a radius that can be tuned
(``radius.tuned_radius``), and whether it goes with the density of the points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

from systems.base import Abilities, Arrivals, Settings, System, Unavailable

__all__ = ["SYSTEMS", "WITH_RADIUS", "Abilities", "Arrivals", "Settings", "System", "Unavailable"]

Factory = Callable[[Settings], System]

# Where each system is; a module is imported when its system is made.
_CLASSES = {
    "dynhac": "ours.Dynhac",
    "static": "ours.Static",
    "paper": "ours.Paper",
    "grinch": "grinch.Grinch",
    "onlinescc": "onlinescc.OnlineSCC",
    "exact": "exact.Exact",
    "agglomerative": "agglomerative.Agglomerative",
    "birch": "birch.Birch",
    "hdbscan": "hdbscan.Hdbscan",
    "fishdbc": "fishdbc.Fishdbc",
    "incdbscan": "incdbscan.Incdbscan",
    "dbstream": "dbstream.Dbstream",
}
_NORMALISED = ("grinch", "onlinescc")


def _factory(name: str, normalised: bool) -> Factory:
    module, cls = _CLASSES[name].split(".")

    def make(settings: Settings) -> System:
        made = getattr(import_module(f"systems.{module}"), cls)
        system: System = made(replace(settings, normalised=normalised))
        return system

    return make


SYSTEMS: dict[str, Factory] = {name: _factory(name, normalised=False) for name in _CLASSES}
SYSTEMS |= {f"{name}-normalised": _factory(name, normalised=True) for name in _NORMALISED}
WITH_RADIUS = {"birch": False, "dbstream": False, "incdbscan": True}
