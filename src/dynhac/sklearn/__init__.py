"""A scikit-learn estimator on top of the models of this package.

Needs the extra ``dynhac[sklearn]``. Importing ``dynhac`` does not import scikit-learn; importing
``dynhac.sklearn`` does.
"""

from dynhac.extras import optional

optional("sklearn", "sklearn", "dynhac.sklearn")  # raises an error that names the extra

from dynhac.sklearn.estimator import DynHACClustering  # noqa: E402

__all__ = ["DynHACClustering"]


def __dir__() -> list[str]:
    return sorted(__all__)
