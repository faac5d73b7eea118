"""What is in the clusters of a flat clustering: sizes, typical points, outliers, near clusters."""

from dynhac.clusters.cluster import Cluster, NearCluster
from dynhac.clusters.clusters import Clusters
from dynhac.clusters.names import NameKeeper, names_of

__all__ = ["Cluster", "Clusters", "NameKeeper", "NearCluster", "names_of"]
