"""Similarities from distances: the weights of the edges between neighbours.

A similarity is finite and >= 0, and larger for nearer points. Zero means no edge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dynhac._core import SimilarityRule
from dynhac.input.columns import real_number
from dynhac.input.errors import InvalidTypeError, show
from dynhac.neighbors.metrics import Metric, resolve_metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

SimilaritySpec: TypeAlias = "str | tuple[str, float] | Callable[[NDArray[np.float64]], Any] | None"
"""A similarity as a user gives it; see `resolve_similarity`."""

WANTED = "it must be 'inverse', 'cosine', 'gaussian', ('gaussian', sigma), 'dot' or a function"

# The metrics whose distances each similarity is defined for.
METRICS_OF = {
    "inverse": ("euclidean", "cosine"),
    "gaussian": ("euclidean", "cosine"),
    "cosine": ("cosine",),
    "dot": ("inner_product",),
}
DEFAULTS = {"euclidean": "inverse", "cosine": "inverse", "inner_product": "dot"}


@dataclass(frozen=True)
class Similarity:
    """A rule from distances to similarities; call it with an array of distances.

    Attributes
    ----------
    name : str
        "inverse", "cosine", "gaussian", "dot" or "function".
    sigma : float or None
        The width; only for "gaussian".
    function : callable or None
        The user's function; only for "function".
    """

    name: str
    sigma: float | None = None
    function: Callable[[NDArray[np.float64]], Any] | None = None

    @property
    def spec(self) -> str | list[str | float] | None:
        """The specification of this rule in types of JSON; None for a function."""
        if self.function is not None:
            return None
        return self.name if self.sigma is None else [self.name, self.sigma]

    def __call__(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the similarities, an array of the same shape."""
        if self.function is not None:
            result = self.function(distances.copy()) if distances.size else distances
            return _checked(result, distances)
        assert self.rule is not None
        flat = np.ascontiguousarray(distances, np.float64).ravel()
        return self.rule(flat).reshape(distances.shape)

    @cached_property
    def rule(self) -> SimilarityRule | None:
        """The compiled rule; None for a function."""
        if self.function is not None:
            return None
        return SimilarityRule(self.name, 1.0 if self.sigma is None else self.sigma)


def resolve_similarity(spec: object, metric: str | Metric) -> Similarity:
    """Return the similarity rule that ``spec`` specifies.

    Parameters
    ----------
    spec : str, tuple, callable or None
        One of

        - "inverse": 1 / (1 + distance), the default for euclidean and cosine;
        - "gaussian" or ("gaussian", sigma): exp(-distance² / (2 sigma²)), with sigma 1 if not
          given;
        - "cosine": the cosine, or 0 where it is negative; for metric "cosine";
        - "dot": the inner product, or 0 where it is negative; for metric "inner_product", whose
          default it is;
        - a function from an array of distances to an array of similarities.
    metric : {"euclidean", "cosine", "inner_product"}
        What the distances are.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.neighbors.similarity import resolve_similarity
    >>> similarity = resolve_similarity("inverse", "euclidean")
    >>> similarity(np.array([0.0, 1.0, 3.0])).tolist()
    [1.0, 0.5, 0.25]
    >>> resolve_similarity("cosine", "euclidean")
    Traceback (most recent call last):
        ...
    ValueError: similarity is 'cosine', which is for metric 'cosine', not 'euclidean'
    """
    metric = resolve_metric(metric)
    if isinstance(spec, Similarity):
        spec = spec.spec if spec.function is None else spec.function
    if callable(spec):
        return Similarity("function", function=spec)
    name, sigma = DEFAULTS[metric.name] if spec is None else spec, None
    if isinstance(spec, (tuple, list)) and len(spec) == 2 and spec[0] == "gaussian":
        name, sigma = "gaussian", real_number(spec[1], "sigma of the similarity", above=True)
    if not isinstance(name, str) or name not in METRICS_OF:
        error = ValueError if isinstance(spec, (str, tuple, list)) else InvalidTypeError
        raise error(f"similarity is {show(spec)}; {WANTED}")
    if metric.name not in METRICS_OF[name]:
        wanted = " or ".join(f"'{m}'" for m in METRICS_OF[name])
        raise ValueError(
            f"similarity is {show(name)}, which is for metric {wanted}, not '{metric.name}'"
        )
    return Similarity(name, 1.0 if spec == "gaussian" else sigma)


def _checked(result: object, distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a user's function returned as float64, or raise."""
    array = np.asarray(result)
    if isinstance(result, np.ma.MaskedArray):
        raise InvalidTypeError("the similarity function returned a masked array; give a plain one")
    if array.dtype.kind not in "iuf":
        raise InvalidTypeError(
            f"the similarity function returned {array.dtype} values; they must be int or float"
        )
    if array.shape != distances.shape:
        raise ValueError(
            f"the similarity function returned shape {array.shape} for distances of shape "
            f"{distances.shape}; it must return one similarity per distance"
        )
    found = array.astype(np.float64)
    wrong = ~(np.isfinite(found) & (found >= 0.0))
    if wrong.any():
        first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        raise ValueError(
            f"the similarity function returned {found[first]} for distance {distances[first]}; "
            "similarities must be finite and >= 0"
        )
    return found + 0.0
