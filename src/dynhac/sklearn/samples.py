"""Samples as scikit-learn's own checks leave them, in every version from 1.2 on."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import validation


def read_samples(estimator: Any, X: Any, *, first: bool, dense: bool) -> Any:
    """Return X as an array of floats, or as a csr matrix if it is sparse and need not be dense.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets ``n_features_in_`` and ``feature_names_in_`` if these samples are the ``first``; else
        its own must be those of X.
    """
    options = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "reset": first}
    if hasattr(validation, "validate_data"):
        X = validation.validate_data(estimator, X, **options)
    else:  # before 1.6
        X = estimator._validate_data(X, **options)
    return X.toarray() if dense and sparse.issparse(X) else X
