"""How good a dendrogram is: agreement with known classes over a fixed set of cuts, and `verify`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynhac import GraphHAC

THETAS = np.r_[np.geomspace(1e-4, 1e-1, 20), np.linspace(1e-1, 1, 20)]


def thetas_from(threshold: float, thetas: NDArray[np.float64] = THETAS) -> NDArray[np.float64]:
    """Return those similarities at which a dendrogram down to the threshold can be cut."""
    # Rounding in geomspace must not lose the cut at the threshold itself.
    return np.maximum(thetas[thetas >= threshold * (1 - 1e-9)], threshold)


def best_nmi(g: GraphHAC, labels: NDArray[np.int64], threshold: float) -> float:
    """Return the largest NMI (arithmetic mean) of all cuts; ids are indices into ``labels``."""
    from sklearn.metrics import normalized_mutual_info_score

    truth, cuts = labels[g.ids], g.cut(thetas_from(threshold))
    return max(float(normalized_mutual_info_score(truth, cut)) for cut in cuts)


def verification(model: Any) -> dict[str, Any]:
    """Return what the `verify` of a model reports."""
    report = model.verify()
    return {
        "ok": bool(report.ok),
        "bad_merges": int(report.bad_merges),
        "worst_goodness": float(report.worst_goodness),
        "report": str(report),
    }
