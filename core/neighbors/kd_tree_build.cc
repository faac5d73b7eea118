// Builds subtrees of a KD-tree from loose points: plans all splits first, which several threads can
// do, and then makes the nodes.

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/neighbors/kd_tree.h"

namespace dynhac {

namespace {

constexpr size_t kMany = size_t{1} << 15;  // points from which on threads plan parts of a subtree

}  // namespace

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
  Plan& plan = loose_.plan;
  if (loose_.order.size() < Workers::range_size(kMany)) {
    plan_subtree(loose_.order, plan, &pace_);
  } else {
    plan_in_parallel(plan);
    nodes_.reserve(nodes_.size() + plan.steps.size());
    boxes_.reserve(boxes_.size() + plan.boxes.size());
  }
  size_t next = 0;
  place(node, loose_.order, next);
  recycle(loose_.slots);
  recycle(loose_.vectors);
  recycle(loose_.order);
  recycle(plan.steps);
  recycle(plan.boxes);
}

// Two splits in a row that put most points on one side leave that side with one value on the axis:
// so the recursion is O(log n + dimension) deep.
void KdTree::plan_subtree(std::span<uint32_t> order, Plan& plan, Pace* pace) const {
  const uint32_t lefts = plan_step(order, plan, pace);
  if (lefts == 0) return;
  plan_subtree(order.first(lefts), plan, pace);
  plan_subtree(order.subspan(lefts), plan, pace);
}

// Splits large parts, and plans small ones, many at a time.
void KdTree::plan_in_parallel(Plan& plan) {
  struct Part {
    std::span<uint32_t> order;
    Plan plan;           // of the whole part, or of its first step
    size_t left = 0;     // 0: it is planned. The right part follows.
    uint32_t lefts = 0;  // points of the left part, if it is split
  };
  Workers workers(threads_);
  const Workers::Session session(workers);
  const size_t small = Workers::range_size(kMany);
  Vec<Part> parts;
  parts.push_back({loose_.order, {}});
  for (size_t begin = 0, end = 1; begin < end; begin = std::exchange(end, parts.size())) {
    workers.run(end - begin, [&](size_t i, uint32_t thread) {
      Part& part = parts[begin + i];
      Pace* pace = thread == 0 ? &pace_ : nullptr;
      if (part.order.size() < small) {
        plan_subtree(part.order, part.plan, pace);
      } else {
        part.lefts = plan_step(part.order, part.plan, pace);
      }
    });
    for (size_t i = begin; i < end; ++i) {
      if (parts[i].lefts == 0) continue;
      parts[i].left = parts.size();
      const std::span<uint32_t> order = parts[i].order;
      const uint32_t lefts = parts[i].lefts;
      parts.push_back({order.first(lefts), {}});
      parts.push_back({order.subspan(lefts), {}});
    }
  }
  Vec<size_t> left_to_do{0};
  while (!left_to_do.empty()) {
    const Part& part = parts[left_to_do.back()];
    left_to_do.pop_back();
    plan.steps.insert(plan.steps.end(), part.plan.steps.begin(), part.plan.steps.end());
    plan.boxes.insert(plan.boxes.end(), part.plan.boxes.begin(), part.plan.boxes.end());
    if (part.left == 0) continue;
    left_to_do.push_back(part.left + 1);
    left_to_do.push_back(part.left);
  }
}

// Appends how points are split, or that they are a leaf. Returns the number of those on the left
// side, which come first then; 0 for a leaf.
uint32_t KdTree::plan_step(std::span<uint32_t> order, Plan& plan, Pace* pace) const {
  if (pace != nullptr) pace->step(8 * order.size());
  plan.steps.push_back({});
  if (order.empty()) {
    plan.boxes.resize(plan.boxes.size() + 2 * dimension_);
    return 0;
  }
  const float* vectors = loose_.vectors.data();
  const float* first = vectors + order[0] * dimension_;
  plan.boxes.insert(plan.boxes.end(), first, first + dimension_);
  plan.boxes.insert(plan.boxes.end(), first, first + dimension_);
  const Box box{plan.boxes.data() + plan.boxes.size() - 2 * dimension_, dimension_};
  for (const uint32_t i : order.subspan(1)) box.grow(vectors + i * dimension_);
  if (order.size() <= kBlock || box.is_point()) return 0;

  const uint32_t axis = box.widest_axis();
  const auto value = [&](uint32_t i) { return vectors[i * dimension_ + axis]; };
  const auto middle = order.begin() + std::ssize(order) / 2;
  std::nth_element(order.begin(), middle, order.end(),
                   [&](uint32_t a, uint32_t b) { return value(a) < value(b); });
  float split = value(*middle);
  if (split == box.low[axis]) {  // the left side would be empty: use the least value above it
    split = box.high()[axis];
    for (const uint32_t i : order) {
      if (value(i) > box.low[axis]) split = std::min(split, value(i));
    }
  }
  const auto border =
      std::partition(order.begin(), order.end(), [&](uint32_t i) { return value(i) < split; });
  const auto lefts = static_cast<uint32_t>(border - order.begin());
  plan.steps.back() = {lefts, split, static_cast<uint8_t>(axis)};
  return lefts;
}

// Makes the planned subtree. The node keeps its parent.
void KdTree::place(uint32_t at, std::span<const uint32_t> order, size_t& next) {
  const size_t number = next++;
  std::copy_n(&loose_.plan.boxes[2 * dimension_ * number], 2 * dimension_, low(at));
  const Step step = loose_.plan.steps[number];
  if (step.lefts == 0) return build_leaf(at, order);
  // Created in depth-first order, so that nodes near each other in space are so in memory.
  const uint32_t left = new_node(at);
  place(left, order.first(step.lefts), next);
  const uint32_t right = new_node(at);
  place(right, order.subspan(step.lefts), next);
  Node& node = nodes_[at];
  node.left = left;
  node.right = right;
  node.count = node.built = static_cast<uint32_t>(order.size());
  node.changes = 0;
  node.storage = kNone;
  node.split = step.split;
  node.axis = step.axis;
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
