"""What is in the clusters of a flat clustering: sizes, typical points, outliers, near clusters."""

from dynhac.clusters.cluster import Cluster, NearCluster
from dynhac.clusters.clusters import Clusters

__all__ = ["Cluster", "Clusters", "NearCluster"]
