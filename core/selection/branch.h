// The automatic choice of clusters, as a recursion over the dendrogram.
//
// The *conductance* of a merge is the share of the weight at its smaller side that crosses between
// the two sides: X / (2 min(W_a, W_b) + X), where X is the weight between a and b and W the weight
// inside. The *level* of a merge is the mean of the logarithms of its similarity (the smallest
// linkage in its subtree) and of its conductance: the larger, the tighter.
//
// A *split* is a merge both of whose children have at least min_size leaves. Splits divide the tree
// into *branches*: a branch is a path of nodes of at least min_size leaves, from its top (the root
// of a tree, or a child of a split) down to its end (a split, or the last node of that size). The
// other leaves leave it on the way. The *excess* of a branch is the sum over its leaves of the
// level at which they leave it minus the level at which it was born, that of the split above it;
// it is at least 0. A branch is *kept* if it does not end in a split, or if its excess is at least
// kMargin times what can be had of the two branches below it. The margin is there because a sum
// over many small branches gains by chance.
//
// Nothing tells the level at which a root was born. It is kept if the best choice below has an
// excess of at most kRootContrast per leaf: about what the best choice inside a uniform cloud of
// points has. Trees of which that is true are mostly islands of the data. But if one tree has
// nearly all leaves, it is *dominant*, and to keep it would tell nothing: then kDominantContrast
// counts, which only graphs without any structure have.
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

inline constexpr double kMargin = 1.25;
inline constexpr double kRootContrast = 1.4;
inline constexpr double kDominantContrast = 0.5;
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

// A merge, with similarities in the units of the user.
struct BranchMerge {
  uint32_t node;
  double similarity;        // linkage
  double least_similarity;  // smallest linkage in the subtree
};

// Weight between the sides of a merge.
inline double crossing_weight(const Branch& a, const Branch& b, double similarity) {
  const double pairs = static_cast<double>(a.size) * static_cast<double>(b.size);
  return std::min(similarity * pairs, kMostWeight);
}

inline double conductance(const Branch& a, const Branch& b, double similarity) {
  const double x = crossing_weight(a, b, similarity);
  return std::max(x / (2 * std::min(a.weight, b.weight) + x), kLeastConductance);
}

inline double level(const Branch& a, const Branch& b, const BranchMerge& merge) {
  return 0.5 * (std::log(merge.least_similarity) + std::log(conductance(a, b, merge.similarity)));
}

// The excess of a branch with this top that is born at a level.
inline double excess(const Branch& top, double birth) {
  return std::max(0.0, top.leaving - static_cast<double>(top.size) * birth);
}

inline bool is_kept(const Branch& top, double birth) {
  return top.end == kNone || excess(top, birth) >= kMargin * top.below;
}

inline Branch merged(const Branch& left, const Branch& right, const BranchMerge& merge,
                     uint32_t min_size) {
  Branch made;
  made.size = left.size + right.size;
  made.weight = std::min(
      left.weight + right.weight + crossing_weight(left, right, merge.similarity), kMostWeight);
  if (made.size < min_size) return made;
  const double at = level(left, right, merge);
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

// Whether a tree of so many leaves is dominant among all leaves. At most one tree is.
inline bool is_dominant(uint32_t size, size_t leaves) {
  return size_t{4} * size > size_t{3} * leaves;
}

// Whether the whole tree below a root is a cluster.
inline bool is_root_kept(const Branch& root, uint32_t min_size, bool dominant) {
  const double contrast = dominant ? kDominantContrast : kRootContrast;
  return root.size >= min_size &&
         (root.end == kNone || root.below <= contrast * static_cast<double>(root.size));
}

}  // namespace dynhac

#endif  // DYNHAC_SELECTION_BRANCH_H_
