// Builds subtrees of a KD-tree from loose points.

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/neighbors/kd_tree.h"

namespace dynhac {

// Called after as many changes as there were points: rebuilds the subtree if that is worthwhile,
// and otherwise only shrinks its box.
void KdTree::rebalance(uint32_t at) {
  Node& node = nodes_[at];
  const Node &left = nodes_[node.left], &right = nodes_[node.right];
  const bool lopsided = std::max(left.count, right.count) > node.count - node.count / 4;
  if (node.count <= kSmall || lopsided) return rebuild(at);
  node.built = node.count;
  node.changes = 0;
  for (size_t j = 0; j < dimension_; ++j) {
    low(at)[j] = std::min(low(node.left)[j], low(node.right)[j]);
    high(at)[j] = std::max(high(node.left)[j], high(node.right)[j]);
  }
}

void KdTree::rebuild(uint32_t node) {
  take_out(node);
  put_back(node);
}

void KdTree::take_out(uint32_t top) {
  Vec<uint32_t> left_to_do{top};
  while (!left_to_do.empty()) {
    const uint32_t at = left_to_do.back();
    left_to_do.pop_back();
    Node& node = nodes_[at];
    if (!node.leaf()) {
      left_to_do.push_back(node.left);
      left_to_do.push_back(node.right);
    } else if (node.equal) {
      for (const Vec<uint32_t>& slots : equal_slots_[node.storage].chunks()) {
        loose_.slots.insert(loose_.slots.end(), slots.begin(), slots.end());
      }
      for (uint32_t i = 0; i < node.count; ++i) {
        loose_.vectors.insert(loose_.vectors.end(), low(at), low(at) + dimension_);
      }
    } else if (node.count > 0) {
      const float* vectors = block_vectors(node);
      loose_.slots.insert(loose_.slots.end(), block_slots(node), block_slots(node) + node.count);
      loose_.vectors.insert(loose_.vectors.end(), vectors, vectors + node.count * dimension_);
    }
    free_storage(node);
    if (at != top) free_nodes_.push_back(at);
  }
}

void KdTree::put_back(uint32_t node) {
  loose_.order.resize(loose_.slots.size());
  std::iota(loose_.order.begin(), loose_.order.end(), 0u);
  build(node, loose_.order);
  recycle(loose_.slots);
  recycle(loose_.vectors);
  recycle(loose_.order);
}

// The node keeps its parent. Two splits in a row that put most points on one side
// leave that side with one value on the axis: so the recursion is O(log n + dimension) deep.
void KdTree::build(uint32_t at, std::span<uint32_t> order) {
  if (order.empty()) return build_leaf(at, order);
  pace_.step(8 * order.size());
  const float* vectors = loose_.vectors.data();
  set_box_to(at, vectors + order[0] * dimension_);
  for (const uint32_t i : order.subspan(1)) grow_box(at, vectors + i * dimension_);
  if (order.size() <= kBlock || box_is_point(at)) return build_leaf(at, order);

  const uint32_t axis = widest_axis(at);
  const auto value = [&](uint32_t i) { return vectors[i * dimension_ + axis]; };
  const auto middle = order.begin() + std::ssize(order) / 2;
  std::nth_element(order.begin(), middle, order.end(),
                   [&](uint32_t a, uint32_t b) { return value(a) < value(b); });
  float split = value(*middle);
  if (split == low(at)[axis]) {  // the left side would be empty: use the least value above it
    split = high(at)[axis];
    for (const uint32_t i : order) {
      if (value(i) > low(at)[axis]) split = std::min(split, value(i));
    }
  }
  const auto border =
      std::partition(order.begin(), order.end(), [&](uint32_t i) { return value(i) < split; });
  const auto lefts = static_cast<size_t>(border - order.begin());

  // Created in depth-first order, so that nodes near each other in space are so in memory.
  const uint32_t left = new_node(at);
  build(left, order.first(lefts));
  const uint32_t right = new_node(at);
  build(right, order.subspan(lefts));
  Node& node = nodes_[at];
  node.left = left;
  node.right = right;
  node.count = node.built = static_cast<uint32_t>(order.size());
  node.changes = 0;
  node.storage = kNone;
  node.split = split;
  node.axis = static_cast<uint8_t>(axis);
  node.equal = false;
}

void KdTree::build_leaf(uint32_t at, std::span<const uint32_t> order) {
  pace_.step(8 * order.size(), order.size());
  const bool equal = order.size() > kBlock;
  const uint32_t storage = equal ? new_equal_slots() : new_block();
  Node& leaf = nodes_[at];
  leaf.left = leaf.right = kNone;
  leaf.count = leaf.built = static_cast<uint32_t>(order.size());
  leaf.changes = 0;
  leaf.storage = storage;
  leaf.equal = equal;
  for (const uint32_t i : order) leaf_of_[loose_.slots[i]] = at;
  if (equal) {
    Vec<uint32_t> slots;
    for (const uint32_t i : order) slots.push_back(loose_.slots[i]);
    return equal_slots_[storage].fill(std::move(slots));
  }
  uint32_t* slots = block_slots(leaf);
  float* vectors = block_vectors(leaf);
  for (const uint32_t i : order) {
    *slots++ = loose_.slots[i];
    vectors = std::copy_n(&loose_.vectors[i * dimension_], dimension_, vectors);
  }
}

}  // namespace dynhac
