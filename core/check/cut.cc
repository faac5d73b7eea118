#include "core/check/cut.h"

#include <cmath>
#include <string>

#include "core/base/memory.h"
#include "core/check/forest.h"

namespace dynhac {

void cut(int64_t n, std::span<const int64_t> children, std::span<const double> min_similarity,
         std::span<const double> thresholds, std::span<int64_t> labels) {
  const Vec<uint32_t> parent = forest_parents(n, children);
  const size_t leaves = static_cast<size_t>(n);
  const size_t nodes = parent.size();
  expect_length("min_similarity", min_similarity.size(), nodes - leaves);
  expect_length("labels", labels.size(), thresholds.size() * leaves);
  for (size_t j = 0; j < nodes - leaves; ++j) {
    if (std::isnan(min_similarity[j])) {
      reject("min_similarity of node " + std::to_string(leaves + j) + " is nan");
    }
    const uint32_t above = parent[leaves + j];
    if (above != kNoParent && min_similarity[above - leaves] > min_similarity[j]) {
      reject("min_similarity of node " + std::to_string(above) +
             " is larger than that of its child " + std::to_string(leaves + j) +
             "; it must not grow upwards");
    }
  }
  for (size_t i = 0; i < thresholds.size(); ++i) {
    if (std::isnan(thresholds[i])) reject("threshold " + std::to_string(i) + " is nan");
  }

  Vec<uint32_t> top(nodes);      // the root of the cluster that a node is in
  Vec<int64_t> label_of(nodes);  // of the clusters met so far, by root
  for (size_t row = 0; row < thresholds.size(); ++row) {
    // Parents come after their children, so a scan from the end knows the top of the parent.
    for (size_t node = nodes; node-- > 0;) {
      const uint32_t above = parent[node];
      const bool joined = above != kNoParent && min_similarity[above - leaves] >= thresholds[row];
      top[node] = joined ? top[above] : static_cast<uint32_t>(node);
      label_of[node] = -1;
    }
    int64_t clusters = 0;
    for (size_t leaf = 0; leaf < leaves; ++leaf) {
      int64_t& label = label_of[top[leaf]];
      if (label < 0) label = clusters++;
      labels[row * leaves + leaf] = label;
    }
  }
}

}  // namespace dynhac
