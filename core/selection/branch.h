// The automatic choice of clusters, as a recursion over the dendrogram.
//
// The *conductance* of a merge is the share of the weight at its smaller side that crosses between
// the two sides: X / (2 min(W_a, W_b) + X), where X is the weight between a and b and W the weight
// inside. The *level* of a merge is the mean of the logarithms of its similarity (the smallest
// linkage in its subtree) and, with twice the weight, of its conductance: the larger, the tighter.
//
// A *split* is a merge both of whose children have at least min_size leaves. Splits divide the tree
// into *branches*: a branch is a path of nodes of at least min_size leaves, from its top (the root
// of a tree, or a child of a split) down to its end (a split, or the last node of that size). The
// other leaves leave it on the way. A branch is *born* at the level of the split above it. The
// *excess* of a branch is the sum over its leaves of the level at which they leave it minus the
// level at which it was born; it is at least 0, and at most kMostGap per leaf, since it does not
// matter how far apart things are that are apart. A branch is *kept* if it does not end in a split,
// or if its excess is at least kMargin times what can be had of the two branches below it: a sum
// over many small branches gains by chance. So however early a branch was born, it is not kept if
// the best choice below it has more than kMostGap / kMargin per leaf. That is a bit more than in a
// cloud of points without structure in two dimensions.
//
// A root has no split above it. It was not merged at the threshold of the model, so it is taken to
// be born one level below a merge at the threshold with a tree of its own size; without a
// threshold, infinitely early. But one cluster of nearly all points would tell the user nothing. A
// tree with most of all leaves is *dominant*: to be kept, the best choice below it must also have
// at most kDominantGap per leaf, as in graphs without any structure.
//
// The clusters are the topmost branches that are kept, each with all leaves below its top.
//
// The record of a node follows from its merge and the records of its children alone. So the same
// function serves for one pass over a whole tree and for the changed nodes of an update, and both
// give the same bits: it is symmetric in the children. All of it depends on ratios of similarities
// alone, not on their unit.
//
// Similarities may be any numbers that are positive and finite. Weights are at most kMostWeight, so
// that their sums are finite, and conductances at least kLeastConductance, so that their logarithms
// are: all levels and all excesses are finite.

#ifndef DYNHAC_SELECTION_BRANCH_H_
#define DYNHAC_SELECTION_BRANCH_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/hierarchy/types.h"

namespace dynhac {

inline constexpr double kMargin = 1.15;
inline constexpr double kMostGap = 1.5;
inline constexpr double kDominantGap = 0.4;
inline constexpr double kMostWeight = 0x1p1022;  // three of them are finite
inline constexpr double kLeastConductance = std::numeric_limits<double>::denorm_min();

// Of a node that is a leaf, or of a merge: the branch that it is in, from the node down to the end.
struct Branch {
  double weight = 0;       // inside the subtree
  double leaving = 0;      // sum over the leaves of the level at which they leave the branch;
                           // 0 for nodes of fewer than min_size leaves, which are in no branch
  double below = 0;        // excess of the best choice below the end
  uint32_t size = 1;       // leaves
  uint32_t end = kNone;    // the split that the branch ends in; kNone if there is none
  bool keep_left = false;  // of a split: whether the branch of this child is kept
  bool keep_right = false;

  bool operator==(const Branch&) const = default;
};

struct SelectionParameters {
  uint32_t min_size;  // at least 2
  double threshold;   // of the model, in the units of the user
};

// A merge, with similarities in the units of the user.
struct BranchMerge {
  uint32_t node;
  double similarity;        // linkage
  double least_similarity;  // smallest linkage in the subtree
};

// Weight between the sides of a merge.
inline double crossing_weight(uint32_t size_a, uint32_t size_b, double similarity) {
  const double pairs = static_cast<double>(size_a) * static_cast<double>(size_b);
  return std::min(similarity * pairs, kMostWeight);
}

// Weight inside the subtree of a merge; works for all that has a weight and a size.
template <class Part>
double merged_weight(const Part& a, const Part& b, double similarity) {
  return std::min(a.weight + b.weight + crossing_weight(a.size, b.size, similarity), kMostWeight);
}

// The share of the weight at the smaller side, with weight `inside`, that crosses.
inline double crossing_share(double crossing, double inside) {
  return std::max(crossing / (2 * inside + crossing), kLeastConductance);
}

inline double conductance(const Branch& a, const Branch& b, double similarity) {
  return crossing_share(crossing_weight(a.size, b.size, similarity), std::min(a.weight, b.weight));
}

inline double level(double similarity, double conductance) {
  const double product = similarity * conductance * conductance;
  if (product >= std::numeric_limits<double>::min()) return std::log(product) / 3;
  return (std::log(similarity) + 2 * std::log(conductance)) / 3;  // it is too small to be exact
}

// The excess of a branch with this top that is born at a level.
inline double excess(const Branch& top, double birth) {
  const double size = static_cast<double>(top.size);
  return size * std::clamp(top.leaving / size - birth, 0.0, kMostGap);
}

inline bool is_kept(const Branch& top, double birth) {
  return top.end == kNone || excess(top, birth) >= kMargin * top.below;
}

inline Branch merged(const Branch& left, const Branch& right, const BranchMerge& merge,
                     uint32_t min_size) {
  Branch made;
  made.size = left.size + right.size;
  made.weight = merged_weight(left, right, merge.similarity);
  if (made.size < min_size) return made;
  const double at = level(merge.least_similarity, conductance(left, right, merge.similarity));
  const Branch& larger = left.size >= right.size ? left : right;
  const uint32_t smaller_size = std::min(left.size, right.size);
  if (smaller_size >= min_size) {
    made.end = merge.node;
    made.keep_left = is_kept(left, at);
    made.keep_right = is_kept(right, at);
    made.below = (made.keep_left ? excess(left, at) : left.below) +
                 (made.keep_right ? excess(right, at) : right.below);
    made.leaving = static_cast<double>(made.size) * at;
  } else if (larger.size >= min_size) {
    made.end = larger.end;
    made.below = larger.below;
    made.leaving = larger.leaving + static_cast<double>(smaller_size) * at;
  } else {
    made.leaving = static_cast<double>(made.size) * at;
  }
  return made;
}

// The level at which a root is taken to be born; never more than kMostGap below where its leaves
// leave it, since that makes no difference.
inline double root_birth(const Branch& root, double threshold) {
  const double least = root.leaving / static_cast<double>(root.size) - kMostGap;
  if (threshold <= 0) return least;
  const double crossing = crossing_weight(root.size, root.size, threshold);
  return std::max(level(threshold, crossing_share(crossing, root.weight)) - 1, least);
}

// Whether a tree of so many leaves is dominant among all leaves. At most one tree is.
inline bool is_dominant(uint32_t size, size_t leaves) {
  return size_t{4} * size > size_t{3} * leaves;
}

// Whether the whole tree below a root is a cluster.
inline bool is_root_kept(const Branch& root, const SelectionParameters& p, bool dominant) {
  if (root.size < p.min_size) return false;
  if (dominant && root.below > kDominantGap * static_cast<double>(root.size)) return false;
  return is_kept(root, root_birth(root, p.threshold));
}

}  // namespace dynhac

#endif  // DYNHAC_SELECTION_BRANCH_H_
