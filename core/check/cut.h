// Flat clusterings from a dendrogram.

#ifndef DYNHAC_CHECK_CUT_H_
#define DYNHAC_CHECK_CUT_H_

#include <cstdint>
#include <span>

namespace dynhac {

// Cuts a dendrogram over n leaves at every threshold. With epsilon > 0 linkages need not decrease
// towards the root, so the smallest linkage of a subtree decides: the clusters at threshold t are
// the leaves of the maximal subtrees all of whose merges have a linkage >= t.
//
// children: two nodes per merge; leaves are 0..n-1, merge j is node n+j, children before parents.
// min_similarity: for every merge, the smallest linkage of the merges in its subtree.
// labels: thresholds.size() rows of n; row i gets the clusters at thresholds[i], numbered 0, 1, ...
// in the order of their first leaves.
//
// Takes time O(T(n+m)) and O(n+m) memory besides the labels. Throws std::invalid_argument when
// `children` is no such forest, array lengths do not match, a number is NaN, or a merge has
// a larger min_similarity than one below it.
void cut(int64_t n, std::span<const int64_t> children, std::span<const double> min_similarity,
         std::span<const double> thresholds, std::span<int64_t> labels);

}  // namespace dynhac

#endif  // DYNHAC_CHECK_CUT_H_
