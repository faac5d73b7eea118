"""DynHACClustering: average-linkage clustering as a scikit-learn estimator.

The estimator holds parameters and, once fitted, a model: a `DynHAC` of points, or a `GraphHAC` of a
given graph of similarities. `fit` makes a new model, `partial_fit` adds points to the existing one;
then the attributes are set from the model. `predict` asks the model and changes nothing. The model
checks its own parameters. All checks are made before anything changes.
"""

from __future__ import annotations

import warnings
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import validation
from sklearn.utils.metaestimators import available_if

from dynhac.dendrogram.cuts import check_one_given
from dynhac.dendrogram.selection import automatic_min_size, read_noise
from dynhac.input.columns import real_number, whole_number
from dynhac.input.errors import InvalidTypeError, counted, show
from dynhac.input.matrices import matrix_edges
from dynhac.models.graph import GraphHAC
from dynhac.models.points import DynHAC
from dynhac.sklearn.distances import distance_rule

if TYPE_CHECKING:
    from dynhac.dendrogram.dendrogram import Dendrogram
    from dynhac.neighbors import NeighborIndex
    from dynhac.neighbors.similarity import SimilaritySpec

OF_GRAPHS = ("epsilon", "threshold", "resolution", "threads")
OF_CUTS = ("theta", "n_clusters", "conductance", "min_size", "noise")
OF_POINTS = (*OF_GRAPHS, "n_neighbors", "metric", "similarity", "neighbors", "repair", "max_points")


def _takes_points(estimator: DynHACClustering) -> bool:
    if estimator.metric == "precomputed":
        raise AttributeError(
            "metric is 'precomputed', and a graph of similarities has no points; use fit, or "
            "change the graph with model_.update"
        )
    return True


