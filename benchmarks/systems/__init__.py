"""The clustering systems of the evaluation, by name; base.py has their interface.

``SYSTEMS[name](settings)`` makes a system, or raises `Unavailable` with the reason, for instance a
package that is not installed. Systems whose name ends in ``-normalised`` scale every point to unit
length first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

from benchmarks.systems.base import Abilities, Arrivals, Settings, System, Unavailable, points_only

__all__ = [
    "SYSTEMS",
    "Abilities",
    "Arrivals",
    "Settings",
    "System",
    "Unavailable",
    "points_only",
]

Factory = Callable[[Settings], System]

# The module and class of each system; a module is imported when its system is made.
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
        made = getattr(import_module(f"{__name__}.{module}"), cls)
        system: System = made(replace(settings, normalised=normalised))
        return system

    return make


SYSTEMS: dict[str, Factory] = {name: _factory(name, normalised=False) for name in _CLASSES}
SYSTEMS |= {f"{name}-normalised": _factory(name, normalised=True) for name in _NORMALISED}
