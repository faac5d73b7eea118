"""How well a dendrogram agrees with known classes: the best NMI over a fixed set of cuts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynhac import GraphHAC

CUTS = np.r_[np.geomspace(1e-4, 1e-1, 20), np.linspace(1e-1, 1, 20)]


def best_nmi(g: GraphHAC, labels: NDArray[np.int64], threshold: float) -> float:
    """Return the largest NMI (arithmetic mean) of the cuts that the dendrogram reaches down to.

    Vertex ids are indices into ``labels``.
    """
    from sklearn.metrics import normalized_mutual_info_score

    # Rounding in geomspace must not lose the cut at the threshold itself.
    cuts = np.maximum(CUTS[threshold * (1 - 1e-9) <= CUTS], threshold)
    truth = labels[g.ids]
    return max(float(normalized_mutual_info_score(truth, cut)) for cut in g.cut(cuts))
