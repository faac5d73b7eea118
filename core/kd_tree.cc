#include "core/kd_tree.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace dynhac {

namespace {

constexpr size_t kFewQueries = 64;  // not worth being put in order

// Room for a quarter more, so that the next small change need not copy everything.
template <class T>
void reserve_spare(Vec<T>& items, size_t size) {
  items.reserve(size + size / 4);
}

void require_distinct(std::span<const int64_t> slots) {
  if (slots.size() < 2) return;
  Vec<int64_t> sorted(slots.begin(), slots.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw KdTree::SlotError("slot " + std::to_string(*twice) + " is listed twice; list it once");
  }
}

}  // namespace

KdTree::KdTree(int64_t dimension) : dimension_(static_cast<size_t>(dimension)) {
  if (dimension < 1 || dimension > kMostDimensions) throw std::invalid_argument("dimension");
}

void KdTree::require_whole() const {
  if (!whole_) throw std::logic_error("the index failed in the middle of a change");
}

void KdTree::require_finite(std::span<const float> vectors) const {
  for (size_t i = 0; i < vectors.size(); ++i) {
    if (!std::isfinite(vectors[i])) {
      throw std::invalid_argument("row " + std::to_string(i / dimension_) + ", column " +
                                  std::to_string(i % dimension_) +
                                  " is not finite; vectors must be");
    }
  }
}

void KdTree::add(std::span<const int64_t> slots, std::span<const float> vectors) {
  require_whole();
  if (vectors.size() != slots.size() * dimension_) throw std::invalid_argument("vectors");
  int64_t top = -1;
  for (const int64_t slot : slots) {
    if (slot < 0) {
      throw SlotError("slot " + std::to_string(slot) + " is negative; slots must be >= 0");
    }
    if (slot > kLargestSlot) {
      throw SlotError("slot " + std::to_string(slot) + " is above " + std::to_string(kLargestSlot));
    }
    if (slot < std::ssize(leaf_of_) && leaf_of_[static_cast<size_t>(slot)] != kNone) {
      throw SlotError("slot " + std::to_string(slot) + " is held already; remove it first");
    }
    top = std::max(top, slot);
  }
  require_distinct(slots);
  require_finite(vectors);

  whole_ = false;
  if (top >= std::ssize(leaf_of_)) {
    if (slots.size() > kBlock) reserve_spare(leaf_of_, static_cast<size_t>(top) + 1);
    leaf_of_.resize(static_cast<size_t>(top) + 1, kNone);
  }
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
    }
  }
  size_ += std::ssize(slots);
  whole_ = true;
}

