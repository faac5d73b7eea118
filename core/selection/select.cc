#include "core/selection/select.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/check/forest.h"
#include "core/selection/branch.h"

namespace dynhac {
namespace {

// The records of all nodes. Children come before parents, so one scan of the merges makes them.
class Records {
 public:
  Records(int64_t n, std::span<const int64_t> children, std::span<const double> similarity,
          int64_t min_size)
      : parent_(forest_parents(n, children)),
        leaves_(static_cast<size_t>(n)),
        children_(children),
        similarity_(similarity) {
    expect_length("similarity", similarity.size(), merges());
    if (min_size < 2) {
      reject("min_size is " + std::to_string(min_size) + "; it must be at least 2");
    }
    min_size_ = static_cast<uint32_t>(std::min(min_size, n + 1));  // one more than n: no branch
    branch_.reserve(merges());
    least_.reserve(merges());
    for (size_t j = 0; j < merges(); ++j) {
      if (!(similarity[j] > 0) || !std::isfinite(similarity[j])) {
        reject("similarity of node " + std::to_string(leaves_ + j) + " is " +
               std::to_string(similarity[j]) + "; it must be > 0 and finite");
      }
      least_.push_back(std::min({similarity[j], least(left(j)), least(right(j))}));
      branch_.push_back(merged((*this)[left(j)], (*this)[right(j)], merge(j), min_size_));
    }
  }

  size_t leaves() const { return leaves_; }
  size_t nodes() const { return parent_.size(); }
  size_t merges() const { return parent_.size() - leaves_; }
  uint32_t min_size() const { return min_size_; }
  uint32_t parent(size_t node) const { return parent_[node]; }
  size_t left(size_t j) const { return static_cast<size_t>(children_[2 * j]); }
  size_t right(size_t j) const { return static_cast<size_t>(children_[2 * j + 1]); }
  const Branch& operator[](size_t node) const {
    return node < leaves_ ? leaf_ : branch_[node - leaves_];
  }

  bool is_split(size_t j) const { return branch_[j].end == leaves_ + j; }
  double level_of(size_t j) const { return level((*this)[left(j)], (*this)[right(j)], merge(j)); }
  double conductance_of(size_t j) const {
    return conductance((*this)[left(j)], (*this)[right(j)], similarity_[j]);
  }

  // For every node, the top of the cluster that it is in; kNone if it is in none.
  Vec<uint32_t> chosen_tops() const {
    Vec<uint32_t> top(nodes(), kNone);
    for (size_t j = merges(); j-- > 0;) {
      const size_t node = leaves_ + j;
      if (parent_[node] == kNoParent && is_root_kept(branch_[j], min_size_)) {
        top[node] = static_cast<uint32_t>(node);
      }
      if (top[node] != kNone) {
        top[left(j)] = top[right(j)] = top[node];
      } else if (is_split(j)) {
        if (branch_[j].keep_left) top[left(j)] = static_cast<uint32_t>(left(j));
        if (branch_[j].keep_right) top[right(j)] = static_cast<uint32_t>(right(j));
      }
    }
    return top;
  }

 private:
  double least(size_t node) const {
    return node < leaves_ ? std::numeric_limits<double>::infinity() : least_[node - leaves_];
  }
  BranchMerge merge(size_t j) const {
    return {static_cast<uint32_t>(leaves_ + j), similarity_[j], least_[j]};
  }

