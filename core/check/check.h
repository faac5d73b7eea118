// An independent check of a dendrogram: replays it on the plain graph and judges every merge.
//
// It serves as an oracle because it shares no code and no state with the engine: its input is the
// graph, the merges, and the level on which each was made.

#ifndef DYNHAC_CHECK_CHECK_H_
#define DYNHAC_CHECK_CHECK_H_

#include <cstdint>
#include <span>

#include "core/base/progress.h"

namespace dynhac {

struct CheckResult {
  int64_t merges = 0;
  int64_t bad_merges = 0;     // not (1+epsilon)-good, or below threshold / (1+epsilon)
  double worst_goodness = 1;  // largest wmax / min(M, linkage) of any merge; inf: no edge at all
  int64_t wrong_similarities = 0;  // merges whose stated similarity is not their linkage
  int64_t heavy_edges_left = 0;    // edges between final clusters that should have been merged
};

// The vertices of level i are the clusters that all merges of levels < i have made; level 0 has the
// single leaves. Every merge (A, B) is judged against the graph at the start of its level:
// everything outside A and B counts as single vertices of the level, even if other merges of the
// same level join them. With linkage(A, y) = w(A, y) / (S(A) S(y)), S the number of leaves, and
// M(A) the smallest linkage of all merges in A's subtree (infinite for a leaf), the merge is good
// iff
//
//   max(linkage(A, y), linkage(B, y), linkage(A, B)) <= (1+epsilon) min(M(A), M(B), linkage(A, B))
//
// for all vertices y of the level in neither A nor B. It must also have
// linkage(A, B) >= threshold / (1+epsilon). An edge between final clusters is heavy when its
// linkage is >= threshold / (1+epsilon); with threshold 0 every edge is. All comparisons allow
// a relative error of 2^-40 for rounding, in favour of the dendrogram.
//
// u, v, w: every edge once, as two leaves and a fixed-point weight, in units of `resolution`.
//
// children: two nodes per merge; leaves are 0..n-1, merge j is node n+j, children before parents.
//
// similarity, level: of every merge. The similarity is not in units of the resolution; it is
// compared with a relative tolerance of 1e-12.
//
// Throws std::invalid_argument when `children` is no such forest, a child has a higher level than
// its parent, a level is negative, array lengths do not match, an edge is a loop, is given
// twice, has an end that is no leaf or a weight <= 0, the sum of the weights is not an int64,
// epsilon or threshold is not finite and >= 0, or resolution not finite and > 0. Throws what `poll`
// throws.
//
// Time is O((n + D) log^2 D), D being the number of edges plus, over all levels, the degrees of the
// vertices that merge there: near-linear when levels are few, as the engine's are.
CheckResult check(int64_t n, std::span<const int64_t> u, std::span<const int64_t> v,
                  std::span<const int64_t> w, std::span<const int64_t> children,
                  std::span<const double> similarity, std::span<const int32_t> level,
                  double epsilon, double threshold, double resolution, Poll* poll = nullptr);

}  // namespace dynhac

#endif  // DYNHAC_CHECK_CHECK_H_
