"""Clustering as scikit-learn does it: an estimator over the models of this package.

Needs the extra ``dynhac[sklearn]``. Importing ``dynhac`` does not import scikit-learn; importing
this does.
"""

from dynhac.extras import optional

optional("sklearn", "sklearn", "dynhac.sklearn")  # says what to install where it is missing

from dynhac.sklearn.estimator import DynHACClustering  # noqa: E402

__all__ = ["DynHACClustering"]