void KdTree::remove(std::span<const int64_t> slots) {
  require_whole();
  for (const int64_t slot : slots) {
    if (slot < 0 || slot >= std::ssize(leaf_of_) || leaf_of_[static_cast<size_t>(slot)] == kNone) {
      throw SlotError("slot " + std::to_string(slot) + " is not held");
    }
  }
  require_distinct(slots);

  whole_ = false;
  for (const int64_t slot : slots) remove_one(static_cast<uint32_t>(slot));
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
    if (!leaf.pile) {
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
  uint32_t worn = kNone;
  uint32_t at = root_;
  while (!nodes_[at].leaf()) {
    Node& node = nodes_[at];
    grow_box(at, vector);
    ++node.count;
    if (++node.changes > node.built && worn == kNone) worn = at;
    at = vector[node.axis] < node.split ? node.left : node.right;
  }
  add_to_leaf(at, slot, vector);
  if (worn != kNone) put_in_order(worn);
}

void KdTree::add_to_leaf(uint32_t at, uint32_t slot, const float* vector) {
  Node& leaf = nodes_[at];
  if (leaf.pile && std::equal(vector, vector + dimension_, low(at))) {
    Vec<uint32_t>& pile = piles_[leaf.store];
    pile.insert(std::lower_bound(pile.begin(), pile.end(), slot), slot);
  } else if (leaf.pile && leaf.count >= kBlock) {
    return split_pile(at, slot, vector);
  } else if (!leaf.pile && leaf.count < kBlock) {
    if (leaf.count == 0) {
      set_box_to(at, vector);
    } else {
      grow_box(at, vector);
    }
    block_slots(leaf)[leaf.count] = slot;
    std::copy_n(vector, dimension_, block_vectors(leaf) + leaf.count * dimension_);
  } else {  // a full block, or what is left of a pile
    take_out(at);
    loose_.slots.push_back(slot);
    loose_.vectors.insert(loose_.vectors.end(), vector, vector + dimension_);
    return put_back(at);
  }
  ++leaf.count;
  leaf_of_[slot] = at;
}

// Halfway between the pile and the point, so that a point can come nearer to the pile only so often
// before the two are equal, however many points come.
void KdTree::split_pile(uint32_t at, uint32_t slot, const float* vector) {
  const uint32_t with_pile = new_node(at);
  const uint32_t with_point = new_node(at);
  Node& pile = nodes_[with_pile];
  pile.count = pile.built = nodes_[at].count;
  pile.store = nodes_[at].store;
  pile.pile = true;
  set_box_to(with_pile, low(at));
  for (const uint32_t held : piles_[pile.store]) leaf_of_[held] = with_pile;
  build_leaf(with_point, {});
  add_to_leaf(with_point, slot, vector);

  grow_box(at, vector);
  const uint32_t axis = widest_axis(at);
  const float ends[] = {low(at)[axis], high(at)[axis]};
  const auto middle = static_cast<float>((double{ends[0]} + double{ends[1]}) / 2);
  Node& node = nodes_[at];
  node.axis = static_cast<uint8_t>(axis);
  node.split = middle > ends[0] ? middle : ends[1];
  const bool point_left = vector[axis] < node.split;
  node.left = point_left ? with_point : with_pile;
  node.right = point_left ? with_pile : with_point;
  node.built = ++node.count;
  node.changes = 0;
  node.store = kNone;
  node.pile = false;
}

void KdTree::remove_one(uint32_t slot) {
  const uint32_t at = leaf_of_[slot];
  remove_from_leaf(nodes_[at], slot);
  leaf_of_[slot] = kNone;
  --nodes_[at].count;
  uint32_t worn = kNone, few = kNone;  // the topmost of each
  for (uint32_t above = nodes_[at].parent; above != kNone; above = nodes_[above].parent) {
    Node& node = nodes_[above];
    if (--node.count <= kBlock / 2) few = above;
    if (++node.changes > node.built) worn = above;
  }
  if (worn != kNone && nodes_[worn].count <= kBlock / 2) worn = kNone;  // is in `few`
  if (few != kNone) {
    rebuild(few);
  } else if (nodes_[at].count == 0 && at != root_) {
    if (worn == nodes_[at].parent) worn = kNone;  // leaves with it
    drop_empty_leaf(at);
  }
  if (worn != kNone) put_in_order(worn);
}

void KdTree::remove_from_leaf(const Node& leaf, uint32_t slot) {
  if (leaf.pile) {
    Vec<uint32_t>& pile = piles_[leaf.store];
    pile.erase(std::lower_bound(pile.begin(), pile.end(), slot));
    return;
  }
  uint32_t* slots = block_slots(leaf);
  float* vectors = block_vectors(leaf);
  const auto place = static_cast<size_t>(std::find(slots, slots + leaf.count, slot) - slots);
  const size_t last = leaf.count - 1;
  slots[place] = slots[last];
  std::copy_n(vectors + last * dimension_, dimension_, vectors + place * dimension_);
}

// The sibling takes the place of the parent.
void KdTree::drop_empty_leaf(uint32_t leaf) {
  const uint32_t parent = nodes_[leaf].parent;
  const uint32_t sibling = nodes_[parent].left == leaf ? nodes_[parent].right : nodes_[parent].left;
  const uint32_t above = nodes_[parent].parent;
  nodes_[sibling].parent = above;
  if (above == kNone) {
    root_ = sibling;
  } else {
    (nodes_[above].left == parent ? nodes_[above].left : nodes_[above].right) = sibling;
  }
  free_store(nodes_[leaf]);
  free_nodes_.push_back(leaf);
  free_nodes_.push_back(parent);
}

// --- subtrees ------------------------------------------------------------------------------------

// After as many changes as there were points.
void KdTree::put_in_order(uint32_t at) {
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
    } else if (node.pile) {
      for (const uint32_t slot : piles_[node.store]) {
        loose_.slots.push_back(slot);
        loose_.vectors.insert(loose_.vectors.end(), low(at), low(at) + dimension_);
      }
    } else if (node.count > 0) {
      const float* vectors = block_vectors(node);
      loose_.slots.insert(loose_.slots.end(), block_slots(node), block_slots(node) + node.count);
      loose_.vectors.insert(loose_.vectors.end(), vectors, vectors + node.count * dimension_);
    }
    free_store(node);
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

// Of loose points; the node keeps its parent. Two splits in a row that put most points on one side
// leave that side with one value on the axis: so the recursion is O(log n + dimension) deep.
void KdTree::build(uint32_t at, std::span<uint32_t> order) {
  if (order.empty()) return build_leaf(at, order);
  const float* vectors = loose_.vectors.data();
  set_box_to(at, vectors + order[0] * dimension_);
  for (const uint32_t i : order.subspan(1)) grow_box(at, vectors + i * dimension_);
  if (order.size() <= kBlock || one_place(at)) return build_leaf(at, order);

  const uint32_t axis = widest_axis(at);
  const auto value = [&](uint32_t i) { return vectors[i * dimension_ + axis]; };
  const auto middle = order.begin() + std::ssize(order) / 2;
  std::nth_element(order.begin(), middle, order.end(),
                   [&](uint32_t a, uint32_t b) { return value(a) < value(b); });
  float split = value(*middle);
  if (split == low(at)[axis]) {  // then the least value above it
    split = high(at)[axis];
    for (const uint32_t i : order) {
      if (value(i) > low(at)[axis]) split = std::min(split, value(i));
    }
  }
  const auto border =
      std::partition(order.begin(), order.end(), [&](uint32_t i) { return value(i) < split; });
  const auto lefts = static_cast<size_t>(border - order.begin());

  // Nodes in the order of a walk through the tree are also near each other in space.
  const uint32_t left = new_node(at);
  build(left, order.first(lefts));
  const uint32_t right = new_node(at);
  build(right, order.subspan(lefts));
  Node& node = nodes_[at];
  node.left = left;
  node.right = right;
  node.count = node.built = static_cast<uint32_t>(order.size());
  node.changes = 0;
  node.store = kNone;
  node.split = split;
  node.axis = static_cast<uint8_t>(axis);
  node.pile = false;
}

void KdTree::build_leaf(uint32_t at, std::span<const uint32_t> order) {
  const bool pile = order.size() > kBlock;
  const uint32_t store = pile ? new_pile() : new_block();
  Node& leaf = nodes_[at];
  leaf.left = leaf.right = kNone;
  leaf.count = leaf.built = static_cast<uint32_t>(order.size());
  leaf.changes = 0;
  leaf.store = store;
  leaf.pile = pile;
  for (const uint32_t i : order) leaf_of_[loose_.slots[i]] = at;
  if (pile) {
    Vec<uint32_t>& slots = piles_[store];
    for (const uint32_t i : order) slots.push_back(loose_.slots[i]);
    std::sort(slots.begin(), slots.end());
    return;
  }
  uint32_t* slots = block_slots(leaf);
  float* vectors = block_vectors(leaf);
  for (const uint32_t i : order) {
    *slots++ = loose_.slots[i];
    vectors = std::copy_n(&loose_.vectors[i * dimension_], dimension_, vectors);
  }
}

// --- searching -----------------------------------------------------------------------------------

// One query after the other, with memory that is used again.
class KdTree::Search {
 public:
  Search(const KdTree& tree, size_t k)
      : tree_(tree), k_(k), room_(k + std::max<size_t>(k / 2, kBlock)) {
    found_.reserve(std::min(room_, static_cast<size_t>(tree.size_)));
  }

  void run(const float* query, int64_t* slots, double* distances) {
    found_.clear();
    worst_ = {kInfinity, kNone};
    limit_ = kInfinity;
    if (tree_.size_ > 0 && k_ > 0) search(query);
    std::sort(found_.begin(), found_.end());
    const size_t n = std::min(k_, found_.size());
    for (size_t i = 0; i < k_; ++i) {
      slots[i] = i < n ? static_cast<int64_t>(found_[i].slot) : -1;
      distances[i] = i < n ? found_[i].distance : kInfinity;
    }
  }

 private:
  struct Waiting {
    uint32_t node;
    double square;  // of the distance to its box
  };

  void search(const float* query) {
    waiting_.assign(1, {tree_.root_, tree_.box_square(tree_.root_, query)});
    while (!waiting_.empty()) {
      const Waiting next = waiting_.back();
      waiting_.pop_back();
      if (next.square > limit_) continue;
      const Node& node = tree_.nodes_[next.node];
      if (node.leaf()) {
        look_at(next.node, query);
        continue;
      }
      Waiting near = {node.left, tree_.box_square(node.left, query)};
      Waiting far = {node.right, tree_.box_square(node.right, query)};
      if (far.square < near.square) std::swap(near, far);
      if (far.square <= limit_) waiting_.push_back(far);
      if (near.square <= limit_) waiting_.push_back(near);
    }
  }

  void look_at(uint32_t at, const float* query) {
    const Node& leaf = tree_.nodes_[at];
    if (leaf.pile) {
      const double square = tree_.square(query, tree_.low(at));
      for (const uint32_t slot : tree_.piles_[leaf.store]) {
        if (!offer(square, slot)) return;  // nor any larger slot
      }
      return;
    }
    const uint32_t* slots = tree_.block_slots(leaf);
    const float* vector = tree_.block_vectors(leaf);
    for (uint32_t i = 0; i < leaf.count; ++i, vector += tree_.dimension_) {
      offer(tree_.square(query, vector), slots[i]);
    }
  }

  // Whether it may be one of the k nearest.
  bool offer(double square, uint32_t slot) {
    if (square > limit_) return false;
    const Found one = {std::sqrt(square), slot};
    if (!(one < worst_)) return false;
    found_.push_back(one);
    if (found_.size() == room_) {
      const auto last = found_.begin() + static_cast<std::ptrdiff_t>(k_) - 1;
      std::nth_element(found_.begin(), last, found_.end());
      worst_ = *last;
      // Squares a little above that of the worst distance may have the same root.
      limit_ = worst_.distance * worst_.distance * (1 + 0x1p-50);
      found_.resize(k_);
    }
    return true;
  }

  const KdTree& tree_;
  size_t k_;
  size_t room_;
  Found worst_ = {kInfinity, kNone};  // the k-th nearest when there was last no room
  double limit_ = kInfinity;          // squares above it are of points that are farther
  Vec<Found> found_;
  Vec<Waiting> waiting_;
};

void KdTree::query(std::span<const float> queries, size_t k, std::span<int64_t> slots,
                   std::span<double> distances) const {
  require_whole();
  const size_t n = queries.size() / dimension_;
  if (queries.size() != n * dimension_ || slots.size() != n * k || distances.size() != n * k) {
    throw std::invalid_argument("lengths");
  }
  require_finite(queries);
  Search search(*this, k);
  const auto run = [&](size_t i) {
    search.run(&queries[i * dimension_], slots.data() + i * k, distances.data() + i * k);
  };
  if (n < kFewQueries || root_ == kNone) {
    for (size_t i = 0; i < n; ++i) run(i);
    return;
  }
  // One after the other in space, so that what one search reads is at hand for the next.
  Vec<std::pair<uint32_t, size_t>> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = {leaf_at(&queries[i * dimension_]), i};
  std::sort(order.begin(), order.end());
  for (const auto& [leaf, i] : order) run(i);
}

uint32_t KdTree::leaf_at(const float* query) const {
  uint32_t at = root_;
  while (!nodes_[at].leaf()) {
    at = query[nodes_[at].axis] < nodes_[at].split ? nodes_[at].left : nodes_[at].right;
  }
  return at;
}

double KdTree::square(const float* a, const float* b) const {
  double sum = 0;
  for (size_t j = 0; j < dimension_; ++j) {
    const double difference = double{a[j]} - double{b[j]};
    sum += difference * difference;
  }
  return sum;
}

double KdTree::box_square(uint32_t node, const float* query) const {
  const float *lows = low(node), *highs = high(node);
  double sum = 0;
  for (size_t j = 0; j < dimension_; ++j) {
    const double outside = double{query[j]} - double{std::clamp(query[j], lows[j], highs[j])};
    sum += outside * outside;
  }
  return sum;
}

// --- boxes and memory ----------------------------------------------------------------------------

bool KdTree::one_place(uint32_t node) const {
  return std::equal(low(node), high(node), high(node));
}

uint32_t KdTree::widest_axis(uint32_t node) const {
  uint32_t widest = 0;
  double width = -1;
  for (uint32_t j = 0; j < dimension_; ++j) {
    const double here = double{high(node)[j]} - double{low(node)[j]};
    if (here > width) {
      widest = j;
      width = here;
    }
  }
  return widest;
}

void KdTree::grow_box(uint32_t node, const float* vector) {
  float *lows = low(node), *highs = high(node);
  for (size_t j = 0; j < dimension_; ++j) {
    lows[j] = std::min(lows[j], vector[j]);
    highs[j] = std::max(highs[j], vector[j]);
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
    node = free_nodes_.back();
    free_nodes_.pop_back();
    nodes_[node] = {};
  }
  nodes_[node].parent = parent;
  return node;
}

uint32_t KdTree::new_block() {
  if (!free_blocks_.empty()) {
    const uint32_t block = free_blocks_.back();
    free_blocks_.pop_back();
    return block;
  }
  const auto block = static_cast<uint32_t>(block_slots_.size() / kBlock);
  block_slots_.resize(block_slots_.size() + kBlock);
  block_vectors_.resize(block_vectors_.size() + kBlock * dimension_);
  return block;
}

uint32_t KdTree::new_pile() {
  if (!free_piles_.empty()) {
    const uint32_t pile = free_piles_.back();
    free_piles_.pop_back();
    return pile;
  }
  piles_.emplace_back();
  return static_cast<uint32_t>(piles_.size() - 1);
}

void KdTree::free_store(Node& leaf) {
  if (leaf.store == kNone) return;
  if (leaf.pile) {
    Vec<uint32_t>().swap(piles_[leaf.store]);
    free_piles_.push_back(leaf.store);
  } else {
    free_blocks_.push_back(leaf.store);
  }
  leaf.store = kNone;
}

// --- audit ---------------------------------------------------------------------------------------

void KdTree::audit() const {
  const auto expect = [](bool right, const char* what) {
    if (!right) throw std::logic_error(what);
  };
  require_whole();
  int64_t held = 0;
  for (const uint32_t leaf : leaf_of_) held += leaf != kNone;
  expect(held == size_, "size and slots");
  if (root_ == kNone) return expect(size_ == 0, "no root");
  expect(nodes_[root_].parent == kNone && nodes_[root_].count == size_, "root");
  size_t nodes = 0, blocks = 0, piles = 0;
  Vec<uint32_t> left_to_do{root_};
  while (!left_to_do.empty()) {
    const uint32_t at = left_to_do.back();
    left_to_do.pop_back();
    const Node& node = nodes_[at];
    ++nodes;
    if (!node.leaf()) {
      expect(node.count > kBlock / 2, "inner node of few points");
      expect(node.count == nodes_[node.left].count + nodes_[node.right].count, "count");
      for (const uint32_t child : {node.left, node.right}) {
        expect(nodes_[child].parent == at, "parent");
        for (size_t j = 0; j < dimension_; ++j) {
          expect(low(at)[j] <= low(child)[j] && high(child)[j] <= high(at)[j], "box of a child");
        }
        left_to_do.push_back(child);
      }
      continue;
    }
    expect(node.count > 0 || at == root_, "empty leaf");
    ++(node.pile ? piles : blocks);
    if (node.pile) {
      const Vec<uint32_t>& slots = piles_[node.store];
      expect(slots.size() == node.count, "size of a pile");
      expect(std::is_sorted(slots.begin(), slots.end()), "order of a pile");
      expect(one_place(at), "box of a pile");
      for (const uint32_t slot : slots) expect(leaf_of_[slot] == at, "leaf of a slot in a pile");
      continue;
    }
    expect(node.count <= kBlock, "size of a block");
    for (uint32_t i = 0; i < node.count; ++i) {
      const float* vector = block_vectors(node) + i * dimension_;
      expect(leaf_of_[block_slots(node)[i]] == at, "leaf of a slot");
      expect(leaf_at(vector) == at, "place of a point");
      expect(box_square(at, vector) == 0, "box of a block");
    }
  }
  expect(nodes + free_nodes_.size() == nodes_.size(), "nodes");
  expect(blocks + free_blocks_.size() == block_slots_.size() / kBlock, "blocks");
  expect(piles + free_piles_.size() == piles_.size(), "piles");
}

}  // namespace dynhac