  Vec<uint32_t> parent_;
  size_t leaves_;
  std::span<const int64_t> children_;
  std::span<const double> similarity_;
  uint32_t min_size_ = 0;
  Vec<Branch> branch_;  // of the merges
  Vec<double> least_;   // smallest similarity in the subtree of each merge
  Branch leaf_;         // of every leaf
};

}  // namespace

void select_clusters(int64_t n, std::span<const int64_t> children,
                     std::span<const double> similarity, int64_t min_size,
                     std::span<int64_t> labels) {
  const Records records(n, children, similarity, min_size);
  expect_length("labels", labels.size(), records.leaves());
  const Vec<uint32_t> top = records.chosen_tops();
  Vec<int64_t> label_of(records.merges(), -1);  // of the clusters met so far, by top
  int64_t clusters = 0;
  for (size_t leaf = 0; leaf < records.leaves(); ++leaf) {
    labels[leaf] = -1;
    if (top[leaf] == kNone) continue;
    int64_t& label = label_of[top[leaf] - records.leaves()];
    if (label < 0) label = clusters++;
    labels[leaf] = label;
  }
}

CondensedTree condense(int64_t n, std::span<const int64_t> children,
                       std::span<const double> similarity, int64_t min_size) {
  const Records records(n, children, similarity, min_size);
  const Vec<uint32_t> chosen = records.chosen_tops();
  CondensedTree tree;
  tree.level.resize(records.merges());
  Vec<int64_t> branch_of(records.merges(), -1);
  for (size_t j = records.merges(); j-- > 0;) {
    tree.level[j] = records.level_of(j);
    const size_t node = records.leaves() + j;
    const Branch& record = records[node];
    if (record.size < records.min_size()) continue;
    const uint32_t above = records.parent(node);
    const bool is_root = above == kNoParent;
    if (is_root || records.is_split(above - records.leaves())) {
      const double birth =
          is_root ? root_birth(tree.level[j]) : tree.level[above - records.leaves()];
      branch_of[j] = static_cast<int64_t>(tree.top.size());
      tree.top.push_back(static_cast<int64_t>(node));
      tree.parent.push_back(is_root ? -1 : branch_of[above - records.leaves()]);
      tree.birth.push_back(birth);
      tree.death.push_back(birth);
      tree.size.push_back(record.size);
      tree.excess.push_back(excess(record, birth));
      tree.kept.push_back(chosen[node] == node);
    } else {
      branch_of[j] = branch_of[above - records.leaves()];
    }
    tree.death[static_cast<size_t>(branch_of[j])] = tree.level[j];  // until one is further down
  }
  return tree;
}

Vec<double> least_conductances(int64_t n, std::span<const int64_t> children,
                               std::span<const double> similarity) {
  const Records records(n, children, similarity, std::max<int64_t>(2, n + 1));  // no branches
  Vec<double> least(records.merges());
  for (size_t j = 0; j < records.merges(); ++j) {
    least[j] = records.conductance_of(j);
    for (const size_t child : {records.left(j), records.right(j)}) {
      if (child >= records.leaves()) least[j] = std::min(least[j], least[child - records.leaves()]);
    }
  }
  return least;
}

void give_nearest(int64_t n, std::span<const int64_t> children, std::span<int64_t> labels) {
  const Vec<uint32_t> parent = forest_parents(n, children);
  const size_t leaves = static_cast<size_t>(n);
  expect_length("labels", labels.size(), leaves);
  Vec<uint32_t> size(leaves);  // by label
  for (size_t leaf = 0; leaf < leaves; ++leaf) {
    if (labels[leaf] < -1 || labels[leaf] >= n) {
      reject("label " + std::to_string(leaf) + " is " + std::to_string(labels[leaf]) +
             "; it must be in -1.." + std::to_string(n - 1));
    }
    if (labels[leaf] >= 0) ++size[static_cast<size_t>(labels[leaf])];
  }
  const auto is_better = [&size](int64_t a, int64_t b) {
    if (a < 0 || b < 0) return a > b;
    const uint32_t size_a = size[static_cast<size_t>(a)], size_b = size[static_cast<size_t>(b)];
    return size_a != size_b ? size_a > size_b : a < b;
  };
  // First the largest cluster under each node, -1 if there is none; then those without take that of
  // their parent.
  Vec<int64_t> nearest(parent.size(), -1);
  std::copy(labels.begin(), labels.end(), nearest.begin());
  for (size_t node = 0; node < parent.size(); ++node) {
    if (parent[node] == kNoParent) continue;
    int64_t& above = nearest[parent[node]];
    if (is_better(nearest[node], above)) above = nearest[node];
  }
  for (size_t node = parent.size(); node-- > 0;) {
    if (nearest[node] < 0 && parent[node] != kNoParent) nearest[node] = nearest[parent[node]];
  }
  std::copy_n(nearest.begin(), leaves, labels.begin());
}

}  // namespace dynhac
