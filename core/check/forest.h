// The dendrogram as an array of pairs: the input format of cut() and check().
//
// Leaves are the nodes 0..n-1; merge j makes node n+j out of the nodes children[2j] and
// children[2j+1], both of smaller index. Every node is a child at most once: a forest.

#ifndef DYNHAC_CHECK_FOREST_H_
#define DYNHAC_CHECK_FOREST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "core/base/memory.h"

namespace dynhac {

inline constexpr uint32_t kNoParent = 0xFFFFFFFF;

[[noreturn]] inline void reject(const std::string& what) {
  throw std::invalid_argument(what);
}

// Throws std::invalid_argument unless an array has the expected length.
inline void expect_length(const char* name, size_t length, size_t expected) {
  if (length != expected) {
    reject(std::string(name) + " has " + std::to_string(length) + " entries; it must have " +
           std::to_string(expected));
  }
}

// The parent of every node, kNoParent for roots. Throws std::invalid_argument unless `children` is
// a forest as above, with at most 2^30 leaves.
inline Vec<uint32_t> forest_parents(int64_t n, std::span<const int64_t> children) {
  // check() numbers the nodes, and up to four steps per leaf, with 32 bits.
  if (n < 0 || n > (int64_t{1} << 30)) {
    reject("the number of leaves is " + std::to_string(n) + "; it must be in 0..2^30");
  }
  if (children.size() % 2 != 0) {
    reject("children has " + std::to_string(children.size()) +
           " entries; it must have two a merge");
  }
  if (n == 0 ? !children.empty() : children.size() / 2 > static_cast<uint64_t>(n - 1)) {
    reject(std::to_string(children.size() / 2) + " merges of " + std::to_string(n) +
           " leaves; there must be fewer merges than leaves");
  }
  const size_t leaves = static_cast<size_t>(n);
  Vec<uint32_t> parent(leaves + children.size() / 2, kNoParent);
  for (size_t i = 0; i < children.size(); ++i) {
    const size_t node = leaves + i / 2;
    const int64_t child = children[i];
    if (child < 0 || child >= static_cast<int64_t>(node)) {
      reject("node " + std::to_string(node) + " has child " + std::to_string(child) +
             "; children must be >= 0 and smaller than their parent");
    }
    uint32_t& slot = parent[static_cast<size_t>(child)];
    if (slot != kNoParent) {
      reject("node " + std::to_string(child) + " is a child of both " + std::to_string(slot) +
             " and " + std::to_string(node) + "; a node has one parent");
    }
    slot = static_cast<uint32_t>(node);
  }
  return parent;
}

}  // namespace dynhac

#endif  // DYNHAC_CHECK_FOREST_H_
