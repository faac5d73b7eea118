// Checks the invariants of a KD-tree one by one.

#include <algorithm>

#include "core/neighbors/kd_tree.h"

namespace dynhac {

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
  size_t nodes = 0, blocks = 0, equal_leaves = 0;
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
    ++(node.equal ? equal_leaves : blocks);
    if (node.equal) {
      Vec<uint32_t> slots;
      for (const Vec<uint32_t>& chunk : equal_slots_[node.storage].chunks()) {
        slots.insert(slots.end(), chunk.begin(), chunk.end());
      }
      expect(slots.size() == node.count, "size of an equal leaf");
      expect(std::is_sorted(slots.begin(), slots.end()), "order of slots in an equal leaf");
      expect(std::equal(low(at), high(at), high(at)), "box of an equal leaf");
      expect(leaf_at(low(at)) == at, "place of an equal leaf");
      for (const uint32_t slot : slots) expect(leaf_of_[slot] == at, "leaf of an equal slot");
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
  expect(equal_leaves + free_equal_slots_.size() == equal_slots_.size(), "equal leaves");
}

}  // namespace dynhac
