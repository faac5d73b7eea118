"""A radius for the systems that want one, from the points that come first.

A hierarchy is cut where it agrees best with the classes. `tuned_radius` gives a system that has one
radius instead the same advantage: the best of several, by the classes of a sample. A radius that
goes with how dense points are, as that of DBSCAN, is carried over from the sample to all points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from systems.base import Arrivals, Settings, System

SAMPLE = 2_000
FACTORS = np.geomspace(0.5, 16, 11)


def typical_radius(points: NDArray[np.float32], neighbor: int, quantile: float, seed: int) -> float:
    """Return a quantile of the distance from a point to its so-manieth neighbour."""
    from sklearn.neighbors import NearestNeighbors

    rng = np.random.default_rng(seed)
    sample = points[rng.permutation(len(points))[:SAMPLE]]
    search = NearestNeighbors(n_neighbors=min(neighbor + 1, len(points))).fit(points)
    return max(float(np.quantile(search.kneighbors(sample)[0][:, -1], quantile)), 1e-12)


def tuned_radius(
    make: Callable[[Settings], System],
    settings: Settings,
    sample: Arrivals,
    classes: NDArray[np.int64],
    dense_as: NDArray[np.float32] | None = None,
) -> float:
    """Return the radius with which a system agrees best with the classes of a sample.

    With ``dense_as`` it is scaled from the density of the sample to that of these points.
    """
    from sklearn.metrics import normalized_mutual_info_score

    typical = typical_radius(sample.points, settings.neighbors, 0.5, settings.seed)
    best, chosen = -1.0, typical
    for radius in (FACTORS * typical).tolist():
        system = make(replace(settings, radius=radius))
        system.build(sample)
        nmi = max(normalized_mutual_info_score(classes, labels) for _, labels in system.cuts())
        if nmi > best:
            best, chosen = nmi, radius
        elif nmi < best / 2:
            break  # classes run together; larger radii are no better, and can be very slow
    if dense_as is None:
        return chosen
    return chosen / typical * typical_radius(dense_as, settings.neighbors, 0.5, settings.seed)
