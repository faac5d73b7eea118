// One round of a distributed clustering: SubgraphHAC on parts of a graph that is too large for one
// machine.
//
// A name passes to the union of two clusters from the larger one; with equal sizes, from the
// smaller name. So a name and a size together identify a cluster for good.

#ifndef DYNHAC_SUBGRAPH_SUBGRAPH_ROUND_H_
#define DYNHAC_SUBGRAPH_SUBGRAPH_ROUND_H_

#include <cstdint>

#include "core/base/memory.h"
#include "core/base/progress.h"
#include "core/subgraph/half_edges.h"

namespace dynhac {

// Columns. They do not depend on the order of the rows given, and those of a part not on the other
// parts: parts are in ascending order.
struct RoundResult {
  struct Vertices {  // all u; ascending ids within a part
    Vec<int64_t> id;
    Vec<int64_t> image;  // the name of the cluster that it is in now; size, ... are of that
    Vec<int64_t> size;
    Vec<double> least;
    Vec<uint8_t> finished;  // no edge of the image is heavy, and none will ever be
  } vertices;
  struct Merges {  // in the order in which they were made, within a part
    Vec<int64_t> a, b;
    Vec<int64_t> size_a, size_b;
    Vec<int64_t> w;
    Vec<double> similarity;  // w / (size_a * size_b)
    Vec<double> least;
    Vec<int64_t> seq;  // counts from 0 in every part
  } merges;
  // Sums between images, without those of finished ones. Ascending (u, v) within a part.
  // - part == other_part: both ends are images; u < v.
  // - part < other_part: v is as given. An edge between two parts comes from the smaller one only.
  struct Edges {
    Vec<int64_t> part, other_part;
    Vec<int64_t> u, v, w;
    Vec<int64_t> size_u, size_v;   // size_v: 0 between two parts
    Vec<double> least_u, least_v;  // least_v: 0 between two parts
  } edges;
};

// epsilon: merges are (1+epsilon)-good. heavy: edges with a linkage below this are never merged;
// threshold / (1+epsilon), in units of the weights.
//
// Throws std::invalid_argument when the input is not as described in half_edges.h, epsilon or heavy
// is not finite and >= 0, or a sum of weights or of sizes exceeds 2^53. Throws what `poll` throws.
RoundResult subgraph_round(const HalfEdges& edges, double epsilon, double heavy,
                           Poll* poll = nullptr);

}  // namespace dynhac

#endif  // DYNHAC_SUBGRAPH_SUBGRAPH_ROUND_H_
