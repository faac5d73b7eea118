"""From the similarities of merges back to distances, as scikit-learn's hierarchies have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynhac.neighbors.similarity import resolve_similarity

if TYPE_CHECKING:
    from dynhac.neighbors.similarity import SimilaritySpec

Rule = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def distance_rule(similarity: SimilaritySpec, metric: str) -> Rule:
    """Return the rule from similarities, in falling order, to distances >= 0 that never fall.

    It inverts the similarity where that is known to have an inverse that is >= 0. Equal vectors may
    be a rounding error more similar than 1, at which the distance is 0 too.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.sklearn.distances import distance_rule
    >>> distance_rule("inverse", "euclidean")(np.array([1.0, 0.5])).tolist()
    [0.0, 1.0]
    >>> distance_rule(None, "precomputed")(np.array([1.0, 0.5])).tolist()
    [1.0, 2.0]
    """
    if metric == "precomputed":
        return _reciprocal
    rule = resolve_similarity(similarity, metric)
    if rule.name == "inverse":
        return lambda values: np.maximum(1.0 / values - 1.0, 0.0)
    if rule.name == "cosine":
        return lambda values: np.maximum(1.0 - values, 0.0)
    if rule.sigma is not None:
        sigma = rule.sigma
        # A logarithm may be wrong in its last place, by which distances must not fall either.
        return lambda values: np.maximum.accumulate(
            sigma * np.sqrt(np.maximum(-2.0 * np.log(values), 0.0))
        )
    return _reciprocal


def _reciprocal(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1.0 / values
