// Clusters without a threshold, from the arrays of a dendrogram: see branch.h for the rule.
//
// All functions take the arrays of core/check/forest.h: `children` has two nodes per merge,
// `similarity` the linkage of each merge, and `min_similarity` the smallest linkage in its subtree.
// They take O(n) time and memory, do not recurse, and throw std::invalid_argument if `children` is
// no forest, if array lengths do not match, if a similarity is not positive and finite, or if
// min_size is below 2.

#ifndef DYNHAC_SELECTION_SELECT_H_
#define DYNHAC_SELECTION_SELECT_H_

#include <cstdint>
#include <span>

#include "core/base/memory.h"

namespace dynhac {

// The clusters that are chosen: labels[i] is the cluster of leaf i, -1 for none. Clusters are
// numbered 0, 1, ... in the order of their first leaves.
void select_clusters(int64_t n, std::span<const int64_t> children,
                     std::span<const double> similarity, std::span<const double> min_similarity,
                     int64_t min_size, std::span<int64_t> labels);

// The condensed tree. Arrays have one entry per branch, parents before children, in descending
// order of their tops; `level` has one per merge.
struct CondensedTree {
  Vec<int64_t> top;     // node
  Vec<int64_t> parent;  // the branch that ends in the split above; -1 for roots
  Vec<double> birth;    // level of the split above; of a root, that of its merge
  Vec<double> death;    // level of the last node of the branch
  Vec<int64_t> size;    // leaves under the top
  Vec<double> excess;
  Vec<uint8_t> kept;  // whether it is a cluster that is chosen
  Vec<double> level;
};

CondensedTree condense(int64_t n, std::span<const int64_t> children,
                       std::span<const double> similarity, std::span<const double> min_similarity,
                       int64_t min_size);

// For every merge, the smallest conductance of the merges in its subtree, in (0, 1].
Vec<double> least_conductances(int64_t n, std::span<const int64_t> children,
                               std::span<const double> similarity);

// Gives every leaf of label -1 the largest cluster (in leaves; of equal ones that of the lower
// label) that has leaves under the nearest ancestor under which there is one. Leaves of trees
// without any keep -1. Labels are in -1..n-1.
void give_nearest(int64_t n, std::span<const int64_t> children, std::span<int64_t> labels);

}  // namespace dynhac

#endif  // DYNHAC_SELECTION_SELECT_H_
