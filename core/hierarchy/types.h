// The basic types of the core: handles, weights, the linkage, and when a merge is good.
//
// All decisions are defined here, once: `linkage` turns exact integers into the double that is
// compared, `Rule` defines which edges are heavy and which merges are good, `edge_rank` breaks
// ties. None of it depends on addresses, on the order of adjacency lists or on threads.

#ifndef DYNHAC_HIERARCHY_TYPES_H_
#define DYNHAC_HIERARCHY_TYPES_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/flat_map.h"

namespace dynhac {

using Vertex = uint32_t;   // handle of a vertex on its level
using NodeRef = uint32_t;  // handle of a dendrogram node: a leaf or a merge
using Weight = int64_t;    // fixed point, in units of the resolution

inline constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Of all weights. Differences of sums must not overflow either, so sums keep to half the range.
inline constexpr Weight kLargestTotal = (Weight{1} << 62) - 1;

// Average linkage of two clusters of sizes a and b with total weight w between them. Symmetric, and
// monotone in w: the mean of two linkages never rounds above the larger one while w < 2^53.
inline double linkage(Weight w, int64_t a, int64_t b) {
  return static_cast<double>(w) / (static_cast<double>(a) * static_cast<double>(b));
}

// A strict total order on the edges of a level, for equal linkages. It is pseudorandom, so that in
// a graph of equal weights the heaviest edges of the vertices do not form one long chain.
inline uint64_t edge_rank(Vertex u, Vertex v) {
  return mix_bits(static_cast<uint64_t>(std::min(u, v)) << 32 | std::max(u, v));
}

// Linkages here are in units of the resolution.
struct Rule {
  double keep = 1;   // 1 + epsilon: a merge is good, and kept, within this factor
  double make = 1;   // 1 + 0.6 epsilon: new merges leave slack for later updates
  double heavy = 0;  // threshold / (1 + epsilon): lighter edges are never merged

  // Rounding may push a linkage that equals its limit a few units in the last place past it.
  static constexpr double kRounding = 1 + 0x1p-46;

  static Rule of(double epsilon, double threshold, double resolution) {
    Rule rule;
    rule.keep = (1 + epsilon) * kRounding;
    rule.make = (1 + 0.6 * epsilon) * kRounding;
    rule.heavy = threshold / (1 + epsilon) / resolution;
    return rule;
  }

  // The same, with mutual best pairs as the only good ones.
  Rule exact() const { return {kRounding, kRounding, heavy}; }

  bool is_heavy(double l) const { return l >= heavy && l > 0; }

  // A vertex without a heavy edge is finished, until it gets a linkage above this.
  double finished_limit() const { return heavy > 0 ? std::nextafter(heavy, 0.0) : 0.0; }

  // The largest linkage that either side of a merge may have to any other vertex. Always finite: an
  // infinite certificate marks a vertex that took part in no merge.
  double limit(double least_merge, double l) const {
    return std::min(keep * std::min(least_merge, l), std::numeric_limits<double>::max());
  }

  // Whether to merge: l is the linkage of the pair, `outside` the largest linkage of either side to
  // any other vertex, `least_merge` the smallest linkage inside either. Mutual best pairs (outside
  // <= l) are good by the invariant wmax <= (1 + epsilon) * least_merge, even if rounding suggests
  // otherwise.
  bool good(double factor, double outside, double least_merge, double l) const {
    return outside <= l || std::max(outside, l) <= factor * std::min(least_merge, l);
  }
};

// Slots that were created together: some reused, the others new and consecutive.
struct NewSlots {
  Vec<uint32_t> reused;
  uint32_t first = 0;

  uint32_t operator[](size_t i) const {
    return i < reused.size() ? reused[i] : first + static_cast<uint32_t>(i - reused.size());
  }
};

// How many members a group of this level may gain by new merges. The bound keeps reruns cheap; it
// grows with the level to keep the levels few where one vertex must absorb very many.
inline constexpr auto kGroupBounds = [] {
  std::array<uint32_t, 48> bounds{8};
  for (size_t i = 1; i < bounds.size(); ++i) {
    bounds[i] = std::min(bounds[i - 1] + bounds[i - 1] / 2, 1'000'000'000u);
  }
  return bounds;
}();
constexpr uint32_t group_bound(uint32_t level) {
  return kGroupBounds[std::min<size_t>(level, kGroupBounds.size() - 1)];
}

}  // namespace dynhac

#endif  // DYNHAC_HIERARCHY_TYPES_H_
