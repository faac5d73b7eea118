#include "core/selection/select.h"

#include <algorithm>
#include <limits>
#include <string>

#include "core/check/forest.h"
#include "core/selection/branch.h"

namespace dynhac {
namespace {

// Throws unless a similarity is positive and finite.
inline void expect_positive(const char* name, double value, size_t node) {
  if (value > 0 && value <= std::numeric_limits<double>::max()) [[likely]]
    return;
  reject(std::string(name) + " of node " + std::to_string(node) + " is " + std::to_string(value) +
         "; it must be > 0 and finite");
}

// The records of all nodes. Children come before parents, so one scan of the merges makes them.
//
// Most nodes have fewer than min_size leaves; nothing of their branch but weight and size is set.
// All leaves share one entry.
class Records {
 public:
  Records(int64_t n, std::span<const int64_t> children, std::span<const double> similarity,
          std::span<const double> min_similarity, int64_t min_size, double threshold)
      : parent_(forest_parents(n, children)),
        leaves_(static_cast<size_t>(n)),
        children_(children),
        similarity_(similarity),
        min_similarity_(min_similarity) {
    expect_length("similarity", similarity.size(), merges());
    expect_length("min_similarity", min_similarity.size(), merges());
    if (min_size < 2) {
      reject("min_size is " + std::to_string(min_size) + "; it must be at least 2");
    }
    if (!(threshold >= 0)) {
      reject("threshold is " + std::to_string(threshold) + "; it must be at least 0");
    }
    // No node is as large as n + 2.
    parameters_ = {static_cast<uint32_t>(std::min(min_size, n + 2)), threshold};
    entries_.reserve(merges() + 1);
    entries_.push_back({0, 1, kNone});
    for (size_t j = 0; j < merges(); ++j) {
      expect_positive("similarity", similarity[j], leaves_ + j);
      expect_positive("min_similarity", min_similarity[j], leaves_ + j);
      const Entry &a = entries_[place(left(j))], &b = entries_[place(right(j))];
      if (a.size + b.size < parameters_.min_size) {
        entries_.push_back({merged_weight(a, b, similarity[j]), a.size + b.size, kNone});
        continue;
      }
      large_.push_back(
          merged(branch_of(left(j)), branch_of(right(j)), merge(j), parameters_.min_size));
      const Branch& made = large_.back();
      entries_.push_back({made.weight, made.size, static_cast<uint32_t>(large_.size() - 1)});
    }
  }

  size_t leaves() const { return leaves_; }
  size_t nodes() const { return parent_.size(); }
  size_t merges() const { return parent_.size() - leaves_; }
  uint32_t node(size_t j) const { return static_cast<uint32_t>(leaves_ + j); }
  uint32_t parent(size_t node) const { return parent_[node]; }
  size_t left(size_t j) const { return static_cast<size_t>(children_[2 * j]); }
  size_t right(size_t j) const { return static_cast<size_t>(children_[2 * j + 1]); }

  // Merges of at least min_size leaves are numbered 0, 1, ...; kNone for the others.
  uint32_t slot(size_t j) const { return entries_[j + 1].slot; }
  const Branch& large(uint32_t slot) const { return large_[slot]; }
  size_t large_count() const { return large_.size(); }

  double level_of(size_t j) const { return level(min_similarity_[j], conductance_of(j)); }
  double conductance_of(size_t j) const {
    return conductance(branch_of(left(j)), branch_of(right(j)), similarity_[j]);
  }

  double root_birth_of(const Branch& root) const { return root_birth(root, parameters_.threshold); }

  // For every node, the slot of the top of the cluster that it is in; kNone if it is in none.
  Vec<uint32_t> chosen_tops() const {
    Vec<uint32_t> top(nodes(), kNone);
    for (size_t j = merges(); j-- > 0;) {
      uint32_t& own = top[node(j)];
      if (own == kNone && slot(j) != kNone) {
        const Branch& record = large_[slot(j)];
        if (parent_[node(j)] == kNoParent &&
            is_root_kept(record, parameters_, is_dominant(record.size, leaves_))) {
          own = slot(j);
        } else if (record.end == node(j)) {
          if (record.keep_left) top[left(j)] = slot(left(j) - leaves_);
          if (record.keep_right) top[right(j)] = slot(right(j) - leaves_);
        }
      }
      if (own != kNone) top[left(j)] = top[right(j)] = own;
    }
    return top;
  }