class DynHACClustering(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Average-linkage hierarchical clustering with incremental updates.

    Samples are joined to their nearest neighbours by edges whose weights are similarities, and the
    (1+ε)-approximate average-linkage hierarchy of that graph is cut into flat clusters. By default
    these are chosen automatically, each where the hierarchy is most persistent. The time of
    `fit` grows about linearly with the number of samples. The cost of `partial_fit` depends on the
    new samples and what they change.

    Parameters
    ----------
    epsilon : float, default 0.1
        Approximation, >= 0: every merge is within a factor 1 + epsilon of the best. With 0 the
        hierarchy is that of exact average linkage on the graph.
    threshold : float, default 0
        Similarity below which nothing need be merged, >= 0. With 0 every connected component of the
        graph becomes one tree. Automatic clusters are best with 0.
    n_neighbors : int, default 50
        The number of nearest neighbours that a sample is joined to.
    metric : {"euclidean", "cosine", "inner_product", "precomputed"}, default "euclidean"
        The distance. With "precomputed", X is a square matrix of similarities, dense or sparse: 0
        where there is no edge; each pair in one triangle, or in both with the same value. The
        diagonal is ignored.
    similarity : str, tuple or callable, optional
        The similarity of two samples, given their distance; see `dynhac.DynHAC`.
    neighbors : {"auto", "exact", "kd", "cells", "usearch", "gpu"} or object, default "auto"
        The nearest-neighbour index; see `dynhac.DynHAC`. An index object is copied for every fit.
    theta : float, optional
        The similarity of the cut, >= ``threshold``: clusters are the maximal subtrees all of whose
        merges have a similarity of at least ``theta``. Of ``theta``, ``n_clusters`` and
        ``conductance`` at most one is given; with none of them the clusters are chosen
        automatically, as by `dynhac.Dendrogram.labels`.
    n_clusters : int, optional
        The number of clusters. If there are more trees, the trees are the clusters, with a warning.
    conductance : float, optional
        A cut that does not depend on the scale of the similarities, > 0 and <= 1; see
        `dynhac.Dendrogram.labels`.
    min_size : int, optional
        Samples in smaller clusters are noise, with the label -1. By default 25 for automatic
        clusters, which need at least 2, and 1 for all others.
    noise : "nearest", optional
        Gives each sample that is noise the largest cluster under the nearest of its ancestors that
        has one. By default it has the label -1.
    repair : bool, default True
        Whether points that lose neighbours, because old points are dropped, are joined to others.
    max_points : int, optional
        The largest number of points held: beyond it, `partial_fit` drops the oldest.
    resolution : float, default 2**-32
        Similarities are rounded to multiples of this, so that sums are exact; > 0.
    threads : int, optional
        Threads that a large update may use; by default one for every core. The result does not
        depend on it.
    verbose : bool, default False
        Whether `fit` and `partial_fit` write to standard error how far they are, if they take
        longer than half a second.

    Attributes
    ----------
    labels_ : ndarray of int64, shape (n_samples,)
        The cluster of every sample, -1 for noise: all samples seen since the last `fit`, in order;
        with ``max_points`` those still held, the last ones.
    n_clusters_ : int
        The number of clusters, noise not counted.
    n_leaves_ : int
        The number of leaves of the hierarchy, one for each sample.
    n_connected_components_ : int
        The number of trees of the hierarchy. With ``threshold=0`` they are the connected components
        of the graph.
    children_ : ndarray of int64, shape (n_samples - 1, 2)
        The two nodes that each merge joins; nodes below n_samples are samples, node n_samples + i
        is merge i. Separate trees are joined by the last merges.
    distances_ : ndarray of float64, shape (n_samples - 1,)
        The distance of each merge, ascending: the distance of two samples with the similarity of
        the merge, for the similarities "inverse", "cosine" and "gaussian", and 1 / similarity for
        all others and for "precomputed". Merges that only join separate trees have distance inf.
    model_ : DynHAC or GraphHAC
        The model, for other cuts, the dendrogram, and more. The ids of its points count the samples
        from 0. The other attributes describe it as it was after the last fit.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of str
        The names of the columns of X, if all of them are str.

    Notes
    -----
    The similarity of two clusters is the mean over all their pairs, where a pair without an edge
    counts as 0. So it decreases when clusters become larger than ``n_neighbors``, and ``theta``
    should be chosen accordingly, and lower for more samples. Automatic clusters need no such
    choice. But samples without any structure are divided into many of them; see
    `dynhac.Dendrogram.labels`.

    Every call of `partial_fit` computes all attributes again, in time linear in the number of
    samples. To insert points one by one, or to delete points, use `dynhac.DynHAC`.

    The edges depend on which samples are added together: several calls of `partial_fit` do not give
    exactly the hierarchy of one `fit`. Vectors are held as float32; a sparse X is made dense.

    Examples
    --------
    >>> import numpy as np
    >>> from dynhac.sklearn import DynHACClustering
    >>> X = np.array([[0.0, 0.0], [0.1, 0.0], [4.0, 4.0], [4.0, 4.2]])
    >>> clustering = DynHACClustering(min_size=2).fit(X)
    >>> clustering.labels_.tolist()
    [0, 0, 1, 1]
    >>> clustering.partial_fit([[4.1, 4.1]]).labels_.tolist()
    [0, 0, 1, 1, 1]
    >>> clustering.model_.labels(0.9).tolist()
    [0, 0, 1, 2, 3]
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.1,
        threshold: float = 0.0,
        n_neighbors: int = 50,
        metric: str = "euclidean",
        similarity: SimilaritySpec = None,
        neighbors: str | NeighborIndex = "auto",
        theta: float | None = None,
        n_clusters: int | None = None,
        conductance: float | None = None,
        min_size: int | None = None,
        noise: str | None = None,
        repair: bool = True,
        max_points: int | None = None,
        resolution: float = 2.0**-32,
        threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.threshold = threshold
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.similarity = similarity
        self.neighbors = neighbors
        self.theta = theta
        self.n_clusters = n_clusters
        self.conductance = conductance
        self.min_size = min_size
        self.noise = noise
        self.repair = repair
        self.max_points = max_points
        self.resolution = resolution
        self.threads = threads
        self.verbose = verbose

    def fit(self, X: Any, y: object = None) -> DynHACClustering:
        """Cluster samples; all samples seen before are discarded.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            The samples; with metric "precomputed" their similarities, (n_samples, n_samples).
        y : ignored
            Not used, present by convention.

        Examples
        --------
        >>> from dynhac.sklearn import DynHACClustering
        >>> graph = [[1.0, 0.9, 0.0], [0.9, 1.0, 0.2], [0.0, 0.2, 1.0]]
        >>> DynHACClustering(metric="precomputed", theta=0.5).fit(graph).labels_.tolist()
        [0, 0, 1]
        """
        self._check_cut()
        model = self._new_model()
        X = self._samples(X, first=True)
        count = X.shape[0]
        self._check_count(count)
        if isinstance(model, GraphHAC):
            edges = matrix_edges(X, model.resolution, "X", "DynHACClustering")
            model.update(add=range(count), edges=edges, progress=bool(self.verbose))
        elif self.max_points is not None and count > self.max_points:
            raise ValueError(
                f"X has {counted(count, 'row', 'rows')}, but max_points is {self.max_points}; fit "
                "needs room for all of them; partial_fit drops the oldest"
            )
        else:
            model.insert(X, progress=bool(self.verbose))
        return self._show(model)

    @available_if(_takes_points)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: object = None) -> DynHACClustering:
        """Add samples to those seen before; the attributes then describe all of them.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_new_samples, n_features)
            The new samples.
        y : ignored
            Not used, present by convention.

        Raises
        ------
        ValueError
            The samples or the parameters are wrong; nothing has changed then. Between calls, only
            the parameters of the cut may change.

        Examples
        --------
        >>> from dynhac.sklearn import DynHACClustering
        >>> clustering = DynHACClustering(theta=0.5)
        >>> clustering.partial_fit([[0.0], [5.0]]).labels_.tolist()
        [0, 1]
        >>> clustering.partial_fit([[0.2], [9.0]]).labels_.tolist()
        [0, 1, 0, 2]
        """
        self._check_cut()
        first = not hasattr(self, "model_")
        if not first:
            self._check_unchanged()
        model = self._new_model() if first else self.model_
        assert isinstance(model, DynHAC)
        X = self._samples(X, first=first)
        count = len(model) + len(X)
        self._check_count(count if self.max_points is None else min(count, self.max_points))
        model.insert(X, progress=bool(self.verbose))
        return self._show(model)

    @available_if(_takes_points)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the clusters that samples would be in; nothing is learned from them.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            The samples.

        Returns
        -------
        ndarray of int64, shape (n_samples,)
            Labels as in ``labels_``; -1 for a sample that would be in no cluster, or only in one
            of fewer than ``min_size`` samples. With ``noise="nearest"`` such a sample has the label
            of the nearest cluster, if its tree has one.

        Notes
        -----
        The rule is that of `dynhac.DynHAC.predict`, at the cut of the last fit; ``model_.predict``
        also has scores and neighbours, and other cuts. Samples that were fitted get the labels
        that they have in ``labels_``, with these exceptions: of equal samples with different
        labels, one is followed; and with a similarity that is not largest at distance 0, as "dot",
        another sample may be nearer to a sample than itself.

        Examples
        --------
        >>> from dynhac.sklearn import DynHACClustering
        >>> clustering = DynHACClustering(theta=0.5).fit([[0.0], [0.2], [5.0]])
        >>> clustering.labels_.tolist(), clustering.predict([[0.1], [4.8], [9.0]]).tolist()
        ([0, 0, 1], [0, 1, -1])
        """
        validation.check_is_fitted(self, "model_")
        X = self._samples(X, first=False)
        assert isinstance(self.model_, DynHAC)
        labels: NDArray[np.int64] = self.model_.predict(X, **self._made_cut).labels
        return labels

    def _check_cut(self) -> None:
        """Raise if the parameters of the cut are wrong for any samples."""
        check_one_given(theta=self.theta, n_clusters=self.n_clusters, conductance=self.conductance)
        read_noise(self.noise)
        if self.theta is None and self.n_clusters is None and self.conductance is None:
            automatic_min_size(self.min_size)
        elif self.min_size is not None:
            whole_number(self.min_size, "min_size", 1)
        if self.conductance is not None and not (
            0 < real_number(self.conductance, "conductance") <= 1
        ):
            raise ValueError(f"conductance is {show(self.conductance)}; it must be > 0 and <= 1")
        if self.n_clusters is not None:
            whole_number(self.n_clusters, "n_clusters", 1)
        if self.theta is not None:
            least = real_number(self.threshold, "threshold")
            if real_number(self.theta, "theta") < least:
                raise ValueError(
                    f"theta is {show(self.theta)}; it must be a similarity >= {least:g}, the "
                    "threshold"
                )

    def _check_count(self, n_samples: int) -> None:
        """Raise if there are fewer samples than clusters."""
        if self.n_clusters is not None and self.n_clusters > n_samples:
            raise ValueError(
                f"n_clusters is {self.n_clusters}, but n_samples={n_samples}; there cannot be more "
                "clusters than samples"
            )

    def _samples(self, X: Any, *, first: bool) -> Any:
        """Return X as an array of floats; with metric "precomputed" as a csr matrix if sparse.

        The ``first`` samples set ``n_features_in_`` and ``feature_names_in_``, which all others
        must match.
        """
        options = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "reset": first}
        if hasattr(validation, "validate_data"):
            X = validation.validate_data(self, X, **options)
        else:  # scikit-learn before 1.6
            X = self._validate_data(X, **options)
        return X.toarray() if sparse.issparse(X) and self.metric != "precomputed" else X

    def _new_model(self) -> DynHAC | GraphHAC:
        """Return an empty model with the present parameters, or raise."""
        if self.metric == "precomputed":
            if self.max_points is not None:
                raise ValueError(
                    f"max_points is {show(self.max_points)}; it must be None with metric "
                    "'precomputed', where no points are held"
                )
            return GraphHAC(**self._values(OF_GRAPHS))
        if self.metric not in ("euclidean", "cosine", "inner_product"):
            raise ValueError(
                f"metric is {show(self.metric)}; it must be 'euclidean', 'cosine', "
                "'inner_product' or 'precomputed'"
            )
        try:
            index = deepcopy(self.neighbors)
        except TypeError as error:
            raise InvalidTypeError(
                f"neighbors is {show(self.neighbors)}, which cannot be copied ({error}); every fit "
                "needs an empty index, so it must be a name or an object that can"
            ) from error
        return DynHAC(**{**self._values(OF_POINTS), "neighbors": index})

    def _values(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def _check_unchanged(self) -> None:
        """Raise if a parameter of the model has changed since the model was made."""
        for name, old in self._made_with.items():
            new = getattr(self, name)
            if not (new is old or new == old):
                raise ValueError(
                    f"{name} is {show(new)}, but the model was made with {show(old)}; only theta, "
                    "n_clusters, conductance, min_size and noise may change before partial_fit, "
                    "for all else use fit"
                )

    def _show(self, model: DynHAC | GraphHAC) -> DynHACClustering:
        """Set the attributes from a model."""
        self._made_with = self._values(OF_POINTS)
        self.model_ = model
        dendrogram = model.dendrogram()
        linkage = dendrogram.linkage(distance_rule(self.similarity, self.metric))
        self.children_: NDArray[np.int64] = linkage[:, :2].astype(np.int64)
        self.distances_: NDArray[np.float64] = linkage[:, 2].copy()
        self.n_leaves_ = dendrogram.n_leaves
        self.n_connected_components_ = len(dendrogram.roots)
        self.labels_ = self._cut(dendrogram)
        self.n_clusters_ = int(self.labels_.max(initial=-1)) + 1
        return self

    def _cut(self, dendrogram: Dendrogram) -> NDArray[np.int64]:
        """Return the label of every sample; warn if there are more trees than ``n_clusters``."""
        cut = self._values(OF_CUTS)
        trees = len(dendrogram.roots)
        if self.n_clusters is not None and self.n_clusters < trees:
            warnings.warn(
                f"n_clusters is {self.n_clusters}, but the samples fall into "
                f"{counted(trees, 'tree', 'trees')}, which become the clusters; for fewer, lower "
                "threshold or raise n_neighbors",
                UserWarning,
                stacklevel=4,  # the caller of fit
            )
            cut |= {"theta": dendrogram.threshold, "n_clusters": None}
        self._made_cut = cut
        return dendrogram.labels(**cut)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = tags.input_tags.positive_only = self.metric == "precomputed"
        return tags

    def _more_tags(self) -> dict[str, Any]:
        """Return the tags for scikit-learn before 1.6."""
        given = self.metric == "precomputed"
        return {"pairwise": given, "requires_positive_X": given}
