"""Validation of samples by scikit-learn, for every version from 1.2 on."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import validation


def read_samples(estimator: Any, X: Any, *, first: bool, dense: bool) -> Any:
    """Return X as an array of floats, or as a csr matrix if it is sparse and not ``dense``.

    Parameters
    ----------
    estimator : BaseEstimator
        If these samples are the ``first``, its ``n_features_in_`` and ``feature_names_in_`` are
        set; otherwise they must match X.
    """
    options = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "reset": first}
    if hasattr(validation, "validate_data"):
        X = validation.validate_data(estimator, X, **options)
    else:  # before 1.6
        X = estimator._validate_data(X, **options)
    return X.toarray() if dense and sparse.issparse(X) else X