 private:
  struct Entry {
    double weight;
    uint32_t size;
    uint32_t slot;
  };

  // Without a jump: nobody can predict whether a child is a leaf.
  size_t place(size_t node) const {
    return (node - leaves_ + 1) * static_cast<size_t>(node >= leaves_);
  }
  Branch branch_of(size_t node) const {
    const Entry& entry = entries_[place(node)];
    if (entry.slot != kNone) return large_[entry.slot];
    Branch small;
    small.weight = entry.weight;
    small.size = entry.size;
    return small;
  }
  BranchMerge merge(size_t j) const { return {node(j), similarity_[j], min_similarity_[j]}; }

  Vec<uint32_t> parent_;
  size_t leaves_;
  std::span<const int64_t> children_;
  std::span<const double> similarity_;
  std::span<const double> min_similarity_;
  SelectionParameters parameters_ = {};
  Vec<Entry> entries_;  // of all leaves together, then one of each merge
  Vec<Branch> large_;   // by slot
};

}  // namespace

void select_clusters(int64_t n, std::span<const int64_t> children,
                     std::span<const double> similarity, std::span<const double> min_similarity,
                     int64_t min_size, double threshold, std::span<int64_t> labels) {
  const Records records(n, children, similarity, min_similarity, min_size, threshold);
  expect_length("labels", labels.size(), records.leaves());
  const Vec<uint32_t> top = records.chosen_tops();
  Vec<int64_t> label_of(records.large_count(), -1);  // of the clusters met so far
  int64_t clusters = 0;
  for (size_t leaf = 0; leaf < records.leaves(); ++leaf) {
    labels[leaf] = -1;
    if (top[leaf] == kNone) continue;
    int64_t& label = label_of[top[leaf]];
    if (label < 0) label = clusters++;
    labels[leaf] = label;
  }
}

CondensedTree condense(int64_t n, std::span<const int64_t> children,
                       std::span<const double> similarity, std::span<const double> min_similarity,
                       int64_t min_size, double threshold) {
  const Records records(n, children, similarity, min_similarity, min_size, threshold);
  const Vec<uint32_t> chosen = records.chosen_tops();
  CondensedTree tree;
  tree.level.resize(records.merges());
  Vec<size_t> branch_of(records.large_count());
  for (size_t j = records.merges(); j-- > 0;) {
    tree.level[j] = records.level_of(j);
    const uint32_t slot = records.slot(j);
    if (slot == kNone) continue;
    const Branch& record = records.large(slot);
    const uint32_t node = records.node(j);
    const uint32_t above = records.parent(node);
    const bool is_root = above == kNoParent;
    const size_t over = is_root ? 0 : above - records.leaves();  // the merge above
    if (is_root || records.large(records.slot(over)).end == above) {
      const double birth = is_root ? records.root_birth_of(record) : tree.level[over];
      branch_of[slot] = tree.top.size();
      tree.top.push_back(node);
      tree.parent.push_back(is_root ? -1 : static_cast<int64_t>(branch_of[records.slot(over)]));
      tree.birth.push_back(birth);
      tree.death.push_back(birth);
      tree.size.push_back(record.size);
      tree.excess.push_back(excess(record, birth));
      tree.kept.push_back(chosen[node] == slot);
    } else {
      branch_of[slot] = branch_of[records.slot(over)];
    }
    tree.death[branch_of[slot]] = tree.level[j];  // until a node is further down
  }
  return tree;
}

Vec<double> least_conductances(int64_t n, std::span<const int64_t> children,
                               std::span<const double> similarity) {
  // Conductances do not depend on branches, nor on the smallest similarities.
  const int64_t no_branches = std::numeric_limits<int64_t>::max();
  const Records records(n, children, similarity, similarity, no_branches, 0);
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
