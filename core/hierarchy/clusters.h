// What is in the clusters of a flat clustering: members, typical points, outliers, near clusters.
//
// A flat clustering is a label for every leaf: the number of its cluster, or -1 for none. It need
// not be a cut of the dendrogram. Everything follows from the labels and the edges of level 0 in
// one pass over the edges of the members, without a table of pairs:
//
// - the *inside weight* of a point: the total weight of its edges to points of its own cluster;
// - the weight between a cluster and every other cluster that it has an edge to.
//
// The *outlier score* of a point compares its inside weight with the mean inside weight of its
// neighbours, weighted by the edges to them: max(0, 1 - inside / mean), and 1 without any inside
// weight. This is the idea of the local outlier factor. Neighbours may be in other clusters: a
// score relative to the points of its own cluster would miss outliers that form a cluster.
//
// A missing edge counts as 0, as in the linkage. So the mean similarity of a point to the others in
// a cluster of s points is its inside weight / (s - 1), and the mean over all pairs is the sum of
// all inside weights / (s (s - 1)). Weights are integers: sums are exact and do not depend on the
// order of edges, and points of equal typicality are ordered by insertion.

#ifndef DYNHAC_HIERARCHY_CLUSTERS_H_
#define DYNHAC_HIERARCHY_CLUSTERS_H_

#include <cstdint>

#include "core/base/memory.h"

namespace dynhac {

// Leaves are numbered in order of insertion, as in Snapshot. A mean over nothing is NaN.
struct ClusterSummary {
  // By cluster.
  Vec<int64_t> start;      // of its members; one more entry at the end
  Vec<double> cohesion;    // mean similarity over all pairs inside
  Vec<double> density;     // share of these pairs that have an edge
  Vec<double> similarity;  // smallest linkage in the subtree of its node
  Vec<int64_t> node_ids;   // of the merge that has exactly these leaves; -1: there is none
  // By member: the most typical first, the earlier one first among equals.
  Vec<int64_t> members;      // leaves
  Vec<double> typicality;    // mean similarity to the other members
  Vec<double> outlier;       // see above
  Vec<double> inside_share;  // inside weight / weight of all edges of the point
  // The nearest other clusters of every cluster: the highest linkage first, then by number.
  Vec<int64_t> nearest_start;  // one more entry at the end
  Vec<int64_t> nearest;
  Vec<double> nearest_linkage;
};

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_CLUSTERS_H_
