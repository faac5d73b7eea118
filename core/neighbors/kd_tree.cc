#include "core/neighbors/kd_tree.h"

#include <algorithm>
#include <string>

namespace dynhac {

namespace {

constexpr uint64_t kStepsOfOne = 256;  // of the pace, to add or remove one point

// Reserves a quarter more than needed, so that the next small change does not copy everything.
template <class T>
void reserve_spare(Vec<T>& items, size_t size) {
  items.reserve(size + size / 4);
}

[[noreturn]] void reject(int64_t slot, const std::string& why) {
  throw SlotError("slot " + std::to_string(slot) + " is " + why);
}

void require_distinct(std::span<const int64_t> slots) {
  auto not_above = [](int64_t a, int64_t b) { return a >= b; };
  if (std::adjacent_find(slots.begin(), slots.end(), not_above) == slots.end()) return;
  Vec<int64_t> sorted(slots.begin(), slots.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) reject(*twice, "listed twice; list it once");
}

uint32_t take_last(Vec<uint32_t>& items) {
  const uint32_t last = items.back();
  items.pop_back();
  return last;
}

}  // namespace

KdTree::KdTree(int64_t dimension, uint32_t threads)
    : dimension_(static_cast<size_t>(dimension)), threads_(threads) {
  if (dimension < 1 || dimension > kMostDimensions) throw std::invalid_argument("dimension");
  if (threads < 1) throw std::invalid_argument("threads");
}

void KdTree::require_whole() const {
  if (!whole_) throw std::logic_error("the index failed in the middle of a change");
}

void KdTree::add(std::span<const int64_t> slots, std::span<const float> vectors, Poll* poll) {
  require_whole();
  if (vectors.size() != slots.size() * dimension_) throw std::invalid_argument("vectors");
  int64_t top = -1;
  for (const int64_t slot : slots) {
    if (slot < 0) reject(slot, "negative; slots must be >= 0");
    if (slot > kLargestSlot) reject(slot, "above " + std::to_string(kLargestSlot));
    if (holds(slot)) reject(slot, "held already; remove it first");
    top = std::max(top, slot);
  }
  require_distinct(slots);
  require_finite(vectors, dimension_);

  if (const auto needed = static_cast<size_t>(top + 1); needed > leaf_of_.size()) {
    if (needed > leaf_of_.capacity()) reserve_spare(leaf_of_, needed);
    leaf_of_.resize(needed, kNone);
  }
  whole_ = false;
  pace_ = Pace(poll);
  if (std::ssize(slots) > size_ / 2 && slots.size() > kBlock) {
    if (root_ == kNone) root_ = new_node(kNone);
    take_out(root_);
    for (const int64_t slot : slots) loose_.slots.push_back(static_cast<uint32_t>(slot));
    loose_.vectors.insert(loose_.vectors.end(), vectors.begin(), vectors.end());
    put_back(root_);
    reserve_spare(nodes_, nodes_.size());
    reserve_spare(boxes_, boxes_.size());
    reserve_spare(block_slots_, block_slots_.size());
    reserve_spare(block_vectors_, block_vectors_.size());
  } else {
    for (size_t i = 0; i < slots.size(); ++i) {
      add_one(static_cast<uint32_t>(slots[i]), &vectors[i * dimension_]);
      pace_.step(kStepsOfOne, 1);
    }
  }
  size_ += std::ssize(slots);
  whole_ = true;
}

void KdTree::remove(std::span<const int64_t> slots, Poll* poll) {
  require_whole();
  for (const int64_t slot : slots) {
    if (slot < 0 || !holds(slot)) reject(slot, "not held");
  }
  require_distinct(slots);

  whole_ = false;
  pace_ = Pace(poll);
  for (const int64_t slot : slots) {
    remove_one(static_cast<uint32_t>(slot));
    pace_.step(kStepsOfOne);
  }
  size_ -= std::ssize(slots);
  whole_ = true;
}

KdTree::Points KdTree::points() const {
  require_whole();
  Points found;
  for (size_t slot = 0; slot < leaf_of_.size(); ++slot) {
    if (leaf_of_[slot] == kNone) continue;
    const Node& leaf = nodes_[leaf_of_[slot]];
    const float* vector = low(leaf_of_[slot]);
    if (!leaf.equal) {
      const uint32_t* held = block_slots(leaf);
      const auto place = std::find(held, held + leaf.count, slot) - held;
      vector = block_vectors(leaf) + static_cast<size_t>(place) * dimension_;
    }
    found.slots.push_back(static_cast<int64_t>(slot));
    found.vectors.insert(found.vectors.end(), vector, vector + dimension_);
  }
  return found;
}

// --- single points -------------------------------------------------------------------------------

void KdTree::add_one(uint32_t slot, const float* vector) {
  if (root_ == kNone) {
    root_ = new_node(kNone);
    build_leaf(root_, {});
  }
  uint32_t due = kNone;
  uint32_t at = root_;
  while (!nodes_[at].leaf()) {
    Node& node = nodes_[at];
    box(at).grow(vector);
    ++node.count;
    if (++node.changes > node.built && due == kNone) due = at;
    at = vector[node.axis] < node.split ? node.left : node.right;
  }
  add_to_leaf(at, slot, vector);
  if (due != kNone) rebalance(due);
}

void KdTree::add_to_leaf(uint32_t at, uint32_t slot, const float* vector) {
  Node& leaf = nodes_[at];
  if (leaf.equal && std::equal(vector, vector + dimension_, low(at))) {
    equal_slots_[leaf.storage].insert(slot);
  } else if (leaf.equal && leaf.count >= kBlock) {
    return split_equal_leaf(at, slot, vector);
  } else if (!leaf.equal && leaf.count < kBlock) {
    if (leaf.count == 0) {
      set_box_to(at, vector);
    } else {
      box(at).grow(vector);
    }
    block_slots(leaf)[leaf.count] = slot;
    std::copy_n(vector, dimension_, block_vectors(leaf) + leaf.count * dimension_);
  } else {  // a full block, or an equal leaf with few points
    take_out(at);
    loose_.slots.push_back(slot);
    loose_.vectors.insert(loose_.vectors.end(), vector, vector + dimension_);
    return put_back(at);
  }
  ++leaf.count;
  leaf_of_[slot] = at;
}

// Splits halfway between the equal points and the new one. Points that come ever nearer to the
// equal ones thus need at most one split for every power of two before the two coordinates are
// equal. The leaf keeps its node, because leaf_of_ of all its slots names it.
void KdTree::split_equal_leaf(uint32_t leaf, uint32_t slot, const float* vector) {
  const uint32_t above = nodes_[leaf].parent;
  const uint32_t inner = new_node(above);
  const uint32_t point = new_node(inner);
  build_leaf(point, {});
  add_to_leaf(point, slot, vector);
  replace_child(above, leaf, inner);
  nodes_[leaf].parent = inner;

  set_box_to(inner, low(leaf));
  box(inner).grow(vector);
  const uint32_t axis = box(inner).widest_axis();
  const float least = low(inner)[axis], most = high(inner)[axis];
  const auto middle = static_cast<float>((double{least} + double{most}) / 2);
  Node& node = nodes_[inner];
  node.axis = static_cast<uint8_t>(axis);
  node.split = middle > least ? middle : most;
  const bool point_left = vector[axis] < node.split;
  node.left = point_left ? point : leaf;
  node.right = point_left ? leaf : point;
  node.count = node.built = nodes_[leaf].count + 1;
}

void KdTree::remove_one(uint32_t slot) {
  const uint32_t at = leaf_of_[slot];
  remove_from_leaf(nodes_[at], slot);
  leaf_of_[slot] = kNone;
  --nodes_[at].count;
  uint32_t due = kNone, few = kNone;  // topmost nodes to rebalance, and to shrink to a leaf
  for (uint32_t above = nodes_[at].parent; above != kNone; above = nodes_[above].parent) {
    Node& node = nodes_[above];
    if (--node.count <= kBlock / 2) few = above;
    if (++node.changes > node.built) due = above;
  }
  if (due != kNone && nodes_[due].count <= kBlock / 2) due = kNone;  // rebuilt with `few`
  if (few != kNone) {
    rebuild(few);
  } else if (nodes_[at].count == 0 && at != root_) {
    if (due == nodes_[at].parent) due = kNone;  // is dropped with the leaf
    drop_empty_leaf(at);
  }
  if (due != kNone) rebalance(due);
}

void KdTree::remove_from_leaf(const Node& leaf, uint32_t slot) {
  if (leaf.equal) {
    equal_slots_[leaf.storage].erase(slot);
    return;
  }
  uint32_t* slots = block_slots(leaf);
  float* vectors = block_vectors(leaf);
  const auto place = static_cast<size_t>(std::find(slots, slots + leaf.count, slot) - slots);
  const size_t last = leaf.count - 1;
  slots[place] = slots[last];
  std::copy_n(vectors + last * dimension_, dimension_, vectors + place * dimension_);
}

// Drops the leaf and its parent; the sibling takes the place of the parent.
void KdTree::drop_empty_leaf(uint32_t leaf) {
  const uint32_t parent = nodes_[leaf].parent;
  const uint32_t sibling = nodes_[parent].left == leaf ? nodes_[parent].right : nodes_[parent].left;
  const uint32_t above = nodes_[parent].parent;
  nodes_[sibling].parent = above;
  replace_child(above, parent, sibling);
  free_storage(nodes_[leaf]);
  free_nodes_.push_back(leaf);
  free_nodes_.push_back(parent);
}

// A node without a parent is the root.
void KdTree::replace_child(uint32_t parent, uint32_t old, uint32_t now) {
  if (parent == kNone) {
    root_ = now;
  } else {
    (nodes_[parent].left == old ? nodes_[parent].left : nodes_[parent].right) = now;
  }
}

// --- boxes and memory ----------------------------------------------------------------------------

uint32_t KdTree::Box::widest_axis() const {
  uint32_t widest = 0;
  double width = -1;
  for (uint32_t j = 0; j < dimension; ++j) {
    const double here = double{high()[j]} - double{low[j]};
    if (here > width) {
      widest = j;
      width = here;
    }
  }
  return widest;
}

void KdTree::Box::grow(const float* vector) const {
  for (size_t j = 0; j < dimension; ++j) {
    low[j] = std::min(low[j], vector[j]);
    high()[j] = std::max(high()[j], vector[j]);
  }
}

void KdTree::set_box_to(uint32_t node, const float* vector) {
  std::copy_n(vector, dimension_, low(node));
  std::copy_n(vector, dimension_, high(node));
}

uint32_t KdTree::new_node(uint32_t parent) {
  uint32_t node;
  if (free_nodes_.empty()) {
    node = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
    boxes_.resize(boxes_.size() + 2 * dimension_);
  } else {
    node = take_last(free_nodes_);
    nodes_[node] = {};
  }
  nodes_[node].parent = parent;
  return node;
}

uint32_t KdTree::new_block() {
  if (!free_blocks_.empty()) return take_last(free_blocks_);
  const auto block = static_cast<uint32_t>(block_slots_.size() / kBlock);
  block_slots_.resize(block_slots_.size() + kBlock);
  block_vectors_.resize(block_vectors_.size() + kBlock * dimension_);
  return block;
}

uint32_t KdTree::new_equal_slots() {
  if (!free_equal_slots_.empty()) return take_last(free_equal_slots_);
  equal_slots_.emplace_back();
  return static_cast<uint32_t>(equal_slots_.size() - 1);
}

void KdTree::free_storage(Node& leaf) {
  if (leaf.storage == kNone) return;
  if (leaf.equal) {
    equal_slots_[leaf.storage] = {};
    free_equal_slots_.push_back(leaf.storage);
  } else {
    free_blocks_.push_back(leaf.storage);
  }
  leaf.storage = kNone;
}

}  // namespace dynhac
