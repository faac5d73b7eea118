// A dynamic KD-tree: exact nearest neighbours in few dimensions, with insertions and removals.
//
// A leaf holds a block of up to kBlock points. An *equal leaf* holds any number of points that are
// all equal: one vector and the set of its slots. A node keeps the bounding box and the number of
// its points. A full block is split at the median of its widest side.
//
// Inner nodes count the changes below them. When there have been as many as there were points, the
// subtree is rebuilt if it is small or unbalanced; so every update costs O(log n) rebuilt points at
// each of its O(log n) nodes, amortised, and mostly far less. Subtrees of few points shrink to one
// leaf. The path to a large equal leaf may be longer: points that come ever nearer to it add a node
// each, up to one for every power of two on every side of it.
//
// Invariants:
//
// - An inner node has two children and more than kBlock / 2 points. Those with a coordinate (of the
//   node's `axis`) smaller than `split` are in the left subtree, all others in the right one.
// - Only the root may be a leaf without points.
// - Boxes contain all points below; removals do not shrink them.
// - leaf_of_[slot] is the leaf that holds a slot, or kNone.
//
// A distance is the square root of the sum of squared differences in double, added up in the order
// of the coordinates. Rounding is monotone, and the distance to a box is computed in the same way:
// so it is never above the distance of a point inside, and the answers are exact to the last bit,
// whatever the shape of the tree. Equal distances come in the order of slots.

#ifndef DYNHAC_NEIGHBORS_KD_TREE_H_
#define DYNHAC_NEIGHBORS_KD_TREE_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "core/base/buffer.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/base/progress.h"
#include "core/hierarchy/types.h"
#include "core/neighbors/index.h"
#include "core/neighbors/sorted_chunks.h"

namespace dynhac {

class KdTree {
 public:
  static constexpr int64_t kMostDimensions = 8;
  static constexpr int64_t kLargestSlot = kNone - 1;

  // Large additions and queries use up to `threads` threads. Throws std::invalid_argument if the
  // dimension is not in 1..kMostDimensions, or if there is no thread.
  explicit KdTree(int64_t dimension, uint32_t threads = 1);

  int64_t dimension() const { return static_cast<int64_t>(dimension_); }
  bool intact() const { return whole_; }  // false after a change that failed half-way
  int64_t size() const {
    require_whole();
    return size_;
  }

  // `vectors` has a row of coordinates for every slot. Throws SlotError if a slot is held already,
  // listed twice or out of range, std::invalid_argument if a coordinate is not finite. After any
  // other exception, such as one of `poll`, the tree can only be destroyed: every call throws
  // std::logic_error.
  void add(std::span<const int64_t> slots, std::span<const float> vectors, Poll* poll = nullptr);

  // Throws SlotError if a slot is not held or listed twice; otherwise like `add`.
  void remove(std::span<const int64_t> slots, Poll* poll = nullptr);

  // Writes for every row of `queries` the k nearest points, by distance and then by slot, into k
  // places of `slots` and `distances`; where there are fewer, -1 and infinity. Throws
  // std::invalid_argument if a coordinate is not finite.
  void query(std::span<const float> queries, size_t k, std::span<int64_t> slots,
             std::span<double> distances, Poll* poll = nullptr) const;

  // All slots, ascending, and their vectors.
  struct Points {
    Vec<int64_t> slots;
    Vec<float> vectors;
  };
  Points points() const;

  // Throws std::logic_error if an invariant does not hold. Defined with the tests.
  void audit() const;

 private:
  static constexpr uint32_t kBlock = 32;     // points
  static constexpr uint32_t kSmall = 1'024;  // points of subtrees that are rebuilt even if balanced

  struct Node {
    uint32_t parent = kNone;
    uint32_t left = kNone, right = kNone;  // kNone: a leaf
    uint32_t count = 0;                    // points below
    uint32_t built = 0;                    // count when the subtree was last built or rebalanced
    uint32_t changes = 0;                  // additions and removals below since then
    uint32_t storage = kNone;              // of a leaf: its block, or its set in equal_slots_
    float split = 0;
    uint8_t axis = 0;
    bool equal = false;  // an equal leaf

    bool leaf() const { return left == kNone; }
  };

  struct Found {
    double distance;
    uint32_t slot;

    bool operator<(const Found& other) const {
      return distance < other.distance || (distance == other.distance && slot < other.slot);
    }
  };

  struct Box {  // the low ends, then the high ends
    float* low;
    size_t dimension;

