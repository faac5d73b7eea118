"""Distances of merges from their similarities, for the attribute ``distances_``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynhac.neighbors.similarity import resolve_similarity

if TYPE_CHECKING:
    from dynhac.dendrogram.linkage import DistanceRule
    from dynhac.neighbors.similarity import SimilaritySpec


def distance_rule(similarity: SimilaritySpec, metric: str) -> DistanceRule:
    """Return the rule from descending similarities to ascending distances >= 0.

    It is the inverse of the similarity where there is one that is >= 0, otherwise the reciprocal.
    The similarity of equal vectors may exceed 1 by a rounding error; their distance is 0 too.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.sklearn.distances import distance_rule
    >>> distance_rule("inverse", "euclidean")(np.array([1.0, 0.5])).tolist()
    [0.0, 1.0]
    >>> distance_rule(None, "precomputed")(np.array([1.0, 0.5])).tolist()
    [1.0, 2.0]
    """
    rule = None if metric == "precomputed" else resolve_similarity(similarity, metric)
    if rule is None or rule.name in ("dot", "function"):
        return lambda values: 1.0 / values
    if rule.name == "inverse":
        return lambda values: np.maximum(1.0 / values - 1.0, 0.0)
    if rule.name == "cosine":
        return lambda values: np.maximum(1.0 - values, 0.0)
    sigma = rule.sigma
    assert sigma is not None
    # Distances must not descend because of rounding errors of the logarithm.
    return lambda values: np.maximum.accumulate(
        sigma * np.sqrt(np.maximum(-2.0 * np.log(values), 0.0))
    )