    float* high() const { return low + dimension; }
    void grow(const float* vector) const;
    bool is_point() const { return std::equal(low, high(), high()); }
    uint32_t widest_axis() const;
  };

  // How to split points, or that they are a leaf (lefts == 0). A split is followed by the steps of
  // its left part, and these by those of its right part.
  struct Step {
    uint32_t lefts = 0;
    float split = 0;
    uint8_t axis = 0;
  };
  struct Plan {
    Vec<Step> steps;
    Vec<float> boxes;  // of each step
  };

  // Points outside the tree, while a subtree is built from them.
  struct Loose {
    Vec<uint32_t> slots;
    Vec<float> vectors;
    Vec<uint32_t> order;  // indices into the other two
    Plan plan;
  };

  // In kd_tree_search.cc.
  class Search;
  struct Queued {
    uint32_t leaf;  // where the query is
    size_t query;

    auto operator<=>(const Queued&) const = default;
  };
  Buffer<Queued> in_order_of_leaves(std::span<const float> queries, Workers& workers) const;

  void require_whole() const;
  bool holds(int64_t slot) const {  // of a slot >= 0
    return slot < std::ssize(leaf_of_) && leaf_of_[static_cast<size_t>(slot)] != kNone;
  }

  float* low(uint32_t node) { return &boxes_[size_t{2} * dimension_ * node]; }
  float* high(uint32_t node) { return low(node) + dimension_; }
  const float* low(uint32_t node) const { return &boxes_[size_t{2} * dimension_ * node]; }
  const float* high(uint32_t node) const { return low(node) + dimension_; }
  uint32_t* block_slots(const Node& leaf) { return &block_slots_[size_t{kBlock} * leaf.storage]; }
  const uint32_t* block_slots(const Node& leaf) const {
    return &block_slots_[size_t{kBlock} * leaf.storage];
  }
  float* block_vectors(const Node& leaf) {
    return &block_vectors_[size_t{kBlock} * dimension_ * leaf.storage];
  }
  const float* block_vectors(const Node& leaf) const {
    return &block_vectors_[size_t{kBlock} * dimension_ * leaf.storage];
  }

  void add_one(uint32_t slot, const float* vector);
  void remove_one(uint32_t slot);
  void add_to_leaf(uint32_t leaf, uint32_t slot, const float* vector);
  void split_equal_leaf(uint32_t leaf, uint32_t slot, const float* vector);
  void remove_from_leaf(const Node& leaf, uint32_t slot);
  void drop_empty_leaf(uint32_t leaf);
  void replace_child(uint32_t parent, uint32_t old, uint32_t now);

  // In kd_tree_build.cc.
  void rebalance(uint32_t node);
  void rebuild(uint32_t node);
  void take_out(uint32_t node);  // makes its points loose and frees the nodes below it
  void put_back(uint32_t node);  // builds a subtree from all loose points
  void plan_subtree(std::span<uint32_t> order, Plan& plan, Pace* pace) const;
  void plan_in_parallel(Plan& plan);
  uint32_t plan_step(std::span<uint32_t> order, Plan& plan, Pace* pace) const;
  void place(uint32_t node, std::span<const uint32_t> order, size_t& next);
  void build_leaf(uint32_t node, std::span<const uint32_t> order);

  Box box(uint32_t node) { return {low(node), dimension_}; }
  void set_box_to(uint32_t node, const float* vector);
  double box_square(uint32_t node, const float* query) const;
  double square(const float* a, const float* b) const;
  uint32_t leaf_at(const float* query) const;

  uint32_t new_node(uint32_t parent);
  uint32_t new_block();
  uint32_t new_equal_slots();
  void free_storage(Node& leaf);

  size_t dimension_;
  uint32_t threads_;
  int64_t size_ = 0;
  bool whole_ = true;  // false during a change, and for good if one failed
  uint32_t root_ = kNone;
  Vec<Node> nodes_;
  Vec<float> boxes_;  // of every node the low ends, then the high ends
  Vec<uint32_t> block_slots_;
  Vec<float> block_vectors_;
  Vec<SortedChunks> equal_slots_;  // their vector, up to the signs of zeros, is the box
  Vec<uint32_t> free_nodes_, free_blocks_, free_equal_slots_;
  Vec<uint32_t> leaf_of_;
  Loose loose_;
  Pace pace_;  // of the change in progress
};

}  // namespace dynhac

#endif  // DYNHAC_NEIGHBORS_KD_TREE_H_
